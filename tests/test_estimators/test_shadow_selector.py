"""Columns against shadows: scikit-learn's contract, what is kept, what is not, and the p-values from the definition."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import explain
from exactshap.errors import InputError
from exactshap.estimators import ShadowSelector
from tolerances import roundings

SMALL = RandomForestRegressor(15, max_leaf_nodes=12, max_features=1 / 3)


@parametrize_with_checks([ShadowSelector(RandomForestRegressor(3), n_trials=3, level=0.3, max_rows=50)])
def test_scikit_learns_contract(estimator, check):
    check(estimator)


def signal(n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 2.0 * X[:, 1] + X[:, 3] * np.sign(X[:, 1]) + 0.5 * rng.normal(size=n)


def test_signals_are_kept_and_p_values_are_those_of_the_definition():
    X, y = signal()
    selector = ShadowSelector(SMALL, n_trials=25, random_state=0).fit(X, y)
    assert selector.get_support()[[1, 3]].all()
    for j in range(X.shape[1]):
        mean = np.mean([trial[j] for trial in selector.importances_])
        beaten = sum(shadow >= mean for shadow in selector.shadow_importances_)
        assert selector.p_values_[j] == (1 + beaten) / 26
    assert np.array_equal(selector.support_, selector.p_values_ <= 0.05)
    assert selector.ranking_[1] == 1
    assert selector.transform(X).shape == (150, selector.support_.sum())


def test_seeds_reach_the_steps_of_a_pipeline():
    X, y = signal(60)
    one, other = (
        ShadowSelector(make_pipeline(StandardScaler(), clone(SMALL)), n_trials=2, level=0.5, random_state=0).fit(X, y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.importances_, other.importances_)


def test_false_discoveries_are_rare_without_signal():
    """At a level of 0.2 any column is kept in about a fifth of data sets: 6 of 8 would be far off (p = 1e-3)."""
    found, tiny = 0, RandomForestRegressor(5, max_leaf_nodes=12, max_features=1 / 3)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(80, 5)), rng.normal(size=80)
        found += ShadowSelector(tiny, n_trials=9, level=0.2, random_state=seed).fit(X, y).support_.any()
    assert found <= 5


def test_classes_of_several_kinds_and_seeds():
    X, y = signal(100)
    labels = np.digitize(y, [-1.0, 1.0])
    model = RandomForestClassifier(10, max_leaf_nodes=8)
    one, other = (ShadowSelector(model, n_trials=3, level=0.3, random_state=3).fit(X, labels) for _ in range(2))
    assert np.array_equal(one.importances_, other.importances_)
    assert one.support_[1]
    for chosen in (model, None):  # None: a forest that suits the target
        words = ShadowSelector(chosen, n_trials=3, level=0.3, random_state=3).fit(X, np.array(["low", "mid", "high"])[labels])
        assert words.support_[1]


def test_importances_are_means_over_rows_and_classes():
    X, y = signal(100)
    labels, generator = np.digitize(y, [-1.0, 1.0]), np.random.RandomState(3)
    model = RandomForestClassifier(5, max_leaf_nodes=8)
    selector = ShadowSelector(model, n_trials=1, level=0.6, random_state=3).fit(X, labels)
    both = np.hstack([X, X[generator.permutation(100)]])
    values = explain(clone(model).set_params(random_state=generator.randint(2**31 - 1)).fit(both, labels), both).values
    np.testing.assert_allclose(selector.importances_[0], np.abs(values).mean(axis=(0, 2))[: X.shape[1]], rtol=roundings(300))


def test_the_model_given_is_left_as_it_is_and_few_rows_are_explained():
    X, y = signal()
    model = RandomForestRegressor(5, random_state=7)
    ShadowSelector(model, n_trials=19, max_rows=20, random_state=0).fit(X, y)
    assert model.random_state == 7
    assert not hasattr(model, "estimators_")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_trials": 0}, "'n_trials'"),
        ({"level": 1.5}, "'level'"),
        ({"n_trials": 10}, "n_trials=19, or more"),
        ({"max_rows": 1}, "'max_rows'"),
    ],
)
def test_settings_are_refused_with_words(settings, words):
    with pytest.raises(InputError, match=words):
        ShadowSelector(**settings).fit(*signal())
