"""The certificate's coalitions: what is compared, when, what is said of it, and what becomes of it in files and selections."""

import itertools
import json
import pickle
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, VotingRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import golden_models
from exactshap import Explainer, Explanation
from exactshap.errors import ExactnessError, ExplanationWarning
from exactshap.explainer._certify import coalitions, worst_of
from exactshap.explainer._verify import reference_values
from exactshap.frames import above, as_table, hybrid_cells
from exactshap.games import AdditiveGame, ProductGame
from exactshap.readers.kernel_machines import KernelReader
from exactshap.solvers import solve
from explanation_factory import facts, rewritten
from injected_faults import spoil
from tolerances import assert_close

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
NOT_PREDICTED = "not what the model predicts for hybrid rows"
MODELS = {
    "svr": SVR().fit(X, Y),
    "tree": DecisionTreeRegressor(max_depth=4).fit(X, Y),
    "ridge": Ridge().fit(X, Y),
    "columns dropped": make_pipeline(make_column_transformer((StandardScaler(), [0, 2])), SVR()).fit(X, Y),
}


MIXED = pd.DataFrame(X, columns=list("abcd")).assign(
    e=pd.Categorical(rng.choice(["u", "v"], 300)), f=rng.integers(5, size=300), g=rng.choice(["red", "blue"], 300)
)


def test_hybrids_of_categories_keep_their_order_and_gaps():
    here = as_table(pd.DataFrame({"a": pd.Categorical(["u", None], ["u", "v"]), "b": ["x", None]}))
    there = as_table(pd.DataFrame({"a": pd.Categorical(["v", "u"], ["v", "u"]), "b": [None, "y"]}))
    for columns in itertools.product([False, True], repeat=4):
        inside = np.reshape(columns, (2, 2))
        mixed = hybrid_cells(here, there, np.array([0, 1]), np.array([1, 0]), inside)
        assert mixed.native["a"].cat.categories.tolist() == ["u", "v"]
        cells = np.where(inside, here.native.astype(object), there.native.astype(object).iloc[::-1])
        assert mixed.native.astype(object).fillna("").to_numpy().tolist() == pd.DataFrame(cells).fillna("").to_numpy().tolist()


def frames_of_every_kind():
    """Return a frame of each library with numbers, text, categories, dates and gaps."""
    n, gaps = 24, np.arange(24) % 5 == 0
    days = np.datetime64("2024-02-28", "us") + np.arange(n) * np.timedelta64(7, "h")
    columns = {"a": X[:n, 0], "i": np.arange(n), "f": X[:n, 1].astype(np.float32), "b": gaps, "d": days, "t": MIXED["g"][:n]}
    polars = pl.DataFrame(columns).with_columns(
        c=pl.col("t").cast(pl.Categorical),
        e=pl.col("t").cast(pl.Enum(["red", "blue"])),
        **{f"{name}_gaps": pl.when(~pl.col("b")).then(pl.col(name)) for name in ("i", "t", "d")},
        l=pl.Series([[k] * (k % 3) for k in range(n)]),
    )
    pandas = polars.drop("l").to_pandas()
    pandas = pandas.assign(
        n=pandas["i_gaps"].astype("Int64"), s=pandas["t_gaps"].astype("string"), z=pandas["d"].dt.tz_localize("Europe/Berlin")
    )
    numbered = pandas.set_axis([1, (2, 3), *pandas.columns[2:]], axis=1).set_index(pandas["d"].rename("when"))
    arrays = {"array": X[:n], "array of text": MIXED.to_numpy()[:n], "single precision": X[:n].astype(np.float32)}
    return {"polars": polars, "pyarrow": polars.to_arrow(), "pandas": pandas, "pandas, odd labels": numbered, **arrays}


def rows_of(frame, numbers):
    """Return some rows of a frame of any library."""
    if isinstance(frame, pa.Table):
        return frame.take(pa.array(numbers))
    return frame.iloc[numbers] if isinstance(frame, pd.DataFrame) else frame[np.asarray(numbers)]


def cells_of(frame):
    """Return a frame's cells, None where one is missing, as lists of columns."""
    if isinstance(frame, pa.Table):
        return [column.to_pylist() for column in frame.columns]
    if isinstance(frame, pl.DataFrame):
        return [column.to_list() for column in frame.get_columns()]
    if isinstance(frame, np.ndarray):
        return frame.T.tolist()
    return [[None if pd.isna(cell) else cell for cell in frame.iloc[:, j]] for j in range(frame.shape[1])]


def schema_of(frame):
    """Return what a library says of the columns, the order of categories included."""
    if not isinstance(frame, pd.DataFrame):
        return getattr(frame, "schema", None) or frame.dtype
    kinds = [column.cat.categories.tolist() if column.dtype == "category" else column.dtype for _, column in frame.items()]
    return list(zip(frame.columns, kinds, strict=True)), frame.index.dtype, frame.index.name


@pytest.mark.parametrize("kind", frames_of_every_kind())
@pytest.mark.parametrize("n", [0, 1, 9])
def test_hybrids_of_frames_of_every_library_cell_by_cell(kind, n):
    frame = frames_of_every_kind()[kind]
    upper, lower = rows_of(frame, np.arange(10)), rows_of(frame, np.arange(10, 24))
    here, other = as_table(upper), as_table(lower)
    rows, references, inside = rng.integers(10, size=n), rng.integers(14, size=n), rng.random((n, here.n_columns)) < 0.5
    mixed = hybrid_cells(here, other, rows, references, inside)
    assert type(mixed.native) is type(upper)
    assert schema_of(mixed.native) == schema_of(upper)
    mine, theirs, found = cells_of(upper), cells_of(lower), cells_of(mixed.native)
    for j, column in enumerate(found):
        assert column == [mine[j][rows[i]] if inside[i, j] else theirs[j][references[i]] for i in range(n)]
    if isinstance(upper, pd.DataFrame):
        assert mixed.native.index.equals(upper.index.take(rows))
    both = above(here, mixed)
    assert schema_of(both.native) == schema_of(upper)
    assert cells_of(both.native) == [column + more for column, more in zip(mine, found, strict=True)]
    assert both.dtypes == as_table(both.native).dtypes == here.dtypes
    assert here.stacks_with(mixed)


def test_labels_of_columns_that_read_alike_are_of_one_column():
    numbers = MIXED.iloc[:8, 3:].set_axis([1, 2, 3, 4], axis=1)
    here, other = as_table(numbers[:4]), as_table(numbers[4:].set_axis(["1", "2", "3", "4"], axis=1))
    mixed = hybrid_cells(here, other, np.array([0, 1]), np.array([2, 3]), np.array([[True, False, True, False]] * 2))
    assert mixed.native.columns.tolist() == [1, 2, 3, 4]
    assert mixed.native[2].tolist() == other.native["2"].iloc[2:].tolist()


def test_frames_of_other_dtypes_or_libraries_are_not_mixed():
    frame = frames_of_every_kind()["polars"]
    here, chosen = as_table(frame), (np.array([0]), np.array([1]), np.ones((1, frame.width), bool))
    others = {
        "order of categories": frame.with_columns(pl.col("e").cast(pl.String).cast(pl.Enum(["blue", "red"]))),
        "precision": frame.with_columns(pl.col("f").cast(pl.Float64)),
        "arrow": frame.to_arrow(),
        "pandas": frame.drop("l").to_pandas().assign(l=0.0),
    }
    for other in map(as_table, others.values()):
        assert not here.stacks_with(other)
        assert hybrid_cells(here, other, *chosen) is None


class Watched(TransformerMixin, BaseEstimator):
    """Keeps the rows that it has seen, in the class: as its own they would be a change of the model."""

    seen: ClassVar[list] = []

    def fit(self, rows, target=None):
        self.n_features_in_ = 4
        return self

    def transform(self, rows):
        self.seen.append(rows)
        return rows


@pytest.mark.parametrize("n_rows", [1, 40])
@pytest.mark.parametrize("kind", ["polars", "pyarrow", "pandas"])
def test_steps_see_hybrids_of_the_kind_of_the_users_rows_in_one_call(kind, n_rows, monkeypatch):
    monkeypatch.setattr("exactshap.explainer._certify.ROWS_BETWEEN", 2)  # every other single row, by chance
    text = MIXED[["e", "g"]].astype(str)
    frame = pl.DataFrame({"e": text["e"].to_list(), "g": text["g"].to_list(), "a": X[:, 0], "f": MIXED["f"].to_list()})
    frame = frame.with_columns(pl.col("e").cast(pl.Enum(["v", "u"])))
    if kind == "pyarrow":
        frame = frame.to_arrow()
    if kind == "pandas":
        frame = frame.to_pandas().set_index(MIXED.index.map("row {}".format))
    encoded = make_column_transformer((OneHotEncoder(), ["e", "g"]), (StandardScaler(), ["a", "f"]))
    model = make_pipeline(Watched(), encoded, Ridge()).fit(frame, Y)
    explainer = Explainer(model, rows_of(frame, np.arange(12)))
    rows, hybrids = rows_of(frame, np.arange(20, 20 + n_rows)), 0
    n_calls = 5 if n_rows == 1 else 2
    for _ in range(n_calls):
        Watched.seen.clear()
        certificate = explainer(rows).certificate()
        assert certificate.passed
        for seen in Watched.seen:
            assert type(seen) is type(rows)
            # Labels that repeat become numbers on the way to a model
            same = schema_of(seen)[0] == schema_of(rows)[0] if kind == "pandas" else schema_of(seen) == schema_of(rows)
            assert same
        hybrids += bool(certificate.mask_rows)
        own_call = [seen for seen in Watched.seen if len(seen) > n_rows]
        assert n_rows < 40 or len(own_call) == 1, "rows, hybrids and some of the background in one call"
    assert hybrids == n_calls if n_rows == 40 else 0 < hybrids < n_calls


def swapped(values):
    return values[:, [1, 0, 2, 3]]


@pytest.mark.parametrize("of_frames", itertools.product([False, True], repeat=2), ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hybrids_of_numbers_in_arrays_and_frames(of_frames, dtype):
    table = {False: as_table, True: lambda rows: as_table(pd.DataFrame(rows, columns=list("abcd")))}
    rows, references = table[of_frames[0]](X[:5].astype(dtype)), table[of_frames[1]](X[5:9])
    columns = rng.random((3, 4)) < 0.5
    mixed = hybrid_cells(rows, references, np.array([4, 0, 1]), np.array([3, 3, 0]), columns)
    expected = np.where(columns, X[:5][[4, 0, 1]], X[5:9][[3, 3, 0]]).astype(dtype)
    np.testing.assert_array_equal(np.asarray(mixed.native), expected)
    assert mixed.is_frame == rows.is_frame
    assert above(rows, mixed).is_plain == rows.is_plain


def test_sums_of_models_are_compared_with_their_own_predictions(monkeypatch):
    model = VotingRegressor([("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3)), ("svr", SVR())]).fit(X, Y)
    spoil(monkeypatch, KernelReader, swapped)
    with pytest.raises(ExactnessError, match=NOT_PREDICTED):
        Explainer(model, X[:20])(X[20:40])


def test_verify_says_which_trees_it_could_not_compare_with_a_dump():
    text = str(Explainer(IsolationForest(n_estimators=5).fit(X)).verify(X[:3]))
    assert "not checked: " in text
    assert "the nodes of the trees" in text


def test_one_reference_row_is_compared_with_the_first_rows_that_come():
    explainer = Explainer(MODELS["tree"], X[:1], value_function="baseline")
    assert explainer(X[5:6]).certificate().mask_rows == (0,)


@pytest.mark.parametrize("settings", [{}, {"background": X[:9], "value_function": "observational"}])
def test_where_no_rows_are_replaced_nothing_is_compared(settings):
    certificate = Explainer(MODELS["svr"], **settings)(X[:12]).certificate()
    assert (certificate.mask_difference, certificate.n_masks) == (None, 0)
    assert "v(S) not compared: " in str(certificate)
    assert "no hybrid rows" in certificate.mask_reason


def test_a_function_is_compared_with_itself_on_rows_masked_by_hand():
    certificate = Explainer(lambda rows: rows[:, 0] * rows[:, 1], X[:6])(X[:12]).certificate()
    assert certificate.passed
    assert certificate.n_masks == 6  # two of these rows, two of the background, v(empty), and the background again


def test_credit_for_the_wrong_column_fails_the_certificate_and_stays_failed(monkeypatch):
    spoil(monkeypatch, KernelReader, swapped)
    explainer = Explainer(MODELS["svr"], X[:20])
    for rows in (X[:1], X[:15], X[:1]):
        with pytest.raises(ExactnessError, match=NOT_PREDICTED):
            explainer(rows)
    warned = Explainer(MODELS["svr"], X[:20], on_inexact="warn")
    with pytest.warns(ExplanationWarning, match="hybrid rows"):
        explanation = warned(X[:15])
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance[0])
    assert "FAILED" in explanation.facts()["coalitions"]
    assert not explanation.certificate().passed


def test_selections_pickles_and_files_keep_what_was_checked(tmp_path):
    explainer = pickle.loads(pickle.dumps(Explainer(MODELS["tree"], X[:20])))
    explanation = explainer(X[:40])
    row = explanation.mask_rows[0]
    assert explanation[[row]].mask_rows == (0,)
    assert explanation[[i for i in range(40) if i not in explanation.mask_rows]].mask_rows == ()
    explanation.save(tmp_path / "a.npz")
    assert Explanation.load(tmp_path / "a.npz").certificate() == explanation.certificate()
    old = json.dumps({name: fact for name, fact in facts(explanation).items() if "mask" not in name})
    path = rewritten(tmp_path / "old.npz", explanation, metadata__json=old)
    assert Explanation.load(path).certificate().mask_difference is None  # of a file without coalitions


@pytest.mark.parametrize("n_rows", [3, 30])
def test_a_baseline_that_is_off_in_one_row_fails_the_certificate(n_rows, monkeypatch):
    explainer = Explainer(MODELS["tree"], X[:20])
    explainer(X[:n_rows])
    solve = type(explainer.reader).solve

    def moved(self, table, semivalue, order):
        solution = solve(self, table, semivalue, order)
        solution.empty[1] += 1e-6  # which its values make up for: rows add up
        solution.values[1, 0] -= 1e-6
        return solution

    monkeypatch.setattr(type(explainer.reader), "solve", moved)
    with pytest.raises(ExactnessError, match=NOT_PREDICTED):
        explainer(X[:n_rows])


def test_verify_says_what_it_could_not_check():
    text = str(Explainer(MODELS["svr"], X[:9], value_function="observational").verify(X[:3]))
    assert text.startswith("residual and values passed")
    assert "not checked: v(S)" in text
    wide = rng.normal(size=(60, 14))
    text = str(Explainer(lambda rows: rows.sum(axis=1), wide[:5], budget=80).verify(wide[:3]))
    assert text.startswith("residual and coalitions passed")
    assert "values one by one" in text


def test_values_by_the_definition_agree_for_few_and_many_players():
    for d in (3, 13):
        game = ProductGame(rng.normal(size=4), rng.uniform(0.5, 1.5, (2, 4, d)), rng.uniform(0.5, 1.5, (3, 4, d)))
        assert_close(reference_values(game), solve(game).values, scale=100.0, n_terms=12, n_players=d)
        subsets = [(0, d - 1), (1,), (), (2, 0, 1)]
        terms = AdditiveGame(d, subsets, [rng.normal(size=(2, 2 ** len(subset))) for subset in subsets])
        assert_close(reference_values(terms), solve(terms).values, scale=10.0, n_terms=4, n_players=3)


OF_GOLDEN = (
    *("scaled target", "grid search", "KernelRidge two targets", "GP", "RBFSampler", "voting"),
    *("gradient boosting three classes", "LogisticRegression three classes"),
)


KINDS = {
    "array": np.asarray,
    "frame": lambda rows: pd.DataFrame(rows, columns=list("abcd")),
    "background in a frame": np.asarray,
    **{dtype: lambda rows, dtype=dtype: (4.0 * rows).astype(dtype) for dtype in ("float32", "int64")},
}


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names:UserWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_hybrids_of_every_family_are_solved_and_compared(name, kind):
    explainer = Explainer(MODELS[name], KINDS["frame"](X[:20]) if "frame" in kind else X[:20])
    for rows in (X[20:30], X[30:200]):
        is_compared(explainer(KINDS[kind](rows)), len(rows))


@pytest.mark.parametrize("name", OF_GOLDEN)
def test_hybrids_of_more_families_are_solved_and_compared(name):
    data = golden_models.Data()
    explainer = Explainer(golden_models.MODELS[name].fitted(data), data.X[:20])
    is_compared(explainer(data.X[20:40]), 20)


def is_compared(explanation, n_rows):
    certificate = explanation.certificate()
    assert certificate.passed
    assert 1 <= len(certificate.mask_rows) <= certificate.n_masks
    assert max(certificate.mask_rows) < n_rows
    assert certificate.mask_difference <= certificate.mask_tolerance


def test_small_requests_are_compared_before_the_first_and_now_and_then():
    explainer = Explainer(MODELS["svr"], X[:20])
    own = [bool(explainer(X[i : i + 1]).certificate().mask_rows) for i in range(120)]
    assert 0 < sum(own) < 30
    assert explainer(X[:1]).certificate().n_masks >= 32


@pytest.mark.parametrize("model", ["tree", "ridge"])
def test_the_rows_that_are_predicted_together_change_no_value(model):
    explainer = Explainer(MODELS[model], X[:20])
    together, alone = explainer(X[20:170]), [explainer(X[i : i + 1]) for i in range(20, 170)]
    for name in ("values", "baseline", "tolerance"):
        np.testing.assert_array_equal(getattr(together, name), np.concatenate([getattr(one, name) for one in alone]))


def test_weights_of_the_background_are_seen_by_the_mean_prediction():
    explainer = Explainer(MODELS["svr"], X[:20], background_weights=np.arange(1.0, 21.0))
    assert explainer(X[:12]).certificate().passed
    careless = Explainer(MODELS["svr"], X[:20])
    weights = np.arange(1.0, 21.0) / 210.0
    careless.reader.traits = replace(careless.reader.traits, weights=weights)  # which its solver does not know of
    with pytest.raises(ExactnessError, match="hybrid rows"):
        careless(X[:12])


@pytest.mark.parametrize("n", [4, 12])
@pytest.mark.parametrize(("size", "allowed"), [(np.inf, np.inf), (np.nan, np.inf), (np.nan, np.nan), (0.0, np.nan)])
def test_a_row_that_is_off_is_not_hidden_by_one_that_overflows(n, size, allowed):
    residual, tolerance = np.zeros(n), np.full(n, 1e-9)
    residual[3], tolerance[3] = size, allowed
    assert not np.isfinite(worst_of(residual, tolerance)[1]), "nothing else is worse"
    residual[1] = 1.0
    assert worst_of(residual, tolerance) == (1.0, 1e-9)


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(6,), (40,), (6, 3), (40, 3)])
def test_the_worst_row_for_its_tolerance_is_found(shape, bad):
    residual, tolerance = rng.uniform(-1e-9, 1e-9, shape), rng.uniform(1e-3, 1.0, shape[0])
    worst = int(np.argmax(np.abs(residual).reshape(shape[0], -1).max(axis=1) - tolerance))
    assert worst_of(residual, tolerance) == (np.abs(residual[worst]).max(), tolerance[worst])
    residual[4], tolerance[4] = bad, 1e-3
    assert worst_of(residual, tolerance) == (0.5 if bad == 0.5 else np.inf, 1e-3)


def test_coalitions_come_with_their_complements():
    masks = coalitions(np.random.default_rng(0), 6, 9)
    np.testing.assert_array_equal(masks[::2], ~masks[1::2])


def test_kernel_machines_whose_terms_cancel_are_not_called_exact():
    rows = X[:30].copy()
    rows[1], rows[3] = rows[0], rows[2]
    steep = KernelRidge(kernel="rbf", gamma=1e12, alpha=1.0).fit(rows, Y[:30])  # rounding of a difference decides
    for background in (rows[:8], None):
        with pytest.warns(ExplanationWarning, match="Rounding leaves about 0 digits of what KernelRidge predicts"):
            explanation = Explainer(steep, background)(rows[:3])
        assert explanation.kind == "approximate"
        assert (explanation.approximation_error == explanation.tolerance).all()
    assert Explainer(KernelRidge(kernel="rbf").fit(rows, Y[:30]), rows[:8])(rows[:3]).kind == "exact"
