"""Principal components and other linear maps in front of linear models."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVR, LinearSVR

from exactshap import Explainer, explain
from exactshap.errors import ExactnessError, ExplanationWarning, UnsupportedStructureError
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import INVERTED, RESPONSE

RNG = np.random.default_rng(0)
X = np.cumsum(RNG.normal(size=(120, 6)), axis=1) * [1.0, 10.0, 0.1, 1.0, 1.0, 5.0] + 3.0
Y = X[:, 0] - X[:, 5] / 5.0 + RNG.normal(size=120)
SOME = make_column_transformer((PCA(2), [0, 1, 5]), (StandardScaler(), [2]), remainder="drop")
OTHERS = make_column_transformer((PCA(2), [0, 1, 5]), remainder="passthrough")
WHITENED = make_pipeline(StandardScaler(), PCA(2, whiten=True), RobustScaler())
OF_SCALED = make_column_transformer((WHITENED, [0, 1, 5]), remainder="passthrough")
SPARSE = make_column_transformer((KBinsDiscretizer(4), [3, 4]), (TruncatedSVD(2), [0, 1, 2]), sparse_threshold=1.0)
MODELS = {
    "principal components": (make_pipeline(PCA(3), Ridge()), Y),
    "scaled": (make_pipeline(StandardScaler(), PCA(3), Ridge()), Y),
    "whitened": (make_pipeline(PCA(3, whiten=True), StandardScaler(), Ridge()), Y),
    "in parts": (make_pipeline(IncrementalPCA(3), RobustScaler(), LinearSVR(max_iter=9)), Y),
    "twice": (make_pipeline(PCA(4), TruncatedSVD(2), Ridge()), Y),
    "independent": (make_pipeline(FastICA(3, random_state=0), Ridge()), Y),
    "singular values": (make_pipeline(TruncatedSVD(3), LogisticRegression()), np.digitize(Y, [0.0, 2.0])),
    "discriminants": (make_pipeline(PCA(3), LinearDiscriminantAnalysis()), np.digitize(Y, [0.0, 2.0])),
    "random": (make_pipeline(GaussianRandomProjection(3, random_state=0), Ridge()), np.stack([Y, -Y], axis=1)),
    "sparse": (make_pipeline(SparseRandomProjection(3, random_state=0, dense_output=True), Ridge()), Y),
    "log link": (make_pipeline(StandardScaler(), PCA(3), PoissonRegressor()), np.abs(Y)),
    "least squares": (make_pipeline(StandardScaler(), PLSRegression(2)), Y),
    "of some columns": (make_pipeline(SOME, Ridge()), Y),
    "of scaled columns": (make_pipeline(OF_SCALED, MinMaxScaler(), LogisticRegression()), np.digitize(Y, [0.0, 2.0])),
    "sparse columns with them": (make_pipeline(SPARSE, PoissonRegressor()), np.abs(Y)),
    "united": (make_pipeline(RobustScaler(), make_union(PCA(2), StandardScaler(), "passthrough"), Ridge()), np.c_[Y, -Y]),
    "in a search": (GridSearchCV(make_pipeline(OTHERS, Ridge()), {}, cv=2), Y),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", MODELS)
def test_contract(name):
    model, y = MODELS[name]
    model.fit(X, y)
    check_reader(model, X[:3], X[20:30], groups={"g": [0, 3]})
    if hasattr(model, "decision_function") or "log" in name or "sparse c" in name:
        check_reader(model, X[:3], X[20:30])
    else:
        check_answers(model, model.predict, X[:3], X[20:30], INVERTED)


def test_components_of_some_columns_of_a_frame():
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(town=np.resize(["x", "y", "z"], 120))
    front = make_column_transformer((PCA(2), ["a", "b", "f"]), (OneHotEncoder(), ["town"]), (StandardScaler(), ["c"]))
    model = make_pipeline(front, LogisticRegression()).fit(frame, Y > 1.0)
    check_reader(model, frame[:4], frame[20:30])
    found = explain(model, frame[:4], frame[20:30], output="probability")
    np.testing.assert_allclose(found.prediction, model.predict_proba(frame[:4])[:, 1], rtol=RESPONSE)
    brute = explain(lambda rows: model.predict_proba(rows)[:, 1], frame[:4], frame[20:30])
    np.testing.assert_allclose(found.values, brute.values, atol=RESPONSE)
    explainer = Explainer(model, frame[20:30])
    model[0].named_transformers_["pca"].components_ *= -1.0
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(frame[:4])


@pytest.mark.parametrize("front", [PCA(3), OTHERS], ids=["all columns", "some columns"])
@pytest.mark.parametrize("tail", [[SVR()], [MinMaxScaler(clip=True), Ridge()], [PolynomialFeatures(), Ridge()]], ids=str)
def test_what_is_not_linear_behind_them_is_refused(front, tail):
    with pytest.raises(UnsupportedStructureError, match="groups="):
        Explainer(make_pipeline(front, *tail).fit(X, Y), X[:10])


@pytest.mark.parametrize("front", [[], [PolynomialFeatures(1, include_bias=False)]], ids=["columns", "monomials"])
def test_what_cancels_between_the_steps_counts_as_rounding(front):
    """The model is the first column, but each of its components holds some of the second, of size 1e8."""
    rows = RNG.normal(size=(20, 2)) * [1.0, 1e8]
    model = make_pipeline(*front, GaussianRandomProjection(2, random_state=0), LinearRegression()).fit(rows, rows[:, 0])
    model[-1].coef_, model[-1].intercept_ = np.linalg.solve(model[-2].components_.T, [1.0, 0.0]), 0.0
    with pytest.warns(ExplanationWarning, match="Rounding leaves about 5 digits"):
        found = explain(model, rows[:9], rows[9:])
    assert found.certificate().passed
    assert np.abs(found.residual).max() > 1e6 * np.finfo(float).eps
