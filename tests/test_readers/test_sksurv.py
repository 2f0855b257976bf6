"""scikit-survival: risks, whole curves and scores, by brute force over the models' own calls."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import Explainer, explain
from exactshap.errors import InputError, UnsupportedStructureError
from reader_checks import check_answers
from tolerances import roundings

sksurv = pytest.importorskip("sksurv")
from sksurv.ensemble import (  # noqa: E402
    ComponentwiseGradientBoostingSurvivalAnalysis,
    ExtraSurvivalTrees,
    GradientBoostingSurvivalAnalysis,
    RandomSurvivalForest,
)
from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis, IPCRidge  # noqa: E402
from sksurv.svm import FastKernelSurvivalSVM, FastSurvivalSVM, HingeLossSurvivalSVM, MinlipSurvivalAnalysis, NaiveSurvivalSVM  # noqa: E402
from sksurv.tree import ExtraSurvivalTree, SurvivalTree  # noqa: E402
from sksurv.util import Surv  # noqa: E402

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 4)), columns=["age", "dose", "weight", "height"])
TIME = 1.0 + np.round(rng.exponential(np.exp(0.5 * X.age + X.dose * X.weight)), 1)
Y = Surv.from_arrays(rng.random(120) < 0.8, TIME)
SMALL = {"max_depth": 4, "random_state": 0}

TREES = {
    "tree": SurvivalTree(**SMALL),
    "random tree": ExtraSurvivalTree(**SMALL),
    "forest": RandomSurvivalForest(4, **SMALL),
    "extra trees": ExtraSurvivalTrees(4, **SMALL),
}
BOOSTED = {
    "forest of risks": RandomSurvivalForest(4, low_memory=True, **SMALL),
    "boosting": GradientBoostingSurvivalAnalysis(n_estimators=6, learning_rate=0.5, random_state=0),
    "boosting of times": GradientBoostingSurvivalAnalysis(loss="ipcwls", n_estimators=6, random_state=0),
}
TIMES, RANKS, HAZARDS = "log of the survival time", "risk score: high is early", "log hazard: high is early"
LINEAR = {
    "Cox": (CoxPHSurvivalAnalysis(), HAZARDS),
    "Coxnet": (CoxnetSurvivalAnalysis(), HAZARDS),
    "Coxnet of normalised columns": (CoxnetSurvivalAnalysis(normalize=True), HAZARDS),
    "componentwise": (ComponentwiseGradientBoostingSurvivalAnalysis(n_estimators=20), HAZARDS),
    "componentwise times": (ComponentwiseGradientBoostingSurvivalAnalysis(loss="ipcwls", n_estimators=20), TIMES),
    "ridge": (IPCRidge(), TIMES),
    "ranks": (FastSurvivalSVM(random_state=0), RANKS),
    "ranks and times": (FastSurvivalSVM(rank_ratio=0.5, fit_intercept=True, random_state=0), TIMES),
    "pairs": (NaiveSurvivalSVM(random_state=0), RANKS),
}
KERNELS = {
    "kernel ranks": (FastKernelSurvivalSVM(kernel="rbf", gamma=0.2, random_state=0), RANKS),
    "kernel times": (FastKernelSurvivalSVM(rank_ratio=0.0, fit_intercept=True, kernel="rbf", random_state=0), TIMES),
    "polynomials": (FastKernelSurvivalSVM(kernel="poly", degree=2, random_state=0), RANKS),
    "hinge loss": (HingeLossSurvivalSVM(kernel="rbf", gamma=0.2), RANKS),
    "minimal Lipschitz": (MinlipSurvivalAnalysis(kernel="rbf", gamma=0.2), RANKS),
}


PIPED = {
    "scaled Cox": (make_pipeline(StandardScaler(), CoxPHSurvivalAnalysis()), HAZARDS),
    "scaled forest": (make_pipeline(StandardScaler(), RandomSurvivalForest(3, **SMALL)), None),
}
MODELS = LINEAR | KERNELS | PIPED | {name: (model, None) for name, model in (TREES | BOOSTED).items()}


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_own_answers(name):
    model, unit = MODELS[name]
    few = 40 if name in KERNELS else 120
    model.fit(X[:few], Y[:few])
    timed = unit == TIMES or name == "boosting of times"
    own = (lambda rows: np.log(model.predict(rows))) if timed else model.predict
    size = 1.0 + np.abs(getattr(model, "coef_", 0.0)).sum()  # of what is added up in another order
    covers = name in TREES or name in BOOSTED
    explanation = check_answers(model, own, X[:4], X[50:60], roundings(256) * size, covers=covers)
    assert (explanation.unit == TIMES) == timed
    assert unit in (None, explanation.unit)


@pytest.mark.parametrize("background", [None, X[50:60]], ids=["path_dependent", "interventional"])
@pytest.mark.parametrize("curve", ["survival", "cumulative hazard"])
@pytest.mark.parametrize("name", TREES)
def test_whole_curves(name, curve, background):
    model = TREES[name].fit(X, Y)
    explainer = Explainer(model, background, output=curve)
    explanation = explainer(X[:3])
    own = getattr(model, f"predict_{curve.replace(' ', '_')}_function")(X[:3], return_array=True)
    np.testing.assert_array_equal(explanation.prediction, own)
    np.testing.assert_allclose(
        explanation.baseline + explanation.values.sum(axis=1), own, rtol=0, atol=roundings(64) * np.abs(own).max()
    )
    assert explanation.output_names[3] == f"t = {model.unique_times_[3]:g}"
    assert explainer.verify(X[:2]).passed
    if background is not None:
        hazards = getattr(model, f"predict_{curve.replace(' ', '_')}_function")(background, return_array=True)
        np.testing.assert_allclose(explanation.baseline[0], hazards.mean(axis=0), rtol=roundings(64))


def test_chosen_times_are_steps_of_the_curve():
    model = TREES["forest"].fit(X, Y)
    whole = explain(model, X[:3], output="survival")
    known = model.unique_times_
    between = 0.5 * (known[4] + known[5])
    two = explain(model, X[:3], output="survival", times=[between, known[9]])
    few_outputs = {"rtol": 0, "atol": roundings(64)}  # another kernel than that of many: other sums, the same numbers
    np.testing.assert_allclose(two.values, whole.values[:, :, [4, 9]], **few_outputs)
    one = explain(model, X[:3], output="survival", times=known[9])
    np.testing.assert_allclose(one.values, whole.values[:, :, 9], **few_outputs)
    forest = PIPED["scaled forest"][0].fit(X, Y)
    assert explain(forest, X[:3], X[50:60], output="survival", times=[2.0, 3.0]).certificate().passed
    for times in (known[0] / 2, known[-1] + 1.0, [], [[1.0]]):
        with pytest.raises(InputError, match="`times` must lie between"):
            explain(model, X[:3], output="survival", times=times)
    with pytest.raises(InputError, match="`times` needs a survival curve as output"):
        explain(model, X[:3], times=[2.0])


def test_refusals_name_a_way_that_works():
    model = BOOSTED["boosting"].fit(X, Y)
    with pytest.raises(UnsupportedStructureError, match=r"explain\(lambda rows: model.predict_survival_function\(rows, return"):
        explain(model, X[:2], X[50:60], output="survival")
    curves = explain(lambda rows: model.predict_survival_function(rows, return_array=True), X[:2], X[50:55])
    assert curves.certificate().passed
    with pytest.raises(UnsupportedStructureError, match=r"kept no curves. Got low_memory=True"):
        explain(BOOSTED["forest of risks"].fit(X, Y), X[:2], output="survival")
    dropped = GradientBoostingSurvivalAnalysis(n_estimators=4, dropout_rate=0.5, random_state=0).fit(X, Y)
    with pytest.raises(UnsupportedStructureError, match=r"dropout_rate > 0. Sample it: explain\(model.predict"):
        explain(dropped, X[:2], X[50:60])
    assert explain(dropped.predict, X[:2], X[50:60]).certificate().passed
