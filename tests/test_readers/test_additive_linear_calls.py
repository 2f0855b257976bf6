"""A linear model's own prediction by its product alone: the bits of its documented method, or that method itself."""

import functools
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier, TweedieRegressor
from sklearn.linear_model._base import LinearModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer
from exactshap.errors import ExactnessError, InputError
from exactshap.frames import Table, as_table
from exactshap.readers import Reader, _sklearn
from exactshap.readers.additive import sklearn_linear
from exactshap.semivalues import find
from exactshap.solvers.additive import _linear
from few_rows import check_bits

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 7)) * 10.0 ** np.arange(-3, 4)
Y = X @ RNG.normal(size=7)
LABELS = np.digitize(Y, [-1.0, 1.0])
NAMES = list("abcdefg")
MODELS = {
    "ridge": (Ridge(), Y),
    "one target as a column": (LinearRegression(), Y[:, None]),
    "several targets": (LinearRegression(), np.stack([Y, Y**2], axis=1)),
    "no intercept": (Ridge(fit_intercept=False), Y),
    "a cross-validated one": (linear_model.RidgeCV(), Y),
    "lasso": (linear_model.Lasso(), Y),
    "with deviations": (linear_model.BayesianRidge(), Y),
    "two classes": (LogisticRegression(max_iter=5), LABELS > 0),
    "three classes": (LogisticRegression(max_iter=5), LABELS),
    "hinges": (SGDClassifier(random_state=0, max_iter=5, tol=None), LABELS > 1),
    "a support vector machine": (svm.LinearSVC(max_iter=5), LABELS > 0),
    "of single precision": (LinearRegression(), None),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(name, columns=None):
    template, y = MODELS[name]
    model = clone(template)  # no attribute that another test has set
    rows = X if columns is None else pd.DataFrame(X, columns=columns)
    return model.fit(X.astype(np.float32), Y.astype(np.float32)) if y is None else model.fit(rows, y)


def own_of(explainer):
    return explainer.reader.form.predict_again.args[0]


@pytest.mark.parametrize("name", MODELS)
def test_bits(name):
    model = fitted(name)
    own = own_of(Explainer(model, X[:20]))
    for rows in (X[:1], X[:3], X[:12], X, np.asfortranarray(X), X[::-2], X[:, ::-1][:, ::-1], np.tile(X, (9, 1))):
        check_bits(own, rows)


@pytest.mark.parametrize("name", ["ridge", "three classes"])
def test_bits_of_frames(name):
    model = fitted(name, NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # rows on which both are tried have no names, of which nobody is told
        own = own_of(explainer := Explainer(model, pd.DataFrame(X[:20], columns=NAMES)))
        explainer(pd.DataFrame(X[:5], columns=NAMES))
    frame = pd.DataFrame(X, columns=NAMES)
    for rows in (frame[:1], frame[:40], frame, frame.iloc[::2]):
        check_bits(own, rows)
    by_column = pd.DataFrame({column: X[:, j] for j, column in enumerate(NAMES)})
    check_bits(own, by_column)
    for other in (frame.astype(np.float32), frame.assign(c=np.arange(300)), frame.astype({"a": np.float32})):
        assert own._cells(as_table(other)) is None, "scikit-learn may do more than take these numbers as they are"
        np.testing.assert_array_equal(own(as_table(other)), own._documented(model, other))


@pytest.mark.parametrize(
    "model",
    [
        TweedieRegressor(power=1.5, max_iter=9),
        TweedieRegressor(power=0, max_iter=9),  # its link may change
        linear_model.RANSACRegressor(random_state=0),
        svm.OneClassSVM,
    ],
)
def test_what_is_more_than_a_product_is_left_to_the_model(model):
    if model is svm.OneClassSVM:
        model = linear_model.SGDOneClassSVM(random_state=0)
    rows = X / 10.0 ** np.arange(-3, 4)
    explainer = Explainer(model.fit(rows, np.abs(Y) + 1.0), rows[:20])
    assert explainer(rows[:12]).certificate().passed
    own = own_of(explainer)
    assert own._direct is None or not own._agrees(own._direct)


def test_a_model_that_was_edited_or_fitted_again_is_asked_as_it_is():
    model = fitted("ridge")
    own, before = own_of(Explainer(model, X[:20])), model.predict(X[:2])
    model.coef_[2] += 1.0  # in place
    check_bits(own, X)
    model.coef_, model.intercept_ = model.coef_ * 2.0, 3.0
    check_bits(own, X)
    model.fit(X, -Y)
    check_bits(own, X)
    assert not np.array_equal(own(as_table(X[:2])), before)
    model.fit(X[:, :4], Y)
    assert own._direct(model, X) is None
    with pytest.raises(ValueError, match="features"):
        own(as_table(X))


def test_sparse_coefficients_are_left_to_the_model():
    model = fitted("two classes").sparsify()
    own = own_of(Explainer(model, X[:20]))
    np.testing.assert_array_equal(own(as_table(X)), model.decision_function(X))
    assert own._direct(model, X) is None


def test_an_edited_model_is_refused():
    model = fitted("ridge")
    explainer = Explainer(model, X[:20])
    explainer(X[:30])
    model.coef_[6] *= 1.001
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X[:30])


@pytest.mark.parametrize("name", ["predict", "_decision_function"])
@pytest.mark.parametrize("of_class", [None, Ridge, LinearModel])
def test_a_method_that_was_replaced_is_asked(name, of_class, monkeypatch):
    model = fitted("ridge")
    explainer = Explainer(model, X[:20])
    explainer(X[:30])
    if of_class is not None:
        own = getattr(of_class, name)
        monkeypatch.setattr(of_class, name, lambda self, rows: own(self, rows) + 1.0)
    else:
        own = getattr(model, name)
        monkeypatch.setattr(model, name, lambda rows: own(rows) + 1.0)
    with pytest.raises(ExactnessError, match="do not add up"):
        explainer(X[:30])


@pytest.mark.parametrize("wrap", [lambda new, own: new, lambda new, own: functools.wraps(own)(new)], ids=["plain", "wrapped"])
@pytest.mark.parametrize("name", ["predict", "_decision_function"])
def test_a_method_that_was_replaced_before_is_asked(name, wrap, monkeypatch):
    """It cuts predictions off where no trial sees it."""
    model = fitted("ridge")
    own = getattr(LinearModel, name)
    floored = wrap(lambda self, rows: np.maximum(own(self, rows), -1e12), own)
    monkeypatch.setattr(LinearModel, name, floored)
    assert own_of(Explainer(model, X[:20]))._direct is None


def test_predictions_that_are_cut_off_far_away_are_not_a_product(monkeypatch):
    monkeypatch.setattr(_sklearn, "_library", lambda: "")  # whoever's method it is
    model = fitted("ridge")
    own = LinearModel.predict
    monkeypatch.setattr(LinearModel, "predict", lambda self, rows: np.maximum(own(self, rows), -1e4))
    found = own_of(Explainer(model, X[:20]))
    assert found._direct is not None
    assert not found._agrees(found._direct)


def test_a_product_in_another_order_is_not_taken(monkeypatch):
    monkeypatch.setattr(sklearn_linear, "product", lambda model, rows: rows[:, ::-1] @ model.coef_[::-1] + model.intercept_)
    model = fitted("ridge")
    own = own_of(Explainer(model, X[:20]))
    np.testing.assert_array_equal(own(as_table(X)), model.predict(X))
    assert not own._agrees(own._direct)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_model_that_differs_on_hybrid_rows_alone_is_seen(scaled, monkeypatch):
    """Residuals of the rows themselves, which the solver looks at, are all within their tolerance."""
    model = make_pipeline(StandardScaler(), Ridge()).fit(X, Y) if scaled else Ridge().fit(X, Y)
    linear = model[-1] if scaled else model
    explainer, own = Explainer(model, X[:20]), linear.predict
    seen = model[0].transform(X) if scaled else X
    known = {row.tobytes() for row in np.ascontiguousarray(seen)}
    monkeypatch.setattr(linear, "predict", lambda rows: own(rows) + [float(row.tobytes() not in known) for row in rows])
    with pytest.raises(ExactnessError, match="hybrid rows"):
        explainer(X[20:50])


def test_an_intercept_of_another_shape_is_refused():
    model = fitted("ridge")
    explainer = Explainer(model, X[:20])
    explainer(X[:30])
    model.intercept_ = np.zeros((1, 1)) + 3.0
    with pytest.raises(InputError, match="does not predict one number for each row"):
        explainer(X[:30])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
def test_one_pass_over_the_rows_has_the_bits_of_one_step_after_the_other(name, index):
    reader, question = Explainer(fitted(name), X[:20]).reader, find(index)
    assert reader._quick is not None
    for order in (1, 2):
        for rows in (X[:5], X, np.asfortranarray(X)):
            quick, slow = (answer(reader, as_table(rows), question, order) for answer in (type(reader).answer, Reader.answer))
            for field in ("values", "empty", "full", "residual", "prediction", "tolerance", "error_bound", "scale"):
                np.testing.assert_array_equal(getattr(quick, field), getattr(slow, field))
            assert (quick.method, quick.sets) == (slow.method, slow.sets)


def test_pickles_and_threads():
    model = fitted("ridge")
    explainer = Explainer(model, X[:20])
    copied = pickle.loads(pickle.dumps(explainer))
    np.testing.assert_array_equal(copied(X[:30]).prediction, explainer(X[:30]).prediction)
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda i: explainer.reader.predict_again(as_table(X[: i % 7 + 1])), range(200)))
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part, model.predict(X[: i % 7 + 1]))


@pytest.mark.parametrize("name", ["ridge", "three classes", "of single precision"])
@pytest.mark.parametrize("turned", [np.ascontiguousarray, np.asfortranarray])
def test_many_rows_in_single_precision_have_the_bits_of_the_same_numbers_in_double(name, turned, monkeypatch):
    model, rows = fitted(name), turned(np.tile(X, (300, 1)).astype(np.float32))
    assert rows.size > 2 * _linear.PIECE
    explained = [Explainer(model, X[:20], n_jobs=n_jobs)(some) for n_jobs in (1, 2) for some in (rows, rows.astype(float))]
    for other in explained[1:]:
        for field in ("values", "baseline", "prediction", "residual", "tolerance", "error_bound"):
            np.testing.assert_array_equal(getattr(other, field), getattr(explained[0], field))
        assert other.certificate().passed
    asked, numeric = [], Table.numeric

    def noted(table, **words):
        asked.append(table.n_rows)
        return numeric(table, **words)

    monkeypatch.setattr(Table, "numeric", noted)
    Explainer(model, X[:20])(rows)
    assert max(asked) < len(rows)  # never all of them at once


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("bad", "words"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_a_gap_in_single_precision_is_named(n_jobs, bad, words):
    rows = np.tile(X, (300, 1)).astype(np.float32)
    rows[41_234, 3] = bad
    with pytest.raises(InputError, match=rf"(?s){words}.*41234"):
        Explainer(fitted("ridge"), X[:20], n_jobs=n_jobs)(rows)
