"""Quadratic forms: discriminant analysis and the elliptic envelope, by brute force over their own decision function."""

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import EllipticEnvelope
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer, explain
from exactshap.testing import check_reader
from oracles import interventional_values
from tolerances import roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(200, 4)) * [1.0, 5.0, 0.1, 1.0] + [0.0, 100.0, 3.0, -5.0], columns=list("abcd"))
SCORE = (X.a**2 + (X.b - 100.0) / 5.0 * (X.d + 5.0)).to_numpy()
MODELS = {
    "two classes": (QuadraticDiscriminantAnalysis(), np.where(SCORE > 0.5, "yes", "no")),
    "three classes": (QuadraticDiscriminantAnalysis(reg_param=0.1), np.digitize(SCORE, [-0.3, 1.0])),
    "envelope": (EllipticEnvelope(random_state=0), None),
}


@pytest.mark.parametrize("name", MODELS)
def test_quadratic_forms(name):
    model, y = MODELS[name]
    model.fit(X, y)
    rows, background = X[:3], X[50:58]
    check_reader(model, rows, background)
    explanation = explain(model, rows, background)
    own = model.decision_function(rows)
    size = np.abs(own).max() + np.abs(explanation.values).max()
    np.testing.assert_allclose(explanation.prediction, own, rtol=0, atol=roundings(64) * size)
    assert explanation.exact
    assert Explainer(model, background).verify(rows).passed
    k = explanation.n_outputs - 1
    values = interventional_values(lambda mixed: model.decision_function(mixed).reshape(len(mixed), -1)[:, k], rows, background)
    found = explanation.values.reshape(*values.shape, -1)[:, :, k]
    np.testing.assert_allclose(found, values, rtol=0, atol=roundings(2000) * size)


def test_units_pairs_and_pipelines():
    model = make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis()).fit(X, MODELS["two classes"][1])
    explanation = Explainer(model, X[50:58])(X[:3], index="k-sii", order=2)
    assert explanation.unit == "log-odds of class yes"
    assert explanation.interactions.shape == (3, 4, 4)
    proba = model.predict_proba(X[:3])
    np.testing.assert_allclose(explanation.prediction, np.log(proba[:, 1] / proba[:, 0]))
    assert explain(MODELS["envelope"][0].fit(X), X[:3], X[50:58]).unit == "decision function"
