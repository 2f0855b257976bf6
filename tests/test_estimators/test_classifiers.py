"""Classifiers: scikit-learn's checks, the minimum itself, and exact explanations of the score."""

import itertools

import numpy as np
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import Explainer, explain
from exactshap.errors import BudgetError, InputError
from exactshap.estimators import RKHSWeightingClassifier, connected_subsets
from exactshap.estimators.shapley_ridge import ShapleyKernelClassifier
from tolerances import PROBABILITY, SOLVED_TWICE

OLD_CHECKS = (
    {"check_sample_weight_equivalence_on_dense_data": "scikit-learn 1.6 fits other labels with weights than with repeats"}
    if sklearn.__version__.startswith("1.6.")
    else {}
)


@parametrize_with_checks(
    [
        RKHSWeightingClassifier(n_terms=30, random_state=0),
        RKHSWeightingClassifier("sign", loss="hinge", n_terms=30, random_state=0),
    ],
    expected_failed_checks=lambda _: OLD_CHECKS,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def data(n=120, d=4):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] > 0, "yes", "no")


def objective(model, X, signs, weights, loss):
    """The penalised loss as a function of (a, b), from the fitted terms' own features."""
    terms = zip(model.terms_, _split(model), strict=True)
    features = [t.coefficients / a * t.base.expectation(t.parameters, X[:, list(t.subset)]) for t, a in terms]
    features = np.concatenate(features, axis=1)
    T = features.shape[1]
    gram, start = np.zeros((T, T)), 0
    for t in model.terms_:
        stop = start + len(t.parameters)
        gram[start:stop, start:stop] = t.base.kernel(t.parameters, t.parameters, len(t.subset))
        start = stop
    penalty = model.alpha * gram + model.ridge * np.eye(T)

    def value(z):
        margin = signs * (features @ z[:T] + z[T])
        if loss == "logistic":
            losses, slope = np.logaddexp(0.0, -margin), -signs / (1 + np.exp(margin))
        else:
            losses, slope = np.maximum(0.0, 1.0 - margin), -signs * (margin < 1)
        weighted = weights * slope / weights.sum()
        gradient = np.append(features.T @ weighted + 2 * penalty @ z[:T], weighted.sum())
        return weights @ losses / weights.sum() + z[:T] @ penalty @ z[:T], gradient

    return value


def _split(model):
    stops = np.cumsum([len(t.parameters) for t in model.terms_])
    return np.split(model.coef_, stops[:-1])


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_coefficients_are_the_minimum(loss):
    X, y = data()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = RKHSWeightingClassifier(loss=loss, n_terms=20, alpha=1e-2, subsets=2, random_state=0).fit(X, y, weights)
    value = objective(model, X, np.where(y == "yes", 1.0, -1.0), weights, loss)
    at = np.append(model.coef_, model.intercept_)
    here, slope = value(at)
    if loss == "logistic":
        assert np.abs(slope).max() < 1e-7  # convex and smooth: a minimum
    rng = np.random.default_rng(2)
    for size in (1e-1, 1e-2, 1e-3):
        steps = size * rng.normal(size=(200, len(at)))
        assert min(value(at + step)[0] for step in steps) >= here - 1e-6
    found = minimize(value, np.zeros_like(at), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    assert here <= found.fun + 1e-6


def test_probabilities_and_margins():
    X, y = data()
    model = RKHSWeightingClassifier(subsets=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(
        np.log(model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0]), model.decision_function(X), atol=PROBABILITY
    )
    assert not hasattr(RKHSWeightingClassifier(loss="hinge"), "predict_proba")
    twice = RKHSWeightingClassifier(subsets=2, random_state=0).fit(np.vstack([X, X[:40]]), np.append(y, y[:40]))
    weighted = RKHSWeightingClassifier(subsets=2, random_state=0).fit(X, y, np.where(np.arange(len(y)) < 40, 2.0, 1.0))
    np.testing.assert_allclose(weighted.decision_function(X), twice.decision_function(X), atol=SOLVED_TWICE)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_score_is_explained_exactly(loss):
    X, y = data()
    model = RKHSWeightingClassifier(loss=loss, subsets=2, alpha=1e-2, n_terms=40, random_state=0).fit(X, y)
    explainer = Explainer(model, X[:10])
    explanation = explainer(X[:5])
    assert explanation.certificate().passed
    assert explanation.unit == f"{'log-odds' if loss == 'logistic' else 'margin'} of class yes"
    np.testing.assert_allclose(explanation.prediction, model.decision_function(X[:5]))
    assert explainer.verify(X[:3]).passed


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"loss": "squared"}, "loss"),
        ({"alpha": 0.0, "ridge": 0.0}, "penalty"),
        ({"loss": "hinge", "fit_intercept": False}, "intercept"),
        ({"n_terms": 0}, "n_terms"),
    ],
)
def test_settings_are_checked(settings, text):
    with pytest.raises(InputError, match=text):
        RKHSWeightingClassifier(**settings).fit(*data())
    with pytest.raises(InputError, match="OneVsRest"):
        RKHSWeightingClassifier().fit(data()[0], np.arange(120) % 3)


def test_connected_subsets_are_those_that_a_search_reaches():
    right = [(i, i + 1) for i in range(12) if i % 4 < 3]
    edges = [*right, *((i, i + 4) for i in range(8))]  # three lines of four columns
    near = {i: {b if a == i else a for a, b in edges if i in (a, b)} for i in range(12)}

    def connected(subset):
        reached, todo = {subset[0]}, [subset[0]]
        while todo:
            fresh = (near[todo.pop()] & set(subset)) - reached
            reached |= fresh
            todo += fresh
        return len(reached) == len(subset)

    for size in (1, 2, 3, 4):
        expected = [s for s in itertools.combinations(range(12), size) if connected(s)]
        assert connected_subsets(size, edges=edges) == connected_subsets(size, grid=(3, 4)) == expected
    with pytest.raises(InputError, match="size"):
        connected_subsets(0, edges=edges)
    with pytest.raises(BudgetError, match="connected subsets"):
        connected_subsets(8, grid=(30, 30))


# --- logistic regression with penalised values: the contract, the optimum, and the explanation ------------------------


GENERATOR = np.random.default_rng(0)
ROWS = GENERATOR.normal(size=(50, 3))
LABELS = np.where(ROWS @ [1.0, 2.0, 0.5] + 0.3 * GENERATOR.normal(size=50) > 0, "yes", "no")
THREE = np.digitize(ROWS[:, 0] + ROWS[:, 1], [-0.7, 0.7])


@parametrize_with_checks([ShapleyKernelClassifier()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def objective_of_values(model, dual, y):
    """The objective_of_values of the docstring by its definition."""
    from exactshap.readers.kernel_machines import KernelMachine

    kernel = model.kernel_(ROWS)
    scores = (kernel @ dual).reshape(50, -1)
    values = explain(KernelMachine(ROWS, dual, model.kernel_), ROWS, ROWS).values.reshape(50, 3, -1)[:, 0]
    if scores.shape[1] == 1:
        sign = np.where(y == model.classes_[1], 1.0, -1.0)
        loss = np.logaddexp(0.0, -sign * scores[:, 0]).sum()
    else:
        loss = (np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(50), y]).sum()
    norm = np.einsum("ik,ij,jk->", dual.reshape(50, -1), kernel, dual.reshape(50, -1))
    return loss + model.alpha * norm + model.shapley_penalty * (values**2).sum() / 50


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_solution_is_the_minimum(y):
    model = ShapleyKernelClassifier(gamma=0.4, alpha=0.1, shapley_penalty=20.0, features=0).fit(ROWS, y)
    best = objective_of_values(model, model.dual_coef_, y)
    rng = np.random.default_rng(1)
    for _ in range(5):
        step = rng.normal(size=model.dual_coef_.shape)
        up, down = (objective_of_values(model, model.dual_coef_ + s * 1e-3 * step, y) for s in (1, -1))
        assert up > best
        assert down > best
        assert abs(up - down) < 0.01 * (up + down - 2 * best)  # slope against curvature; third derivatives leave 0.1 per cent


@pytest.mark.parametrize("y", [LABELS, THREE], ids=["two", "three"])
def test_explained_and_silenced(y):
    model = ShapleyKernelClassifier(gamma=0.4, alpha=0.1, shapley_penalty=1e6, features=1).fit(ROWS, y)
    explanation = explain(model, ROWS, ROWS)
    assert explanation.certificate().passed
    assert np.abs(explanation.values[:, 1]).max() < 0.01 * np.abs(explanation.values).max()
    assert explanation.unit == ("log-odds of class yes" if y is LABELS else "score before the softmax")
    assert model.predict_proba(ROWS).sum(axis=1) == pytest.approx(np.ones(50))


def test_bad_input():
    with pytest.raises(ValueError, match="at least 2 classes"):
        ShapleyKernelClassifier().fit(ROWS, np.zeros(50))
    with pytest.raises(ValueError, match="'alpha' parameter of ShapleyKernelClassifier"):
        ShapleyKernelClassifier(alpha=0).fit(ROWS, LABELS)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations"):
        ShapleyKernelClassifier(max_iter=1, alpha=1e-6).fit(ROWS, LABELS)
