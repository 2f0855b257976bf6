"""Shapley-regularised logistic regression: the contract, the optimum, and the explanation."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import explain
from exactshap.estimators.shapley_ridge import ShapleyKernelClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
LABELS = np.where(X @ [1.0, 2.0, 0.5] + 0.3 * RNG.normal(size=50) > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + X[:, 1], [-0.7, 0.7])


@parametrize_with_checks([ShapleyKernelClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def objective(model, dual, y):
    """The objective of the docstring by its definition."""
    from exactshap.readers.kernel_machines import KernelMachine

    kernel = model.kernel_(X)
    scores = (kernel @ dual).reshape(50, -1)
    values = explain(KernelMachine(X, dual, model.kernel_), X, X).values.reshape(50, 3, -1)[:, 0]
    if scores.shape[1] == 1:
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        loss = np.logaddexp(0.0, -sign * scores[:, 0]).sum()
    else:
        loss = (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(50), y]).sum()
    norm = np.einsum("ik,ij,jk->", dual.reshape(50, -1), kernel, dual.reshape(50, -1))
    return loss + model.alpha * norm + model.shapley_penalty * (values**2).sum() / 50


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_solution_is_the_minimum(y):
    model = ShapleyKernelClassifier(gamma=0.4, alpha=0.1, shapley_penalty=20.0, features=0).fit(X, y)
    best = objective(model, model.dual_coef_, y)
    rng = np.random.default_rng(1)
    for _ in range(5):
        step = rng.normal(size=model.dual_coef_.shape)
        up, down = (objective(model, model.dual_coef_ + s * 1e-3 * step, y) for s in (1, -1))
        assert up > best
        assert down > best
        assert abs(up - down) < 0.01 * (up + down - 2 * best)  # slope against curvature; third derivatives leave 0.1 per cent


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_explained_and_silenced(y):
    model = ShapleyKernelClassifier(gamma=0.4, alpha=0.1, shapley_penalty=1e6, features=1).fit(X, y)
    explanation = explain(model, X, X)
    assert explanation.certificate().passed
    assert np.abs(explanation.values[:, 1]).max() < 0.01 * np.abs(explanation.values).max()
    assert explanation.unit == ("log-odds of class yes" if y is LABELS else "score before the softmax")
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(50))


def test_bad_input():
    with pytest.raises(ValueError, match="at least 2 classes"):
        ShapleyKernelClassifier().fit(X, np.zeros(50))
    with pytest.raises(ValueError, match="'alpha' parameter of ShapleyKernelClassifier"):
        ShapleyKernelClassifier(alpha=0).fit(X, LABELS)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations"):
        ShapleyKernelClassifier(max_iter=1, alpha=1e-6).fit(X, LABELS)
