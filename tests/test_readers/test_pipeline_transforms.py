"""Scalers and splines in front of a model: values of the pipeline's own columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.feature_extraction import DictVectorizer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.testing import check_reader

RNG = np.random.default_rng(7)
D = 4
SIZES = np.array([1.0, 100.0, 1e-3, 3.0])
FITTED = RNG.normal(size=(150, D)) * SIZES
Y = np.sin(FITTED[:, 0]) + (FITTED[:, 1] / 100.0) ** 2 + FITTED[:, 3]
X = RNG.normal(size=(3000, D)) * SIZES * 1.5  # beyond the knots, too
NAMES = list("abcd")
FRONTS = {
    "standard": [StandardScaler()],
    "uncentred": [StandardScaler(with_mean=False)],
    "min-max": [MinMaxScaler(feature_range=(-1, 2.5))],
    "clipped": [MinMaxScaler(clip=True)],
    "max-abs": [MaxAbsScaler()],
    "robust": [RobustScaler(unit_variance=True)],
    "several": [MaxAbsScaler(), StandardScaler(), make_pipeline(RobustScaler())],
    "splines": [SplineTransformer()],
    "splines without bias": [SplineTransformer(n_knots=4, degree=2, include_bias=False, extrapolation="linear")],
    "quantile knots": [StandardScaler(), SplineTransformer(knots="quantile", extrapolation="continue"), StandardScaler()],
    "periodic": [SplineTransformer(extrapolation="periodic")],
    "sparse": [SplineTransformer(sparse_output=True)],
    "by column": [SplineTransformer(order="F")],
}
MODELS = {
    "several outputs": (LinearRegression(), np.c_[Y, Y**2, -Y]),
    "logistic": (LogisticRegression(), np.median(Y) < Y),
    "several classes": (LogisticRegression(), np.digitize(Y, np.quantile(Y, [0.3, 0.6]))),
    "logarithm": (PoissonRegressor(), np.abs(Y)),
    "kernels": (SVR(), Y),
}


def pipeline(front="standard", model=None, y=Y, rows=FITTED):
    return make_pipeline(*map(clone, FRONTS[front]), Ridge() if model is None else clone(model)).fit(rows, y)


@pytest.mark.parametrize("front", FRONTS)
def test_contract(front):
    check_reader(pipeline(front), X[:4], FITTED[20:30])
    check_reader(pipeline(front), X[:4], FITTED[20:30], groups={"g": [0, 3]}, background_weights=np.arange(10) + 1.0)


@pytest.mark.parametrize("front", ["several", "splines"])
@pytest.mark.parametrize("name", MODELS)
def test_whatever_follows(front, name):
    check_reader(pipeline(front, *MODELS[name]), X[:4], FITTED[20:30])


@pytest.mark.parametrize("front", ["standard", "splines"])
def test_frames(front):
    frame = pd.DataFrame(FITTED, columns=NAMES)
    model = pipeline(front, rows=frame)
    check_reader(model, frame[:4], frame[20:30])
    assert Explainer(model, frame[:20])(frame[:5]).feature_names == tuple(NAMES)
    check_reader(clone(model).set_output(transform="pandas").fit(frame, Y), frame[:4], frame[20:30])


# -- steps that write to what they are given -----------------------------------------------------------------------------


def in_a_column_transformer(step):
    """Return a model whose transformer gives the step a view of the rows."""
    both = ColumnTransformer([("some", step, slice(0, 3)), ("others", "passthrough", slice(3, D))])
    return make_pipeline(both, Ridge())


def below_a_scaled_target(step):
    return TransformedTargetRegressor(make_pipeline(step, Ridge()), transformer=StandardScaler())


@pytest.mark.parametrize("kind", [StandardScaler, MinMaxScaler])
@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("build", [lambda step: make_pipeline(step, Ridge()), in_a_column_transformer, below_a_scaled_target])
def test_steps_that_write_leave_the_rows_alone(build, as_frame, kind):
    make = (lambda rows: pd.DataFrame(rows.copy(), columns=NAMES)) if as_frame else np.array
    model, careful = (build(step).fit(make(FITTED), Y) for step in (kind(copy=False), kind()))
    rows, background = make(X[:50]), make(FITTED[:20])
    explainer = Explainer(model, background)
    found = explainer(rows)
    assert explainer.verify(rows).passed
    np.testing.assert_array_equal(np.array(rows), X[:50])
    np.testing.assert_array_equal(np.array(explainer.reader.traits.background.native), FITTED[:20])
    np.testing.assert_array_equal(found.values, explain(careful, rows, background).values)


@pytest.mark.filterwarnings("ignore:Rounding leaves about 2 digits of what StandardScaler . Nystroem")
@pytest.mark.parametrize("fitted_on", [np.float32, np.float64])
@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        PLSRegression(),
        SVR(),
        make_pipeline(Nystroem(gamma=0.2, n_components=20, random_state=0), Ridge()),
        make_pipeline(RBFSampler(random_state=0), Ridge()),
        make_pipeline(PCA(2), Ridge()),
    ],
    ids=lambda model: type(getattr(model, "steps", [[0, model]])[0][1]).__name__,
)
def test_rows_in_single_precision_stay_so_behind_a_scaler(model, fitted_on):
    """A pipeline computes in the precision of its rows; what that rounds is in the tolerance, and not much more."""
    whole = make_pipeline(StandardScaler(), model).fit(FITTED.astype(fitted_on), Y)
    found = explain(whole, X[:20].astype(np.float32), FITTED[:7].astype(np.float32))
    assert found.certificate().passed
    assert found.tolerance.max() < 2e-3 * np.abs(found.prediction).max()


@pytest.mark.parametrize("what", ["rows", "background"])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda frame: frame.assign(town="Oslo"), "Found unknown categories .*Oslo"),  # the step speaks of its own input
        (lambda frame: frame.to_numpy(object), "Specifying the columns"),
    ],
)
def test_tables_that_a_step_refuses_are_named(what, bad, words):
    frame = pd.DataFrame(FITTED, columns=NAMES).assign(town="Rome", river="Tiber")
    columns = [
        ("numbers", StandardScaler(), NAMES),
        ("names", make_pipeline(OneHotEncoder(), StandardScaler(with_mean=False)), ["town", "river"]),
    ]
    model = make_pipeline(ColumnTransformer(columns), Ridge()).fit(frame, Y)
    tables = {"rows": frame[:3], "background": frame[:9]} | {what: bad(frame[:3])}
    with pytest.raises(InputError, match=f"The step ColumnTransformer refuses the {what}. {words}"):
        explain(model, tables["rows"], tables["background"])


def test_steps_that_make_dicts_are_refused_with_the_function():
    frame = pd.DataFrame(FITTED, columns=NAMES)
    records = make_pipeline(FunctionTransformer(lambda rows: rows.to_dict("records")), DictVectorizer())
    for front in (records, ColumnTransformer([("dicts", records, NAMES[:2])])):
        model = make_pipeline(front, Ridge()).fit(frame, Y)
        with pytest.raises(UnsupportedStructureError, match="makes no table of columns"):
            explain(model, frame[:2], frame[5:9])
