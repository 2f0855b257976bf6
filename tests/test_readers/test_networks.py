"""Networks of one hidden layer: all coalitions by the model's own predict, saturated and steep units, refusals."""

import numpy as np
import pytest

from exactshap import Explainer, explain
from exactshap.errors import BudgetError, InputError, UnsupportedStructureError
from exactshap.readers import OneLayerNetwork
from exactshap.testing import check_reader
from oracles import interventional_values
from reader_checks import check_answers
from tolerances import RESPONSE

D = 4


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, D))


def perceptron(activation, n_outputs=1, **settings):
    from sklearn.neural_network import MLPRegressor

    X = rows(80)
    y = np.stack([X[:, 0] * X[:, 1] + X[:, 2], -(X[:, 3] ** 2)], axis=1)[:, :n_outputs]
    settings = {"hidden_layer_sizes": (6,), "max_iter": 200, "random_state": 0, "solver": "lbfgs", **settings}
    return MLPRegressor(activation=activation, **settings).fit(X, y[:, 0] if n_outputs == 1 else y)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity", "relu"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_coalitions(activation, n_outputs):
    model, background, X = perceptron(activation, n_outputs), rows(5, 1), rows(3, 2)
    check_answers(model, model.predict, X, background, 100.0 * RESPONSE)
    check_answers(model, model.predict, X, background[:1], 100.0 * RESPONSE, value_function="baseline")


@pytest.mark.parametrize("activation", ["tanh", "logistic", "identity", "relu"])
def test_the_contract_of_a_reader(activation):
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(D, 3)), rng.normal(size=3), rng.normal(size=(3, 2)), [1.0, -2.0]
    network = OneLayerNetwork(*arrays, activation=activation)
    background, X = rows(3, 2), rows(4, 1)
    check_reader(network, X, background, indices=("shapley", "banzhaf", "sii", "k-sii", "fsii"))
    check_reader(network, X, background, groups={"ab": [0, 1], "cd": [2, 3]})
    X[:, 1], background[:, 1] = 5.0, 5.0
    assert np.abs(explain(network, X, background).values[:, 1]).max() < RESPONSE


# halves of opposite signs: many coalitions have a sum of exactly 0, the kink
@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_units_of_any_slope_and_sums_that_touch_the_kink(activation, scale):
    network = OneLayerNetwork(scale * np.array([[1.0], [-1.0], [1.0], [-1.0]]), [0.0], [1.0], activation=activation)
    check_answers(network, network.predict, np.ones((1, D)), np.zeros((1, D)), RESPONSE)
    network = OneLayerNetwork(scale * rows(D)[:, :3], rows(1)[0, :3], rows(1)[0, :3], activation=activation)
    check_answers(network, network.predict, rows(2, 2), rows(4, 1), RESPONSE)


def network_of(weights, **settings):
    return OneLayerNetwork(weights, [0.0], [1.0], **settings)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: network_of(np.ones((D, 1)), activation="gelu"), UnsupportedStructureError, "no exact form"),
        (lambda: network_of(np.ones((D, 2))), InputError, "do not fit together"),
        (lambda: explain(network_of(np.ones((D, 1))), rows(2)), InputError, "background"),
        (lambda: explain(network_of(np.full((12, 1), 1e5)), np.ones((1, 12)), -np.ones((1, 12))), BudgetError, "too steep"),
        (
            lambda: explain(perceptron("tanh", max_iter=2, hidden_layer_sizes=(3, 3)), rows(2), rows(4)),
            UnsupportedStructureError,
            "one hidden layer only",
        ),
        (
            lambda: explain(classifier(y=np.arange(80) % 3), rows(2), rows(4)),
            UnsupportedStructureError,
            "output='probability', or explain the scores: OneLayerNetwork",
        ),
        *(  # of three classes, too: the arrays of its first layers are no scores
            (
                lambda y=y: explain(classifier(y=y, hidden_layer_sizes=(3, 3)), rows(2), rows(4)),
                UnsupportedStructureError,
                "one hidden layer only",
            )
            for y in (None, np.arange(80) % 3)
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_rectified_units_of_many_columns():
    rng = np.random.default_rng(0)
    network = OneLayerNetwork(rng.normal(size=(34, 3)), [0.0, 0.0, 1e3], [1.0, 2.0, 3.0], activation="relu")
    X, background = rng.normal(size=(2, 34)), rng.normal(size=(2, 34))
    with pytest.raises(BudgetError, match="too many players"):
        explain(network, X, background)
    groups = {f"pair {j}": [j, j + 17] for j in range(17)}
    assert explain(network, X, background, groups=groups).certificate().passed
    # of 34 columns that differ four move the bent units; the third unit is positive for every hybrid
    network.weights[4:, :2] = 0.0
    found = explain(network, X, background).values
    few = OneLayerNetwork(network.weights[:4], network.bias, network.out_weights, activation="relu")
    bent = interventional_values(
        lambda cells: few.predict(cells) - few.weights[:, 2] @ cells.T * 3.0, X[:, :4], background[:, :4]
    )
    straight = 3.0 * network.weights[:, 2] * (X[:, None] - background).mean(axis=1)
    np.testing.assert_allclose(found[:, 4:], straight[:, 4:], rtol=0, atol=RESPONSE)
    np.testing.assert_allclose(found[:, :4], np.array(bent) + straight[:, :4], rtol=0, atol=RESPONSE)


def classifier(activation="relu", y=None, **settings):
    from sklearn.neural_network import MLPClassifier

    X = rows(80)
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] > 0, "yes", "no") if y is None else y
    settings = {"hidden_layer_sizes": (6,), "max_iter": 30, "random_state": 0, **settings}
    return MLPClassifier(activation=activation, **settings).fit(X, y)


def log_odds(model):
    def predict(cells):
        no, yes = model.predict_proba(cells).T
        return np.log(yes) - np.log(no)

    return predict


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_of_two_classes(activation):
    model, background, X = classifier(activation), rows(5, 1), rows(3, 2)
    assert check_answers(model, log_odds(model), X, background, 100.0 * RESPONSE).unit == "log-odds of class yes"
    own = lambda cells: model.predict_proba(cells)[:, 1]  # noqa: E731
    assert check_answers(model, own, X, background, RESPONSE, output="probability").unit == "probability of class yes"


@pytest.mark.parametrize("kind", ["classes", "labels"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_of_several_classes_and_of_labels(kind):
    numbers = np.arange(80) % 3
    y = np.array(["a", "b", "c"])[numbers] if kind == "classes" else np.eye(3, dtype=int)[numbers] | np.eye(3, dtype=int)[0]
    model = classifier("tanh", y)
    found = check_answers(
        model, lambda cells: model.predict_proba(cells), rows(3, 2), rows(5, 1), RESPONSE, output="probability"
    )
    assert found.unit == "probability"
    assert found.output_names == (("a", "b", "c") if kind == "classes" else ("0", "1", "2"))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_probabilities_of_many_columns_are_sampled_around_the_exact_score():
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 14))
    model = MLPClassifier((5,), max_iter=30, random_state=0).fit(X, X[:, 0] > 0)
    sampled = explain(model, X[:1], X[:5], output="probability", budget=400)
    assert not sampled.exact
    assert "control variate" in sampled.method
    exact = explain(lambda cells: model.predict_proba(cells)[:, 1], X[:1], X[:5], budget=2**14)
    assert exact.exact
    assert np.abs(sampled.values - exact.values).max() < 8.0 * sampled.std_error.max()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_log_odds_that_probabilities_do_not_resolve():
    model, background, X = classifier(), rows(5, 1), rows(3, 2)
    model.intercepts_[1] += 25.0  # exp(25) eps = 1e-5 is what predict_proba leaves of the score
    far = explain(model, X, background)
    assert far.tolerance.max() > 1e-6
    assert far.certificate().passed
    near = explain(classifier(), X, background)
    np.testing.assert_allclose(far.values, near.values, rtol=0, atol=100.0 * RESPONSE)
    model.intercepts_[1] += 20.0
    with pytest.raises(InputError, match="arrays: OneLayerNetwork"):
        explain(model, X, background)
    by_arrays = OneLayerNetwork(
        model.coefs_[0], model.intercepts_[0], model.coefs_[1][:, 0], model.intercepts_[1], activation=model.activation
    )
    np.testing.assert_allclose(explain(by_arrays, X, background).values, near.values, rtol=0, atol=100.0 * RESPONSE)


@pytest.mark.parametrize(("index", "order", "scale"), [("shapley", 1, 1e-300), ("banzhaf", 1, 30.0), ("k-sii", 2, 1.0)])
@pytest.mark.parametrize("activation", ["tanh", "logistic", "relu"])
def test_twelve_columns(activation, index, order, scale):
    rng = np.random.default_rng(0)
    arrays = scale * rng.normal(size=(12, 3)), [0.3, 1e3, -1e3], rng.normal(size=(3, 2)), [1.0, -2.0]
    network, X, background = OneLayerNetwork(*arrays, activation=activation), rng.normal(size=(2, 12)), rng.normal(size=(3, 12))
    explainer = Explainer(network, background)
    explanation = explainer(X, index=index, order=order)
    np.testing.assert_array_equal(explainer(X[1:], index=index, order=order).values, explanation.values[1:])
    assert ("middle" if activation == "relu" else "quadrature") in explanation.method
    own = explain(network.predict, X, background, index=index, order=order, exact_owner=False)
    assert own.exact
    np.testing.assert_allclose(explanation.values, own.values, rtol=0, atol=100.0 * RESPONSE)
    assert explanation.error_bound.max() < 100.0 * RESPONSE
    assert explainer.verify(X[:1]).passed
