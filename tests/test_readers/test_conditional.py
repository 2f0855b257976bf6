"""Conditional means of any model: each estimate against one of its own, written as the definition says, and against the truth."""

import itertools
import pickle

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingRegressor, RandomForestClassifier, RandomForestRegressor, VotingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnknownNameError
from exactshap.frames import as_table
from exactshap.readers.conditional.conditional import BANDWIDTHS, ETAS, LEAF_ROWS, Coordinates
from exactshap.semivalues import owen
from tolerances import EPS, FOREST_DIGITS, chance, conditioned, roundings

RNG = np.random.default_rng(0)
COVARIANCE = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.0], [0.3, 0.0, 1.0]])
Z = RNG.multivariate_normal(np.zeros(3), COVARIANCE, 40)
X = RNG.multivariate_normal(np.zeros(3), COVARIANCE, 6)
MASKS = np.array(list(itertools.product([False, True], repeat=3)))
COPULA = {"value_function": "observational-copula"}
WAYS = ("observational", "observational-copula", "observational-forest")


def curve(rows):
    return rows[:, 0] * rows[:, 1] + np.exp(0.5 * rows[:, 2])


def values(function, background, way, rows=X, **settings):
    return Explainer(function, background, value_function=way, **settings).reader.game(as_table(rows)).value(MASKS)


def left_out(kernel, y, weights, eta):
    """Return the weighted squared error on each row, with the regression made anew from the others."""
    total = 0.0
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        solved = np.linalg.solve(kernel[others][:, others] + np.diag(eta / weights[others]), y[others])
        total += weights[i] * (y[i] - kernel[i, others] @ solved) ** 2
    return total


@pytest.mark.parametrize("weights", [None, np.arange(12.0)])
def test_ridge_and_bandwidth_are_those_that_foretell_rows_left_out(weights):
    found = values(curve, Z[:12], "observational", background_weights=weights)
    background = Z[:12] if weights is None else Z[1:12]  # a row of no weight tells nothing
    shares = np.full(12, 1 / 12) if weights is None else weights[1:] / weights.sum()
    y = curve(background)
    mean = shares @ y
    scaled = (background - shares @ background) / np.sqrt(shares @ (background - shares @ background) ** 2)
    rows = (X - shares @ background) / np.sqrt(shares @ (background - shares @ background) ** 2)
    for column, mask in enumerate(MASKS[1:-1], start=1):
        squared = ((scaled[:, None, mask] - scaled[None][:, :, mask]) ** 2).sum(axis=2)
        across = ((rows[:, None, mask] - scaled[None][:, :, mask]) ** 2).sum(axis=2)
        half = 0.5 * shares @ squared @ shares
        choices = [(width**2 * half, eta) for width in BANDWIDTHS for eta in ETAS]
        s, eta = min(choices, key=lambda choice: left_out(np.exp(-squared / (2 * choice[0])), y - mean, shares, choice[1]))
        dual = np.linalg.solve(np.exp(-squared / (2 * s)) + np.diag(eta / shares), y - mean)
        expected = mean + np.exp(-across / (2 * s)) @ dual
        np.testing.assert_allclose(found[:, column], expected, rtol=0, atol=conditioned(1 / ETAS[0]) * np.abs(y).max())
    np.testing.assert_allclose(found[:, 0], mean, rtol=roundings(12))
    np.testing.assert_array_equal(found[:, -1], curve(X))


def test_forests_average_the_leaves_of_known_columns():
    found = values(curve, Z, "observational-forest", n_trees=20, random_state=3)
    for column, mask in enumerate(MASKS[1:-1], start=1):
        settings = {"min_samples_leaf": LEAF_ROWS, "random_state": 3, "bootstrap": True}
        scaled = (Z - Z.mean(axis=0)) / Z.std(axis=0)
        rows = (X - Z.mean(axis=0)) / Z.std(axis=0)
        both = [np.stack([of[:, mask], np.zeros((len(of), mask.sum()))], axis=2).reshape(len(of), -1) for of in (scaled, rows)]
        forest = RandomForestRegressor(20, **settings).fit(both[0], curve(Z), sample_weight=np.ones(len(Z)))
        shares = np.zeros((len(X), len(Z)))
        for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
            times = np.bincount(drawn, minlength=len(Z))
            together = (tree.apply(both[1])[:, None] == tree.apply(both[0])[None, :]) * times
            shares += together / together.sum(axis=1, keepdims=True) / 20
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=roundings(50))
        rounded = np.abs(curve(Z)).max() * FOREST_DIGITS
        np.testing.assert_allclose(found[:, column], shares @ curve(Z), rtol=0, atol=rounded)


def copula_mean(cells, score, rho):
    """E[X_1 | score of X_0] under a Gaussian copula whose margin is that of ``cells``, as a finite sum."""
    edges = norm.ppf(np.arange(len(cells) + 1) / len(cells))
    mass = np.diff(norm.cdf((edges[None, :] - rho * score[:, None]) / np.sqrt(1 - rho**2)))
    return mass @ np.sort(cells)


def test_copulas_draw_what_they_say():
    background, rows = np.exp(Z[:, :2]), np.exp(X[:, :2])  # the margins are no Gaussians
    n = len(background)
    ranks = (np.argsort(np.argsort(background, axis=0), axis=0) + 0.5) / n
    rho = np.corrcoef(norm.ppf(ranks).T)[0, 1]
    inside = np.array([[(column <= cell).mean() for cell in at] for column, at in zip(background.T, rows.T, strict=True)])
    scores = norm.ppf(np.clip(inside, 0.5 / n, 1 - 0.5 / n))
    expected = np.array([copula_mean(background[:, 1 - j], scores[j], rho) for j in (0, 1)]).T
    settings = COPULA | {"n_samples": 4096}
    explainer = Explainer(lambda table: table.sum(axis=1), background, **settings)
    assert explainer.reader.means.correlations[0, 1] == pytest.approx(rho, rel=roundings(100))
    explanation = explainer(rows, index="banzhaf")
    v = [background.sum(axis=1).mean(), rows[:, 0] + expected[:, 0], rows[:, 1] + expected[:, 1], rows.sum(axis=1)]
    phi = 0.5 * np.stack([v[1] - v[0] + v[3] - v[2], v[2] - v[0] + v[3] - v[1]], axis=1)
    assert explanation.std_error.max() < 0.01 * np.abs(background).max()
    assert np.all(np.abs(explanation.values - phi) <= chance(6, explanation.std_error))  # eight replicates: Student's t


def test_standard_errors_of_copulas_are_those_over_seeds():
    settings = COPULA | {"n_samples": 64}
    found = [explain(curve, X, Z, random_state=seed, **settings) for seed in range(40)]
    spread = np.std([one.values for one in found], axis=0, ddof=1)
    told = np.sqrt(np.mean([one.std_error**2 for one in found], axis=0))
    assert 0.8 < np.mean(spread**2) / np.mean(told**2) < 1.25
    assert found[0].kind == "sampled"
    assert "not in the standard errors" in found[0].method


def test_coordinates_are_two_apart_on_average():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"kind": list("aabbbccc") * 4, "size": RNG.normal(size=32), "same": 1.0})
    table, weights = as_table(frame), RNG.dirichlet(np.ones(32))
    for points, expected in zip(Coordinates.of(table, weights, [[0], [1], [2]])(table), (2.0, 2.0, 0.0), strict=True):
        squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
        assert weights @ squared @ weights == pytest.approx(expected, rel=roundings(500), abs=roundings(1))
    strange = as_table(pandas.DataFrame({"kind": ["d"], "size": [np.nan], "same": [7.0]}))
    kind, size, same = Coordinates.of(table, weights, [[0], [1], [2]])(strange)
    assert not kind.any()
    np.testing.assert_array_equal(size, [[0.0, 1.0]])
    assert not same.any()


DAYS = np.array(["2024-01-01", "2024-01-02", "NaT"], "M8[s]")
CELLS = {  # of the background, and the same ones otherwise
    "scalars of NumPy": (["a", "b", None], [np.str_("a"), np.str_("b"), None]),
    "what is missing": (["a", "b", None], ["a", "b", float("nan")]),
    "units of dates": (DAYS, DAYS.astype("M8[ns]")),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_the_same_however_they_are_held(name):
    pandas = pytest.importorskip("pandas")
    first, other = (
        pandas.DataFrame({"column": pandas.Series(cells, dtype=getattr(cells, "dtype", object))}) for cells in CELLS[name]
    )
    coordinates = Coordinates.of(as_table(first), np.full(3, 1 / 3), [[0]])
    np.testing.assert_array_equal(coordinates(as_table(first))[0], coordinates(as_table(other))[0])
    assert coordinates(as_table(first))[0].any(axis=1).all()


@pytest.mark.parametrize("way", ["observational", "observational-forest"])
def test_infinity_is_refused_by_row_and_column(way):
    far = np.where(np.arange(40)[:, None] + np.arange(3) == 7, np.inf, Z)
    for rows, background, words in (
        (X, far, "background contains infinity. First in column 0, row 7"),
        (far[:7], Z, "X.*column 1, row 6"),
    ):
        with pytest.raises(InputError, match=words):
            explain(lambda table: np.nan_to_num(table).sum(axis=1), rows, background, value_function=way)


def worth(rows):
    return (np.asarray(rows["kind"]) == "b") * 1.0 + np.nan_to_num(np.asarray(rows["size"], float)) * 2.0


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("way", ["observational", "observational-forest"])
def test_frames_with_text_and_gaps(library, way):
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(2)
    kind, size = rng.choice(list("abc"), 60), rng.normal(size=60)
    size[kind == "b"] += 3.0
    frame = frames.DataFrame({"kind": kind, "size": [None if i % 9 == 8 else number for i, number in enumerate(size)]})
    explanation = explain(worth, frame[:5], frame, value_function=way)
    assert explanation.certificate().passed
    assert explanation.exact
    assert "exact for the estimated conditional distribution; a coalition explains" in explanation.method


def test_frames_keep_their_dtypes_under_a_copula():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"whole": np.arange(40), "real": Z[:, 0]})

    def function(rows):
        assert rows.schema == frame.schema
        return rows["whole"].to_numpy() + rows["real"].to_numpy()

    assert explain(function, frame[:3], frame, **COPULA).certificate().passed


@pytest.mark.parametrize("way", WAYS)
def test_models_pipelines_outputs_groups_and_players(way):
    target, X = curve(Z), RNG.normal(size=(2, 3))
    settings = {"value_function": way} | ({"n_trees": 20} if way == "observational-forest" else {})
    forest = RandomForestRegressor(5, random_state=0).fit(Z, target)
    of_tree = explain(forest, X, Z, **settings, n_jobs=2)
    of_function = explain(forest.predict, X, Z, **settings)
    np.testing.assert_array_equal(of_tree.values, of_function.values)
    assert of_tree.value_function == way
    assert of_tree.certificate().passed
    whole = make_pipeline(StandardScaler(), LinearRegression()).fit(Z, target)
    bare = LinearRegression().fit(Z, target)
    near = explain(whole, X, Z, **settings).values - explain(bare, X, Z, **settings).values
    assert np.abs(near).max() <= conditioned(1 / ETAS[0]) * np.abs(target).max()
    classes = RandomForestClassifier(5, random_state=0).fit(Z, np.digitize(target, [0.9, 1.5]))
    explainer = Explainer(classes, Z, **settings, groups={"both": [0, 1]})
    explanation = pickle.loads(pickle.dumps(explainer))(X)
    assert explanation.values.shape == (2, 2, 3)
    np.testing.assert_array_equal(explanation.values, explainer(X).values)
    assert explainer(X[:0]).values.shape == (0, 2, 3)
    assert explainer.plan(X).exact == (way != "observational-copula")
    assert explain(curve, X, Z, **settings, index="k-sii", order=2).interactions.shape == (2, 3, 3)


CUT = KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform")
PARTS = {  # steps and members that drop, encode or mix columns
    "dropped": make_pipeline(make_column_transformer(("passthrough", [0, 2])), LinearRegression()),
    "dropped before a kernel": make_pipeline(make_column_transformer(("passthrough", [0, 2])), SVR()),
    "cut": make_pipeline(CUT, LinearRegression()),
    "polynomials": make_pipeline(StandardScaler(), PolynomialFeatures(2), LinearRegression()),
    "some columns each": BaggingRegressor(SVR(), 4, max_features=0.5, random_state=0),
    "two families": VotingRegressor([("kernel", SVR()), ("line", LinearRegression())]),
}


@pytest.mark.parametrize("name", PARTS)
def test_what_steps_do_with_columns_is_known_as_they_come(name):
    model = PARTS[name].fit(Z, curve(Z))
    ways = model, lambda rows: model.predict(rows)
    for groups in None, {"first": [0, 1]}:
        settings = {"value_function": "observational", "groups": groups}
        of_model, of_function = (explain(way, X, Z, **settings) for way in ways)
        np.testing.assert_array_equal(of_model.values, of_function.values)
    with pytest.raises(InputError, match="Pass background="):
        explain(model, X, value_function="observational")


def test_many_players_are_sampled():
    rng = np.random.default_rng(3)
    background = rng.normal(size=(30, 14))
    for way in ("observational", "observational-copula"):
        explanation = explain(lambda rows: rows[:, 0] - rows[:, 1], background[:2], background, value_function=way, budget=60)
        assert explanation.std_error.shape == (2, 14)
        assert explanation.certificate().passed


@pytest.mark.parametrize("way", ["observational-forest", "observational-copula"])
def test_coefficients_that_cancel_are_in_the_tolerance(way):
    """A call of three rows and one of more are each rounded by the size of the terms, 1e5 times the prediction's."""
    rows = np.random.default_rng(0).normal(size=(200, 3))
    model = KernelRidge(kernel="rbf", gamma=0.1, alpha=1e-8).fit(rows, curve(rows))
    explanation = explain(model, X[:3], Z, value_function=way)
    size = np.abs(model.dual_coef_).sum()
    assert size > 1e5 * np.abs(explanation.prediction).max()
    assert (explanation.tolerance > EPS * size).all()


def test_kernel_machines_have_embeddings_of_their_own():
    model = SVR().fit(Z, curve(Z))
    assert "embeddings" in explain(model, X, Z, value_function="observational").method
    assert "kernel ridge regressions" in explain(model.predict, X, Z, value_function="observational", exact_owner=False).method
    assert "copula" in explain(model, X, Z, value_function="observational-copula").method


def test_a_column_of_one_value_and_a_constant_model_say_nothing():
    background = np.column_stack([Z[:, 0], np.ones(40)])
    rows = np.column_stack([X[:, 0], np.full(6, 5.0)])
    reader = Explainer(lambda table: table[:, 0], background, value_function="observational").reader
    told = reader.game(as_table(rows)).value([[False, False], [False, True]])
    np.testing.assert_array_equal(told[:, 0], told[:, 1])
    nothing = explain(lambda table: np.ones(len(table)), X, Z, value_function="observational")
    assert np.abs(nothing.values).max() <= roundings(4)


TIES = np.column_stack([Z, np.arange(40) % 2])
GAPS = np.where(np.arange(120).reshape(40, 3) == 10, np.nan, Z)
BAD = [
    ({"background": None}, InputError, r"needs rows to learn the conditional distribution from\. Got background=None"),
    ({"eta": 0}, InputError, r"'eta' parameter .* float > 0 or 'auto'"),
    ({"eta": 1e-3, "value_function": "observational-forest"}, UnknownNameError, "no setting 'eta'"),
    ({"n_trees": 3, "value_function": "observational-forest"}, InputError, r"'n_trees' parameter must be an int >= 20\. Got 3"),
    ({"n_samples": 3, **COPULA}, InputError, r"'n_samples' parameter must be an int >= 8"),
    (
        {"background": TIES, **COPULA},
        InputError,
        r"continuous columns\. Column 3 holds one value in 50% of the background\. Pass 'obs",
    ),
    ({"background": GAPS, **COPULA}, InputError, r"Column 1 has missing cells"),
    ({"budget": 1}, InputError, "'budget' parameter must be an int >= 2"),
    ({"value_function": "conditional"}, UnknownNameError, "It is called 'observational' here"),
    ({"value_function": "observational-copul"}, UnknownNameError, "Did you mean 'observational-copula'"),
]


@pytest.mark.parametrize(("settings", "error", "match"), BAD, ids=lambda value: str(value)[:40])
def test_bad_settings(settings, error, match):
    settings = {"background": Z, "value_function": "observational", **settings}
    with pytest.raises(error, match=match):
        Explainer(lambda rows: rows[:, 0], settings.pop("background"), **settings)


def test_hierarchies_of_drawn_means_carry_standard_errors():
    explainer = Explainer(curve, Z, value_function="observational-copula", n_samples=64)
    singles, nested = explainer(X), explainer(X, owen({"one": [0], "two": [1], "three": [2]}))  # no group joins columns
    for name in ("values", "std_error", "baseline"):
        one, other = getattr(nested, name), getattr(singles, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(singles.prediction).max(), err_msg=name)
    assert not nested.certificate().exact
