"""The certificate's coalitions: what is compared, when, what is said of it, and what becomes of it in files and selections."""

import functools
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from exactshap import Explainer, Explanation
from exactshap.errors import ExactnessError, ExplanationWarning, InputTypeError
from exactshap.explainer import _mask_check
from exactshap.explainer._hybrids import Pool
from exactshap.explainer._mask_sums import MaskCheck, sums, together, worst_within
from exactshap.explainer._reference import reference_values
from exactshap.explainer._solve import APART, Cut, solve_blocks
from exactshap.frames import above, as_table, hybrid_cells, hybrid_columns
from exactshap.games import AdditiveGame, ProductGame
from exactshap.readers.kernel_machines import KernelReader
from exactshap.semivalues import find
from exactshap.solvers import Comparison, Solution, solve
from exactshap.solvers.core import _pieces
from tolerances import assert_close

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
MODELS = {"svr": SVR().fit(X, Y), "tree": DecisionTreeRegressor(max_depth=4).fit(X, Y), "ridge": Ridge().fit(X, Y)}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [np.asarray, lambda rows: pd.DataFrame(rows, columns=list("abcd"))])
@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
def test_every_explanation_of_ten_rows_checks_at_least_two_coalitions_of_its_own(name, kind):
    explainer = Explainer(MODELS[name], kind(X[:20]))
    for rows in (X[20:30], X[30:200]):
        certificate = explainer(kind(rows)).certificate()
        assert certificate.passed
        assert 1 <= len(certificate.mask_rows) <= certificate.n_masks
        assert max(certificate.mask_rows) < len(rows)
        assert certificate.mask_difference <= certificate.mask_tolerance


def test_single_rows_are_checked_before_the_first_and_now_and_then(monkeypatch):
    explainer = Explainer(MODELS["svr"], X[:20])
    assert explainer._check_masks._before is None, "an explainer that is only made pays for no hybrids"
    monkeypatch.setattr(_mask_check, "EVERY", 5)
    own = [bool(explainer(X[i : i + 1]).certificate().mask_rows) for i in range(11)]
    assert own == [False, False, False, False, True] * 2 + [False]
    assert explainer(X[:1]).certificate().n_masks >= _mask_check.MADE


MIXED = pd.DataFrame(X, columns=list("abcd")).assign(
    e=pd.Categorical(rng.choice(["u", "v"], 300)), f=rng.integers(5, size=300), g=rng.choice(["red", "blue"], 300)
)


def one_hot():
    steps = make_column_transformer((OneHotEncoder(), ["e", "g"]), (StandardScaler(), ["a", "b", "c", "d", "f"]))
    return make_pipeline(steps, Ridge()).fit(MIXED, Y)


def test_hybrids_of_frames_take_cells_of_their_coalition_and_keep_dtypes():
    rows, references = as_table(MIXED[:10].set_axis(range(5, 15))), as_table(MIXED[50:60])
    inside = np.array([True, False, True, False, True, False, False])
    mixed = hybrid_columns(rows, references, [np.array([3, 1])], [np.array([0, 2])], inside[None])
    expected = rows.native.iloc[[3, 1]].copy()
    for name in MIXED.columns[~inside]:
        expected[name] = references.native[name].iloc[[0, 2]].array
    pd.testing.assert_frame_equal(mixed.native, expected)
    both = above(rows, mixed)
    pd.testing.assert_frame_equal(both.native, pd.concat([rows.native, expected]))
    assert both.dtypes == as_table(both.native).dtypes == rows.dtypes
    assert hybrid_columns(rows, as_table(MIXED.astype({"f": float})[:9]), [[0]], [[0]], inside[None]) is None


@pytest.mark.parametrize("kinds", ["aa", "ff", "af", "fa"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hybrids_of_numbers_have_coalitions_of_their_own(kinds, dtype):
    make = {"a": lambda rows: as_table(rows), "f": lambda rows: as_table(pd.DataFrame(rows, columns=list("abcd")))}
    rows, references = make[kinds[0]](X[:5].astype(dtype)), make[kinds[1]](X[5:9])
    columns = rng.random((3, 4)) < 0.5
    mixed = hybrid_cells(rows, references, np.array([4, 0, 1]), np.array([3, 3, 0]), columns)
    expected = np.where(columns, X[:5][[4, 0, 1]], X[5:9][[3, 3, 0]]).astype(dtype)
    np.testing.assert_array_equal(np.asarray(mixed.native), expected)
    assert mixed.is_frame == rows.is_frame
    np.testing.assert_array_equal(np.asarray(above(rows, mixed).native), np.concatenate([X[:5].astype(dtype), expected]))
    assert above(rows, mixed).is_plain == rows.is_plain


@pytest.mark.parametrize("n_hybrids", [2, 7])
@pytest.mark.parametrize("n_rows", [30, APART])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_hybrids_of_arrays_of_floats_take_whole_coalitions_from_explained_rows(n_hybrids, n_rows, dtype, layout):
    pool = Pool(Explainer(MODELS["ridge"], X[:20], groups={"ab": [0, 1]}).reader, _mask_check.MADE_CHEAP)
    table = as_table(layout(np.resize(X[20:], (n_rows, 4)).astype(dtype)))
    others, columns = X[:20].astype(dtype), np.array(list(np.ndindex(2, 2, 2)), bool)[:, [0, 0, 1, 2]]
    for _ in range(20):
        mixed, whose = pool.mixed(table, n_hybrids)
        assert mixed.native.dtype == dtype
        for row in mixed.native:
            made = np.where(columns, table.native[list(whose)][:, None, None], others[:, None])
            assert (made == row).all(axis=-1).any()
        np.testing.assert_array_equal(above(table, mixed).native, np.concatenate([table.native, mixed.native]))
        assert above(table, mixed).parted(n_rows) == (table, mixed)
        other = as_table(table.native[:3])
        np.testing.assert_array_equal(above(other, mixed).native, np.concatenate([table.native[:3], mixed.native]))


def test_frames_of_several_dtypes_are_checked_in_company_of_their_rows(monkeypatch):
    explainer = Explainer(one_hot(), MIXED[:30])
    explanation = explainer(MIXED[30:60])
    certificate = explanation.certificate()
    assert certificate.passed
    assert len(certificate.mask_rows) >= 1
    monkeypatch.setattr(_mask_check.MaskChecker, "company", lambda self, table: (self._begin(), ()))
    without = Explainer(one_hot(), MIXED[:30])(MIXED[30:60])
    assert_close(explanation.values, without.values, scale=10.0, n_terms=7, n_players=7)
    assert without.certificate().mask_rows


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
def test_arrays_beside_a_background_of_numbers_in_a_frame_are_compared():
    names = pd.DataFrame(X, columns=list("abcd"))
    explainer = Explainer(Ridge().fit(names, Y), names[:20])
    assert explainer(X[30:50]).certificate().mask_rows


def test_sums_of_models_are_compared_with_their_own_predictions(monkeypatch):
    model = VotingRegressor([("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3)), ("svr", SVR())]).fit(X, Y)
    assert Explainer(model, X[:20])(X[20:40]).certificate().mask_rows
    original = KernelReader.solve

    def swapped(self, table, semivalue, order):
        solution = original(self, table, semivalue, order)
        solution.values[:, :2] = solution.values[:, 1::-1].copy()
        return solution

    monkeypatch.setattr(KernelReader, "solve", swapped)
    with pytest.raises(ExactnessError, match="not what the model predicts for hybrid rows"):
        Explainer(model, X[:20])(X[20:40])


def test_verify_says_which_trees_it_could_not_compare_with_a_dump():
    from sklearn.ensemble import IsolationForest

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
    assert certificate.n_masks == 5  # two of these rows, two of the background, and v(empty)


@pytest.mark.parametrize("n_hybrids", [2, 6, _mask_check.MADE, _mask_check.MADE_CHEAP])
def test_a_draw_takes_coalitions_and_their_complements_from_the_pool(n_hybrids):
    pool = Pool(Explainer(MODELS["svr"], X[:20], groups={"ab": [0, 1]}).reader, _mask_check.MADE_CHEAP)
    rows, masks, columns, references = pool.drawn(30, n_hybrids)
    np.testing.assert_array_equal(masks[::2], ~masks[1::2])
    np.testing.assert_array_equal(columns, masks[:, [0, 0, 1, 2]])
    assert rows.min() >= 0
    assert rows.max() < 30
    assert len(rows) == len(references) == len(masks) == n_hybrids
    assert references.max() < 20


def test_credit_for_the_wrong_column_fails_the_certificate_and_stays_failed(monkeypatch):
    original = KernelReader.solve

    def swapped(self, table, semivalue, order):
        solution = original(self, table, semivalue, order)
        solution.values[:, :2] = solution.values[:, 1::-1].copy()
        return solution

    monkeypatch.setattr(KernelReader, "solve", swapped)
    explainer = Explainer(MODELS["svr"], X[:20])
    for rows in (X[:1], X[:15], X[:1]):
        with pytest.raises(ExactnessError, match="not what the model predicts for hybrid rows"):
            explainer(rows)
    warned = Explainer(MODELS["svr"], X[:20], on_inexact="warn")
    with pytest.warns(ExplanationWarning, match="hybrid rows"):
        explanation = warned(X[:15])
    assert np.all(np.abs(explanation.residual) <= explanation.tolerance[0])
    assert "FAILED" in explanation.facts()["coalitions"]
    assert not explanation.certificate().passed


def test_weights_of_the_background_are_seen_by_the_mean_prediction(monkeypatch):
    explainer = Explainer(MODELS["svr"], X[:20], background_weights=np.arange(1.0, 21.0))
    assert explainer(X[:12]).certificate().passed
    careless = Explainer(MODELS["svr"], X[:20])
    careless.reader.weights = np.arange(1.0, 21.0) / 210.0  # which its solver does not know of
    careless._check_masks = _mask_check.MaskChecker(careless.reader)
    with pytest.raises(ExactnessError, match="hybrid rows"):
        careless(X[:12])


def test_the_rows_in_company_change_no_bit_of_the_others(monkeypatch):
    with_them = Explainer(MODELS["tree"], X[:20])(X[20:170])
    monkeypatch.setattr(_mask_check.MaskChecker, "company", lambda self, table: (self._begin(), ()))
    without = Explainer(MODELS["tree"], X[:20])(X[20:170])
    for name in ("values", "baseline", "prediction", "residual", "tolerance"):
        np.testing.assert_array_equal(getattr(with_them, name), getattr(without, name))


def test_selections_pickles_and_files_keep_what_was_checked(tmp_path):
    explainer = pickle.loads(pickle.dumps(Explainer(MODELS["tree"], X[:20])))
    explanation = explainer(X[:40])
    row = explanation.mask_rows[0]
    assert explanation[[row]].mask_rows == (0,)
    assert explanation[[i for i in range(40) if i not in explanation.mask_rows]].mask_rows == ()
    explanation.save(tmp_path / "a.npz")
    loaded = Explanation.load(tmp_path / "a.npz")
    assert loaded.certificate() == explanation.certificate()


def test_files_without_coalitions_still_load(tmp_path):
    Explainer(MODELS["tree"], X[:20])(X[:40]).save(tmp_path / "new.npz")
    with zipfile.ZipFile(tmp_path / "new.npz") as new, zipfile.ZipFile(tmp_path / "old.npz", "w") as old:
        for name in new.namelist():
            content = new.read(name)
            if name == "metadata.json":
                metadata = json.loads(content)
                content = json.dumps({k: v for k, v in metadata.items() if "mask" not in k}).encode()
            old.writestr(name, content)
    assert Explanation.load(tmp_path / "old.npz").certificate().mask_difference is None


@pytest.mark.parametrize("wrong", [{"mask_difference": "x"}, {"mask_tolerance": -1.0}, {"n_masks": 0.5}, {"mask_rows": (1.5,)}])
def test_facts_of_a_wrong_type_are_refused(wrong):
    facts = {"values": [[1.0]], "baseline": [0.0], "prediction": [1.0], "residual": [0.0], "tolerance": 1e-9}
    with pytest.raises(InputTypeError, match=next(iter(wrong))):
        Explanation(**facts, feature_names=["a"], value_function="baseline", **wrong)


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(6,), (40,), (6, 3), (40, 3)])
def test_the_worst_row_for_its_tolerance_is_found_among_few_and_many(shape, bad):
    residual, tolerance = rng.uniform(-1e-9, 1e-9, shape), rng.uniform(1e-3, 1.0, shape[0])
    worst = int(np.argmax(np.abs(residual).reshape(shape[0], -1).max(axis=1) - tolerance))
    found = sums(residual, tolerance, (3,))
    size = np.abs(residual[worst]).max()
    assert found == (size, tolerance[worst], shape[0], (3,))
    assert found.passed
    residual[4], tolerance[4] = bad, 1e-3
    found = sums(residual, tolerance)
    assert found == (0.5 if bad == 0.5 else np.inf, 1e-3, shape[0], ())
    assert not found.passed
    assert found | MaskCheck(0.0, 1.0, 5, (1,)) == MaskCheck(found.difference, 1e-3, shape[0] + 5, (1,))
    assert together([MaskCheck(0.0, 1.0, 5, (1,)), found, MaskCheck(0.0, 1.0, 1, (0,))])[2:] == (shape[0] + 6, (0, 1))


@pytest.mark.parametrize("n", [4, 12])
@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize(("size", "allowed"), [(np.inf, np.inf), (np.nan, np.inf), (np.nan, np.nan), (0.0, np.nan)])
def test_a_row_that_is_off_is_not_hidden_by_one_that_overflows(n, place, size, allowed):
    residual, tolerance = np.zeros(n), np.full(n, 1e-9)
    residual[place], tolerance[place] = size, allowed
    assert sums(residual, tolerance).tolerance is not None
    assert not np.isfinite(sums(residual, tolerance).tolerance), "nothing else is worse"
    residual[1] = 1.0
    assert sums(residual, tolerance) == (1.0, 1e-9, n, ())
    both = [MaskCheck(abs(size), allowed, 1), MaskCheck(1.0, 1e-9, 1)]
    assert together(both)[:2] == together(both[::-1])[:2] == (1.0, 1e-9)


@pytest.mark.parametrize("n_rows", [3, 30])
def test_a_baseline_that_is_off_in_one_row_fails_the_certificate(n_rows, monkeypatch):
    explainer = Explainer(MODELS["tree"], X[:20])
    explainer(X[:n_rows])
    solve = type(explainer.reader).solve

    def moved(self, table, semivalue, order):
        solution = solve(self, table, semivalue, order)
        solution.empty[1] += 1e-6  # which its values make up for: rows add up
        solution.values[1, 0] -= 1e-6
        return solution.with_(total=None)

    monkeypatch.setattr(type(explainer.reader), "solve", moved)
    with pytest.raises(ExactnessError, match="not what the model predicts for hybrid rows"):
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


@pytest.mark.parametrize("n_rows", [10, 300, APART])
@pytest.mark.parametrize("cuts", [[], [5]])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_all_rows_in_company_are_compared_and_no_others(n_rows, cuts, n_threads, monkeypatch):
    monkeypatch.setattr(_pieces, "PIECE_VALUES", 4 * 3)  # threads put each block together in pieces
    reader, shapley = Explainer(MODELS["tree"], X[:20]).reader, find("shapley")
    rows, company = as_table(np.resize(X, (n_rows, 4))), as_table(X[50:57])
    blocks = [slice(*ends) for ends in zip([0, *cuts], [*cuts, n_rows], strict=True)]
    solution = solve_blocks(reader, rows, Cut(blocks, 1, n_threads), shapley, 1, False, company)
    alone, apart = reader.answer(rows, shapley, 1), reader.compare(company)
    found = solution.comparison
    np.testing.assert_array_equal(found.prediction, apart.prediction)
    rounding = np.minimum(found.tolerance, apart.tolerance)  # those in company are solved, the others evaluated
    assert np.all(np.abs(found.residual - apart.residual) <= rounding)
    for name in ("values", "empty", "full", "prediction", "residual", "tolerance", "error_bound", "scale"):
        np.testing.assert_array_equal(getattr(solution, name), getattr(alone, name))


COMPARED = (
    *MODELS,
    "scaled target",
    "columns dropped",
    "sum",
    "search",
    "several outputs",
    "process",
    "cosines",
    "classes",
    "logistic",
)


@functools.cache
def compared_models():
    """Return models of every family and wrapper that is held against the formula that was read of it."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    scaled = TransformedTargetRegressor(make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler())
    dropping = make_pipeline(make_column_transformer((StandardScaler(), [0, 2])), SVR())
    both = VotingRegressor([("tree", DecisionTreeRegressor(max_depth=3)), ("scaled", scaled), ("ridge", Ridge())])
    classes = np.digitize(Y, [-0.5, 0.5])
    return {
        **MODELS,
        "scaled target": scaled.fit(X, Y),
        "columns dropped": dropping.fit(X, Y),
        "sum": both.fit(X, Y),
        "search": GridSearchCV(KernelRidge(kernel="polynomial"), {"alpha": [0.1, 1.0]}).fit(X, Y),
        "several outputs": KernelRidge(kernel="rbf").fit(X, np.stack([Y, X[:, 0]], axis=1)),
        "process": GaussianProcessRegressor(alpha=0.1).fit(X[:60], Y[:60]),
        "cosines": make_pipeline(RBFSampler(n_components=20, random_state=0), Ridge()).fit(X, Y),
        "classes": GradientBoostingClassifier(n_estimators=3).fit(X, classes),
        "logistic": LogisticRegression().fit(X, classes),
    }


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("order", [1, 2])
def test_rows_in_company_are_held_against_the_formula_and_change_no_value(name, order):
    reader, shapley = Explainer(compared_models()[name], X[:20]).reader, find("shapley")
    rows, company = as_table(X[20:40]), as_table(np.where(rng.random((6, 4)) < 0.5, X[40:46], X[:6]))
    assert reader.evaluates
    together, alone = reader.answer(above(rows, company), shapley, order, company.n_rows), reader.answer(rows, shapley, order)
    for field in ("values", "empty", "tolerance", "scale", "error_bound"):
        np.testing.assert_array_equal(getattr(together, field), getattr(alone, field))
    for found in (together.comparison, reader.compare(company)):
        size = np.abs(found.residual).reshape(6, -1).max(axis=1)
        assert np.all(size <= found.tolerance)
        assert found.tolerance.shape == (6,)
        assert np.abs(found.prediction).min() > 0.0
    assert_close(together.comparison.prediction, reader.predict(company), scale=100.0, n_terms=300, n_players=4)
    values = reader.game(company).value(np.ones((1, reader.n_players), bool))[:, 0]
    assert_close(reader.evaluate(company).full, values, scale=100.0, n_terms=300, n_players=4)


def test_a_formula_that_errs_between_the_rows_fails_the_certificate(monkeypatch):
    explainer = Explainer(MODELS["svr"], X[:20])
    explainer(X[20:40])
    read = KernelReader.evaluate
    monkeypatch.setattr(KernelReader, "evaluate", lambda self, table: read(self, table).shifted(1e-6))
    with pytest.raises(ExactnessError, match="not what the model predicts for hybrid rows"):
        explainer(X[20:40])


@pytest.mark.parametrize("n_rows", [1, 4, 40])
@pytest.mark.parametrize("n_hybrids", [0, 2, 30])
@pytest.mark.parametrize("place", ["hybrids", "before", "mean"])
@pytest.mark.parametrize(("size", "allowed"), [(1e-9, 1e-6), (1e-6, 1e-6), (1.0, 1e-6), (np.nan, 1e-6), (np.inf, np.inf)])
def test_the_short_way_says_what_the_long_one_does_where_all_is_within_tolerance(n_rows, n_hybrids, place, size, allowed):
    checker = Explainer(MODELS["tree"], X[:20])._check_masks
    checker._before, checker._empty, solution = MaskCheck(2e-10, 1e-6, 7), (1.0, 3e-7), Solution.zeros(n_rows, 4)
    own = rng.uniform(2e-7, 9e-7, n_rows)
    solution = solution.with_(empty=1.0 + rng.uniform(-1e-10, 1e-10, n_rows), tolerance=own)
    residual, tolerance = rng.uniform(-1e-10, 1e-10, n_hybrids), rng.uniform(5e-7, 1e-6, n_hybrids)
    if place == "hybrids" and n_hybrids:
        residual[1], tolerance[1] = -size, allowed
    elif place == "before":
        checker._before = MaskCheck(abs(size), allowed, 7)
    elif place == "mean":
        solution.empty[0], own[-1] = 1.0 - size, allowed
    compared = Comparison(residual, residual, tolerance) if n_hybrids else None
    before, (mean, rounding) = checker._before, checker._empty
    checks = [before, checker._means(solution)]
    if compared is not None:
        checks.insert(0, sums(residual, tolerance, (0,)))
    expected = together(checks)
    found = worst_within(solution.with_(comparison=compared), checks[0].rows, before, mean, rounding)
    if expected.difference <= expected.tolerance < np.inf:
        assert found == expected
    else:
        assert found is None
