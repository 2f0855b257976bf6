"""Naive Bayes and partial least squares: sums over columns, by the models' own predictions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cross_decomposition import CCA, PLSCanonical, PLSRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.testing import check_reader

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson([3.0, 1.0, 2.0, 0.5], size=(120, 4)).astype(float)
CODES = np.minimum(COUNTS, 3.0)
LABELS = np.digitize(COUNTS @ [1.0, -2.0, 0.5, 1.0] + RNG.normal(size=120), [0.0, 2.0])
ROWS, Z = slice(0, 5), slice(20, 32)
MODELS = {
    "gaussian": (GaussianNB(), COUNTS),
    "multinomial": (MultinomialNB(), COUNTS),
    "complement": (ComplementNB(norm=True), COUNTS),
    "bernoulli": (BernoulliNB(binarize=1.0), COUNTS),
    "bernoulli without a threshold": (BernoulliNB(binarize=None), np.minimum(COUNTS, 1.0)),
    "categorical": (CategoricalNB(min_categories=5), CODES),
}


@pytest.mark.parametrize(
    "settings", [{}, {"groups": {"g": [1, 3]}, "background_weights": np.arange(12) + 1.0}], ids=["plain", "groups"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_contract(name, n_classes, settings):
    model, X = MODELS[name]
    model.fit(X, LABELS if n_classes == 3 else LABELS > 0)
    check_reader(model, X[ROWS], X[Z], **settings)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("searched", [False, True])
def test_behind_a_scaler(searched, n_classes):
    """Pipelines and searches have no method for the joint log-likelihood."""
    model = make_pipeline(StandardScaler(), GaussianNB())
    model = GridSearchCV(model, {"gaussiannb__var_smoothing": [1e-9]}, cv=2) if searched else model
    model.fit(COUNTS, LABELS if n_classes == 3 else LABELS > 0)
    found = explain(model, COUNTS[ROWS], COUNTS[Z])
    scaler, last = getattr(model, "best_estimator_", model)
    own = last.predict_joint_log_proba(scaler.transform(COUNTS[ROWS]))
    expected = own[:, 1] - own[:, 0] if n_classes == 2 else own
    assert np.array_equal(found.prediction, expected)
    assert found.certificate().passed
    assert found.certificate().n_masks


def test_one_class_of_several():
    model = MultinomialNB().fit(COUNTS, LABELS)
    every = Explainer(model, COUNTS[Z])(COUNTS[ROWS]).values
    np.testing.assert_array_equal(Explainer(model, COUNTS[Z], output="2")(COUNTS[ROWS]).values, every[..., 2])


def test_unknown_categories_are_refused_by_their_place():
    model = CategoricalNB().fit(CODES, LABELS)
    rows = CODES[ROWS].copy()
    rows[3, 1] = 7.0
    with pytest.raises(InputError, match=r"does not know \(first at row 3, column 1\). Got 7; it knows 0 to"):
        Explainer(model, CODES[Z])(rows)
    rows[3, 1] = -1.0
    with pytest.raises(InputError, match="Got -1"):
        Explainer(model, CODES[Z])(rows)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [BernoulliNB(), BernoulliNB(binarize=None), MultinomialNB(), ComplementNB()], ids=str)
def test_probabilities_of_zero_are_refused(model):
    model.set_params(alpha=0.0, force_alpha=True)
    rows = np.c_[LABELS > 0, LABELS > 0, COUNTS[:, 0] > 2].astype(float)
    with pytest.raises(UnsupportedStructureError, match=r"A probability of 0 has no logarithm. Fit it with a larger alpha"):
        explain(model.fit(rows, LABELS > 0), rows[ROWS], rows[Z])


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("model", [PLSRegression(2), PLSRegression(2, scale=False), PLSCanonical(2), CCA(2)], ids=str)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_partial_least_squares(model, n_targets, as_frame):
    if n_targets == 1 and not isinstance(model, PLSRegression):
        return
    X = pd.DataFrame(COUNTS + 50.0, columns=list("abcd")) if as_frame else COUNTS + 50.0
    targets = np.stack([COUNTS @ [1.0, 2.0, 0.0, 1.0], COUNTS[:, 0] - COUNTS[:, 2]], axis=1) + RNG.normal(size=(120, 2))
    model.fit(X, targets[:, 0] if n_targets == 1 else targets)
    check_reader(model, X[:5], X[20:32])
