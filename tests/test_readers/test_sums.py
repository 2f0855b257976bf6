"""Weighted sums of read models: votes, bags, stacks, one model for each output, of one family or several."""

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, QuantileRegressor, Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVC
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

from exactshap import Explainer, explain
from exactshap.errors import UnsupportedModelError, UnsupportedStructureError
from exactshap.testing import check_reader
from oracles import interventional_values
from tolerances import FLOAT32_MARGIN, assert_close

X, Y = load_diabetes(return_X_y=True, as_frame=True)
X, Y = X.iloc[:120, :5], Y.to_numpy()[:120]
ARRAY, BOTH, CLASSES = X.to_numpy(), np.column_stack([Y, -(Y**1.5)]), np.digitize(Y, [100.0, 200.0])
BACKGROUND, ROWS = X.iloc[:7], X.iloc[50:53]

MIXED = [("l", Ridge()), ("k", make_pipeline(StandardScaler(), SVR())), ("t", RandomForestRegressor(3, random_state=0))]
REGRESSORS = {
    "vote of several families": VotingRegressor(
        [*MIXED, ("b", LGBMRegressor(n_estimators=4, verbose=-1)), ("d", "drop")], weights=[1, 2, 3, 1, 5]
    ),
    "bag of column subsets": BaggingRegressor(SVR(), 4, max_features=0.6, random_state=0),
    "bag of repeated columns": BaggingRegressor(Ridge(), 4, bootstrap_features=True, random_state=0),
    "bag of trees": BaggingRegressor(DecisionTreeRegressor(max_depth=3), 4, random_state=0),
    "stack": StackingRegressor([("l", Ridge()), ("k", KernelRidge(kernel="rbf", gamma=5.0))]),
    "stack with the rows": StackingRegressor(MIXED, LinearRegression(), passthrough=True, cv=3),
    "vote of quantiles": VotingRegressor(
        [("t", GradientBoostingRegressor(loss="quantile", n_estimators=4)), ("l", QuantileRegressor(quantile=0.9, alpha=0.0))]
    ),
    "quantiles of a scaled target": BaggingRegressor(
        TransformedTargetRegressor(QuantileRegressor(alpha=0.0), transformer=StandardScaler()), 2, random_state=0
    ),
    "vote of a bag and a vote": VotingRegressor([("b", BaggingRegressor(Ridge(), 2)), ("v", VotingRegressor(MIXED[:2]))]),
}
OF_SEVERAL_OUTPUTS = {
    "one Ridge for each target": (MultiOutputRegressor(Ridge()), BOTH, "predict"),
    "one forest for each target": (MultiOutputRegressor(RandomForestRegressor(3, random_state=0)), BOTH, "predict"),
    "bag of two targets": (BaggingRegressor(DecisionTreeRegressor(max_depth=3), 3, random_state=0), BOTH, "predict"),
    "linear SVMs against the rest": (OneVsRestClassifier(LinearSVC()), CLASSES, "decision_function"),
    "boosting against the rest": (
        OneVsRestClassifier(GradientBoostingClassifier(n_estimators=4)),
        CLASSES,
        "decision_function",
    ),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_on_frames(name):
    check_reader(REGRESSORS[name].fit(X, Y), ROWS, BACKGROUND)


@pytest.mark.parametrize("name", OF_SEVERAL_OUTPUTS)
def test_several_outputs(name):
    model, y, method = OF_SEVERAL_OUTPUTS[name]
    model.fit(X, y)
    check_reader(model, ROWS, BACKGROUND)
    explanation = explain(model, ROWS, BACKGROUND)
    assert explanation.values.shape == (3, 5, getattr(model, method)(ROWS).shape[1])
    expected = interventional_values(getattr(model, method), ROWS, BACKGROUND)
    assert_close(explanation.values, expected, np.abs(y).max(), n_terms=120, n_players=5)
    one = explain(model, ROWS, BACKGROUND, output=1)
    np.testing.assert_array_equal(one.values, explanation.values[:, :, 1])


def test_two_classes_have_one_output():
    model = OneVsRestClassifier(LinearSVC()).fit(X, CLASSES > 0)
    assert explain(model, ROWS, BACKGROUND).values.shape == (3, 5)
    check_reader(OneVsOneClassifier(LogisticRegression()).fit(X, CLASSES), ROWS, BACKGROUND)


@pytest.mark.parametrize("name", ["vote of several families", "bag of column subsets"])
def test_groups_and_weights(name):
    model, weights = REGRESSORS[name].fit(X, Y), np.arange(1.0, 8.0)
    reader = Explainer(model, BACKGROUND, groups={"g": ["age", "bp"]}, background_weights=weights)
    assert reader.verify(ROWS).passed
    explanation = reader(ROWS, "k-sii", 2)
    assert explanation.feature_names == ("g", "sex", "bmi", "s1")
    np.testing.assert_allclose(explanation.baseline, np.average(model.predict(BACKGROUND), weights=weights))


def test_single_precision_is_allowed_for():
    model = VotingRegressor([("x", XGBRegressor(n_estimators=4)), ("l", Ridge())]).fit(X, Y)
    explanation = explain(model, ROWS, BACKGROUND)
    assert np.abs(explanation.residual).max() <= FLOAT32_MARGIN * np.abs(Y).max()


def test_games_without_a_background():
    forests = VotingRegressor([("a", RandomForestRegressor(2, random_state=0)), ("b", DecisionTreeRegressor(max_depth=2))])
    explanation = explain(forests.fit(X, Y), ROWS)
    assert explanation.value_function == "path_dependent"
    parts = [explain(part, ROWS).values for part in forests.estimators_]
    np.testing.assert_allclose(explanation.values, np.mean(parts, axis=0))
    machines = BaggingRegressor(SVR(), 2, random_state=0).fit(X, Y)
    assert explain(machines, ROWS).value_function == "functional"
    with pytest.raises(UnsupportedStructureError, match=r"no value function in common.*Pass background="):
        explain(VotingRegressor(MIXED[1:]).fit(X, Y), ROWS)


def test_costs_are_those_of_all_members():
    model = VotingRegressor(MIXED).fit(X, Y)
    whole = Explainer(model, BACKGROUND)
    parts = [Explainer(part, BACKGROUND).reader for part in model.estimators_]
    assert whole.reader.memory(5, 1) > max(part.memory(5, 1) for part in parts)
    plan = whole.plan(ROWS)
    assert plan.exact
    assert plan.method.startswith("sum of 3 models: ")


@pytest.mark.parametrize(
    ("model", "error", "text"),
    [
        (
            VotingRegressor([("n", KNeighborsRegressor())]),
            UnsupportedModelError,
            "VotingRegressor is read as the sum.*KNeighbors",
        ),
        (VotingRegressor([("p", PoissonRegressor())]), UnsupportedStructureError, "exact only as log of the target"),
        (
            StackingRegressor(MIXED[:1], RandomForestRegressor(2)),
            UnsupportedStructureError,
            "last step is linear.*RandomForest",
        ),
        (StackingRegressor(MIXED[:1], PoissonRegressor()), UnsupportedStructureError, "last step is linear.*Poisson"),
        (MultiOutputRegressor(PoissonRegressor()), UnsupportedStructureError, "exact in the unit that it predicts"),
    ],
)
def test_what_is_no_sum_is_refused(model, error, text):
    y = np.column_stack([Y, Y]) if isinstance(model, MultiOutputRegressor) else Y
    with pytest.raises(error, match=text):
        explain(model.fit(X, y), ROWS, BACKGROUND)
