import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import HSICSelector, decompose_hsic
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
    np.testing.assert_allclose(
        one.shares_, other.shares_, rtol=conditioned(1e6), atol=roundings(500)
    )  # the scales are not powers of two


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
