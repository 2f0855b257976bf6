"""lifelines: Cox and accelerated failure times as sums over columns; what is no such sum names a way out that works."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from exactshap import Explainer, explain
from exactshap.errors import UnsupportedStructureError
from exactshap.testing import check_reader
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


def cox(**settings):
    return lifelines.CoxPHFitter(penalizer=0.1, **settings)


MODELS = {
    "Cox": lambda: cox().fit(PLAIN, "time", "event"),
    "Cox in strata": lambda: cox().fit(TABLE, "time", "event", strata=["site"]),
    "Weibull": lambda: lifelines.WeibullAFTFitter().fit(PLAIN, "time", "event"),
    "log-normal": lambda: lifelines.LogNormalAFTFitter().fit(PLAIN, "time", "event"),
    "log-logistic": lambda: lifelines.LogLogisticAFTFitter().fit(PLAIN, "time", "event"),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_coefficients_times_differences(name):
    model = MODELS[name]()
    explanation = explain(model, X[:5], X[50:80])
    params = model.params_ if "Cox" in name else model.params_.groupby(level=0, sort=False).get_group(model.params_.index[0][0])
    slopes = params.to_numpy()[:3]
    expected = (X[:5] - X[50:80].mean()).to_numpy() * slopes
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=roundings(100))
    own = model.predict_log_partial_hazard(X[:5]) if "Cox" in name else np.log(model.predict_median(X[:5]))
    np.testing.assert_allclose(explanation.prediction, own, rtol=roundings(4))
    assert explanation.unit == ("log partial hazard: high is early" if "Cox" in name else "log of the median survival time")
    check_reader(model, X[:4], X[50:60])


@pytest.mark.parametrize("name", ["Cox", "Weibull"])
def test_responses(name):
    model = MODELS[name]()
    explainer = Explainer(model, X[50:60], output="response")
    explanation = explainer(X[:3])
    own = model.predict_partial_hazard(X[:3]) if name == "Cox" else model.predict_median(X[:3])
    np.testing.assert_allclose(explanation.prediction, own, rtol=roundings(4))
    assert explainer.verify(X[:3]).passed


FORMULAS = {
    "Cox": lambda: cox().fit(TABLE, "time", "event", formula="age * dose + site + bs(weight, df=4)"),
    "Cox in strata": lambda: cox().fit(TABLE, "time", "event", formula="age * dose + weight", strata=["site"]),
    "times": lambda: lifelines.WeibullAFTFitter().fit(TABLE, "time", "event", formula="age * dose + C(site)"),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_terms_of_a_formula_belong_to_their_columns(name):
    model = FORMULAS[name]()
    columns = {"Cox": [*X, "site"], "Cox in strata": [*X], "times": ["age", "dose", "site"]}[name]
    rows, background = TABLE[columns][:4], TABLE[columns][50:65]

    def own(table):
        return np.log(model.predict_median(table)) if name == "times" else model.predict_log_partial_hazard(table)

    explainer = Explainer(model, background)
    explanation, brute = explainer(rows), explain(own, rows, background)
    np.testing.assert_allclose(explanation.values, brute.values, rtol=0, atol=roundings(1000))
    np.testing.assert_allclose(explanation.prediction, own(rows), rtol=roundings(16))
    assert explainer.verify(rows).passed
    method = model.predict_median if name == "times" else model.predict_partial_hazard
    response = explain(model, rows[:1], background[:5], output="response")
    np.testing.assert_allclose(response.values, explain(method, rows[:1], background[:5]).values, rtol=0, atol=roundings(1e5))


def test_arrays_and_other_frames_are_taken():
    polars = pytest.importorskip("polars")
    model = MODELS["Weibull"]()
    values = explain(model, X[:2], X[50:60]).values
    with pytest.warns(UserWarning, match="valid feature names"):
        arrays = explain(model, X[:2].to_numpy(), X[50:60].to_numpy()).values
    np.testing.assert_array_equal(arrays, values)
    np.testing.assert_array_equal(explain(model, polars.from_pandas(X[:2]), polars.from_pandas(X[50:60])).values, values)


SURVIVAL = "explain(lambda rows: model.predict_survival_function(rows, times=[t]).T, X, background)"


@pytest.mark.parametrize(
    ("make", "way"),
    [
        (lambda: lifelines.WeibullAFTFitter().fit(PLAIN, "time", "event", ancillary=True), SURVIVAL),
        (
            lambda: cox(baseline_estimation_method="spline", n_baseline_knots=2).fit(PLAIN, "time", "event"),
            SURVIVAL,
        ),
        (lambda: lifelines.AalenAdditiveFitter(coef_penalizer=1.0).fit(PLAIN, "time", "event"), SURVIVAL),
    ],
    ids=["two parameters", "splines", "Aalen"],
)
def test_the_way_out_works(make, way):
    """What the message says ends in values."""
    model, rows = make(), X
    with pytest.raises(UnsupportedStructureError, match=re.escape(way)):
        explain(model, rows[:2], rows[50:60])
    names = {"explain": explain, "model": model, "X": rows[:2], "background": rows[50:60], "t": 1.0}
    explanation = eval(way, names)
    assert explanation.exact
    assert explanation.certificate().passed


def test_unfitted():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        explain(cox(), X[:2], X[50:60])
