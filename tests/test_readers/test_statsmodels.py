"""statsmodels: linear predictors by their coefficients; offsets of the fit are warned of; terms of formulas."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest

from exactshap import explain
from exactshap.errors import ExplanationWarning, InputError, UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import RESPONSE, roundings

sm = pytest.importorskip("statsmodels.api")
smf = pytest.importorskip("statsmodels.formula.api")
from statsmodels.miscmodels.ordinal_model import OrderedModel  # noqa: E402

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["age", "dose", "weight"])
WITH = sm.add_constant(X)
EXPOSURE = rng.uniform(0.2, 3.0, 150)
Y = X.age - 0.5 * X.dose + rng.normal(size=150)
COUNTS, UP = rng.poisson(EXPOSURE * np.exp(0.3 * X.age)), Y > 0
GROUP = np.arange(150) % 15
GROUPED = Y + rng.normal(size=15)[GROUP]
SIZES = pd.Series(pd.Categorical.from_codes(np.digitize(Y, [-0.5, 0.5]), ["small", "middle", "large"], ordered=True))
MIXED = X.rename(columns={"weight": "body weight"}).assign(
    y=Y,
    y2=GROUPED,
    counts=COUNTS,
    up=UP.astype(int),
    site=rng.choice(["north", "south"], 150),
    kept=(rng.random(150) < 0.5).astype(int),
    year=rng.integers(2020, 2023, 150),
    size=pd.Categorical(rng.choice(["small", "large"], 150), categories=["small", "large"]),
)
LINKS, POISSON, BINOMIAL = sm.families.links, sm.families.Poisson, sm.families.Binomial
LOG, HAZARD = "log of the target", "log hazard: high is early"


def predict(model):
    return model.predict


def linear(model):
    return lambda rows: np.asarray(model.predict(rows, which="linear"))


def logarithm(model):
    return lambda rows: np.log(model.predict(rows))


MODELS = {  # (model, unit, the own answers)
    "OLS": (lambda: sm.OLS(Y, WITH).fit(), "target", predict),
    "WLS": (lambda: sm.WLS(Y, WITH, weights=EXPOSURE).fit(), "target", predict),
    "RLM": (lambda: sm.RLM(Y, WITH).fit(), "target", predict),
    "Logit": (lambda: sm.Logit(UP, WITH).fit(disp=0), "log-odds", linear),
    "Probit": (lambda: sm.Probit(UP, WITH).fit(disp=0), "probit", linear),
    "Poisson": (lambda: sm.Poisson(COUNTS, WITH).fit(disp=0), LOG, linear),
    "GLM of counts": (lambda: sm.GLM(COUNTS, WITH, family=POISSON()).fit(), LOG, linear),
    "GLM of classes": (lambda: sm.GLM(UP, WITH, family=BINOMIAL()).fit(), "log-odds", linear),
    "GLM": (lambda: sm.GLM(Y, WITH).fit(), "target", predict),
    "GEE": (lambda: sm.GEE(COUNTS, WITH, COUNTS % 7, family=POISSON()).fit(), LOG, logarithm),
    "quantiles": (lambda: sm.QuantReg(Y, WITH).fit(q=0.2), "quantile 0.2 of the target", predict),
    "robust errors": (lambda: sm.OLS(Y, WITH).fit().get_robustcov_results(), "target", predict),
    "penalised": (lambda: sm.OLS(Y, WITH).fit_regularized(alpha=0.01), "target", predict),
    # results with parameters that are no columns
    "negative binomial": (lambda: sm.NegativeBinomial(COUNTS, WITH).fit(disp=0), LOG, logarithm),
    "generalised Poisson": (lambda: sm.GeneralizedPoisson(COUNTS, WITH).fit(disp=0), LOG, logarithm),
    "mixed": (lambda: sm.MixedLM(GROUPED, WITH, GROUP).fit(), "target", predict),
    "hazards": (lambda: sm.PHReg(np.exp(Y), X).fit(), HAZARD, lambda m: lambda rows: m.predict(exog=rows).predicted_values),
    "categories in order": (
        lambda: OrderedModel(SIZES, X, distr="logit").fit(method="bfgs", disp=0),
        "latent score: high is a late category",
        lambda model: lambda rows: model.predict(rows, which="linpred"),
    ),
}


@functools.cache
def fitted(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODELS[name][0]() if name in MODELS else fit_formula(name)


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_own_answers(name):
    model, (_, unit, own) = fitted(name), MODELS[name]
    table = X if name in ("hazards", "categories in order") else WITH
    explanation = check_answers(model, own(model), table[:4], table[50:60], roundings(1000))
    assert (explanation.unit, explanation.feature_names) == (unit, tuple(table.columns))
    expected = (table[:4] - table[50:60].mean()).to_numpy() * np.asarray(model.params)[: table.shape[1]]
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=roundings(1000))


# -- probabilities and rates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["Logit", "Probit", "CLogLog", "LogLog", "Cauchy"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_probabilities_are_those_of_all_coalitions(link):
    model = sm.GLM(UP, WITH, family=BINOMIAL(getattr(LINKS, link)())).fit()
    assert check_answers(model, model.predict, WITH[:3], WITH[50:60], RESPONSE, output="probability").unit == "probability"


@pytest.mark.parametrize("name", ["Logit", "Probit", "GLM of counts", "Poisson", "negative binomial", "OLS"])
def test_responses_are_those_of_all_coalitions(name):
    model = fitted(name)
    check_answers(model, model.predict, WITH[:3], WITH[50:60], RESPONSE, output="response")


@pytest.mark.filterwarnings("ignore:The InversePower link")
def test_links_without_an_expansion():
    inverse = sm.GLM(COUNTS + 1.0, WITH, family=sm.families.Gamma(LINKS.InversePower())).fit()
    with pytest.raises(UnsupportedStructureError, match=r"Got the link InversePower.*explain\(model.predict, X, background"):
        explain(inverse, WITH[:3], WITH[50:60], output="response")
    wide = pd.DataFrame(rng.normal(size=(150, 14)))
    model = sm.GLM(wide[0] + rng.normal(size=150) > 0, wide, family=BINOMIAL(LINKS.Cauchy())).fit()
    explanation = explain(model, wide[:1], wide[50:55], output="probability", budget=300)
    assert not explanation.exact
    assert "cauchit has no short sum of exponentials" in explanation.method


# -- formulas --------------------------------------------------------------------------------------------------------------

FORMULAS = {
    "ols": ("y ~ age * dose + C(site) + bs(Q('body weight'), df=4) + I(age ** 2)", ["age", "dose", "site", "body weight"]),
    "glm": ("counts ~ age * dose * site", ["age", "dose", "site"]),
    "logit": ("kept ~ standardize(age) + dose:year + size", ["age", "dose", "year", "size"]),
    "poisson": ("counts ~ kept + C(year) + np.exp(dose):site", ["kept", "year", "dose", "site"]),
    "rlm": ("y ~ cr(age, df=4) + center(dose) * year - 1", ["age", "dose", "year"]),
    "mixedlm": ("y2 ~ age * C(site)", ["age", "site"]),
    "phreg": ("np.exp(y) ~ age * C(site)", ["age", "site"]),
}


def fit_formula(name):
    settings = {"glm": {"family": POISSON()}, "mixedlm": {"groups": GROUP}}.get(name, {})
    model = getattr(smf, name)(FORMULAS[name][0], MIXED, **settings)
    return model.fit(**({"disp": 0} if name in ("logit", "poisson") else {}))


def tables_of(name, n_background=15):
    columns = FORMULAS[name][1]
    return MIXED[columns][:4], MIXED[columns][50 : 50 + n_background]


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.filterwarnings("ignore")
def test_terms_of_a_formula_belong_to_their_columns(name):
    model, (rows, background) = fitted(name), tables_of(name)
    own = linear(model) if name in ("glm", "logit", "poisson") else model.predict
    own = MODELS["hazards"][2](model) if name == "phreg" else own
    explanation = check_answers(model, own, rows, background, roundings(1000), contract=False)
    assert explanation.feature_names == tuple(FORMULAS[name][1])
    pairs, brute = (
        explain(one, rows, background, index="k-sii", order=2) for one in (model, lambda table: np.asarray(own(table)))
    )
    np.testing.assert_allclose(pairs.set_values, brute.set_values, rtol=0, atol=roundings(1000))
    if name in ("glm", "logit"):
        check_answers(model, model.predict, rows[:2], background[:6], roundings(1e5), contract=False, output="response")


def test_columns_of_a_formula_in_other_frames_orders_and_groups():
    polars = pytest.importorskip("polars")
    model, (rows, background) = fitted("ols"), tables_of("ols")
    values = explain(model, rows, background).values
    swapped = explain(model, *(table[table.columns[::-1]] for table in (rows, background)))
    np.testing.assert_allclose(swapped.values[:, ::-1], values, rtol=0, atol=roundings(1000))
    for site in (polars.String, polars.Categorical, polars.Enum(["north", "south"])):
        tables = [polars.from_pandas(table).cast({"site": site}) for table in (rows, background)]
        np.testing.assert_array_equal(explain(model, *tables).values, values)
    grouped = explain(model, rows, background, groups={"person": ["age", "body weight"]})
    assert grouped.feature_names == ("person", "dose", "site")
    assert grouped.certificate().passed
    rows, background = (polars.from_pandas(table) for table in tables_of("glm", 6))
    assert explain(fitted("glm"), rows, background, output="response").certificate().passed


def test_levels_that_a_formula_knows_need_not_be_in_the_background():
    model, columns = fitted("glm"), FORMULAS["glm"][1]
    north, south = (MIXED[columns][MIXED["site"] == site] for site in ("north", "south"))
    assert explain(model, south[:3], north[:10]).certificate().passed
    with pytest.raises(InputError, match=r"'site' holds an unknown level. Got 'east' at row 1 .*'north'"):
        explain(model, south[:3].assign(site=["south", "east", "south"]), north[:10])
    with pytest.raises(InputError, match=r"'age' of a formula must be finite. Got nan at row 0"):
        explain(model, south[:3].assign(age=np.nan), north[:10])
    with pytest.raises(UnsupportedStructureError, match=r"needs reference rows.*explain\(model, X, background\)"):
        explain(model, south[:3])


def test_arrays_plain_formulas_and_results_without_their_data():
    arrays = sm.OLS(Y.to_numpy(), WITH.to_numpy()).fit()
    assert explain(arrays, WITH[:3].to_numpy(), WITH[50:60].to_numpy()).feature_names == ("x0", "x1", "x2", "x3")
    model = smf.ols("y ~ age + np.log(dose + 5)", MIXED).fit()
    model.remove_data()
    assert explain(model, MIXED[["age", "dose"]][:4], MIXED[["age", "dose"]][50:60]).certificate().passed


# -- offsets ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["offset", "exposure", "formula"])
def test_offsets(kind):
    if kind == "formula":
        model, table = smf.glm("counts ~ age * dose", MIXED, family=POISSON(), exposure=EXPOSURE).fit(), MIXED[["age", "dose"]]
    else:
        given = {"offset": np.log(EXPOSURE)} if kind == "offset" else {"exposure": EXPOSURE}
        model, table = sm.GLM(COUNTS, WITH, family=POISSON(), **given).fit(), WITH
    words = r"was fitted with (offset|exposure)s.*explain\(model, X, offset=...\)"
    with pytest.warns(ExplanationWarning, match=words):
        explain(model, table[:4], table[50:60])
    explanation = explain(model, table[:4], table[50:60], offset=np.log(EXPOSURE[:4]))
    np.testing.assert_allclose(np.exp(explanation.prediction), model.predict(table[:4], exposure=EXPOSURE[:4]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExplanationWarning)
        explain(fitted("Poisson"), WITH[:2], WITH[50:60])


# -- several classes, and what is refused ----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", ["formula", "indicators", "array of indicators"])
def test_names_of_classes(kind):
    labels, table = np.digitize(Y, [-0.5, 0.5]) * 5, MIXED[["age", "dose"]]
    if kind == "formula":
        model = smf.mnlogit("labels ~ age + dose", MIXED.assign(labels=labels)).fit(disp=0)
    else:
        indicators = pd.get_dummies(labels, dtype=float)
        model = sm.MNLogit(indicators if kind == "indicators" else indicators.to_numpy(), table).fit(disp=0)
    first, *others = ("0", "1", "2") if kind.startswith("array") else ("0", "5", "10")
    explanation = explain(model, table[:3], table[50:60])
    assert (explanation.unit, explanation.output_names) == (f"log-odds against class {first}", tuple(others))


@pytest.mark.parametrize("kind", ["several classes by terms", "a mixture"])
@pytest.mark.filterwarnings("ignore")
def test_the_way_out_works(kind):
    if kind == "a mixture":
        model, rows = sm.ZeroInflatedPoisson(COUNTS, WITH).fit(disp=0), WITH
    else:
        model = smf.mnlogit("size ~ C(site) * age", MIXED.assign(size=np.digitize(Y, [-0.5, 0.5]))).fit(disp=0)
        rows = MIXED[["site", "age"]]
    with pytest.raises((UnsupportedStructureError, UnsupportedModelError), match=r"explain\(model.predict, X, background\)"):
        explain(model, rows[:2], rows[50:60])
    assert explain(model.predict, rows[:2], rows[50:60]).certificate().passed


def test_the_way_out_of_smooth_terms_is_one():
    from statsmodels.gam.api import BSplines, GLMGam

    table = MIXED[["age", "dose"]]
    smoother = BSplines(table[["age"]], df=[5], degree=[3])
    model = GLMGam.from_formula("y ~ dose", MIXED.assign(y=Y), smoother=smoother, alpha=1.0).fit()
    with pytest.raises(UnsupportedStructureError, match=r"explain\(lambda") as caught:
        explain(model, table[:2], table[50:60])
    way = str(caught.value).split("explain(")[1].split(", X, background")[0]
    function = eval(way, {"model": model})
    assert explain(function, table[:2], table[50:60]).certificate().passed
