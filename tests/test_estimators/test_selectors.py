"""Selectors of columns: shares of HSIC, and columns against shadows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import HSICSelector, decompose_hsic, explain
from exactshap.errors import InputError
from exactshap.estimators import ShadowSelector
from tolerances import conditioned, roundings

X, y = load_wine(return_X_y=True)


@parametrize_with_checks([HSICSelector()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_shares_are_those_of_the_decomposition():
    selector = HSICSelector(4, bandwidth="median").fit(X, y)
    shares = decompose_hsic(X, y, kernel_y="categorical").values
    assert np.array_equal(selector.shares_, shares)
    assert set(selector.get_support(indices=True)) == set(np.argsort(-shares)[:4])
    assert sorted(selector.ranking_) == list(range(1, 14))
    assert selector.transform(X).shape == (178, 4)


def test_a_product_of_two_columns_is_found():
    rows = np.random.default_rng(0).normal(size=(400, 8))
    selector = HSICSelector(2).fit(rows, rows[:, 3] * rows[:, 5])
    assert selector.get_support(indices=True).tolist() == [3, 5]


def test_units_do_not_matter():
    one, other = HSICSelector().fit(X, y), HSICSelector().fit(X * 1000.0 ** np.arange(-6, 7), y)
    # The scales are not powers of two
    np.testing.assert_allclose(one.shares_, other.shares_, rtol=conditioned(1e6), atol=roundings(500))


@pytest.mark.parametrize(("wanted", "kept"), [(None, 6), (5, 5), (0.2, 2), (1.0, 13), (0.001, 1)])
def test_how_many_columns_stay(wanted, kept):
    assert HSICSelector(wanted).fit(X, y).get_support().sum() == kept


@pytest.mark.parametrize("wanted", [0, 14, 0.0, 1.5, -1, "all", True])
def test_impossible_numbers_of_columns_are_refused(wanted):
    with pytest.raises(ValueError, match=r"must be an int in 1\.\.13, a float in \(0, 1\] or None"):
        HSICSelector(wanted).fit(X, y)


def test_text_classes_and_numbers_give_the_same_shares():
    names = np.array(["red", "white", "rose"])[y]
    assert np.array_equal(HSICSelector().fit(X, y).shares_, HSICSelector().fit(X, names).shares_)


def test_numbers_in_an_object_array_are_numbers():
    target = X[:, 0] + 0.1 * X[:, 9]
    np.testing.assert_array_equal(HSICSelector().fit(X, target.astype(object)).shares_, HSICSelector().fit(X, target).shares_)


def test_it_selects_within_a_pipeline():
    model = make_pipeline(StandardScaler(), HSICSelector(0.2), KNeighborsClassifier())
    assert cross_val_score(model, *load_breast_cancer(return_X_y=True), cv=3).mean() > 0.9
    assert issubclass(HSICSelector, SelectorMixin)


def test_feature_names_come_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(13)])
    selector, plain = (HSICSelector(2, n_permutations=19).fit(rows, y) for rows in (frame, X))
    top = sorted(np.argsort(-selector.shares_)[:2])
    assert selector.get_feature_names_out().tolist() == [f"c{j}" for j in top]
    assert selector.decomposition_.feature_names == tuple(frame)
    assert selector.decomposition_.p_value == 0.05
    np.testing.assert_array_equal(selector.decomposition_.values, plain.decomposition_.values)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_their_columns_kinds(library):
    """Text, gaps and booleans count as in the decomposition; what comes out are columns of the frame."""
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    city, age = rng.choice(["a", "b"], 90), rng.normal(size=90)
    gaps = [None if one < -1.0 else float(one) for one in rng.normal(size=90)]
    frame = frames.DataFrame({"age": age, "city": city, "gaps": gaps, "paid": rng.random(90) < 0.5})
    target = np.where(city == "a", "yes", "no")
    selector = HSICSelector(1).fit(frame, target)
    expected = decompose_hsic(frame, target, bandwidth_x="column-median")
    assert np.array_equal(selector.shares_, expected.values)
    assert selector.get_feature_names_out().tolist() == ["city"]
    assert selector.set_output(transform=library).transform(frame).columns[0] == "city"
    with pytest.raises(TypeError, match="column 'when' holds dates"):
        HSICSelector(1).fit(frames.DataFrame({"age": age, "when": np.array(["2026-01-01"] * 90, "M8[us]")}), target)


# --- columns against shadows: scikit-learn's contract, what is kept, and the p-values ---------------------------------


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
