"""Calibrated probabilities and prices of kernel machines, against brute force with the model's own predict_proba and predict."""

import itertools
import warnings

import numpy as np
import pytest
import sklearn
from packaging.version import Version
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

from additive_oracle import masked_games, values_of
from exactshap import Explainer, explain
from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError
from exactshap.readers.responses import NEAR_ENOUGH, ProductScores, couple
from reader_checks import check_answers, second_class
from tolerances import RESPONSE, roundings

RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 5))
SCORE = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.5 * X[:, 3]
CLASSES = np.where(SCORE + 0.3 * RNG.normal(size=200) > 0, "yes", "no")
RANKS = {n: np.searchsorted(np.quantile(SCORE, np.arange(1, n) / n), SCORE) for n in (2, 3, 5)}
ROWS, BACKGROUND = X[100:103], X[:9]
WIDE = RNG.normal(size=(200, 14))
MACHINES = {
    "Gaussian": lambda: SVC(C=3.0),
    "polynomial": lambda: SVC(kernel="poly", degree=2, coef0=1.0),
    "linear": lambda: NuSVC(kernel="linear", nu=0.3),
    "pipeline": lambda: make_pipeline(StandardScaler(), SVC()),
}
EXPONENTIAL = {"func": np.log, "inverse_func": np.exp}
PRICES = {
    "support vectors": SVR(),
    "ridge": KernelRidge(kernel="laplacian", alpha=0.1),
    "process": GaussianProcessRegressor(RBF(2.0) + DotProduct() + WhiteKernel(0.1), optimizer=None, normalize_y=True),
    "noise alone": GaussianProcessRegressor(WhiteKernel(1.0), optimizer=None, normalize_y=True),
    "pipeline": make_pipeline(StandardScaler(), SVR()),
}


def calibrated(name, rows=X, classes=CLASSES, **settings):
    return CalibratedClassifierCV(MACHINES[name](), cv=2, **settings).fit(rows, classes)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", MACHINES)
def test_calibrations_are_those_of_brute_force(name, method):
    model = calibrated(name, method=method, ensemble=method == "sigmoid")
    found = check_answers(model, second_class(model), ROWS, BACKGROUND, 100 * RESPONSE, contract=name == "Gaussian")
    assert found.unit == "probability of class yes"
    assert "enumeration" in found.method


@pytest.mark.parametrize("name", PRICES)
def test_prices_are_those_of_brute_force(name):
    model = TransformedTargetRegressor(PRICES[name], **EXPONENTIAL).fit(X, np.exp(SCORE))
    found = check_answers(model, model.predict, ROWS, BACKGROUND, 100 * RESPONSE, contract=False, output="response")
    assert found.unit == "target"


def fitted_of(machine, classes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of `probability=`, which scikit-learn 1.11 will not have
        return machine.fit(X, classes)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("machine", [SVC(probability=True), NuSVC(kernel="poly", degree=2, nu=0.2, probability=True)], ids=str)
def test_coupled_sigmoids_are_those_of_brute_force(machine, n_classes):
    model = fitted_of(machine, RANKS[n_classes])
    own = second_class(model) if n_classes == 2 else lambda rows: model.predict_proba(rows)
    found = check_answers(model, own, ROWS, BACKGROUND, 1_000 * RESPONSE, contract=n_classes == 3, output="probability")
    assert found.unit == ("probability of class 1" if n_classes == 2 else "probability")
    assert found.output_names == (None if n_classes == 2 else tuple(map(str, range(n_classes))))
    assert explain(model, ROWS, BACKGROUND).unit.endswith(
        "decision function of class 1" if n_classes == 2 else "decision function"
    )


def coupled_by_hand(of_pairs, n):
    """Follow the steps of LIBSVM in plain Python."""
    r, p = np.zeros((n, n)), np.full(n, 1.0 / n)
    r[np.triu_indices(n, 1)] = of_pairs
    r[np.tril_indices(n, -1)] = (1.0 - r.T)[np.tril_indices(n, -1)]
    q = np.diag((r**2).sum(axis=0)) - r * r.T
    for _ in range(100):
        if np.abs(q @ p - p @ q @ p).max() < NEAR_ENOUGH / n:
            break
        for t in range(n):
            p[t] += (p @ q @ p - q[t] @ p) / q[t, t]
            p /= p.sum()
    return p


def test_coupled_probabilities_solve_their_least_squares():
    chances = np.random.default_rng(0).uniform(0.02, 0.98, (50, 6))
    found = np.empty((50, 4))
    couple(chances, NEAR_ENOUGH, 100, found)
    for p, of_pairs in zip(found, chances, strict=True):
        rows = []
        for chance, (i, j) in zip(of_pairs, itertools.combinations(range(4), 2), strict=True):
            # r_ji p_i = r_ij p_j, once for either order of the two
            rows.append([((1.0 - chance) * (k == i) - chance * (k == j)) * np.sqrt(2.0) for k in range(4)])
        gram = np.array(rows).T @ np.array(rows) / 2.0
        left = np.linalg.solve(np.block([[gram, np.ones((4, 1))], [np.ones((1, 4)), np.zeros((1, 1))]]), np.eye(5)[4])[:4]
        assert np.abs(p - left).max() < NEAR_ENOUGH
        np.testing.assert_allclose(p, coupled_by_hand(of_pairs, 4), rtol=0, atol=roundings(100))
        assert abs(p.sum() - 1.0) < roundings(100)


@pytest.mark.parametrize("method", ["sigmoid", "temperature"])
@pytest.mark.parametrize("machine", [SVC(), make_pipeline(StandardScaler(), NuSVC(nu=0.2)), LinearSVC()], ids=str)
def test_calibrations_of_several_classes_are_those_of_brute_force(machine, method):
    if method == "temperature" and Version(sklearn.__version__) < Version("1.8"):
        pytest.skip("before temperatures")
    for classes in (RANKS[3], RANKS[2])[: 1 + (method == "temperature")]:
        model = CalibratedClassifierCV(machine, cv=2, method=method).fit(X, classes)
        own = second_class(model) if classes is RANKS[2] else lambda rows: model.predict_proba(rows)  # noqa: B023
        found = check_answers(model, own, ROWS, BACKGROUND, 100 * RESPONSE, contract=False)
        assert found.unit.startswith("probability")


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_votes_of_pairs_are_those_of_brute_force(shape):
    votes, model = (SVC(decision_function_shape=one).fit(X, RANKS[5]) for one in ("ovr", shape))
    found = check_answers(model, votes.decision_function, ROWS, BACKGROUND, 100 * RESPONSE, output="ovr")
    assert found.unit == "one-vs-rest decision function"
    assert found.output_names == ("0", "1", "2", "3", "4")


def test_a_vote_that_is_a_matter_of_rounding_is_refused_with_a_way_out():
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model, middle = SVC(gamma=1.0).fit(corners, [0, 1, 2, 3]), np.array([[0.5, 0.5]])
    with pytest.raises(
        UnsupportedStructureError, match=r"between two classes.*explain\(model.decision_function, X, background"
    ):
        explain(model, middle, corners, output="ovr")
    assert explain(model.decision_function, middle, corners).certificate().passed


def test_beyond_twelve_columns_errors_of_several_classes_are_those_of_orders():
    model = SVC(probability=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model.fit(WIDE, np.digitize(WIDE[:, 0] * WIDE[:, 1] + WIDE[:, 2:6].sum(axis=1), [-1.0, 1.0]))
    settings = {"output": "probability"}
    exact = explain(model, WIDE[100:103], WIDE[:10], budget=2**14, **settings)
    off = [explain(model, WIDE[100:103], WIDE[:10], random_state=seed, **settings) for seed in range(3)]
    off = [(found.values - exact.values) / found.std_error for found in off]
    assert exact.exact
    assert 0.6 < np.sqrt(np.mean(np.square(off))) < 1.5  # as of two classes


def test_groups_weights_one_reference_and_pairs():
    model = calibrated("Gaussian")
    own, weights, players = second_class(model), np.arange(1.0, 10.0), [(0, 3), (1,), (2, 4)]
    groups = {"a": [0, 3], "b": [1], "c": [2, 4]}
    found = explain(model, ROWS, BACKGROUND, groups=groups, background_weights=weights, index="k-sii", order=2)
    wanted = values_of(masked_games(own, ROWS, BACKGROUND, weights, players), 3, "k-sii", 2)
    np.testing.assert_allclose(found.set_values, wanted, atol=100 * RESPONSE)
    one = explain(model, ROWS, BACKGROUND[:1], value_function="baseline")
    wanted = values_of(masked_games(own, ROWS, BACKGROUND[:1]), 5, "shapley", 1)
    np.testing.assert_allclose(one.values, wanted, atol=100 * RESPONSE)


@pytest.fixture(scope="module")
def many():
    model = calibrated("Gaussian", WIDE, WIDE[:, 0] * WIDE[:, 1] + WIDE[:, 2:6].sum(axis=1) > 0, ensemble=False)
    return model, explain(model, WIDE[100:106], WIDE[:20], budget=2**14)


def test_beyond_twelve_columns_errors_are_those_of_orders(many):
    model, exact = many
    assert exact.exact
    off = []
    for seed in range(4):
        found = explain(model, WIDE[100:106], WIDE[:20], random_state=seed)
        assert "orders of 14 players" in found.method
        assert found.certificate().passed
        off.append((found.values - exact.values) / found.std_error)
    # 336 numbers of variance 1, those of a row dependent: 0.75 to 1.35 for many seeds
    assert 0.6 < np.sqrt(np.mean(np.square(off))) < 1.5


def test_a_regression_and_orders_agree_with_all_coalitions(many):
    model, _ = many
    found = explain(model, WIDE[100:106], WIDE[:20], budget=400, index="banzhaf")
    wanted = explain(model, WIDE[100:106], WIDE[:20], budget=2**14, index="banzhaf")
    assert np.abs((found.values - wanted.values) / found.std_error).max() < 6.0
    plan = Explainer(model, WIDE[:20]).plan(WIDE[:9])
    assert plan.exact is False
    assert 1e5 < plan.memory < 2**28


def test_prices_of_coalitions_may_be_far_above_those_of_rows():
    score = 3.0 * (WIDE[:, :5].sum(axis=1) + 2.0 * WIDE[:, 5] * WIDE[:, 6] + np.abs(WIDE[:, 7]))
    model = TransformedTargetRegressor(SVR(C=100, gamma=0.05), **EXPONENTIAL).fit(WIDE, np.exp(score))
    low = WIDE[np.argsort(score)[:9]]
    found = explain(model, low[3:], low[:3], output="response")
    assert found.certificate().passed
    assert np.abs(found.values).max() > 100.0 * np.abs(found.prediction - found.baseline).max()


def product_scores(n_background=3, n_players=4, n_terms=11, n_outputs=2):
    rng = np.random.default_rng(1)
    present, absent = rng.normal(size=(n_players, n_terms)), rng.normal(size=(n_background, n_players, n_terms))
    present[2] = absent[:, 2] = present[2]  # which moves nothing

    def tiles():
        return ((slice(i, i + 2), absent[i : i + 2]) for i in range(0, n_background, 2))

    coefficients, constant = rng.normal(size=(n_outputs, n_terms)), rng.normal(size=n_outputs)

    def by_hand(z, mask):
        return constant + coefficients @ np.where(mask[:, None], present, absent[z]).prod(axis=0)

    return ProductScores.of_row(coefficients, present, tiles, constant), by_hand


def test_products_of_masks_of_orders_and_of_all_coalitions_are_those_by_hand():
    scores, by_hand = product_scores()
    assert scores.players == [0, 1, 3]
    masks = np.random.default_rng(2).random((9, 4)) < 0.5
    wanted = np.stack([np.stack([by_hand(z, mask) for mask in masks], axis=1) for z in range(3)])
    np.testing.assert_allclose(scores.of(masks), wanted, rtol=roundings(1_000))
    orders = np.array([[np.random.default_rng(10 * z + k).permutation(3) for k in range(5)] for z in range(3)])
    along = scores.along(orders)
    players, blocks = scores.every()
    every = np.concatenate(list(blocks))
    for z, k, p in np.ndindex(3, 5, 4):
        mask = np.zeros(4, bool)
        mask[[player for player, place in zip(scores.players, orders[z, k], strict=True) if place < p]] = True
        np.testing.assert_allclose(along[z, :, k, p], by_hand(z, mask), rtol=roundings(1_000))
        number = int(mask[players] @ 2 ** np.arange(3))
        np.testing.assert_allclose(every[z, :, number], by_hand(z, mask), rtol=roundings(1_000))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("machine", [GaussianProcessRegressor(alpha=0.1), KernelRidge(kernel="rbf", alpha=1e-6, gamma=0.02)])
def test_hybrids_of_scores_that_cancel_are_compared_with_their_rounding(machine, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(150, 5))
    logarithms = rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.1 * rng.normal(size=150)
    model = TransformedTargetRegressor(machine, **EXPONENTIAL).fit(rows, np.exp(logarithms))
    explainer = Explainer(model, rows[50:58], output="response")
    assert explainer(rows[:3]).certificate().passed
    assert explainer.verify(rows[:3]).passed


def test_large_coefficients_round_as_the_model_does():
    rows = X * [1e3, 1.0, 30.0, 1.0, 1.0]
    model = CalibratedClassifierCV(SVC(C=1e4), cv=2, ensemble=False).fit(rows, CLASSES)
    found = explain(model, rows[100:103], rows[:9])
    assert found.certificate().passed
    np.testing.assert_allclose(found.prediction, second_class(model)(rows[100:103]))


def test_what_is_not_read_says_what_to_do():
    model = calibrated("Gaussian")
    with pytest.raises(UnknownNameError, match=r"probability of class yes of .* has no value function 'functional'"):
        explain(model, ROWS, BACKGROUND, value_function="functional")
    with pytest.raises(InputError, match="needs reference rows"):
        explain(model, ROWS)
    by_pairs = CalibratedClassifierCV(SVC(decision_function_shape="ovo"), cv=2).fit(X, RANKS[3])
    with pytest.raises(UnsupportedStructureError, match="Got SVC of 3 classes"):
        explain(by_pairs, ROWS, BACKGROUND)
    with pytest.raises(
        UnsupportedStructureError, match=r"decision function.*CalibratedClassifierCV\(model\) for probabilities"
    ):
        explain(SVC().fit(X, CLASSES), ROWS, BACKGROUND, output="probability")
