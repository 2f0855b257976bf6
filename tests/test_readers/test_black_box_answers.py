"""What functions answer: rounding that hangs on the batch, names of outputs, frames, labels."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier

from exactshap import Explainer, explain
from exactshap.errors import ExactnessError, InputError, InputTypeError, UnsupportedModelError
from tolerances import roundings

RNG = np.random.default_rng(5)
BACKGROUND, X = RNG.normal(size=(20, 4)), RNG.normal(size=(3, 4))


def rounded_in(batch):
    """Return a function with answers that move by 3,000 eps in some batches, as BLAS' kernels for few rows make them."""

    def function(rows):
        return np.sin(rows.sum(axis=1)) * (1.0 + 7e-13 * batch(len(rows)))

    return function


@pytest.mark.parametrize("batch", [lambda n: n == 1, lambda n: n <= 3, lambda n: n < 16, lambda n: n >= 100])
@pytest.mark.parametrize(("n_rows", "n_background"), [(1, 1), (1, 20), (2, 2), (3, 1), (3, 20)])
def test_rounding_is_measured_in_batches_of_every_size(batch, n_rows, n_background):
    function = rounded_in(batch)
    found = Explainer(function, BACKGROUND[:n_background])(X[:n_rows])
    assert found.certificate().passed
    assert found.tolerance.max() < 1e-9


def test_rounding_that_no_batch_of_the_background_shows_is_refused():
    def moved(rows):
        return rounded_in(lambda n: 1)(rows) if np.array_equal(rows[0], X[0]) else rounded_in(lambda n: 0)(rows) * (1 + 1e-11)

    with pytest.raises(ExactnessError):
        explain(moved, X[:1], BACKGROUND)


# --- names of outputs --------------------------------------------------------------------------------------------------

LABELS = ("no", "perhaps", "yes")


def scores(rows):
    scores = np.exp(np.asarray(rows, float)[:, :3])
    return scores / scores.sum(axis=1, keepdims=True)


def frame(rows):
    return pytest.importorskip("pandas").DataFrame(scores(rows), columns=list(LABELS))


ANSWERS = {
    "pandas": frame,
    "polars": lambda rows: pytest.importorskip("polars").DataFrame(scores(rows), schema=list(LABELS)),
    "arrays by name": lambda rows: dict(zip(LABELS, scores(rows).T, strict=True)),
    "columns by name": lambda rows: dict(zip(LABELS, scores(rows).T[:, :, None], strict=True)),
    "dictionaries": lambda rows: [dict(zip(LABELS, row, strict=True)) for row in scores(rows).tolist()],
    "labels with scores": lambda rows: [
        [{"label": label, "score": score} for label, score in sorted(zip(LABELS, row, strict=True), key=lambda pair: -pair[1])]
        for row in scores(rows).tolist()
    ],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_outputs_have_the_names_of_the_answer(name):
    found, expected = explain(ANSWERS[name], X, BACKGROUND), explain(scores, X, BACKGROUND)
    assert found.output_names == LABELS
    np.testing.assert_array_equal(found.values, expected.values)
    assert explain(ANSWERS[name], X, BACKGROUND, output="yes").unit == "yes"


def test_outputs_have_the_names_that_are_given():
    assert explain(scores, X, BACKGROUND, output_names=LABELS).output_names == LABELS
    assert explain(frame, X, BACKGROUND, output_names=["a", "b", "c"]).output_names == ("a", "b", "c")
    assert explain(lambda rows: scores(rows)[:, 0], X, BACKGROUND, output_names=["price"]).unit == "price"
    assert explain(scores, X, BACKGROUND, output=1).unit == "output 1 of the function"
    with pytest.raises(InputError, match=r"one name for each output.*has 3 outputs"):
        explain(scores, X, BACKGROUND, output_names=["a", "b"])
    with pytest.raises(InputError, match="all of them different"):
        explain(scores, X, BACKGROUND, output_names=["a", "a", "b"])
    with pytest.raises(InputTypeError, match="sequence of str"):
        explain(scores, X, BACKGROUND, output_names="abc")


def target_of(rows):
    return np.stack([rows[:, 0] > 0, np.digitize(rows[:, 1], [-0.5, 0.5])], axis=1).astype(int)


BOTH_TARGETS = ("target 0 = 0", "target 0 = 1", "target 1 = 0", "target 1 = 1", "target 1 = 2")
CLASSES = {  # (model, target, names of the outputs)
    "neighbours": (KNeighborsClassifier(), lambda rows: np.where(rows[:, 0] > 0, "yes", "no"), ("no", "yes")),
    "forest of targets": (RandomForestClassifier(5, random_state=0), target_of, BOTH_TARGETS),
    "several targets": (MultiOutputClassifier(LogisticRegression()), target_of, BOTH_TARGETS),
    "chain": (ClassifierChain(LogisticRegression()), lambda rows: (rows[:, :2] > 0) * 1, ("target 0 = 1", "target 1 = 1")),
}


@pytest.mark.parametrize("name", CLASSES)
def test_probabilities_are_named_by_the_classes(name):
    model, target, names = CLASSES[name]
    model.fit(BACKGROUND, target(BACKGROUND))
    found, own = explain(model.predict_proba, X, BACKGROUND), model.predict_proba(X)
    assert found.output_names == names
    np.testing.assert_allclose(found.prediction, np.concatenate(own, axis=1) if isinstance(own, list) else own)
    one = explain(model.predict_proba, X, BACKGROUND, output=names[1])
    np.testing.assert_allclose(one.values, found.values[..., 1], rtol=0, atol=roundings(50))
    assert (found.unit, one.unit) == ("probability", f"probability of {names[1]}")


@pytest.mark.parametrize("classes", [[0, 1], ["n", "y"], ["no", "yes"]])
def test_classes_may_be_a_list(classes):
    class Own:
        classes_ = classes

        def predict_proba(self, rows):
            return np.stack([rows[:, 0] < 0, rows[:, 0] >= 0], axis=1)

    assert explain(Own().predict_proba, X, BACKGROUND).output_names == tuple(map(str, classes))


@pytest.mark.parametrize(
    ("function", "way"),
    [
        (lambda rows: (rows[:, 0], rows[:, 1] ** 2), lambda function: lambda rows: function(rows)[0]),
        (lambda rows: np.stack([rows[:, 0], rows[:, 1] ** 2]), lambda function: lambda rows: function(rows).T),
    ],
    ids=["mean and deviation", "on its side"],
)
def test_answers_with_a_column_for_each_row_name_a_way_that_works(function, way):
    advised = way(function)
    text = "function(rows)[0]" if isinstance(function(X), tuple) else "function(rows).T"
    with pytest.raises(InputError, match=re.escape(text)):
        explain(function, X, BACKGROUND)
    assert explain(advised, X, BACKGROUND).certificate().passed


def test_a_table_beside_its_prediction_is_refused_with_the_column_to_return():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"age": [40, 50, 60], "city": ["a", "b", "a"]})
    with pytest.raises(InputTypeError, match=r"Return that column alone: lambda rows: function\(rows\)\['prediction'\]"):
        explain(lambda rows: rows.assign(prediction=1.0), table[:1], table[1:])
    assert explain(lambda rows: rows.assign(prediction=rows["age"])["prediction"], table[:1], table[1:]).values.shape == (1, 2)


# --- dtypes of rows ----------------------------------------------------------------------------------------------------


def test_hybrids_keep_the_precision_of_the_background():
    seen = set()

    def function(rows):
        seen.add(rows.dtype)
        return rows.sum(axis=1)

    explain(function, np.round(X, 1).astype(np.float32).astype(float), BACKGROUND.astype(np.float32))
    assert seen == {np.dtype(np.float32)}
    explain(function, X, BACKGROUND.astype(np.float32))  # doubles that would change stay
    assert seen == {np.dtype(np.float32), np.dtype(np.float64)}
    explain(lambda rows: rows.sum(axis=1) + 0.5, [[1, 2]], [[0.5, 3.0]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["category", "another order", "str", "object"])
def test_categories_of_few_rows_are_those_of_the_background(kind):
    pd = pytest.importorskip("pandas")
    kind = pd.CategoricalDtype(["c", "b", "a"]) if kind == "another order" else kind  # equal to pandas
    background = pd.DataFrame({"city": pd.Categorical(["a", "b", "c", "a"]), "age": [1.0, 2.0, 3.0, 4.0]})
    row = pd.DataFrame({"city": pd.Series(["b"], dtype=kind), "age": np.array([9], np.int64)})

    def function(rows):
        assert rows["city"].cat.categories.tolist() == ["a", "b", "c"]
        assert rows["age"].dtype == np.float64
        return rows["city"].cat.codes * rows["age"]

    found = explain(function, row, background)
    assert found.prediction == [9.0]
    np.testing.assert_allclose(found.values, [[1.375, 5.625]])  # 2, 2.5, 6.75 and 9 of the four coalitions
    row["city"] = pd.Series(["d"], dtype=getattr(kind, "name", kind))
    with pytest.raises(
        InputError, match=r"column 'city' of X has categories that the background does not know. Got \['d'\]. Add"
    ):
        explain(function, row, background)


def test_polars_columns_are_cast_or_named():
    pl = pytest.importorskip("polars")
    background = pl.DataFrame({"age": [1.0, 2.0], "n": [1, 2]})
    found = explain(lambda rows: rows["age"] * rows["n"], pl.DataFrame({"age": [3], "n": [3.0]}), background)
    assert found.prediction == [9.0]
    with pytest.raises(InputTypeError, match=r"column .n. of X and of the background do not mix\. Got Float64 and Int64"):
        explain(lambda rows: rows["age"] * rows["n"], pl.DataFrame({"age": [3], "n": [3.5]}), background)


def test_vectors_in_cells_are_players():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"vector": list(BACKGROUND), "weight": BACKGROUND[:, 0]})

    def function(rows):
        return np.stack(rows["vector"].tolist()) @ np.arange(4.0) * rows["weight"].to_numpy()

    found = explain(function, table[:2], table[5:])
    flat = np.column_stack([BACKGROUND, BACKGROUND[:, 0]])
    groups = {"vector": [0, 1, 2, 3], "weight": [4]}
    by_columns = explain(lambda rows: rows[:, :4] @ np.arange(4.0) * rows[:, 4], flat[:2], flat[5:], groups=groups)
    np.testing.assert_allclose(found.values, by_columns.values)
    assert found.facts()
    assert len(found.background_hash) == 64


class Network(BaseEstimator):
    """Returns from predict_proba what its last layer gives, as skorch's networks do."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def predict_proba(self, rows):
        return np.column_stack([self.scale * rows[:, 0], 1.0 - self.scale * rows[:, 0]])

    predict = predict_proba


class NetworkOfNumbers(RegressorMixin, Network):
    pass


@pytest.mark.parametrize(
    ("model", "unit"),
    [
        (Network(), "probability"),
        (Network(scale=4.0), "output of the function"),
        (NetworkOfNumbers(), "output of the function"),
    ],
)
def test_what_predict_proba_returns_is_a_probability_where_it_can_be_one(model, unit):
    rows = np.random.default_rng(0).uniform(size=(20, 2))
    assert explain(model.predict_proba, rows[:3], rows).unit == unit


def test_regressors_with_a_predict_proba_are_explained_by_their_predict():
    rows = np.random.default_rng(0).uniform(size=(20, 2))
    with pytest.raises(UnsupportedModelError, match=r"explain\(model.predict, X, background\)"):
        explain(NetworkOfNumbers(), rows[:3], rows)
    with pytest.raises(UnsupportedModelError, match=r"explain\(model.predict_proba, X, background\)"):
        explain(Network(), rows[:3], rows)
    assert explain(Network(), rows[:3], rows, output="probability").unit == "probability"
    with pytest.raises(UnsupportedModelError, match="No exact reader"):
        explain(NetworkOfNumbers(), rows[:3], rows, output="probability")
