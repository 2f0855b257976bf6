"""statsmodels: linear predictors by their coefficients; offsets of the fit are warned of; terms of formulas."""

import warnings

import numpy as np
import pandas as pd
import pytest

from exactshap import Explainer, explain
from exactshap.errors import ExplanationWarning, InputError, UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from tolerances import RESPONSE, roundings

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")
from statsmodels.miscmodels.ordinal_model import OrderedModel  # noqa: E402

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
    "GEE": (lambda: sm.GEE(COUNTS, WITH, COUNTS % 7, family=sm.families.Poisson()).fit(), "log of the target"),
    "quantiles": (lambda: sm.QuantReg(Y, WITH).fit(q=0.2), "quantile 0.2 of the target"),
    "robust errors": (lambda: sm.OLS(Y, WITH).fit().get_robustcov_results(), "target"),
    "penalised": (lambda: sm.OLS(Y, WITH).fit_regularized(alpha=0.01), "target"),
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


MIXED = TABLE.assign(
    kept=rng.random(150) < 0.5,
    year=rng.integers(2020, 2023, 150),
    size=pd.Categorical(rng.choice(["small", "large"], 150), categories=["small", "large"]),
).rename(columns={"weight": "body weight"})
FORMULAS = {
    "ols": ("y ~ age * dose + C(site) + bs(Q('body weight'), df=4) + I(age ** 2)", ["age", "dose", "site", "body weight"]),
    "glm": ("counts ~ age * dose * site", ["age", "dose", "site"]),
    "logit": ("kept ~ standardize(age) + dose:year + size", ["age", "dose", "year", "size"]),
    "poisson": ("counts ~ kept + C(year) + np.exp(dose):site", ["kept", "year", "dose", "site"]),
    "rlm": ("y ~ cr(age, df=4) + center(dose) * year - 1", ["age", "dose", "year"]),
}


def fit_formula(name):
    formula, _ = FORMULAS[name]
    settings = {"family": sm.families.Poisson()} if name == "glm" else {}
    table = MIXED.assign(kept=MIXED["kept"].astype(int)) if name == "logit" else MIXED
    return getattr(smf, name)(formula, table, **settings).fit(**({"disp": 0} if name in ("logit", "poisson") else {}))


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.filterwarnings("ignore")
def test_terms_of_a_formula_belong_to_their_columns(name):
    model, columns = fit_formula(name), FORMULAS[name][1]
    linear = {} if name in ("ols", "rlm") else {"which": "linear"}
    rows, background = MIXED[columns][:4], MIXED[columns][50:65]
    explainer = Explainer(model, background)
    explanation = explainer(rows)
    brute = explain(lambda table: model.predict(table, **linear), rows, background)
    np.testing.assert_allclose(explanation.values, brute.values, rtol=0, atol=roundings(1000))
    np.testing.assert_allclose(explanation.prediction, model.predict(rows, **linear), rtol=roundings(16))
    assert explanation.feature_names == tuple(columns)
    assert explanation.exact
    assert explainer.verify(rows).passed
    pairs, brute = (
        explainer(rows, "k-sii", 2),
        explain(lambda table: model.predict(table, **linear), rows, background, index="k-sii", order=2),
    )
    np.testing.assert_allclose(pairs.set_values, brute.set_values, rtol=0, atol=roundings(1000))


def test_columns_of_a_formula_in_other_frames_orders_and_groups():
    polars = pytest.importorskip("polars")
    model, columns = fit_formula("ols"), FORMULAS["ols"][1]
    rows, background = MIXED[columns][:4], MIXED[columns][50:65]
    values = explain(model, rows, background).values
    swapped = explain(model, rows[columns[::-1]], background[columns[::-1]])
    np.testing.assert_allclose(swapped.values[:, ::-1], values, rtol=0, atol=roundings(1000))
    for site in (polars.String, polars.Categorical, polars.Enum(["north", "south"])):
        tables = [polars.from_pandas(table).cast({"site": site}) for table in (rows, background)]
        np.testing.assert_array_equal(explain(model, *tables).values, values)
    grouped = explain(model, rows, background, groups={"person": ["age", "body weight"]})
    assert grouped.feature_names == ("person", "dose", "site")
    assert grouped.certificate().passed


def test_levels_that_a_formula_knows_need_not_be_in_the_background():
    model, columns = fit_formula("glm"), FORMULAS["glm"][1]
    north = MIXED[columns][MIXED["site"] == "north"]
    south = MIXED[columns][MIXED["site"] == "south"]
    assert explain(model, south[:3], north[:10]).certificate().passed
    with pytest.raises(InputError, match=r"'site' holds an unknown level. Got 'east' at row 1 .*'north'"):
        explain(model, south[:3].assign(site=["south", "east", "south"]), north[:10])
    with pytest.raises(InputError, match=r"'age' of a formula must be finite. Got nan at row 0"):
        explain(model, south[:3].assign(age=np.nan), north[:10])
    with pytest.raises(UnsupportedStructureError, match=r"needs reference rows.*explain\(model, X, background\)"):
        explain(model, south[:3])


def test_results_without_their_data():
    model = smf.ols("y ~ age + np.log(dose + 5)", MIXED).fit()
    model.remove_data()
    assert explain(model, MIXED[["age", "dose"]][:4], MIXED[["age", "dose"]][50:60]).certificate().passed


def test_formulas_take_offsets():
    model = smf.glm("counts ~ age * dose", MIXED, family=sm.families.Poisson(), exposure=EXPOSURE).fit()
    rows, background = MIXED[["age", "dose"]][:4], MIXED[["age", "dose"]][50:65]
    with pytest.warns(ExplanationWarning, match="was fitted with exposures"):
        explain(model, rows, background)
    explanation = explain(model, rows, background, offset=np.log(EXPOSURE[:4]))
    np.testing.assert_allclose(np.exp(explanation.prediction), model.predict(rows, exposure=EXPOSURE[:4]))


@pytest.mark.parametrize("given", [{"offset": np.log(EXPOSURE)}, {"exposure": EXPOSURE}], ids=["offset", "exposure"])
def test_offsets(given):
    model = sm.GLM(COUNTS, WITH, family=sm.families.Poisson(), **given).fit()
    with pytest.warns(
        ExplanationWarning, match=r"was fitted with (offset|exposure)s of its rows.*explain\(model, X, offset=...\)"
    ):
        explain(model, WITH[:4], WITH[50:60])
    explanation = explain(model, WITH[:4], WITH[50:60], offset=np.log(EXPOSURE[:4]))
    own = model.predict(WITH[:4], exposure=EXPOSURE[:4])
    np.testing.assert_allclose(np.exp(explanation.prediction), own)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExplanationWarning)
        explain(MODELS["Poisson"][0](), WITH[:2], WITH[50:60])


GROUP = np.arange(150) % 15
GROUPED = Y + rng.normal(size=15)[GROUP]
SIZES = pd.Series(pd.Categorical.from_codes(np.digitize(Y, [-0.5, 0.5]), ["small", "middle", "large"], ordered=True))
MORE = {  # results with parameters that are no columns: the unit, and their own call
    "negative binomial": (
        lambda: sm.NegativeBinomial(COUNTS, WITH).fit(disp=0),
        "log of the target",
        lambda model, rows: np.log(model.predict(rows)),
    ),
    "generalised Poisson": (
        lambda: sm.GeneralizedPoisson(COUNTS, WITH).fit(disp=0),
        "log of the target",
        lambda model, rows: np.log(model.predict(rows)),
    ),
    "mixed": (lambda: sm.MixedLM(GROUPED, WITH, GROUP).fit(), "target", lambda model, rows: model.predict(rows)),
    "hazards": (
        lambda: sm.PHReg(np.exp(Y), X).fit(),
        "log hazard: high is early",
        lambda model, rows: model.predict(exog=rows).predicted_values,
    ),
    "categories in order": (
        lambda: OrderedModel(SIZES, X, distr="logit").fit(method="bfgs", disp=0),
        "latent score: high is a late category",
        lambda model, rows: model.predict(rows, which="linpred"),
    ),
}


@pytest.mark.parametrize("name", MORE)
@pytest.mark.filterwarnings("ignore")
def test_parameters_beyond_the_columns(name):
    make, unit, own = MORE[name]
    model = make()
    rows = X if name in ("hazards", "categories in order") else WITH
    check_reader(model, rows[:4], rows[50:60])
    explanation = explain(model, rows[:3], rows[50:60])
    assert (explanation.unit, explanation.exact) == (unit, True)
    np.testing.assert_allclose(explanation.prediction, own(model, rows[:3]), rtol=0, atol=roundings(100))
    brute = explain(lambda table: np.asarray(own(model, table)), rows[:3], rows[50:60])
    np.testing.assert_allclose(explanation.values, brute.values, rtol=0, atol=roundings(1000))
    if name == "negative binomial":
        response = explain(model, rows[:3], rows[50:60], output="response")
        np.testing.assert_allclose(response.prediction, model.predict(rows[:3]), rtol=roundings(100))


@pytest.mark.filterwarnings("ignore")
def test_formulas_of_mixed_models():
    model = smf.mixedlm("y2 ~ age * C(site)", TABLE.assign(y2=GROUPED), groups=GROUP).fit()
    rows, background = TABLE[["age", "site"]][:3], TABLE[["age", "site"]][50:60]
    explanation = explain(model, rows, background)
    np.testing.assert_allclose(
        explanation.values, explain(model.predict, rows, background).values, rtol=0, atol=roundings(1000)
    )


@pytest.mark.parametrize(
    "labels", [np.digitize(Y, [-0.5, 0.5]) * 5, SIZES, SIZES.astype(str)], ids=["numbers", "ordered", "text"]
)
def test_several_classes_against_the_first(labels):
    model = sm.MNLogit(labels, WITH).fit(disp=0)
    explanation = explain(model, WITH[:3], WITH[50:60])
    first, *others = SIZES.cat.categories if labels is SIZES else map(str, np.unique(np.asarray(labels)))
    assert explanation.unit == f"log-odds against class {first}"
    assert explanation.output_names == tuple(others)
    chances = np.asarray(model.predict(WITH))
    np.testing.assert_allclose(explanation.prediction, np.log(chances[:3, 1:] / chances[:3, :1]), rtol=0, atol=roundings(1000))
    means = [chances[np.asarray(labels).astype(str) == name].mean(axis=0) for name in (first, *others)]
    np.testing.assert_array_equal(np.argmax(means, axis=0), [0, 1, 2])  # the column of each name is largest for its own rows
    one = explain(model, WITH[:3], WITH[50:60], output=others[1])
    np.testing.assert_array_equal(one.values, explanation.values[:, :, 1])
    check_reader(model, WITH[:3], WITH[50:60])


@pytest.mark.parametrize(
    "make",
    [
        lambda: smf.mnlogit("size ~ C(site) * age", TABLE.assign(size=np.digitize(Y, [-0.5, 0.5]))).fit(disp=0).predict,
        lambda: sm.ZeroInflatedPoisson(COUNTS, WITH).fit(disp=0).predict,
    ],
    ids=["several classes by terms", "a mixture"],
)
@pytest.mark.filterwarnings("ignore")
def test_the_way_out_works(make):
    predict = make()
    rows = TABLE[["site", "age"]] if hasattr(predict.__self__.model, "formula") else WITH
    with pytest.raises((UnsupportedStructureError, UnsupportedModelError), match=r"explain\(model.predict, X, background\)"):
        explain(predict.__self__, rows[:2], rows[50:60])
    assert explain(predict, rows[:2], rows[50:60]).certificate().passed


@pytest.mark.parametrize("name", ["glm", "logit"])
def test_responses_of_formulas(name):
    polars = pytest.importorskip("polars")
    model, columns = fit_formula(name), FORMULAS[name][1]
    rows, background = MIXED[columns][:2], MIXED[columns][50:56]
    explanation = explain(model, rows, background, output="response")
    np.testing.assert_allclose(explanation.values, explain(model.predict, rows, background).values, rtol=0, atol=roundings(1e5))
    if name == "glm":
        other = explain(model, polars.from_pandas(rows), polars.from_pandas(background), output="response")
        np.testing.assert_array_equal(other.values, explanation.values)
