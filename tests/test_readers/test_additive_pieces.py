"""Models' own predictions a piece of rows at a time: the documented bits, from any threads, or the documented call."""

import pickle
from itertools import pairwise
from types import MethodType

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from exactshap import Explainer
from exactshap.errors import ExactshapError
from exactshap.frames import as_table
from exactshap.readers import STAGED
from exactshap.readers._pieces import LINES, InPieces, trial_rows
from exactshap.readers.additive import sklearn_basis, sklearn_naive_bayes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
CLASSES = np.digitize(Y, [-0.5, 0.5])
ROWS = RNG.normal(size=(2 * STAGED + 77, 5)) * 3.0

MODELS = {
    "normal classes": (GaussianNB(), CLASSES, "predict_joint_log_proba"),
    "two normal classes": (GaussianNB(), CLASSES > 0, "predict_joint_log_proba"),
    "degree 2": (make_pipeline(PolynomialFeatures(2), Ridge()), Y, "predict"),
    "degree 4": (make_pipeline(PolynomialFeatures(4), Ridge()), Y, "predict"),
    "degrees 2 to 3": (make_pipeline(PolynomialFeatures((2, 3)), Ridge()), Y, "predict"),
    "interactions": (
        make_pipeline(PolynomialFeatures(3, interaction_only=True, include_bias=False), LinearRegression()),
        Y,
        "predict",
    ),
    "scaled": (make_pipeline(StandardScaler(), PolynomialFeatures(2), MinMaxScaler(), Ridge()), Y, "predict"),
    "two classes": (make_pipeline(PolynomialFeatures(2), LogisticRegression()), CLASSES > 0, "decision_function"),
}


def reader_of(model, background=X[:20]):
    """Return the reader of these rooms, whatever wraps it."""
    reader = Explainer(model, background).reader
    return getattr(reader, "inner", reader)


def own_of(reader):
    return reader.form.predict_again.args[0]


@pytest.mark.parametrize("case", MODELS)
@pytest.mark.parametrize("n_rows", [1, STAGED - 1, STAGED, STAGED + 1, 2 * STAGED + 77])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_the_bits_of_the_documented_call(case, n_rows, layout):
    model, y, method = MODELS[case]
    reader = reader_of(model.fit(X, y))
    own, rows = own_of(reader), np.array(ROWS[:n_rows], order=layout)
    expected = getattr(own._model, method)(rows)
    np.testing.assert_array_equal(own(as_table(rows)), expected)
    assert own.is_direct
    stages = own.stages(as_table(rows))
    assert (stages is None) == (n_rows < STAGED)
    if stages is not None:
        assert own._compared
        assert len(stages.columns) % 2 == 0
        assert all(column() for column in reversed(stages.columns))
        np.testing.assert_array_equal(stages.finish(), expected)


@pytest.mark.parametrize("case", MODELS)
def test_threads_get_the_bits_of_one(case):
    model, y, _ = MODELS[case]
    model.fit(X, y)
    alone, shared = (Explainer(model, X[:20], n_jobs=n_jobs)(ROWS) for n_jobs in (1, 2))
    for name in ("values", "baseline", "prediction", "residual", "tolerance"):
        if hasattr(alone, name):
            np.testing.assert_array_equal(getattr(alone, name), getattr(shared, name))
    assert shared.certificate().passed


@pytest.mark.parametrize("case", ["normal classes", "degree 2"])
def test_frames_have_the_documented_bits_and_no_warnings(case, recwarn):
    model, y, method = MODELS[case]
    names = list("abcde")
    model.fit(pd.DataFrame(X, columns=names), y)
    rows = pd.DataFrame(ROWS, columns=names)
    own = own_of(reader_of(model, pd.DataFrame(X[:20], columns=names)))
    np.testing.assert_array_equal(own(as_table(rows)), getattr(own._model, method)(rows))
    assert own._compared
    assert not [warning for warning in recwarn if "feature names" in str(warning.message)]


def test_pieces_cover_all_rows_evenly():
    for width in (1, 100, 10**5, 10**9):
        for n_rows in (0, 1, STAGED, 5000, 123_457):
            pieces = InPieces(np.sum, width)._pieces(n_rows)
            assert pieces[0].start == 0
            assert pieces[-1].stop == n_rows
            assert all(a.stop == b.start and a.stop % LINES == 0 for a, b in pairwise(pieces))
            if n_rows >= STAGED:
                assert min(piece.stop - piece.start for piece in pieces) >= LINES


@pytest.mark.parametrize(
    ("case", "module", "name"),
    [("normal classes", sklearn_naive_bayes, "_of_piece"), ("degree 2", sklearn_basis, "_OfPiece.__call__")],
)
@pytest.mark.parametrize("wrong", ["last digit", "nothing", "raises"])
def test_other_bits_leave_it_to_the_documented_call(monkeypatch, case, module, name, wrong):
    model, y, method = MODELS[case]
    model.fit(X, y)
    owner, attribute = (module, name) if "." not in name else (sklearn_basis._OfPiece, "__call__")
    kept = getattr(owner, attribute)

    def broken(*arguments):
        values = kept(*arguments)
        if wrong == "raises":
            raise ValueError("no")
        return np.nextafter(values, np.inf) if wrong == "last digit" else None

    monkeypatch.setattr(owner, attribute, broken)
    monkeypatch.setattr("exactshap.readers._own_prediction._of_kinds", {})
    own = own_of(reader_of(model))
    np.testing.assert_array_equal(own(as_table(ROWS)), getattr(own._model, method)(ROWS))
    assert own._compared is False
    assert own.stages(as_table(ROWS)) is None


def test_replaced_methods_take_the_documented_call():
    model = GaussianNB().fit(X, CLASSES)
    own = own_of(reader_of(model))
    model._joint_log_likelihood = MethodType(lambda self, rows: np.zeros((len(rows), 3)), model)
    assert (own(as_table(ROWS)) == 0.0).all()
    assert own.stages(as_table(ROWS)) is None


def test_steps_that_changed_take_the_documented_call():
    pipeline = make_pipeline(PolynomialFeatures(2), Ridge()).fit(X, Y)
    own = own_of(reader_of(pipeline))
    own(as_table(ROWS))
    for change in (
        lambda inner: inner.set_params(polynomialfeatures__interaction_only=True).fit(X, Y),
        lambda inner: inner.set_params(polynomialfeatures=StandardScaler()).fit(X, Y),
    ):
        inner = change(own._model)
        np.testing.assert_array_equal(own(as_table(ROWS)), inner.predict(ROWS))


def test_what_overflows_is_told_by_the_documented_call():
    pipeline = make_pipeline(PolynomialFeatures(3), Ridge()).fit(X, Y)
    rows = ROWS.copy()
    rows[2000, 1] = 1e200
    with pytest.raises((ExactshapError, ValueError)):
        Explainer(pipeline, X[:20], n_jobs=2)(rows)
    stages = own_of(reader_of(pipeline)).stages(as_table(rows))
    assert not all(column() for column in stages.columns)


def test_what_is_no_product_of_one_output_has_no_direct_way():
    for model, y in (
        (make_pipeline(PolynomialFeatures(2), PoissonRegressor()), np.abs(Y)),
        (make_pipeline(PolynomialFeatures(2), LogisticRegression()), CLASSES),
        (make_pipeline(PolynomialFeatures(2, order="F"), Ridge()), Y),
    ):
        assert not own_of(reader_of(model.fit(X, y))).is_direct


def test_readers_are_pickled_before_and_after():
    for case in ("normal classes", "degree 2"):
        model, y, _ = MODELS[case]
        explainer = Explainer(model.fit(X, y), X[:20])
        before = explainer(ROWS).values
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(explainer))(ROWS).values, before)


def test_a_trial_has_more_than_one_piece():
    assert len(InPieces(np.sum, 1)._pieces(len(trial_rows(3)))) > 1


def test_one_class_of_several():
    model = GaussianNB().fit(X, CLASSES)
    of_all = Explainer(model, X[:20])(ROWS)
    for k in range(3):
        of_one = Explainer(model, X[:20], output=k)(ROWS)
        np.testing.assert_array_equal(of_one.values, of_all.values[..., k])
        np.testing.assert_array_equal(of_one.prediction, of_all.prediction[:, k])
        assert of_one.certificate().passed
