"""glum, skglm, optbinning, econml and linear boosters: links, categories and effects, by brute force over the models' own calls."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from exactshap import explain
from exactshap.errors import InputError, UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import SINGLE_RESPONSE, roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 4)), columns=["age", "power", "bonus", "density"])
SCORE = np.asarray(X.age * X.power + X.bonus)
TOWNS = X.assign(town=pd.Categorical(rng.choice(["u", "v", "w"], size=150)))
LABEL = (SCORE > 0).astype(int)
COUNTS = np.exp(SCORE)
ROWS, BACKGROUND = X[:4], X[50:60]

# -- glum ------------------------------------------------------------------------------------------------------------------

FAMILIES = {
    "normal": (SCORE, "target", "target"),
    "poisson": (COUNTS.round(), "log of the target", "target"),
    "gamma": (COUNTS + 0.1, "log of the target", "target"),
    "binomial": (LABEL, "log-odds", "probability"),
}


def glm(family="poisson", **settings):
    return pytest.importorskip("glum").GeneralizedLinearRegressor(family=family, alpha=0.01, **settings)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_glum(family):
    y, unit, response = FAMILIES[family]
    model = glm(family).fit(X, y)
    assert check_answers(model, model.linear_predictor, ROWS, BACKGROUND, roundings(64)).unit == unit
    mean = explain(model, ROWS, BACKGROUND, output="response")
    assert (mean.exact, mean.unit) == (True, response)
    np.testing.assert_allclose(mean.prediction, model.predict(ROWS), rtol=roundings(16))


@pytest.mark.parametrize("settings", [{}, {"drop_first": True}])
def test_categories_of_glum_are_columns(settings):
    model = glm(**settings).fit(TOWNS, COUNTS)
    rows, background = TOWNS[:4], TOWNS[50:60]
    explanation = check_answers(model, model.linear_predictor, rows, background, roundings(64))
    assert tuple(explanation.feature_names) == tuple(TOWNS.columns)
    with pytest.raises(InputError, match=r"row 0, column 'town'.*Got 'zz'.*It knows 'u'"):
        explain(model, rows.assign(town=pd.Categorical(["zz"] * 4)), background)


def test_missing_categories_of_glum_are_categories_where_they_were_fitted_so():
    towns = TOWNS.copy()
    towns.loc[[1, 3, 52], "town"] = None
    check_reader(glm(cat_missing_method="convert").fit(towns, COUNTS), towns[:4], towns[50:60])
    with pytest.raises(InputError, match="row 2, column 'town'"):
        explain(glm().fit(TOWNS, COUNTS), TOWNS[:4], towns[50:60])


def test_arrays_pipelines_formulas_and_other_links_of_glum():
    model = make_pipeline(StandardScaler(), glm()).fit(X, COUNTS)
    rows, background = (model[:-1].transform(table) for table in (ROWS, BACKGROUND))
    values = check_answers(model[-1], model[-1].linear_predictor, rows, background, roundings(64)).values
    np.testing.assert_allclose(explain(model, ROWS, BACKGROUND).values, values, rtol=0, atol=roundings(64))
    model = glm(formula="y ~ age + power*bonus + density").fit(X.assign(y=COUNTS))
    with pytest.raises(UnsupportedStructureError, match=r"explain\(model\.linear_predictor"):
        explain(model, ROWS, BACKGROUND)
    assert explain(model.linear_predictor, ROWS, BACKGROUND).exact
    model = glm("binomial", link=pytest.importorskip("glum").CloglogLink()).fit(X, LABEL)
    assert explain(model, ROWS, BACKGROUND).unit == "CloglogLink of the target"
    with pytest.raises(UnsupportedStructureError, match="CloglogLink"):
        explain(model, ROWS, BACKGROUND, output="response")


# -- skglm: solvers are compiled when they are first called, some seconds each, that of classifiers for minutes --------------


@pytest.mark.parametrize(
    "name",
    ["Lasso", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ElasticNet", "MCPRegression", "MultiTaskLasso"))],
)
def test_regressions_of_skglm(name):
    y = np.c_[SCORE, X.age - SCORE] if name == "MultiTaskLasso" else SCORE
    model = getattr(pytest.importorskip("skglm"), name)(0.05).fit(X, y)
    check_answers(model, model.predict, ROWS, BACKGROUND, roundings(64))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit"), [("SparseLogisticRegression", "log-odds"), ("LinearSVC", "decision function")])
def test_classifiers_of_skglm(name, unit):
    model = getattr(pytest.importorskip("skglm"), name)(0.05).fit(X, LABEL)
    assert check_answers(model, model.decision_function, ROWS, BACKGROUND, roundings(64)).unit == f"{unit} of class 1"
    way = "decision function" if name == "LinearSVC" else "not the logistic function"
    with pytest.raises(UnsupportedStructureError, match=way):
        explain(model, ROWS, BACKGROUND, output="response")


@pytest.mark.slow
def test_general_estimators_and_cox_of_skglm():
    skglm = pytest.importorskip("skglm")
    from skglm.datafits import Huber, Logistic
    from skglm.penalties import L1

    cells, rows, background = (table.to_numpy() for table in (X, ROWS, BACKGROUND))
    robust = skglm.GeneralizedLinearEstimator(datafit=Huber(1.0), penalty=L1(0.01)).fit(cells, SCORE)
    check_reader(robust, rows, background)
    labels = skglm.GeneralizedLinearEstimator(datafit=Logistic(), penalty=L1(0.01)).fit(cells, 2 * LABEL - 1)
    with pytest.raises(UnsupportedStructureError, match="datafit=Logistic"):
        explain(labels, rows, background)
    cox = skglm.CoxEstimator(0.01).fit(cells, np.c_[COUNTS, LABEL])
    check_reader(cox, rows, background)
    assert explain(cox, rows, background).unit == "log hazard: high is early"


# -- XGBoost's gblinear, in single precision -------------------------------------------------------------------------------

BOOSTERS = {
    "reg:squarederror": (SCORE, "target"),
    "count:poisson": (COUNTS.round(), "log of the target"),
    "binary:logistic": (LABEL, "log-odds of class 1"),
    "multi:softprob": (np.digitize(SCORE, [-0.5, 0.5]), "score before the softmax"),
}


@pytest.mark.parametrize("objective", BOOSTERS)
def test_margins_of_linear_boosters(objective):
    y, unit = BOOSTERS[objective]
    kind = "XGBClassifier" if objective.startswith(("binary", "multi")) else "XGBRegressor"
    model = getattr(pytest.importorskip("xgboost"), kind)(booster="gblinear", objective=objective, n_estimators=10, n_jobs=1)
    model.fit(X, y)
    margin = lambda rows: model.predict(rows, output_margin=True)  # noqa: E731
    assert check_answers(model, margin, ROWS, BACKGROUND, SINGLE_RESPONSE).unit == unit
    response = explain(model, ROWS, BACKGROUND, output="response")
    own = model.predict_proba(ROWS) if hasattr(model, "predict_proba") else model.predict(ROWS)
    np.testing.assert_allclose(response.prediction, own[:, 1] if objective[0] == "b" else own, rtol=SINGLE_RESPONSE)


@pytest.mark.parametrize("missing", [np.nan, -999.0, 1.1])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_missing_cells_of_linear_boosters_have_no_terms(missing, precision):
    cells = X.to_numpy(precision, copy=True)
    cells[::3, 0], cells[1::3, -1] = missing, np.nan
    model = pytest.importorskip("xgboost").XGBRegressor(booster="gblinear", missing=missing, n_estimators=10, n_jobs=1)
    model.fit(cells, SCORE)
    explanation = check_answers(model, model.predict, cells[:4], cells[20:28], SINGLE_RESPONSE)
    assert explanation.exact
    infinite = np.where(np.arange(cells.shape[1]) == 1, np.inf, cells[:4])
    with pytest.raises(InputError, match=r"infinity .* row 0, column 1"):
        explain(model, infinite, cells[20:28])


def test_bare_linear_boosters_and_infinite_rows_are_errors():
    model = pytest.importorskip("xgboost").XGBRegressor(booster="gblinear", n_estimators=3).fit(X, SCORE)
    with pytest.raises(UnsupportedStructureError, match="load_model"):
        explain(model.get_booster(), ROWS, BACKGROUND)
    with pytest.raises(InputError, match="infinity or"):
        explain(model, ROWS.assign(age=np.inf), BACKGROUND)
    with pytest.raises(InputError, match=r"XGBRegressor needs reference rows. Got background=None"):
        explain(model, ROWS)


# -- scorecards ------------------------------------------------------------------------------------------------------------


def test_points_of_a_scorecard_are_those_of_the_bins():
    optbinning = pytest.importorskip("optbinning")
    frame = TOWNS.astype({"town": object}).assign(age=TOWNS.age.where(TOWNS.index % 7 > 0))
    binning = optbinning.BinningProcess(list(frame.columns), categorical_variables=["town"])
    settings = {"scaling_method": "min_max", "scaling_method_params": {"min": 300, "max": 850}}
    card = optbinning.Scorecard(binning, LogisticRegression(), **settings).fit(frame, LABEL)
    rows, background = frame[:4], frame[50:60]  # with missing cells and categories
    assert check_answers(card, card.score, rows, background, roundings(32)).unit == "points of the score"
    with pytest.raises(InputError):
        explain(card, rows.assign(power="many"), background)


# -- econml: effects that are linear in X, by brute force over ``effect`` --------------------------------------------------

TREATED = (rng.random(150) < 0.5).astype(int)
DISCRETE = {"discrete_treatment": True, "model_t": LogisticRegression()}


def effects(name, treatment, rows=X, **settings):
    dml = pytest.importorskip("econml.dml")
    model = getattr(dml, name)(model_y=Lasso(alpha=0.01), random_state=0, **settings)
    return model.fit(SCORE + treatment * (1.0 + X.age), treatment, X=rows)


@pytest.mark.parametrize("name", ["LinearDML", "SparseLinearDML"])
@pytest.mark.parametrize("discrete", [True, False])
def test_linear_effects(name, discrete):
    settings = DISCRETE if discrete else {"model_t": Lasso(alpha=0.01)}
    model = effects(name, TREATED if discrete else TREATED + rng.normal(size=150), **settings)
    assert check_answers(model, model.effect, ROWS, BACKGROUND, roundings(64)).unit == "treatment effect"


def test_three_treatments_without_an_intercept():
    model = effects("LinearDML", np.arange(150) % 3, X.to_numpy(), fit_cate_intercept=False, **DISCRETE)
    own = lambda rows: np.stack([model.effect(rows, T0=0, T1=k) for k in (1, 2)], axis=1)  # noqa: E731
    check_answers(model, own, ROWS.to_numpy(), BACKGROUND.to_numpy(), roundings(64))


def test_other_effects_are_refused_with_a_way():
    forest = effects("CausalForestDML", TREATED, n_estimators=4, **DISCRETE)
    squares = effects("LinearDML", TREATED, featurizer=PolynomialFeatures(2), **DISCRETE)
    learners = pytest.importorskip("econml.metalearners").TLearner(models=Lasso(alpha=0.01)).fit(SCORE, TREATED, X=X)
    for model in (forest, squares, learners):
        with pytest.raises((UnsupportedModelError, UnsupportedStructureError), match=r"explain\(model.effect, X, background\)"):
            explain(model, ROWS, BACKGROUND)
        explanation = explain(model.effect, ROWS, BACKGROUND)
        np.testing.assert_allclose(explanation.prediction, model.effect(ROWS))
        assert (explanation.exact, explanation.certificate().passed) == (True, True)
