"""Prophet's extra regressors as an additive model by arrays, in the units of the target."""

from functools import partial

from prophet.utilities import regressor_coefficients

from exactshap.readers import AdditiveModel


def prophet_regressors(model):
    """Return what the additive regressors of a fitted Prophet add to its forecast."""
    table = regressor_coefficients(model)
    assert (table["regressor_mode"] == "additive").all(), "multiplicative regressors scale the trend: explain model.predict"
    terms = [(row.regressor, partial(_added, row.coef, row.center)) for row in table.itertuples(index=False)]
    return AdditiveModel(terms, intercept=0.0, feature_names=list(table["regressor"]))


def _added(coefficient, center, values):
    return coefficient * (values[:, 0] - center)
