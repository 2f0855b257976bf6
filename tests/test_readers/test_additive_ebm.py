import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.explainer import Explainer, explain
from exactshap.frames import as_table
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import assert_close, roundings

glassbox = pytest.importorskip("interpret.glassbox")
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")

FAST = {"outer_bags": 2, "max_rounds": 40, "n_jobs": 1, "random_state": 0}
ORDERS = [(0, 1), (1, 3), (0, 2, 3), (0, 1, 2, 3)]


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, n).round(1),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "rooms": rng.integers(1, 5, n),
            "size": rng.normal(size=n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "city"] = None
    return frame


F = table(300, 0)
Y = (F["size"] * (F["city"] == "Oslo") + F["rooms"] * F["age"].fillna(30.0) / 20.0 + F["size"] * F["rooms"]).to_numpy()
Z = table(12, 1)
WEIGHTS = np.linspace(1.0, 3.0, 12)
X = table(4, 2)
X.loc[1, "city"] = "Paris"  # a category that the model never saw
X.loc[2, "age"] = -1000.0


def fitted(cls, X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**(FAST | settings)).fit(X, y)


REGRESSOR, CLASSIFIER = glassbox.ExplainableBoostingRegressor, glassbox.ExplainableBoostingClassifier
NUMBERS = ["age", "rooms", "size"]
PRICES, POISSON = np.exp(Y / 5.0), {"interactions": 2, "objective": "poisson_deviance"}
CASES = {  # (class, columns, target, settings, unit)
    "interactions of orders 2, 3, 4": (REGRESSOR, [*F], Y, {"interactions": ORDERS}, "target"),
    "no interactions": (REGRESSOR, [*F], Y, {"interactions": 0}, "target"),
    "log link": (REGRESSOR, [*F], PRICES, POISSON, "log of the target"),
    "two classes": (CLASSIFIER, [*F], np.where(Y > 4.0, "yes", "no"), {"interactions": 3}, "log-odds of class yes"),
    "three classes": (CLASSIFIER, [*F], np.digitize(Y, [2.0, 6.0]), {"interactions": 2}, "score before the softmax"),
    "array": (REGRESSOR, NUMBERS, Y, {"interactions": 3}, "target"),
    "one column": (REGRESSOR, ["age"], Y, {"interactions": 0}, "target"),
    "numbers as names": (REGRESSOR, ["age", "rooms"], Y, {"feature_types": ["continuous", "nominal"]}, "target"),
}


@functools.cache
def case_of(name):
    """Return a model, rows and a background."""
    cls, columns, y, settings, _ = CASES[name]
    tables = [table[columns].to_numpy(float) if name == "array" else table[columns] for table in (F, X, Z)]
    return fitted(cls, tables[0], y, **settings), *tables[1:]


@pytest.fixture
def regressor():
    return case_of("interactions of orders 2, 3, 4")[0]


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_own_answers(name):
    model, rows, background = case_of(name)

    def own(cells):
        if hasattr(model, "decision_function"):
            return model.decision_function(cells)
        return np.log(model.predict(cells)) if name == "log link" else model.predict(cells)

    assert check_answers(model, own, rows, background, roundings(500)).unit == CASES[name][4]
    if rows.shape[1] > 2:
        check_reader(model, rows, background, groups={"both": [0, 2]}, background_weights=WEIGHTS)


def test_a_model_of_an_array_takes_frames():
    """Its names are interpret's own (feature_0000, ...), as are those of a fit on polars."""
    model, rows, background = case_of("array")
    columns = [f"column {j}" for j in range(rows.shape[1])]
    frames = [pd.DataFrame(cells, columns=columns) for cells in (rows, background)]
    expected = explain(model, rows, background).values
    for convert in (pd.DataFrame, pl.from_pandas):
        np.testing.assert_array_equal(explain(model, *map(convert, frames)).values, expected)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, "pandas", "polars"])
def test_cells_are_found_as_the_model_finds_them(kind):
    numbers = F[NUMBERS].fillna({"age": 1.0} if kind is np.int64 else {})
    model = fitted(REGRESSOR, numbers, Y, interactions=[(0, 1), (0, 2), (0, 1, 2)])
    encode = Explainer(model).reader.form.encode
    assert encode.bins is not None
    rows = table(400, 5)[NUMBERS]
    rows.loc[3:5, "size"] = [np.inf, -np.inf, -0.0]
    if kind in ("pandas", "polars"):
        given = rows if kind == "pandas" else pl.from_pandas(rows)
    else:
        given = (np.nan_to_num(rows).clip(-9, 9) if kind is np.int64 else rows.to_numpy()).astype(kind)
    np.testing.assert_array_equal(encode(as_table(given), "X"), encode.twin.eval_terms(given))


def test_a_model_that_cuts_otherwise_is_asked_itself(monkeypatch):
    numbers, model = F[NUMBERS].to_numpy(float), case_of("array")[0]
    cells = REGRESSOR.eval_terms
    monkeypatch.setattr(REGRESSOR, "eval_terms", lambda self, X: cells(self, X + 1e-9))  # the next bin begins a bit earlier
    encode = Explainer(model).reader.form.encode
    assert encode.bins is None
    np.testing.assert_array_equal(encode(as_table(numbers), "X"), encode.twin.eval_terms(numbers))


def test_classes_are_outputs_by_name_and_number():
    model = case_of("three classes")[0]
    everything = Explainer(model, Z)(X)
    assert everything.output_names == ("0", "1", "2")
    for k, name in enumerate("012"):
        for output in (k, name):
            single = Explainer(model, Z, output=output)(X)
            np.testing.assert_array_equal(single.values, everything.values[:, :, k])
    assert Explainer(model, Z, output="probability")(X).unit == "probability"


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, len(F))], ids=["plain", "weighted"])
def test_without_a_background_the_training_rows_are_one(weights):
    model = REGRESSOR(**FAST, interactions=ORDERS).fit(F, Y, sample_weight=weights)
    for settings in ({}, {"groups": {"g": ["age", "size"]}}):
        implicit = Explainer(model, **settings)(X)
        explicit = Explainer(model, F, background_weights=weights, **settings)(X)
        assert implicit.value_function == "interventional"
        assert implicit.certificate().passed
        for name in ("values", "baseline"):
            assert_close(getattr(implicit, name), getattr(explicit, name), 8 * np.abs(Y).max(), 300, 4)


def merged():
    one = fitted(REGRESSOR, F, Y, interactions=[(0, 1)])
    return glassbox.merge_ebms([one, fitted(REGRESSOR, F[:200], Y[:200] + 1.0, interactions=[(0, 1), (2, 3)])])


def private():
    from interpret.privacy import DPExplainableBoostingRegressor

    return fitted(DPExplainableBoostingRegressor, F[["rooms", "size"]], Y)


@pytest.mark.parametrize("make", [merged, private])
def test_models_without_their_training_rows_are_exact_and_need_a_background(make):
    model = make()
    columns = list(model.feature_names_in_)
    check_reader(model, X[columns], Z[columns])
    with pytest.raises(
        InputError, match=r"needs reference rows\. Got background=None.*only a directly fitted, non-private EBM"
    ):
        Explainer(model)


def test_edited_models_are_read_as_they_are(regressor):
    edited = regressor.copy()
    edited.remove_terms([0, 4])
    check_reader(edited, X, Z)
    edited.scale(1, 0.0)
    edited.sweep()
    check_reader(edited, X, Z)
    empty = regressor.copy()
    empty.remove_terms(list(range(len(empty.term_features_))))
    explanation = Explainer(empty, Z)(X)
    assert not explanation.values.any()
    np.testing.assert_array_equal(explanation.baseline, empty.predict(X))


def test_a_background_of_one_row_and_constant_columns_give_exactly_nothing(regressor):
    assert not Explainer(regressor, X.iloc[[3]])(X.iloc[[3]]).values.any()
    constant = Z.assign(city=X["city"][0])
    for index in ("shapley", "banzhaf", "k-sii"):
        values = Explainer(regressor, constant)(X.iloc[[0]], index).values
        assert values[0, 1] == 0.0
        assert values[0, [0, 2, 3]].all()


def test_single_class_models_are_refused():
    one = fitted(CLASSIFIER, F, np.zeros(len(F), int))
    with pytest.raises(UnsupportedStructureError, match=r"scores that are not finite\. It was fitted on a single class"):
        Explainer(one, Z)
