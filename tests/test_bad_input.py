"""The checklist of bad inputs (data, background, model, numerics), one row each: the class and the words."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.tree import DecisionTreeRegressor

from exactshap import Explainer, Explanation, decompose_r2, explain
from exactshap.errors import (
    ExactshapError,
    InputError,
    InputTypeError,
    UnknownNameError,
    UnsupportedModelError,
    UnsupportedStructureError,
)
from exactshap.games import ProductGame
from exactshap.solvers import count_sets, solve
from tolerances import roundings

rng = np.random.default_rng(1)
A = rng.normal(size=(60, 4))
FRAME = pd.DataFrame(A, columns=["age", "bmi", "bp", "s1"])
Y = A[:, 0] * A[:, 1]
MODEL, NAMED = SVR().fit(A, Y), SVR().fit(FRAME, Y)


def with_cell(value, i=3, j=0, dtype=float):
    data = A[:5].astype(dtype)
    data[i, j] = value
    return data


def frame_with(column, values):
    return FRAME[:5].assign(**{column: values})


DATES = "column 'age' holds dates or times"
DATA = {
    "1 NaN": (
        MODEL,
        with_cell(np.nan),
        InputError,
        r"X contains NaN \(first at row 3, column 0\). SVR does not accept missing",
    ),
    "1 NaN in a frame": (NAMED, frame_with("age", [1, 2, 3, np.nan, 5]), InputError, "first at row 3, column 'age'"),
    "3 infinity": (MODEL, with_cell(np.inf), InputError, r"infinity or a value too large for dtype\('float64'\)"),
    "5 wrong width": (MODEL, A[:5, :3], InputError, "X has 3 features, but SVR is expecting 4 features as input"),
    "6 permuted": (NAMED, FRAME[["bmi", "age", "bp", "s1"]], UnknownNameError, "must be in the same order as they were in fit"),
    "7 unknown": (NAMED, FRAME.rename(columns={"bmi": "zz"}), UnknownNameError, r"Missing: \['bmi'\]; unexpected: \['zz'\]"),
    "7 extra": (
        NAMED,
        FRAME.assign(zz=1.0),
        UnknownNameError,
        r"Missing: \[\]; unexpected: \['zz'\]. Pass \w+\[\['age', 'bmi'",
    ),
    "8 duplicate names": (
        NAMED,
        pd.concat([FRAME, FRAME[["age"]]], axis=1),
        InputError,
        "`X` must be unique. 'age' occurs 2 t",
    ),
    "10 a row of a frame": (NAMED, FRAME.iloc[0], InputError, r"got 1D array instead.*X.iloc\[\[0\]\] if it is one row"),
    "10 a row with text": (NAMED, FRAME.assign(s1="a").iloc[0], InputError, r"got 1D array instead.*X.iloc\[\[0\]\] if it is"),
    "10 a column": (NAMED, FRAME["age"], InputError, r"or series.to_frame\(\) if it is one column"),
    "10 a dict": (NAMED, {"age": 1.0}, InputTypeError, r"Got an object of dict. Pass a DataFrame: pandas.DataFrame\(\[row\]\)"),
    "10 of shap.kmeans": (NAMED, SimpleNamespace(data=A, weights=Y), InputTypeError, "object.data, and background_weights=obj"),
    "10 one-dimensional": (MODEL, A[0], InputError, r"Expected 2D array for `X`, got 1D array instead.*reshape\(1, -1\)"),
    "11 three-dimensional": (MODEL, A[None], InputError, "got 3D array instead"),
    "11 ragged": (MODEL, [[1.0, 2.0], [1.0]], InputError, "rectangular"),
    "13 no columns": (MODEL, A[:, :0], InputError, r"0 feature\(s\)"),
    "15 complex": (MODEL, with_cell(1j, dtype=complex), InputError, "Complex data not supported"),
    "16 text": (
        NAMED,
        frame_with("age", list("abcde")),
        InputError,
        "column 'age' holds text.*Encode it or explain the Pipeline",
    ),
    "16 objects": (MODEL, with_cell("x", dtype=object), InputError, "column 0 holds text or other non-numeric values"),
    "17 numeric text": (NAMED, frame_with("age", ["1", "2", "3", "4", "5"]), InputError, "column 'age' holds text"),
    "16 words of time": (NAMED, frame_with("age", ["Full-time"] * 5), InputError, "column 'age' holds text.*'Full-time'"),
    "17 one text below numbers": (
        NAMED,
        frame_with("age", ["1", "2", "fifty", "4", "5"]),
        InputError,
        "such as 'fifty' in row 2",
    ),
    "17 numeric text array": (MODEL, A[:5].astype(str), InputError, "holds text"),
    "18 periods": (NAMED, frame_with("age", pd.period_range("2020", periods=5)), InputTypeError, DATES),
    "18 dates": (NAMED, frame_with("age", pd.date_range("2020-01-01", periods=5)), InputTypeError, DATES),
    "18 durations": (NAMED, frame_with("age", pd.to_timedelta(range(5), unit="D")), InputTypeError, DATES),
    "19 NA": (NAMED, frame_with("age", pd.array([1, 2, None, 4, 5], "Int64")), InputError, "NaN .first at row 2, column 'age'"),
    "20 huge integers": (MODEL, with_cell(2**53 + 1, dtype=np.int64), InputError, r"beyond 2\^53"),
    "21 sparse": (MODEL, sparse.csr_matrix(A), InputTypeError, r"SVR refuses sparse.*X.toarray\(\)|is dense, .* is sparse"),
    "21 sparse columns": (NAMED, FRAME.astype(pd.SparseDtype(float)), InputTypeError, "Got 4 sparse columns.* 'age'. Pass "),
    "another object": (MODEL, MODEL, InputTypeError, "`X` must be a table. Got an object of SVR. Pass an array of shape"),
    "none": (MODEL, None, InputTypeError, "`X` must be a table.*Got None"),
    "not a table": (MODEL, "rows.csv", InputTypeError, "`X` must be a table. Got 'rows.csv'. Pass an array of shape"),
    "names that are numbers": (NAMED, pd.DataFrame(A), UnknownNameError, "The feature names of `X` should match"),
}


@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("where", ["X", "background"])
@pytest.mark.filterwarnings("ignore")
def test_data_and_background(case, where):
    model, data, error, text = DATA[case]
    if data is None and where == "background":
        pytest.skip("no background is a value")
    for word in ("X contains", "X has", "`X`") if where == "background" else ():
        text = text.replace(word, word.replace("X", "background"))
    good = FRAME[:2] if model is NAMED else A[:2]
    arguments = (data,) if where == "X" else (good, data)
    with pytest.raises(error, match=text):
        explain(model, *arguments)


def reading(model=MODEL, *background, **settings):
    return lambda: Explainer(model, *background, **settings)


def observed(value_function, seed):
    return lambda: explain(Ridge().fit(A, Y), A[:2], A, value_function=value_function, random_state=seed)


def explaining(X, **settings):
    return lambda: explain(NAMED if isinstance(X, pd.DataFrame) else MODEL, X, **settings)


class LearnsOnline:
    """Predicts a row that is a dictionary, as River's regressors do."""

    def predict_one(self, x):
        return 2.0 * x["age"]


class ScoresOnline:
    """Scores a row that is a dictionary, as River's outlier detectors do."""

    def score_one(self, x):
        return x["age"]


ORDER, SEED = "The 'order' parameter must be an int >= 1", "The 'random_state' parameter must be (None|an int >= 0)"
HUGE = pd.array([1, 2, None, 4, 2**60 + 1], "Int64")
REFUSED = {
    "29 empty": (reading(MODEL, A[:0]), InputError, r"0 sample\(s\).*while a minimum of 1 is required"),
    "30 needed": (reading(value_function="interventional"), InputError, "needs reference rows.*Pass background="),
    "32 negative": (reading(MODEL, A[:2], background_weights=[-1, 3]), InputError, "non-negative.*Got minimum -1 and sum 2"),
    "32 NaN": (reading(MODEL, A[:2], background_weights=[np.nan, 1]), InputError, "finite"),
    "32 zero": (reading(MODEL, A[:2], background_weights=[0, 0]), InputError, "not all zero"),
    "32 length": (reading(MODEL, A[:2], background_weights=[1]), InputError, r"shape \(2,\)"),
    "32 text": (reading(MODEL, A[:2], background_weights=["x", 1]), InputTypeError, "Background weights must be numbers"),
    "32 dates": (reading(MODEL, A[:2], background_weights=np.array([1, 2], "M8[D]")), InputTypeError, "must be numbers"),
    "32 of nothing": (reading(background_weights=[1]), InputError, "needs reference rows.*background=None"),
    "two baselines": (reading(MODEL, A[:2], value_function="baseline"), InputError, "exactly one reference row.*Got 2"),
    "value function": (reading(value_function="functionall"), UnknownNameError, "Did you mean 'functional'"),
    "path-dependent": (reading(value_function="path_dependent"), UnknownNameError, "SVR has no value function"),
    "settings": (reading(idnex="SV"), UnknownNameError, "SVR has no setting 'idnex'"),
    "a misspelt setting": (reading(n_job=1), UnknownNameError, "no setting 'n_job'. Did you mean 'n_jobs'"),
    "of a function": (
        reading(A.sum, A[:2], feature_name=["a"]),
        UnknownNameError,
        "'feature_name'. Did you mean 'feature_names'",
    ),
    "index": (explaining(A[:1], index="shaply"), UnknownNameError, "Did you mean 'shapley'"),
    "order of a list": (explaining(A[:2], order=[1]), InputError, ORDER),
    "order of text": (explaining(A[:2], order="2"), InputError, ORDER),
    "order of a plan": (lambda: Explainer(MODEL).plan(A[:2], order=0), InputError, ORDER),
    "order of a check": (lambda: Explainer(MODEL).verify(A[:2], order=1.0), InputError, ORDER),
    "order of a game": (lambda: solve(ProductGame([1.0], [[2.0]], [[1.0]]), order=True), InputError, ORDER),
    "order of sets": (lambda: count_sets(3, None), InputError, ORDER),
    **{  # also where nothing is drawn
        f"seed {seed}": (observed(f"observational{of}", seed), InputError, SEED)
        for of, seed in (("", "abc"), ("-forest", -1), ("-copula", 1.5), ("", True))
    },
    "seed of waves": (
        lambda: explain(GradientBoostingClassifier().fit(A, Y > 0), A[:2], A, output="probability", random_state=-1),
        InputError,
        SEED,
    ),
    "37 class": (reading(SVC), InputTypeError, r"Got the class SVC. Pass a fitted estimator, such as SVC\(\).fit"),
    "37 none": (reading(None), InputTypeError, "Got None. Pass a fitted estimator"),
    "38 no model": (reading(object()), UnsupportedModelError, "or a function. Got `builtins.object`, which has no predict"),
    "38 a transformer": (reading(KernelPCA()), UnsupportedModelError, r"which has no predict. .* explain\(model\.transform, X"),
    "38 a table": (reading(FRAME), UnsupportedModelError, "DataFrame`, which has no predict. Pass the model before the rows"),
    "38 a path": (reading("model.json"), UnsupportedModelError, r"Load the model first: exactshap.trees.load\(path\)"),
    "38 unknown": (
        reading(KMeans(2, n_init=1).fit(A)),
        UnsupportedModelError,
        "No exact reader.*Known: kernel.*model.predict, X",
    ),
    "38 classes": (reading(LabelSpreading().fit(A, Y > 0)), UnsupportedModelError, "model.predict_proba, X, background"),
    "38 one row": (reading(LearnsOnline()), UnsupportedModelError, r"lambda rows: \[model\.predict_one\(row\) for row in rows"),
    "38 scores one row": (
        reading(ScoresOnline()),
        UnsupportedModelError,
        r"\[model\.score_one\(row\) for row in rows\.to_dict",
    ),
    "no refit": (reading(GridSearchCV(SVR(), {}, refit=False).fit(A, Y)), InputError, "no fitted model. Got refit=False"),
    "no threads": (reading(n_jobs=0), InputError, "'n_jobs' parameter must be an int other than 0"),
    "threads as text": (reading(n_jobs="2"), InputError, "'n_jobs' parameter must be an int.*Got '2'"),
    "memory as text": (reading(memory_limit="1GB"), InputError, "positive number of bytes.*Got '1GB'"),
    "memory NaN": (reading(memory_limit=float("nan")), InputError, "positive number of bytes"),
    "one name": (reading(feature_names="abcd"), InputTypeError, "`feature_names` must be a sequence of str"),
    "a name twice": (reading(feature_names=list("abca")), InputError, "must be unique. 'a' occurs 2 times"),
    "progress as text": (reading(progress="yes"), InputTypeError, "'progress' parameter must be a bool.*Got 'yes'"),
    "on_inexact": (reading(on_inexact="ignore"), InputError, "must be 'raise' or 'warn'"),
    "groups as list": (reading(groups=[["x0"]]), InputTypeError, "`groups` must map a name to a list of columns"),
    "group of nothing": (reading(groups={"g": None}), InputTypeError, "Group 'g' must be a list of columns"),
    "group as mask": (reading(groups={"g": [True, False]}), InputTypeError, "must hold names or numbers.*Got True"),
    "group of fractions": (reading(groups={"g": [1.5]}), InputTypeError, "must hold names or numbers.*Got 1.5"),
    "empty group": (reading(groups={"g": []}), InputError, "has no columns"),
    "unknown column": (reading(NAMED, groups={"g": ["age", "nope"]}), InputError, "unknown column 'nope'"),
    "unknown number": (reading(groups={"g": [17]}), InputError, "names column 17"),
    "two groups": (reading(NAMED, groups={"g": ["age"], "h": ["age"]}), InputError, "in more than one group"),
    "name of another": (reading(NAMED, groups={"s1": ["age", "bmi"]}), InputError, "has the name of a column outside it"),
    "masked cells": (explaining(np.ma.masked_greater(A[:2], 0.0)), InputError, "`X` has masked cells"),
    "15 objects": (explaining(with_cell(np.complex128(1j), dtype=object)), InputError, "Complex data not supported"),
    "20 huge objects": (explaining(with_cell(2**60 + 1, dtype=object)), InputError, r"beyond 2\^53"),
    "20 huge nullable": (explaining(frame_with("age", HUGE)), InputError, r"beyond 2\^53"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_models_backgrounds_and_settings_are_refused_in_words(case):
    build, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        build()


FINE = {
    "11 lists": A[:5].tolist(),
    "22 float32": A[:5].astype(np.float32),
    "23 Fortran order": np.asfortranarray(A[:5]),
    "23 negative strides": A[:5][::-1][::-1],
    "23 read-only": (lambda array: (array.setflags(write=False), array)[1])(A[:5].copy()),
    "20 booleans": A[:5] > 0,
    "20 small integers": np.round(A[:5]).astype(np.int8),
    "27 subnormal": A[:5] * 5e-324,
    "27 huge": A[:5] * 1e150,
}


@pytest.mark.parametrize("case", FINE)
def test_unusual_but_fine_input(case):
    explanation = explain(MODEL, FINE[case])
    assert explanation.certificate().passed
    np.testing.assert_allclose(explanation.values, explain(MODEL, np.array(FINE[case], float)).values, atol=roundings(5_000))


def test_other_containers_of_the_same_numbers(tmp_path):
    np.save(tmp_path / "rows.npy", A[:5])
    mapped, nullable = np.load(tmp_path / "rows.npy", mmap_mode="r"), FRAME[:5].astype("Float64")
    np.testing.assert_array_equal(explain(MODEL, mapped).values, explain(MODEL, A[:5]).values)
    np.testing.assert_array_equal(explain(NAMED, nullable).values, explain(NAMED, FRAME[:5]).values)


def test_an_interrupted_run_raises_cleanly():
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Explainer(MODEL, progress=interrupt, n_jobs=2)(A)
    assert explain(MODEL, A[:2]).certificate().passed


@pytest.mark.parametrize("settings", [{}, {"memory_limit": 2**20}, {"memory_limit": 2**20, "n_jobs": 2}, {"n_jobs": 2}])
def test_the_row_of_a_gap_counts_from_the_first_of_the_table(settings):
    """Blocks and threads see a part of the rows only."""
    X = np.random.default_rng(0).normal(size=(3000, 3))
    X[[2500, 2900], 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(3000) + 7)
    with pytest.raises(InputError, match=r"first at row 2500, column 1"):
        Explainer(SVR().fit(X[:50], X[:50, 0]), **settings)(X)
    with pytest.raises(InputError, match=r"first at row 2500 \(label 2507\), column 'b'"):
        Explainer(SVR().fit(frame[:50], X[:50, 0]), **settings)(frame)


LABELS = np.where(Y > 0, "yes", "no")
ONE_OUTPUT = {
    "SVR": (MODEL, "target"),
    "SVC": (SVC().fit(A, LABELS), "yes"),
    "OneClassSVM": (OneClassSVM().fit(A), "decision function"),
    "scaled target": (TransformedTargetRegressor(SVR(), transformer=StandardScaler()).fit(A, Y), "target"),
}


@pytest.mark.parametrize("case", ONE_OUTPUT)
@pytest.mark.parametrize("wrong", ["no", "probability", 1, 5])
def test_an_output_that_is_not_there_is_refused(case, wrong):
    """The margin of one class under the name of the other would be every value with the wrong sign."""
    model, name = ONE_OUTPUT[case]
    error, words = InputError, f"output.*{name}"
    if (case, wrong) == ("SVC", "probability"):  # a class has one, only not of this margin
        error, words = UnsupportedStructureError, "fit CalibratedClassifierCV"
    with pytest.raises(error, match=words):
        explain(model, A[:2], output=wrong)
    np.testing.assert_array_equal(explain(model, A[:2], output=name).values, explain(model, A[:2]).values)


def test_probabilities_of_what_adds_up_to_log_odds_are_answered_with_their_route():
    boosted = GradientBoostingClassifier(n_estimators=3).fit(A, LABELS)
    assert explain(boosted, A[:2]).unit == "log-odds of class yes"
    assert explain(boosted, A[:2], A, output="probability").unit == "probability of class yes"
    with pytest.raises(UnsupportedStructureError, match=r"fit CalibratedClassifierCV\(model\) for probabilities"):
        explain(SVC().fit(A, LABELS), A[:2], A, output="probability")
    with pytest.raises(UnknownNameError, match=r"no output 'proba'.*pass output=\"probability\" and background rows\.$"):
        explain(boosted, A[:2], A, output="proba")
    for model in (boosted, SVC().fit(A, LABELS)):
        with pytest.raises(UnknownNameError, match=r"no output 'raw'.*Leave output= out"):
            explain(model, A[:2], A, output="raw")
    with pytest.raises(InputError, match=r"has 1 output\. Got output=1\. Available: 'yes' \(numbers start at 0\)"):
        explain(boosted, A[:2], A, output=1)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_a_background_changed_afterwards_changes_nothing(kind):
    background = {"array": A, "pandas": FRAME, "polars": polars.from_pandas(FRAME)}[kind][:20]
    background = background.clone() if kind == "polars" else background.copy()
    model = NAMED if kind != "array" else MODEL
    X = {"array": A, "pandas": FRAME}.get(kind, background)[:3]
    explainers = [Explainer(model, background), Explainer(model.predict, background, exact_owner=False)]
    before, hashed = [explainer(X).values for explainer in explainers], explainers[0](X).background_hash
    if kind == "array":
        background[:, 0] = 99.0
    else:
        (background.loc if kind == "pandas" else background)[0, "age"] = 99.0
    assert explainers[0](X).background_hash == hashed != Explainer(model, background)(X).background_hash
    for explainer, values in zip(explainers, before, strict=True):
        np.testing.assert_array_equal(explainer(X).values, values)
        assert explainer.verify(X).passed


@pytest.mark.parametrize("name", ["functional", "normalized", "path_dependent"])
def test_a_background_that_v_of_S_does_not_use_is_not_named(name):
    """A reader of the report would take its rows for what the values are compared with."""
    model = make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=3) if name == "path_dependent" else SVC())
    explainer = Explainer(model.fit(A, LABELS), A[:20], value_function=name)
    found = explainer(A[:3])
    assert (found.background_size, found.background_hash) == (None, None)
    for text in (repr(explainer), explainer._repr_html_(), str(found)):
        assert not re.search("20 (background )?rows", text)


def test_many_names_are_not_written_out():
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 500))).add_prefix("column ")
    model = SVR().fit(wide, wide["column 0"])
    for wrong in (wide[wide.columns[::-1]], wide.add_suffix("!"), wide.iloc[:, :100]):
        with pytest.raises(UnknownNameError, match=r"\.\.\. \d+ more\]") as caught:
            explain(model, wrong)
        assert len(str(caught.value)) < 1000


def test_tensors_are_tables_whether_they_record_gradients_or_not():
    torch = pytest.importorskip("torch")
    found = explain(MODEL, torch.tensor(A[:3], requires_grad=True), torch.tensor(A[9:12]))
    np.testing.assert_array_equal(found.values, explain(MODEL, A[:3], A[9:12]).values)


def test_a_column_too_many_of_many_names_the_selection():
    names = [f"c{j}" for j in range(14)]
    wide = pd.DataFrame(rng.normal(size=(20, 14)), columns=names)
    model = SVR().fit(wide, wide["c0"])
    with pytest.raises(UnknownNameError, match=r"Pass X\[names\], with the names in the order of the fit\.$"):
        explain(model, wide.assign(extra=1.0))
    with pytest.raises(UnknownNameError, match=r"with the names in the order of the fit, or align=True\.$"):
        explain(model, wide[names[::-1]])


def test_files_whose_names_promise_another_format_are_refused(tmp_path):
    found = explain(MODEL, A[:2])
    with pytest.raises(InputError, match=r"A saved explanation is a .npz file. Got 'e.csv'.*to_frame\(\)"):
        found.save(tmp_path / "e.csv")
    with pytest.raises(InputError, match=r"A report is a .html file. Got 'e.PDF'. Name it .html; browsers print it as PDF"):
        found.report(tmp_path / "e.PDF")
    with pytest.raises(FileNotFoundError, match=r"No such folder.*nowhere'"):
        found.report(tmp_path / "nowhere" / "report.html")
    found.save(tmp_path / "e")
    assert [path.name for path in tmp_path.iterdir()] == ["e"]


@pytest.mark.parametrize("middle", [[], [PolynomialFeatures(2)]], ids=["linear", "basis"])
@pytest.mark.parametrize("of_frames", [True, False], ids=["frames", "arrays"])
def test_a_gap_in_a_pipeline_is_named_by_the_column_of_the_user(middle, of_frames):
    """The steps before the model give arrays, whose columns have no names of their own."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["age", "bmi", "sex"])
    model = make_pipeline(StandardScaler(), *middle, Ridge()).fit(frame, frame["age"])
    gap = frame[:4].copy()
    gap.loc[2, "bmi"] = np.nan
    with pytest.raises(InputError, match=r"contains NaN \(first at row 2, column 'bmi'\)"):
        explain(model, gap if of_frames else gap.to_numpy(), frame[:9] if of_frames else frame[:9].to_numpy())


@pytest.mark.parametrize("where", ["X", "background"])
def test_a_text_in_a_pipeline_is_named_by_the_column_of_the_user(where):
    """Transformers put columns in another order: column 2 of what they make is another of the user's."""
    frame = pd.DataFrame({"age": A[:, 0], "city": np.resize(["u", "v"], len(A)), "income": A[:, 1]})
    columns = make_column_transformer((OrdinalEncoder(), ["city"]), ("passthrough", ["age", "income"]))
    model = make_pipeline(columns, GradientBoostingClassifier(n_estimators=3)).fit(frame, LABELS)
    rows = {"X": frame[:4], "background": frame[4:9]}
    rows[where] = rows[where].assign(income="n/a")
    with pytest.raises(InputError, match=rf"In `{where}`, column 'income' holds text.*Got str such as 'n/a'"):
        explain(model, rows["X"], rows["background"])


def test_weights_whose_sum_overflows_are_weights():
    weights = np.array([1.0, 3.0, 2.0])
    expected = explain(MODEL, A[:2], A[3:6], background_weights=weights)
    with np.errstate(all="raise"):
        found = explain(MODEL, A[:2], A[3:6], background_weights=weights * 5e307)
    np.testing.assert_allclose(found.values, expected.values, atol=roundings(100))


def test_value_functions_are_listed_once():
    with pytest.raises(UnknownNameError, match="Available: ") as caught:
        explain(MODEL, A[:2], A[3:6], value_function="bayesian")
    listed = str(caught.value).split("Available: ")[1].rstrip(".").split(", ")
    assert len(set(listed)) == len(listed)


PEOPLE = explain(MODEL, A[:5], A)
WRONG_TYPES = {
    "value function in a list": lambda: explain(MODEL, A[:2], A, value_function=["baseline"]),
    "tol of text": lambda: explain(lambda rows: rows.sum(axis=1), np.zeros((1, 14)), np.ones((1, 14)), tol="small"),
    "n_masks of text": lambda: Explainer(MODEL, A[:5]).verify(A[:2], n_masks="8"),
    "n_masks of 0": lambda: Explainer(MODEL, A[:5]).verify(A[:2], n_masks=0),
    "n_bootstrap of an importance": lambda: PEOPLE.importance(n_bootstrap=0),
    "n_bootstrap of text": lambda: PEOPLE.importance(n_bootstrap="many"),
    "adverse in a list": lambda: PEOPLE.reasons(adverse=["positive"]),
    "codes in a list": lambda: PEOPLE.reasons(adverse="positive", codes=3),
    "parts": lambda: Explanation.concat(3),
    "words": lambda: PEOPLE.plot.text(0, words=4),
    "shape": lambda: PEOPLE.plot.image(0, shape=4),
    "max_display of a report": lambda: PEOPLE.report("unused.html", max_display="10"),
    "n_rows of a report": lambda: PEOPLE.report("unused.html", n_rows=1.5),
    "max_display of a card": lambda: PEOPLE.model_card("unused.md", max_display=1.5),
    "n_orders": lambda: decompose_r2(LinearRegression(), A, Y, game="refit", n_orders="all"),
    "n_bootstrap of refits": lambda: decompose_r2(LinearRegression(), A, Y, game="refit", n_bootstrap=1.5),
    "level of refits": lambda: decompose_r2(LinearRegression(), A, Y, game="refit", n_bootstrap=9, level="high"),
    "memory_limit": lambda: decompose_r2(DecisionTreeRegressor(max_depth=2).fit(A, Y), A, Y, memory_limit="2 GiB"),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_settings_of_the_wrong_type_are_refused_by_their_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    word = name.split(" ")[0].removeprefix("parts") or "joined from a list"
    with pytest.raises(ExactshapError, match=word):
        WRONG_TYPES[name]()
    assert not list(tmp_path.iterdir())
