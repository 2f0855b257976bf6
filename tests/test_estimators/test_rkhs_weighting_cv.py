"""Cross-validated weightings: fold by fold and penalty by penalty against GridSearchCV, by terms and by rows."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactshap import Explainer
from exactshap.errors import InputError
from exactshap.estimators import RKHSWeightingCV, RKHSWeightingRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = np.maximum(X[:, 0] + X[:, 1], 0.0) - np.abs(X[:, 2]) + 0.3 * RNG.normal(size=120) + 1.0
WEIGHTS = RNG.integers(0, 4, size=120).astype(float)
ALPHAS = (1e-6, 1e-4, 1e-2)
FOLDS = KFold(4, shuffle=True, random_state=0)
CLOSE = 1e-8
"""Normal equations of condition up to 1e7 here (a ridge of 1e-10 is not the smallest eigenvalue of G at alpha >= 1e-6), squared."""


@parametrize_with_checks([RKHSWeightingCV(random_state=0, n_terms=60)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("n_terms", "fit_intercept"), [(40, False), (300, True)], ids=["by terms", "by rows"])
@pytest.mark.parametrize(("base", "subsets"), [("relu", 2), ("sign", None), ("stump", None), ("sign", [1, 2])], ids=str)
def test_grid_search_finds_the_same(base, subsets, fit_intercept, n_terms):
    settings = {"base": base, "subsets": subsets, "n_terms": n_terms, "fit_intercept": fit_intercept, "random_state": 0}
    fast = RKHSWeightingCV(alphas=ALPHAS, cv=FOLDS, **settings).fit(X, Y)
    search = GridSearchCV(RKHSWeightingRegressor(**settings), {"alpha": ALPHAS}, cv=FOLDS).fit(X, Y)
    scores = np.transpose([search.cv_results_[f"split{f}_test_score"] for f in range(4)])
    np.testing.assert_allclose(fast.cv_scores_, scores, rtol=0.0, atol=CLOSE)
    assert fast.alpha_ == search.best_params_["alpha"]
    assert fast.best_score_ == fast.cv_scores_.mean(axis=1).max()
    np.testing.assert_array_equal(fast.predict(X), search.predict(X))
    assert np.ptp(scores.mean(axis=1)) > 1e-3  # a choice was to be made


@pytest.mark.parametrize("n_terms", [40, 300], ids=["by terms", "by rows"])
@pytest.mark.parametrize("power", [-900, 900])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the norm is beyond float64, not the predictions
def test_the_unit_of_the_target_does_not_choose_the_penalty(n_terms, power):
    one, other = (RKHSWeightingCV(n_terms=n_terms, random_state=0).fit(X, np.ldexp(Y, k)) for k in (0, power))
    np.testing.assert_array_equal(one.cv_scores_, other.cv_scores_)


@pytest.mark.parametrize("n_terms", [40, 300], ids=["by terms", "by rows"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_weights_count_in_fits_and_scores(n_terms, fit_intercept):
    settings = {"subsets": 2, "n_terms": n_terms, "fit_intercept": fit_intercept, "random_state": 0}
    fast = RKHSWeightingCV(alphas=ALPHAS, cv=FOLDS, **settings).fit(X, Y, WEIGHTS)
    for i, alpha in enumerate(ALPHAS):
        for f, (train, out) in enumerate(FOLDS.split(X)):
            model = RKHSWeightingRegressor(alpha=alpha, **settings).fit(X[train], Y[train], WEIGHTS[train])
            assert abs(fast.cv_scores_[i, f] - model.score(X[out], Y[out], WEIGHTS[out])) < CLOSE


def test_a_penalty_that_is_singular_is_solved_by_terms():
    fitted = RKHSWeightingCV(subsets=1, n_terms=400, alphas=(0.0, 1e-3), ridge=0.0, cv=FOLDS, random_state=0).fit(X, Y)
    assert np.isfinite(fitted.cv_scores_).all()
    free, held = (
        RKHSWeightingRegressor(subsets=1, n_terms=400, alpha=alpha, ridge=0.0, random_state=0).fit(X, Y).predict(X)
        for alpha in (0.0, 1e-6)
    )
    assert np.mean((Y - free) ** 2) <= np.mean((Y - held) ** 2)  # nothing is nearer than least squares alone


def test_another_sigma_of_relu_is_another_penalty():
    one = RKHSWeightingRegressor(subsets=2, alpha=1e-4, ridge=0.0, random_state=0).fit(X, Y)
    two = RKHSWeightingRegressor(subsets=2, alpha=4e-4, ridge=0.0, sigma=2.0, random_state=0).fit(X, Y)
    np.testing.assert_allclose(one.predict(X), two.predict(X), rtol=0.0, atol=CLOSE)


def test_it_is_explained_like_any_weighting():
    model = RKHSWeightingCV(subsets=2, n_terms=60, random_state=0).fit(X, Y)
    assert Explainer(model, X[:50])(X[:5]).certificate().passed


@pytest.mark.parametrize("alphas", [(), (-1.0,), (np.nan,), 1e-3], ids=str)
def test_bad_penalties_are_named(alphas):
    with pytest.raises(InputError, match="'alphas' parameter of RKHSWeightingCV must be a sequence of floats >= 0"):
        RKHSWeightingCV(alphas=alphas).fit(X, Y)


def test_folds_must_be_a_partition():
    with pytest.raises(InputError, match="hold out every row once"):
        RKHSWeightingCV(cv=ShuffleSplit(3, random_state=0)).fit(X, Y)


@pytest.mark.parametrize("n_terms", [3, 200])
@pytest.mark.parametrize("weighted", [slice(60, None), slice(30)])
def test_folds_without_weight_are_named(n_terms, weighted):
    weights = np.zeros(len(X))
    weights[weighted] = 1.0
    for cv in (KFold(2), KFold(4)):
        with pytest.raises(InputError, match=r"Every fold needs weights above 0. All are 0 in the rows that fold \d"):
            RKHSWeightingCV(n_terms=n_terms, cv=cv, random_state=0).fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf])
def test_one_weight_for_all_rows_is_checked_as_many_are(weight):
    with pytest.raises(ValueError, match="eight"):
        RKHSWeightingRegressor(n_terms=3).fit(X, Y, sample_weight=weight)


def test_what_the_folds_choose_is_no_parameter():
    assert set(RKHSWeightingRegressor().get_params()) - set(RKHSWeightingCV().get_params()) == {"alpha", "solver"}
