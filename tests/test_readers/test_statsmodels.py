"""statsmodels: linear predictors by their coefficients; offsets of the fit are warned of, formulas name a way out."""

import warnings

import numpy as np
import pandas as pd
import pytest

from exactshap import Explainer, explain
from exactshap.errors import ExplanationWarning, UnsupportedStructureError
from exactshap.testing import check_reader
from tolerances import RESPONSE, roundings

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["age", "dose", "weight"])
WITH = sm.add_constant(X)
EXPOSURE = rng.uniform(0.2, 3.0, 150)
Y = X.age - 0.5 * X.dose + rng.normal(size=150)
COUNTS = rng.poisson(EXPOSURE * np.exp(0.3 * X.age))
TABLE = X.assign(y=Y, counts=COUNTS, site=rng.choice(["north", "south"], 150))

MODELS = {
    "OLS": (lambda: sm.OLS(Y, WITH).fit(), "target"),
    "WLS": (lambda: sm.WLS(Y, WITH, weights=EXPOSURE).fit(), "target"),
    "RLM": (lambda: sm.RLM(Y, WITH).fit(), "target"),
    "Logit": (lambda: sm.Logit(Y > 0, WITH).fit(disp=0), "log-odds"),
    "Probit": (lambda: sm.Probit(Y > 0, WITH).fit(disp=0), "probit"),
    "Poisson": (lambda: sm.Poisson(COUNTS, WITH).fit(disp=0), "log of the target"),
    "GLM of counts": (lambda: sm.GLM(COUNTS, WITH, family=sm.families.Poisson()).fit(), "log of the target"),
    "GLM of classes": (lambda: sm.GLM(Y > 0, WITH, family=sm.families.Binomial()).fit(), "log-odds"),
    "GLM": (lambda: sm.GLM(Y, WITH).fit(), "target"),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_coefficients_times_differences(name):
    make, unit = MODELS[name]
    model = make()
    explanation = explain(model, WITH[:5], WITH[50:80])
    expected = (WITH[:5] - WITH[50:80].mean()).to_numpy() * np.asarray(model.params)
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=roundings(100))
    assert (explanation.unit, explanation.feature_names) == (unit, tuple(WITH.columns))
    assert Explainer(model, WITH[50:80]).verify(WITH[:3]).passed
    check_reader(model, WITH[:4], WITH[50:60])


LINKS = sm.families.links
BINARY = {
    "Logit": lambda: sm.Logit(Y > 0, WITH).fit(disp=0),
    "Probit": lambda: sm.Probit(Y > 0, WITH).fit(disp=0),
    **{
        link: lambda link=link: sm.GLM(Y > 0, WITH, family=sm.families.Binomial(getattr(LINKS, link)())).fit()
        for link in ("Logit", "Probit", "CLogLog", "LogLog", "Cauchy")
    },
    "formula": lambda: smf.glm("up ~ age + dose", TABLE.assign(up=(Y > 0).astype(int)), family=sm.families.Binomial()).fit(),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_probabilities_are_those_of_all_coalitions(name):
    model = BINARY[name]()
    rows, background = (WITH[:3], WITH[50:60]) if name != "formula" else (X[["age", "dose"]][:3], X[["age", "dose"]][50:60])
    explanation = explain(model, rows, background, output="probability")
    assert (explanation.unit, explanation.exact) == ("probability", True)
    own = explain(lambda cells: np.asarray(model.predict(cells)), rows, background)
    np.testing.assert_allclose(explanation.values, own.values, rtol=0, atol=RESPONSE)
    np.testing.assert_allclose(explanation.prediction, model.predict(rows), rtol=roundings(16))


@pytest.mark.filterwarnings("ignore:The InversePower link")
def test_responses_of_counts_and_of_links_without_an_expansion():
    counts = MODELS["GLM of counts"][0]()
    explanation = explain(counts, WITH[:3], WITH[50:60], output="response")
    own = explain(lambda cells: np.asarray(counts.predict(cells)), WITH[:3], WITH[50:60])
    np.testing.assert_allclose(explanation.values, own.values, rtol=0, atol=RESPONSE)
    same = MODELS["OLS"][0]()
    assert np.array_equal(
        explain(same, WITH[:3], WITH[50:60], output="response").values, explain(same, WITH[:3], WITH[50:60]).values
    )
    inverse = sm.GLM(COUNTS + 1.0, WITH, family=sm.families.Gamma(LINKS.InversePower())).fit()
    with pytest.raises(UnsupportedStructureError, match=r"Got the link InversePower.*explain\(model.predict, X, background"):
        explain(inverse, WITH[:3], WITH[50:60], output="response")


def test_a_cauchit_of_many_columns_is_sampled():
    wide = pd.DataFrame(rng.normal(size=(150, 14)))
    model = sm.GLM(wide[0] + rng.normal(size=150) > 0, wide, family=sm.families.Binomial(LINKS.Cauchy())).fit()
    explanation = explain(model, wide[:1], wide[50:55], output="probability", budget=300)
    assert not explanation.exact
    assert "cauchit has no short sum of exponentials" in explanation.method


def test_arrays_and_formulas_of_columns():
    arrays = sm.OLS(Y.to_numpy(), WITH.to_numpy()).fit()
    assert explain(arrays, WITH[:3].to_numpy(), WITH[50:60].to_numpy()).feature_names == ("x0", "x1", "x2", "x3")
    formula = smf.ols("y ~ age + dose", TABLE).fit()
    explanation = explain(formula, X[["age", "dose"]][:3], X[["age", "dose"]][50:60])
    np.testing.assert_allclose(explanation.prediction, formula.predict(X[:3]), rtol=roundings(16))


@pytest.mark.parametrize("given", [{"offset": np.log(EXPOSURE)}, {"exposure": EXPOSURE}], ids=["offset", "exposure"])
def test_offsets(given):
    model = sm.GLM(COUNTS, WITH, family=sm.families.Poisson(), **given).fit()
    with pytest.warns(
        ExplanationWarning, match=r"was fitted with (offset|exposure)s of its rows.*explain\(model, X, offset=...\)"
    ):
        explanation = explain(model, WITH[:4], WITH[50:60], offset=np.log(EXPOSURE[:4]))
    own = model.predict(WITH[:4], exposure=EXPOSURE[:4])
    np.testing.assert_allclose(np.exp(explanation.prediction), own)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExplanationWarning)
        explain(MODELS["Poisson"][0](), WITH[:2], WITH[50:60])


@pytest.mark.parametrize(
    ("make", "columns"),
    [
        (lambda: smf.ols("y ~ age * dose + site", TABLE).fit(), ["age", "dose", "site"]),
        (lambda: sm.MNLogit(np.digitize(Y, [-0.5, 0.5]), WITH).fit(disp=0), None),
        (lambda: sm.NegativeBinomial(COUNTS, WITH).fit(disp=0), None),
    ],
    ids=["formula", "several predictors", "a parameter that is no column"],
)
@pytest.mark.filterwarnings("ignore")
def test_the_way_out_works(make, columns):
    model, rows = make(), WITH if columns is None else TABLE[columns]
    with pytest.raises(UnsupportedStructureError, match=r"explain\(model.predict, X, background\)"):
        explain(model, rows[:2], rows[50:60])
    assert explain(model.predict, rows[:2], rows[50:60]).certificate().passed
