"""lifelines: Cox and accelerated failure times as sums over columns; what is no such sum names a way out that works."""

import re

import numpy as np
import pandas as pd
import pytest

from exactshap import explain
from exactshap.errors import UnsupportedStructureError
from reader_checks import check_answers
from tolerances import roundings

lifelines = pytest.importorskip("lifelines")
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["age", "dose", "weight"])
TABLE = X.assign(
    time=rng.exponential(np.exp(0.5 * X.age - 0.3 * X.dose)),
    event=rng.random(150) < 0.8,
    site=rng.choice(["north", "south", "west"], 150),
)
PLAIN = TABLE.drop(columns="site")
HAZARD, TIME = "log partial hazard: high is early", "log of the median survival time"
SPLINES = {"baseline_estimation_method": "spline", "n_baseline_knots": 2}


def cox(table=PLAIN, strata=None, formula=None, **settings):
    model = lifelines.CoxPHFitter(penalizer=0.1, **settings)
    return model.fit(table, "time", "event", strata=strata, formula=formula)


def times(name, table=PLAIN, **settings):
    return getattr(lifelines, name)().fit(table, "time", "event", **settings)


MODELS = {  # (model, columns, unit)
    "Cox": (cox, [*X], HAZARD),
    "Cox in strata": (lambda: cox(TABLE, ["site"]), [*X], HAZARD),
    "Weibull": (lambda: times("WeibullAFTFitter"), [*X], TIME),
    "log-normal": (lambda: times("LogNormalAFTFitter"), [*X], TIME),
    "log-logistic": (lambda: times("LogLogisticAFTFitter"), [*X], TIME),
    "formula": (lambda: cox(TABLE, formula="age * dose + site + bs(weight, df=4)"), [*X, "site"], HAZARD),
    "formula in strata": (lambda: cox(TABLE, ["site"], "age * dose + weight"), [*X], HAZARD),
    "formula of times": (
        lambda: times("WeibullAFTFitter", TABLE, formula="age * dose + C(site)"),
        ["age", "dose", "site"],
        TIME,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_own_answers(name):
    make, columns, unit = MODELS[name]
    model, rows, background = make(), TABLE[columns][:3], TABLE[columns][50:60]

    def own(table):
        return model.predict_log_partial_hazard(table) if unit == HAZARD else np.log(model.predict_median(table))

    assert check_answers(model, own, rows, background, roundings(1000), contract="formula" not in name).unit == unit
    response = model.predict_partial_hazard if unit == HAZARD else model.predict_median
    check_answers(model, response, rows[:1], background[:5], roundings(1e5), contract=False, output="response")
    if "formula" not in name:  # the coefficients are read
        slopes = model.params_ if unit == HAZARD else model.params_[model.params_.index[0][0]]
        expected = (rows - background.mean()).to_numpy() * slopes.to_numpy()[:3]
        np.testing.assert_allclose(explain(model, rows, background).values, expected, rtol=0, atol=roundings(100))


def test_arrays_and_other_frames_are_taken():
    polars = pytest.importorskip("polars")
    model = times("WeibullAFTFitter")
    values = explain(model, X[:2], X[50:60]).values
    with pytest.warns(UserWarning, match="valid feature names"):
        arrays = explain(model, X[:2].to_numpy(), X[50:60].to_numpy()).values
    np.testing.assert_array_equal(arrays, values)
    np.testing.assert_array_equal(explain(model, polars.from_pandas(X[:2]), polars.from_pandas(X[50:60])).values, values)


SURVIVAL = "explain(lambda rows: model.predict_survival_function(rows, times=[t]).T, X, background)"
OTHERS = {
    "two parameters": lambda: times("WeibullAFTFitter", ancillary=True),
    "splines": lambda: cox(**SPLINES),
    "Aalen": lambda: lifelines.AalenAdditiveFitter(coef_penalizer=1.0).fit(PLAIN, "time", "event"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_way_out_works(name):
    """What the message says ends in values."""
    model = OTHERS[name]()
    with pytest.raises(UnsupportedStructureError, match=re.escape(SURVIVAL)):
        explain(model, X[:2], X[50:60])
    names = {"explain": explain, "model": model, "X": X[:2], "background": X[50:60], "t": 1.0}
    explanation = eval(SURVIVAL, names)
    assert explanation.exact
    assert explanation.certificate().passed
