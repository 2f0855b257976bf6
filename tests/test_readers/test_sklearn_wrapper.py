"""Searches, thresholds and frozen estimators give the values of the model inside, checked against their own predictions."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, explain
from tolerances import roundings

rng = np.random.default_rng(3)
X = rng.normal(size=(60, 4))
y = X[:, 0] * X[:, 1] + X[:, 2]
SEARCHED = make_pipeline(StandardScaler(), SVR())
SEARCH = GridSearchCV(SEARCHED, {"svr__C": [1.0, 100.0]}, cv=2).fit(X, y)
MODELS = {
    "grid": (SEARCH, SEARCH.best_estimator_),
    "random": (
        RandomizedSearchCV(SEARCHED, {"svr__C": [3.0]}, n_iter=1, cv=2).fit(X, y),
        SEARCHED.set_params(svr__C=3.0).fit(X, y),
    ),
    "frozen": (FrozenEstimator(SEARCH), SEARCH.best_estimator_),
    "threshold": (TunedThresholdClassifierCV(LogisticRegression(), cv=2).fit(X, y > 0), LogisticRegression().fit(X, y > 0)),
}


@pytest.mark.parametrize("case", MODELS)
def test_the_model_inside_is_explained(case):
    wrapper, inside = MODELS[case]
    explanation = explain(wrapper, X[:5], X[20:40])
    np.testing.assert_array_equal(explanation.values, explain(inside, X[:5], X[20:40]).values)
    assert Explainer(wrapper, X[20:40]).verify(X[:5]).passed
    if case != "threshold":
        np.testing.assert_allclose(explanation.prediction, wrapper.predict(X[:5]), rtol=roundings(50))
