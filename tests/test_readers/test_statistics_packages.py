"""glum, skglm and econml: linear predictors, categories, links and effects, by brute force over the models' own calls."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from exactshap import explain
from exactshap.errors import ExplanationWarning, InputError, UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from oracles import interventional_values
from tolerances import SINGLE_RESPONSE, roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 4)), columns=["age", "power", "bonus", "density"])
SCORE = np.asarray(X.age * X.power + X.bonus)
TOWNS = X.assign(town=pd.Categorical(rng.choice(["u", "v", "w"], size=150)))
LABEL = (SCORE > 0).astype(int)
ROWS, BACKGROUND = X[:4], X[50:60]


def require_the_usual_errors(model, X, background):
    """Unfitted models, missing columns and columns in another order are errors; subclasses are read."""
    with pytest.raises(NotFittedError):
        explain(clone(model), X, background)
    with pytest.raises(InputError):
        explain(model, X.iloc[:, 1:], background)

    class Same(type(model)):
        """Predicts as its class does."""

    same = Same.__new__(Same)
    same.__dict__.update(vars(model))
    np.testing.assert_array_equal(explain(same, X, background).values, explain(model, X, background).values)

    class Twice(type(model)):
        def predict(self, X):
            return 2.0 * super().predict(X)

    twice = Twice.__new__(Twice)
    twice.__dict__.update(vars(model))
    if not hasattr(model, "decision_function"):
        with pytest.warns(ExplanationWarning, match="has its own predict"):
            values = explain(twice, X, background)
        np.testing.assert_allclose(values.prediction, twice.predict(X))


FAMILIES = {
    "normal": (SCORE, "target", "target"),
    "poisson": (np.exp(SCORE).round(), "log of the target", "target"),
    "gamma": (np.exp(SCORE) + 0.1, "log of the target", "target"),
    "binomial": (LABEL, "log-odds", "probability"),
}


class TestGlum:
    @pytest.fixture(autouse=True)
    def glum(self):
        return pytest.importorskip("glum")

    @pytest.mark.parametrize("family", FAMILIES)
    def test_families(self, glum, family):
        y, unit, response = FAMILIES[family]
        model = glum.GeneralizedLinearRegressor(family=family, alpha=0.01).fit(X, y)
        check_reader(model, ROWS, BACKGROUND)
        explanation = explain(model, ROWS, BACKGROUND)
        assert explanation.unit == unit
        right = interventional_values(model.linear_predictor, ROWS, BACKGROUND)
        np.testing.assert_allclose(explanation.values, right, rtol=0, atol=roundings(64))
        mean = explain(model, ROWS, BACKGROUND, output="response")
        assert mean.exact
        assert mean.unit == response
        np.testing.assert_allclose(mean.prediction, model.predict(ROWS), rtol=roundings(16))
        require_the_usual_errors(model, ROWS, BACKGROUND)

    @pytest.mark.parametrize("settings", [{}, {"drop_first": True}])
    def test_categories_are_columns(self, glum, settings):
        model = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.01, **settings).fit(TOWNS, np.exp(SCORE))
        rows, background = TOWNS[:4], TOWNS[50:60]
        check_reader(model, rows, background)
        explanation = explain(model, rows, background)
        assert explanation.feature_names == [*X.columns, "town"] or explanation.feature_names == (*X.columns, "town")
        np.testing.assert_allclose(explanation.prediction, model.linear_predictor(rows), rtol=0, atol=roundings(16))
        moved = background.assign(town=pd.Categorical(["u"] * 10, categories=["u", "v", "w"]))
        only = explain(model, rows.assign(**background.iloc[0][list(X.columns)]).astype(TOWNS.dtypes), moved.iloc[:1])
        assert not only.values[:, :4].any()
        with pytest.raises(InputError, match=r"row 0, column 'town'.*Got 'zz'.*It knows 'u'"):
            explain(model, rows.assign(town=pd.Categorical(["zz"] * 4)), background)

    def test_missing_categories_are_categories_where_they_were_fitted_so(self, glum):
        towns = TOWNS.copy()
        towns.loc[[1, 3, 52], "town"] = None
        model = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.01, cat_missing_method="convert").fit(
            towns, np.exp(SCORE)
        )
        check_reader(model, towns[:4], towns[50:60])
        known = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.01).fit(TOWNS, np.exp(SCORE))
        with pytest.raises(InputError, match="row 2, column 'town'"):
            explain(known, TOWNS[:4], towns[50:60])

    def test_arrays_and_pipelines(self, glum):
        model = make_pipeline(StandardScaler(), glum.GeneralizedLinearRegressor(family="poisson", alpha=0.01)).fit(
            X, np.exp(SCORE)
        )
        check_reader(model[-1], model[:-1].transform(ROWS), model[:-1].transform(BACKGROUND))
        np.testing.assert_allclose(
            explain(model, ROWS, BACKGROUND).values,
            explain(model[-1], model[:-1].transform(ROWS), model[:-1].transform(BACKGROUND)).values,
            rtol=0,
            atol=roundings(64),
        )

    def test_formulas_are_refused_with_a_way(self, glum):
        data = X.assign(y=np.exp(SCORE))
        model = glum.GeneralizedLinearRegressor(family="poisson", alpha=0.01, formula="y ~ age + power*bonus + density").fit(
            data
        )
        with pytest.raises(UnsupportedStructureError, match=r"explain\(model\.linear_predictor"):
            explain(model, ROWS, BACKGROUND)
        assert explain(model.linear_predictor, ROWS, BACKGROUND).exact

    def test_other_links_are_named(self, glum):
        model = glum.GeneralizedLinearRegressor(family="binomial", link=glum.CloglogLink(), alpha=0.01).fit(X, LABEL)
        assert explain(model, ROWS, BACKGROUND).unit == "CloglogLink of the target"
        with pytest.raises(UnsupportedStructureError, match="CloglogLink"):
            explain(model, ROWS, BACKGROUND, output="response")


class TestSkglm:
    @pytest.fixture(autouse=True)
    def skglm(self):
        return pytest.importorskip("skglm")

    # Solvers are compiled when they are first called, some seconds each
    @pytest.mark.parametrize(
        "name",
        ["Lasso", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ElasticNet", "MCPRegression", "MultiTaskLasso"))],
    )
    def test_regressions(self, skglm, name):
        y = np.c_[SCORE, X.age - SCORE] if name == "MultiTaskLasso" else SCORE
        model = getattr(skglm, name)(0.05).fit(X, y)
        check_reader(model, ROWS, BACKGROUND)
        explanation = explain(model, ROWS, BACKGROUND)
        for k, values in enumerate(np.moveaxis(explanation.values.reshape(4, 4, -1), 2, 0)):
            right = interventional_values(lambda rows, k=k: model.predict(rows).reshape(len(rows), -1)[:, k], ROWS, BACKGROUND)
            np.testing.assert_allclose(values, right, rtol=0, atol=roundings(64))
        require_the_usual_errors(model, ROWS, BACKGROUND)

    @pytest.mark.slow  # its solver is compiled for minutes
    @pytest.mark.parametrize(("name", "unit"), [("SparseLogisticRegression", "log-odds"), ("LinearSVC", "decision function")])
    def test_classifiers(self, skglm, name, unit):
        model = getattr(skglm, name)(0.05).fit(X, LABEL)
        check_reader(model, ROWS, BACKGROUND)
        explanation = explain(model, ROWS, BACKGROUND)
        assert explanation.unit == f"{unit} of class 1"
        np.testing.assert_allclose(explanation.prediction, model.decision_function(ROWS), rtol=0, atol=roundings(16))
        require_the_usual_errors(model, ROWS, BACKGROUND)
        way = "decision function" if name == "LinearSVC" else "not the logistic function"
        with pytest.raises(UnsupportedStructureError, match=way):
            explain(model, ROWS, BACKGROUND, output="response")

    @pytest.mark.slow
    def test_general_estimators_and_cox(self, skglm):
        from skglm.datafits import Huber, Logistic
        from skglm.penalties import L1

        robust = skglm.GeneralizedLinearEstimator(datafit=Huber(1.0), penalty=L1(0.01)).fit(np.asarray(X), SCORE)
        check_reader(robust, np.asarray(ROWS), np.asarray(BACKGROUND))
        labels = skglm.GeneralizedLinearEstimator(datafit=Logistic(), penalty=L1(0.01)).fit(np.asarray(X), 2 * LABEL - 1)
        with pytest.raises(UnsupportedStructureError, match="datafit=Logistic"):
            explain(labels, np.asarray(ROWS), np.asarray(BACKGROUND))
        cox = skglm.CoxEstimator(0.01).fit(np.asarray(X), np.c_[np.exp(SCORE), LABEL])
        check_reader(cox, np.asarray(ROWS), np.asarray(BACKGROUND))
        assert explain(cox, np.asarray(ROWS), np.asarray(BACKGROUND)).unit == "log hazard: high is early"


class TestLinearBoosters:
    """XGBoost's gblinear, to single precision."""

    @pytest.fixture(autouse=True)
    def xgboost(self):
        return pytest.importorskip("xgboost")

    @pytest.mark.parametrize(
        ("objective", "y", "unit"),
        [
            ("reg:squarederror", SCORE, "target"),
            ("count:poisson", np.exp(SCORE).round(), "log of the target"),
            ("binary:logistic", LABEL, "log-odds of class 1"),
            ("multi:softprob", np.digitize(SCORE, [-0.5, 0.5]), "score before the softmax"),
        ],
    )
    def test_margins(self, xgboost, objective, y, unit):
        kind = xgboost.XGBClassifier if objective.startswith(("binary", "multi")) else xgboost.XGBRegressor
        model = kind(booster="gblinear", objective=objective, n_estimators=10, n_jobs=1).fit(X, y)
        check_reader(model, ROWS, BACKGROUND)
        explanation = explain(model, ROWS, BACKGROUND)
        assert explanation.unit == unit
        for k, values in enumerate(np.moveaxis(explanation.values.reshape(4, 4, -1), 2, 0)):
            margin = lambda rows, k=k: model.predict(rows, output_margin=True).reshape(len(rows), -1)[:, k]  # noqa: E731
            np.testing.assert_allclose(values, interventional_values(margin, ROWS, BACKGROUND), rtol=0, atol=SINGLE_RESPONSE)
        response = explain(model, ROWS, BACKGROUND, output="response")
        own = model.predict_proba(ROWS) if hasattr(model, "predict_proba") else model.predict(ROWS)
        np.testing.assert_allclose(response.prediction, own[:, 1] if objective[0] == "b" else own, rtol=SINGLE_RESPONSE)

    def test_boosters_and_unfitted_ones_are_errors(self, xgboost):
        model = xgboost.XGBRegressor(booster="gblinear", n_estimators=3).fit(X, SCORE)
        with pytest.raises(UnsupportedStructureError, match="load_model"):
            explain(model.get_booster(), ROWS, BACKGROUND)
        with pytest.raises(NotFittedError):
            explain(xgboost.XGBRegressor(booster="gblinear"), ROWS, BACKGROUND)
        with pytest.raises(InputError):
            explain(model, ROWS.iloc[:, 1:], BACKGROUND)
        with pytest.raises(InputError, match="infinity or"):
            explain(model, ROWS.assign(age=np.inf), BACKGROUND)


class TestScorecards:
    @pytest.fixture(autouse=True)
    def card(self):
        optbinning = pytest.importorskip("optbinning")
        from sklearn.linear_model import LogisticRegression

        frame = TOWNS.astype({"town": object}).assign(age=TOWNS.age.where(TOWNS.index % 7 > 0))
        binning = optbinning.BinningProcess(list(frame.columns), categorical_variables=["town"])
        settings = {"scaling_method": "min_max", "scaling_method_params": {"min": 300, "max": 850}}
        self.frame, self.card = frame, optbinning.Scorecard(binning, LogisticRegression(), **settings).fit(frame, LABEL)

    def test_points_are_those_of_the_bins(self):
        rows, background = self.frame[:4], self.frame[50:60]  # with missing cells and categories
        check_reader(self.card, rows, background)
        explanation = explain(self.card, rows, background)
        assert explanation.unit == "points of the score"
        np.testing.assert_allclose(explanation.prediction, self.card.score(rows), rtol=roundings(8))
        right = interventional_values(self.card.score, rows, background)
        np.testing.assert_allclose(explanation.values, right, rtol=0, atol=850 * roundings(16))

    def test_errors(self):
        rows, background = self.frame[:4], self.frame[50:60]
        with pytest.raises(NotFittedError):
            explain(clone(self.card), rows, background)
        with pytest.raises(InputError):
            explain(self.card, rows.drop(columns="age"), background)
        with pytest.raises(InputError):
            explain(self.card, rows.assign(power="many"), background)


class TestEconml:
    """Effects that are linear in X, by brute force over ``effect``."""

    TREATED = (rng.random(150) < 0.5).astype(int)

    @pytest.fixture(autouse=True)
    def econml(self):
        pytest.importorskip("econml")
        from econml import dml

        return dml

    def fitted(self, kind, treatment, rows=X, **settings):
        model = kind(model_y=Lasso(alpha=0.01), random_state=0, **settings)
        return model.fit(SCORE + treatment * (1.0 + X.age), treatment, X=rows)

    @pytest.mark.parametrize("name", ["LinearDML", "SparseLinearDML"])
    @pytest.mark.parametrize("discrete", [True, False])
    def test_linear_effects(self, econml, name, discrete):
        settings = {"discrete_treatment": True, "model_t": LogisticRegression()} if discrete else {"model_t": Lasso(alpha=0.01)}
        treatment = self.TREATED if discrete else self.TREATED + rng.normal(size=150)
        model = self.fitted(getattr(econml, name), treatment, **settings)
        check_reader(model, ROWS, BACKGROUND)
        explanation = explain(model, ROWS, BACKGROUND)
        assert (explanation.exact, explanation.unit) == (True, "treatment effect")
        right = interventional_values(model.effect, ROWS, BACKGROUND)
        np.testing.assert_allclose(explanation.values, right, rtol=0, atol=roundings(64))
        with pytest.raises(InputError):
            explain(model, ROWS.iloc[:, 1:], BACKGROUND)
        with pytest.raises(NotFittedError):
            explain(getattr(econml, name)(), ROWS, BACKGROUND)

    def test_three_treatments_without_an_intercept(self, econml):
        settings = {"discrete_treatment": True, "model_t": LogisticRegression(), "fit_cate_intercept": False}
        model = self.fitted(econml.LinearDML, np.arange(150) % 3, X.to_numpy(), **settings)
        rows, background = ROWS.to_numpy(), BACKGROUND.to_numpy()
        explanation = explain(model, rows, background)
        check_reader(model, rows, background)
        for k in (1, 2):
            own = lambda some, k=k: model.effect(some.to_numpy(), T0=0, T1=k)  # noqa: E731
            right = interventional_values(own, ROWS, BACKGROUND)
            np.testing.assert_allclose(explanation.values[:, :, k - 1], right, rtol=0, atol=roundings(64))

    def test_others_are_refused_with_a_way(self, econml):
        settings = {"discrete_treatment": True, "model_t": LogisticRegression()}
        forest = self.fitted(econml.CausalForestDML, self.TREATED, n_estimators=4, **settings)
        squares = self.fitted(econml.LinearDML, self.TREATED, featurizer=PolynomialFeatures(2), **settings)
        for model in (forest, squares):
            with pytest.raises(UnsupportedStructureError, match=r"explain\(model.effect, X, background\)"):
                explain(model, ROWS, BACKGROUND)
            explanation = explain(model.effect, ROWS, BACKGROUND)
            np.testing.assert_allclose(explanation.prediction, model.effect(ROWS))
            assert (explanation.exact, explanation.certificate().passed) == (True, True)

    def test_subclasses(self, econml):
        settings = {"discrete_treatment": True, "model_t": LogisticRegression()}
        model = self.fitted(econml.LinearDML, self.TREATED, **settings)
        values, own = explain(model, ROWS, BACKGROUND).values, type(model)
        model.__class__ = type("Mine", (own,), {})
        np.testing.assert_array_equal(explain(model, ROWS, BACKGROUND).values, values)
        twice = {"const_marginal_effect": lambda self, rows: 2.0 * own.const_marginal_effect(self, rows)}
        model.__class__ = type("Twice", (own,), twice)
        with pytest.raises(UnsupportedModelError, match="has its own const_marginal_effect"):
            explain(model, ROWS, BACKGROUND)
