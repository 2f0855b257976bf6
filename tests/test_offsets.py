"""Offsets of rows: exposures and base margins are part of the baseline, and the model's own call with them is explained."""

from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn import config_context
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, VotingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import exactshap.decompose
from exactshap import Explainer, Explanation, explain, trees
from exactshap.errors import (
    ExactnessError,
    ExplanationWarning,
    InputError,
    InputTypeError,
    UnknownNameError,
    UnsupportedStructureError,
)
from tolerances import SINGLE_PRECISION_SUM

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(300, 4)), columns=["power", "age", "km", "bonus"])
EXPOSURE = rng.uniform(0.1, 3.0, 300)
LOG = np.log(EXPOSURE)
COUNTS = rng.poisson(EXPOSURE * np.exp(0.5 * X.power + 0.3 * X.age * X.km))
ROWS, BACKGROUND = X[:9], X[100:130]


def xgboost(**settings):
    return xgb.XGBRegressor(**{"objective": "count:poisson", "n_estimators": 12, "max_depth": 3, **settings})


@pytest.fixture(scope="module")
def boosted():
    return xgboost().fit(X, COUNTS, base_margin=LOG)


def assert_explains(explanation, plain, prediction):
    """The prediction is the model's own with offsets, the values are those without."""
    np.testing.assert_array_equal(explanation.prediction, prediction)
    np.testing.assert_allclose(explanation.values, plain.values, rtol=0, atol=0)
    np.testing.assert_allclose(
        explanation.baseline + explanation.values.sum(axis=1), prediction, rtol=SINGLE_PRECISION_SUM, atol=SINGLE_PRECISION_SUM
    )
    assert explanation.certificate().passed
    assert "offsets" in explanation.method


MEDIANS = [{"objective": "reg:absoluteerror"}, {"objective": "reg:quantileerror", "quantile_alpha": 0.7}]


@pytest.mark.parametrize("settings", MEDIANS)
def test_medians_and_quantiles_fitted_with_offsets_are_noted(settings):
    target = X.power.to_numpy() + EXPOSURE
    model = xgboost(**settings).fit(X, target, base_margin=LOG)
    with pytest.warns(ExplanationWarning, match="do not start from its base_score") as caught:
        explain(model, ROWS, BACKGROUND)
    assert "explain(model, X, offset=...)" in str(caught[0].message)
    explanation = explain(model, ROWS, BACKGROUND, offset=LOG[:9])
    np.testing.assert_array_equal(explanation.prediction, model.predict(ROWS, base_margin=LOG[:9]))


@pytest.mark.filterwarnings("error::exactshap.errors.ExplanationWarning")
@pytest.mark.parametrize("target", [X.power.to_numpy(), COUNTS], ids=["numbers", "counts"])
@pytest.mark.parametrize("n_rows", [21, 300])
def test_medians_without_offsets_are_silent(target, n_rows):
    for settings in MEDIANS:
        explain(xgboost(**settings, max_depth=6).fit(X[:n_rows], target[:n_rows]), ROWS, BACKGROUND)


@pytest.mark.filterwarnings("error::exactshap.errors.ExplanationWarning")
def test_a_root_alone_is_silent():
    explain(xgboost(objective="reg:squarederror", gamma=1e9).fit(X, LOG), ROWS, BACKGROUND)


@pytest.mark.filterwarnings("ignore:The trees of")
@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["path_dependent", "interventional"])
def test_xgboost_leaves_its_base_score_out(boosted, background):
    plain = explain(boosted, ROWS, background)
    explanation = explain(boosted, ROWS, background, offset=LOG[:9])
    own = boosted.predict(ROWS, base_margin=LOG[:9], output_margin=True)
    assert_explains(explanation, plain, own)
    assert np.abs(explanation.baseline - plain.baseline - LOG[:9]).min() > 0.01  # the base score


@pytest.mark.filterwarnings("ignore:The trees of")
def test_boosters_pipelines_and_files_take_offsets_as_they_predict(boosted, tmp_path):
    own = boosted.predict(ROWS, base_margin=LOG[:9], output_margin=True)
    assert_explains(explain(boosted.get_booster(), ROWS, offset=LOG[:9]), explain(boosted, ROWS), own)
    boosted.save_model(tmp_path / "model.ubj")
    loaded = explain(trees.load(tmp_path / "model.ubj"), ROWS, offset=LOG[:9])
    np.testing.assert_allclose(loaded.prediction, own, rtol=SINGLE_PRECISION_SUM)
    pipeline = make_pipeline(StandardScaler(), xgboost()).fit(X, COUNTS, xgbregressor__base_margin=LOG)
    explanation = explain(pipeline, ROWS, BACKGROUND, offset=LOG[:9])
    np.testing.assert_array_equal(explanation.prediction, pipeline.predict(ROWS, base_margin=LOG[:9], output_margin=True))


@pytest.mark.filterwarnings("ignore:The trees of")
def test_a_column_of_the_frame_holds_them(boosted):
    table = X.assign(log_exposure=LOG)
    explanation = explain(boosted, table[:9], table[100:130], offset="log_exposure")
    again = explain(boosted, ROWS, BACKGROUND, offset=LOG[:9])
    np.testing.assert_array_equal(explanation.baseline, again.baseline)
    assert list(explanation.data.columns) == list(X.columns)
    with pytest.raises(UnknownNameError, match=r"no column 'log_exposur' of offsets.*'log_exposure'"):
        explain(boosted, table[:9], BACKGROUND, offset="log_exposur")
    with pytest.raises(InputError, match="'power' is a feature of the model"):
        Explainer(boosted, BACKGROUND)(ROWS, offset="power")


def test_classes_have_an_offset_each():
    y, offsets = rng.integers(0, 3, 300), rng.normal(size=(300, 3))
    model = xgb.XGBClassifier(n_estimators=4, max_depth=2).fit(X, y)
    explanation = explain(model, ROWS, BACKGROUND, offset=offsets[:9])
    np.testing.assert_array_equal(explanation.prediction, model.predict(ROWS, base_margin=offsets[:9], output_margin=True))
    with pytest.raises(UnsupportedStructureError, match="all outputs"):
        explain(model, ROWS, BACKGROUND, offset=LOG[:9], output=1)


def test_lightgbm_and_catboost_start_from_them():
    model = lightgbm.LGBMRegressor(objective="poisson", n_estimators=10, verbose=-1).fit(X, COUNTS, init_score=LOG)
    explanation = explain(model, ROWS, BACKGROUND, offset=LOG[:9])
    np.testing.assert_allclose(np.exp(explanation.prediction), EXPOSURE[:9] * model.predict(ROWS))
    model = catboost.CatBoostRegressor(loss_function="Poisson", n_estimators=10, verbose=0, allow_writing_files=False)
    model.fit(catboost.Pool(X, COUNTS, baseline=LOG))
    explanation = explain(model, ROWS, BACKGROUND, offset=LOG[:9])
    own = model.predict(catboost.Pool(ROWS, baseline=LOG[:9]), prediction_type="RawFormulaVal")
    np.testing.assert_allclose(explanation.prediction, own)


def test_rates_of_a_linear_model_become_counts(tmp_path):
    model = PoissonRegressor().fit(X, COUNTS / EXPOSURE, sample_weight=EXPOSURE)
    explanation = explain(model, ROWS, BACKGROUND, offset=LOG[:9], order=2, index="k-sii")
    np.testing.assert_allclose(np.exp(explanation.prediction), EXPOSURE[:9] * model.predict(ROWS))
    explanation.save(tmp_path / "counts")
    np.testing.assert_array_equal(Explanation.load(tmp_path / "counts").baseline, explanation.baseline)


def test_functions_and_scaled_targets_add_them():
    plain = explain(lambda rows: np.asarray(rows)[:, 0], ROWS, BACKGROUND)
    explanation = explain(lambda rows: np.asarray(rows)[:, 0], ROWS, BACKGROUND, offset=LOG[:9])
    np.testing.assert_allclose(explanation.baseline, plain.baseline + LOG[:9])
    model = TransformedTargetRegressor(xgboost(objective="reg:squarederror"), transformer=StandardScaler()).fit(X, COUNTS)
    explanation = explain(model, ROWS, BACKGROUND, offset=LOG[:9])
    np.testing.assert_allclose(explanation.prediction, model.predict(ROWS) + LOG[:9])


OF_NO_SCORE = [(LogisticRegression(), "probability"), (RandomForestClassifier(3), "auto"), (PoissonRegressor(), "response")]


@pytest.mark.parametrize(("model", "output"), OF_NO_SCORE, ids=str)
def test_probabilities_and_rates_refuse_them(model, output):
    with pytest.raises(UnsupportedStructureError, match="An offset is added to a score"):
        explain(model.fit(X, COUNTS > 0), ROWS, BACKGROUND, offset=LOG[:9], output=output)


@pytest.mark.parametrize(
    ("offset", "error", "text"),
    [
        (LOG[:8], InputError, "one number for each row. Got 8 for 9 rows"),
        (np.full(9, -np.inf), InputError, "-inf at row 0. Leave out rows without exposure"),
        (["a"] * 9, InputTypeError, "finite number"),
        (np.arange(9).astype("M8[D]"), InputTypeError, "finite number for each row. Got dates"),
        (np.zeros((9, 2)), InputError, r"must have shape \(9,\)"),
    ],
    ids=["short", "no exposure", "text", "dates", "outputs"],
)
def test_wrong_offsets(offset, error, text):
    model = PoissonRegressor().fit(X, COUNTS)
    with pytest.raises(error, match=text):
        explain(model, ROWS, BACKGROUND, offset=offset)


# -- wherever rows go ----------------------------------------------------------------------------------------------------


def test_plans_and_checks_take_them_as_calls_do(boosted):
    table, explainer = X.assign(log_exposure=LOG), Explainer(boosted, BACKGROUND)
    assert explainer.plan(table[:9], offset="log_exposure").exact
    verification = explainer.verify(table[:9], offset="log_exposure")
    assert verification.passed
    assert verification.max_residual > 0.0
    with pytest.raises(InputError, match=r"one number for each row\. Got 8 for 9 rows"):
        explainer.plan(ROWS, offset=LOG[:8])
    rates = Explainer(PoissonRegressor().fit(X, COUNTS), BACKGROUND, output="response")
    with pytest.raises(UnsupportedStructureError, match="An offset is added to a score"):
        rates.plan(ROWS, offset=LOG[:9])


def test_a_model_that_forgets_half_of_an_offset_after_it_was_read_is_seen():
    model = xgboost().fit(X, COUNTS)
    explainer, predict = Explainer(model), model.predict

    def half(rows, base_margin=None, **settings):
        return predict(rows, base_margin=None if base_margin is None else base_margin / 2, **settings)

    model.predict = half
    for check in (explainer, explainer.verify):
        with pytest.raises(ExactnessError, match="has changed since it was read"):
            check(ROWS, offset=LOG[:9])


@pytest.mark.parametrize("wrong", ["half", "replaces"])
def test_verify_sees_a_wrong_offset_of_a_model_that_stays_as_it_was_read(boosted, wrong):
    explainer = Explainer(boosted, BACKGROUND)
    traits = explainer.reader.traits
    if wrong == "replaces":
        traits = replace(traits, offset=replace(traits.offset, replaces=traits.offset.replaces + 0.5))

    class Halving(type(explainer.reader)):
        def predict(self, table):
            margins = self.traits.own_call.settings.get("base_margin")
            scores = super().predict(table)
            return scores if margins is None or wrong != "half" else scores - margins / 2

    explainer.reader.traits, explainer.reader.__class__ = traits, Halving
    assert explainer._changes.seen() is None
    verification = explainer.verify(ROWS, offset=LOG[:9])
    assert not verification.passed
    assert verification.max_residual > 0.05
    assert explainer._changes.seen() is None


@pytest.mark.filterwarnings("error::exactshap.errors.ExplanationWarning")
def test_a_model_fitted_with_offsets_is_silent_where_they_come():
    model = xgboost().fit(X, COUNTS, base_margin=LOG)
    search = GridSearchCV(xgboost(), {"max_depth": [2]}, cv=2).fit(X, COUNTS, base_margin=LOG)
    with config_context(enable_metadata_routing=True):
        routed = xgboost(objective="reg:squarederror").set_fit_request(base_margin=True)
        votes = VotingRegressor([("a", routed)]).fit(X, COUNTS, base_margin=LOG)
    for wrapped in (model, search, votes):
        explainer = Explainer(wrapped, BACKGROUND)
        explainer(ROWS, offset=LOG[:9])
        with pytest.raises(ExplanationWarning, match="do not start from its base_score"):
            explainer(ROWS)
    for other_door in (
        lambda: explain(model, ROWS, BACKGROUND, output="response"),
        lambda: exactshap.decompose_r2(votes.estimators_[0], X, COUNTS),
        lambda: exactshap.decompose.decompose_loss(model, X, COUNTS),
    ):
        with pytest.raises(ExplanationWarning, match="do not start from its base_score"):
            other_door()


@pytest.mark.filterwarnings("ignore:The trees of")
def test_results_keep_them(boosted, tmp_path):
    explainer = Explainer(boosted, BACKGROUND)
    whole = explainer(X[:20], offset=LOG[:20])
    parts = [explainer(X[a : a + 10], offset=LOG[a : a + 10]) for a in (0, 10)]
    np.testing.assert_array_equal(Explanation.concat(parts).baseline, whole.baseline)
    assert Explanation.concat(parts).certificate().passed
    whole.save(tmp_path / "whole.npz")
    loaded = Explanation.load(tmp_path / "whole.npz")
    np.testing.assert_array_equal(loaded.baseline, whole.baseline)
    assert "offsets" in loaded.method
    np.testing.assert_array_equal(loaded[7].baseline, whole.baseline[7:8])
    old = (X["age"][:20] > 0).to_numpy()
    np.testing.assert_allclose(whole.by(old)["True"].baselines, [whole.baseline[~old].mean(), whole.baseline[old].mean()])
