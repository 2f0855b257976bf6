"""RKHS weightings fitted to rows in parts: the model of all rows at once."""

import numpy as np
import pytest

from exactshap.estimators import RKHSWeightingCV, RKHSWeightingRegressor
from tolerances import assert_close, conditioned


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    return X, np.maximum(X[:, 0] + X[:, 1], 0.0) + 3.0, rng.random(240)


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("settings", [{}, {"subsets": 2, "fit_intercept": True}, {"base": "sign"}])
def test_parts_give_the_model_of_all_rows(rows, n_parts, settings):
    X, y, weights = rows
    settings = {"n_terms": 20, "alpha": 1e-3, "random_state": 0} | settings
    whole = RKHSWeightingRegressor(**settings).fit(X, y, weights)
    parts = RKHSWeightingRegressor(**settings)
    for some in np.array_split(np.arange(240), n_parts):
        parts.partial_fit(X[some], y[some], weights[some])
    assert_close(parts.predict(X), whole.predict(X), scale=1e6, n_terms=240)  # systems of condition 1e6
    assert np.isclose(parts.intercept_, whole.intercept_, rtol=conditioned(1e7))
    assert (parts.theta_, parts.kappa_) == (whole.theta_, whole.kappa_)
    assert parts.fit(X, y).predict(X[:2]).shape == (2,)
    assert not hasattr(parts, "_equations")


def test_only_sums_can_be_fitted_in_parts():
    for model in (RKHSWeightingRegressor(solver="lasso"), RKHSWeightingCV()):
        assert not hasattr(model, "partial_fit")


def test_columns_must_stay(rows):
    X, y, _ = rows
    model = RKHSWeightingRegressor(n_terms=5, random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], y)
