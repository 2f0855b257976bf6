"""FLAML's AutoML by brute force over its own calls; AutoGluon's predictors as functions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import StackingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from exactshap import Explainer, explain
from exactshap.errors import ExactnessError, ExactshapError, UnknownNameError, UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import PROBABILITY, SINGLE_RESPONSE

rng = np.random.default_rng(0)
X = pd.DataFrame({"age": rng.normal(size=200), "power": rng.normal(size=200), "town": rng.choice(["u", "v", "w"], 200)})
X["children"] = rng.integers(0, 5, 200)
SCORE = np.asarray(X.age * X.power + 2.0 * (X.town == "u") + 0.1 * X.children)
YES = np.where(np.median(SCORE) < SCORE, "yes", "no")
THREE = np.array(["low", "middle", "top"])[np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.6]))]
ROWS, BACKGROUND = X[:3], X[100:106]


def check(model, own, atol):
    """Hold values against brute force over ``own`` of the user's rows; return the explanation."""
    explanation = check_answers(model, own, ROWS, BACKGROUND, atol)
    assert explanation.feature_names == tuple(X.columns)
    return explanation


def log_odds(p):
    return np.log(p / (1.0 - p))


class TestFlaml:
    @pytest.fixture
    def fitted(self):
        automl = pytest.importorskip("flaml").AutoML

        def model(learners, y, **settings):
            settings = {"max_iter": 2, "time_budget": 60, "verbose": 0, "seed": 1, "n_jobs": 1} | settings
            made = automl()
            made.fit(X, y, task="regression" if y is SCORE else "classification", estimator_list=learners, **settings)
            return made

        return model

    @pytest.mark.parametrize("learner", ["lgbm", "xgboost", "rf", "enet"])
    def test_regressors(self, fitted, learner):
        model = fitted([learner], SCORE)
        explanation = check(model, model.predict, SINGLE_RESPONSE if learner == "xgboost" else PROBABILITY)
        assert (explanation.model_name[:7], explanation.unit) == ("AutoML(", "target")

    def test_two_classes_are_called_as_the_user_calls_them(self, fitted):
        model = fitted(["lgbm"], YES)
        explanation = check(model, lambda rows: log_odds(model.predict_proba(rows)[:, 1]), PROBABILITY)
        assert (explanation.unit, explanation.model_name) == ("log-odds of class yes", "AutoML(LGBMClassifier)")

    def test_several_classes_are_called_as_the_user_calls_them(self, fitted):
        model = fitted(["rf"], THREE)
        explanation = check(model, model.predict_proba, PROBABILITY)
        assert explanation.output_names == ("low", "middle", "top")
        top = explain(model, ROWS, BACKGROUND, output="top")
        np.testing.assert_array_equal(top.values, explanation.values[:, :, 2])

    def test_a_stack_of_its_estimators(self):
        learners = pytest.importorskip("flaml.automl.model")
        numbers = X[["age", "power", "children"]]
        parts = [
            ("small", learners.LGBMEstimator("regression", n_estimators=4)),
            ("large", learners.LGBMEstimator("regression")),
        ]
        model = StackingRegressor(parts, LinearRegression(), passthrough=True).fit(numbers, SCORE)
        check_answers(model, model.predict, numbers[:3], numbers[100:106], PROBABILITY, contract=False)
        check_reader(model.estimators_[0], numbers[:3], numbers[100:106])

    @pytest.mark.parametrize("learner", ["kneighbor", "sgd"])  # without a reader; mixes columns
    def test_others_are_refused_with_a_way(self, fitted, learner):
        model = fitted([learner], YES)
        with pytest.raises(UnsupportedStructureError, match=r"explain\(model.predict_proba, X, background\)"):
            explain(model, ROWS, BACKGROUND)
        way = explain(model.predict_proba, ROWS, BACKGROUND)
        assert way.exact
        assert way.output_names == ("no", "yes")

    def test_a_second_fit_is_seen(self, fitted):
        model = fitted(["lgbm"], SCORE)
        explainer = Explainer(model, BACKGROUND)
        model.fit(X, -SCORE, task="regression", estimator_list=["lgbm"], max_iter=1, time_budget=60, verbose=0, n_jobs=1)
        with pytest.raises(ExactnessError, match=r"fitted again|has changed since it was read"):
            explainer(ROWS)

    def test_errors(self, fitted):
        import flaml

        with pytest.raises(NotFittedError, match="not fitted yet"):
            explain(flaml.AutoML(), ROWS, BACKGROUND)
        model = fitted(["lgbm"], YES)
        with pytest.raises(UnsupportedStructureError, match="Pass reference rows"):
            explain(model, ROWS)
        with pytest.raises(UnknownNameError, match="Missing"):
            explain(model, ROWS[["age"]], BACKGROUND)
        with pytest.raises(ExactshapError, match="columns of the fit"):
            explain(model, ROWS[["age"]], BACKGROUND[["age"]])
        with pytest.raises(UnknownNameError, match="has no output"):
            explain(model, ROWS, BACKGROUND, output="maybe")


class StandIn:
    """Has the methods and the module of AutoGluon's predictor."""

    __module__ = "autogluon.tabular.predictor.predictor"

    def __init__(self, can_predict_proba):
        self.can_predict_proba = can_predict_proba

    def predict(self, rows):
        return np.asarray(rows.age, float)

    def predict_proba(self, rows):
        return pd.DataFrame({"no": 1.0 - rows.age, "yes": rows.age})


@pytest.mark.parametrize(("classes", "call"), [(True, "predict_proba"), (False, "predict")])
def test_autogluon_is_refused_with_a_way(classes, call):
    model = StandIn(classes)
    with pytest.raises(UnsupportedModelError, match=rf"AutoGluon documents no way .* explain\(model.{call}, X, background\)"):
        explain(model, ROWS, BACKGROUND)
    way = explain(getattr(model, call), ROWS, BACKGROUND)
    assert way.output_names == (("no", "yes") if classes else None)
