"""Trees of NGBoost, quantile-forest, Perpetual, YDF and imodels, by brute force over the models' own calls."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from exactshap import explain
from exactshap.errors import (
    ExplanationWarning,
    InputError,
    ModelFormatError,
    UnknownNameError,
    UnsupportedModelError,
    UnsupportedStructureError,
)
from exactshap.testing import check_reader
from exactshap.trees import convert
from oracles import interventional_values
from tolerances import PROBABILITY, SINGLE_RESPONSE, roundings

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 4)), columns=["age", "power", "bonus", "density"])
SCORE = np.asarray(X.age * X.power + X.bonus + 0.1 * rng.normal(size=150))
LABEL, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-1.0, 1.0])
ROWS, BACKGROUND = X[:3], X[50:56]
SUM_OF_TREES = roundings(256)  # some ten trees in double precision, and 16 coalitions


def check(model, own, atol=SUM_OF_TREES, covers=True, **settings):
    """Hold values, one by one, against brute force over ``own`` of rows in a frame; return the explanation."""
    check_reader(model, ROWS, BACKGROUND, **settings)
    if covers:
        check_reader(model, ROWS, n_masks=2, **settings)  # by tree cover
    explanation = explain(model, ROWS, BACKGROUND, **settings)
    assert explanation.exact
    values = explanation.values.reshape(3, 4, -1)
    for k in range(values.shape[2]):
        column = lambda rows, k=k: np.asarray(own(rows), float).reshape(len(rows), -1)[:, k]  # noqa: E731
        np.testing.assert_allclose(values[:, :, k], interventional_values(column, ROWS, BACKGROUND), rtol=0, atol=atol)
    return explanation


def subclassed(model, name, scale):
    """Return the model as an object of a subclass with its own method, or as an unchanged subclass."""
    own = getattr(type(model), name)
    changed = {} if scale is None else {name: lambda self, rows, *more, **settings: scale * own(self, rows, *more, **settings)}
    other = copy.copy(model)
    other.__class__ = type("Mine", (type(model),), changed)
    return other


def require_the_usual_errors(model, method, unfitted, settings):
    """Unfitted models and missing columns are errors; subclasses are read, those of their own predictions as functions."""
    with pytest.raises(NotFittedError):
        explain(unfitted, ROWS, BACKGROUND, **settings)
    with pytest.raises(InputError):
        explain(model, ROWS.iloc[:, 1:], BACKGROUND, **settings)
    right = explain(model, ROWS, BACKGROUND, **settings)
    np.testing.assert_array_equal(explain(subclassed(model, method, None), ROWS, BACKGROUND, **settings).values, right.values)
    twice = subclassed(model, method, 2.0)
    with pytest.warns(ExplanationWarning, match="has its own"):
        np.testing.assert_allclose(explain(twice, ROWS, BACKGROUND).prediction, twice.predict(ROWS), rtol=SINGLE_RESPONSE)


class TestNGBoost:
    """Each parameter of the distribution, as it is boosted."""

    @pytest.fixture(autouse=True)
    def ngboost(self):
        return pytest.importorskip("ngboost")

    @pytest.mark.parametrize(
        ("name", "y", "names"),
        [
            ("Normal", SCORE, ("loc", "log of scale")),
            ("Laplace", SCORE, ("loc", "log of scale")),
            ("T", SCORE, ("loc", "log of scale", "log of the degrees of freedom")),
            ("LogNormal", np.exp(SCORE), ("mean of the logarithm", "log of its deviation")),
            ("Gamma", np.exp(SCORE), ("log of alpha", "log of beta")),
            ("Weibull", np.exp(SCORE), ("log of shape", "log of scale")),
            ("Exponential", np.exp(SCORE), "log of scale of Exponential"),
            ("Poisson", np.exp(SCORE).round(), "log of the rate of Poisson"),
        ],
    )
    def test_parameters(self, ngboost, name, y, names):
        settings = {"n_estimators": 8, "verbose": False, "col_sample": 0.75, "minibatch_frac": 0.8, "random_state": 0}
        model = ngboost.NGBRegressor(Dist=getattr(ngboost.distns, name), **settings).fit(X, y)
        explanation = check(model, lambda rows: model.pred_param(np.asarray(rows)))
        assert (explanation.output_names or explanation.unit) == names
        parameters = {key: np.ravel(value) for key, value in model.pred_dist(ROWS).params.items()}
        if name == "Normal":  # the names say what the numbers are
            np.testing.assert_allclose(explanation.prediction, np.c_[parameters["loc"], np.log(parameters["scale"])])
            one = explain(model, ROWS, BACKGROUND, output="loc")
            np.testing.assert_array_equal(one.values, explanation.values[:, :, 0])
            np.testing.assert_allclose(one.prediction, model.predict(ROWS))
            require_the_usual_errors(model, "pred_param", ngboost.NGBRegressor(), {})
        if name == "Gamma":
            np.testing.assert_allclose(np.exp(explanation.prediction), np.c_[parameters["alpha"], parameters["beta"]])
        if name == "Weibull":
            np.testing.assert_allclose(np.exp(explanation.prediction), np.c_[parameters["shape"], parameters["scale"]])

    def test_classifiers_and_survival(self, ngboost):
        settings = {"n_estimators": 8, "verbose": False, "random_state": 0}
        two = ngboost.NGBClassifier(**settings).fit(X, LABEL)
        explanation = check(two, lambda rows: model_log_odds(two, rows), atol=PROBABILITY)
        assert explanation.unit == "log-odds of class 1"
        probability = explain(two, ROWS, BACKGROUND, output="probability")
        np.testing.assert_allclose(probability.prediction, two.predict_proba(ROWS)[:, 1])
        three = ngboost.NGBClassifier(Dist=ngboost.distns.k_categorical(3), **settings).fit(X, THREE)
        assert check(three, lambda rows: three.pred_param(np.asarray(rows))).unit == "log-odds against the first class"
        share = three.predict_proba(ROWS)
        np.testing.assert_allclose(explain(three, ROWS, BACKGROUND).prediction, np.log(share[:, 1:] / share[:, :1]))
        with pytest.raises(UnsupportedStructureError, match=r"explain\(model.predict_proba, X, background"):
            explain(three, ROWS, BACKGROUND, output="probability")
        assert explain(three.predict_proba, ROWS, BACKGROUND).certificate().passed
        times = ngboost.NGBSurvival(**settings).fit(np.asarray(X), np.exp(SCORE), LABEL)
        assert check(times, lambda rows: times.pred_param(np.asarray(rows))).output_names[0] == "mean of the logarithm"

    def test_learners_without_trees_are_refused_with_a_way(self, ngboost):
        model = ngboost.NGBRegressor(Base=Ridge(), n_estimators=5, verbose=False).fit(X, SCORE)
        with pytest.raises(UnsupportedStructureError, match=r"Got Ridge.*explain\(lambda rows: model.predict\(rows\)"):
            explain(model, ROWS, BACKGROUND)
        assert explain(lambda rows: model.predict(rows), ROWS, BACKGROUND).certificate().passed


def model_log_odds(model, rows):
    second = model.predict_proba(np.asarray(rows))[:, 1]
    return np.log(second / (1.0 - second))


class TestQuantileForests:
    """Means, which are sums of trees where each tree counts as much."""

    @pytest.fixture(autouse=True)
    def quantile_forest(self):
        return pytest.importorskip("quantile_forest")

    @pytest.mark.parametrize("name", ["RandomForestQuantileRegressor", "ExtraTreesQuantileRegressor"])
    def test_means(self, quantile_forest, name):
        model = getattr(quantile_forest, name)(n_estimators=6, min_samples_leaf=4, random_state=0).fit(X, SCORE)
        own = lambda rows: model.predict(rows, quantiles="mean")  # noqa: E731
        assert check(model, own, output="mean").unit == "target"
        np.testing.assert_allclose(convert(model).predict(ROWS), own(ROWS), rtol=roundings(16))
        kept = getattr(quantile_forest, name)(6, min_samples_leaf=4, max_samples_leaf=None, random_state=0).fit(X, SCORE)
        mean_of_leaves = lambda rows: kept.predict(rows, quantiles="mean", aggregate_leaves_first=False)  # noqa: E731
        check(kept, mean_of_leaves, output="mean of leaves")
        with pytest.raises(
            UnsupportedStructureError, match=r"Pass output='mean of leaves', .*quantiles='mean'\), X, background"
        ):
            explain(kept, ROWS, BACKGROUND, output="mean")  # a ratio of sums
        pooled = explain(lambda rows: kept.predict(rows, quantiles="mean"), ROWS, BACKGROUND)
        assert np.abs(pooled.prediction - mean_of_leaves(ROWS)).max() > 1e-6
        require_the_usual_errors(model, "predict", getattr(quantile_forest, name)(), {"output": "mean"})

    def test_several_targets_and_defaults(self, quantile_forest):
        settings = {"n_estimators": 5, "min_samples_leaf": 4, "default_quantiles": "mean", "random_state": 0}
        two = quantile_forest.RandomForestQuantileRegressor(**settings).fit(X, np.c_[SCORE, X.age])
        assert check(two, two.predict).output_names == ("target 0", "target 1")

    def test_quantiles_are_refused_with_a_way(self, quantile_forest):
        model = quantile_forest.RandomForestQuantileRegressor(5, random_state=0).fit(X, SCORE)
        with pytest.raises(
            UnsupportedStructureError, match=r"predicts quantiles.*explain\(lambda rows: model.predict\(rows\), X"
        ):
            explain(model, ROWS, BACKGROUND)
        median = explain(lambda rows: model.predict(rows), ROWS, BACKGROUND)
        np.testing.assert_allclose(median.prediction, model.predict(ROWS))
        with pytest.raises(UnknownNameError, match="'mean' or 'mean of leaves'"):
            explain(model, ROWS, BACKGROUND, output="median")
        rising = quantile_forest.RandomForestQuantileRegressor(5, monotonic_cst=[1, 0, 0, 0]).fit(X, SCORE)
        with pytest.raises(UnsupportedStructureError, match="clips the means"):
            explain(rising, ROWS, BACKGROUND, output="mean")


class TestPerpetual:
    """Boosters, whose trees send missing values either way."""

    @pytest.fixture(autouse=True)
    def perpetual(self):
        return pytest.importorskip("perpetual")

    def fitted(self, perpetual, y, rows=X, **settings):
        model = perpetual.PerpetualBooster(budget=0.4, **settings)
        model.fit(rows, y)
        return model

    def test_scores(self, perpetual):
        model = self.fitted(perpetual, SCORE, objective="SquaredLoss")
        explanation = check(model, model.predict)
        assert explanation.unit == "target"
        np.testing.assert_allclose(explanation.prediction, model.predict(ROWS), rtol=roundings(64))
        require_the_usual_errors(model, "predict", perpetual.PerpetualBooster(), {})
        upper = self.fitted(perpetual, SCORE, objective="QuantileLoss", quantile=0.9)
        right = interventional_values(upper.predict, ROWS, BACKGROUND)  # no check_reader: Perpetual cannot unpickle this loss
        np.testing.assert_allclose(explain(upper, ROWS, BACKGROUND).values, right, rtol=0, atol=SUM_OF_TREES)

    def test_log_odds_and_probabilities(self, perpetual):
        model = self.fitted(perpetual, LABEL, objective="LogLoss")

        def log_odds(rows):
            second = model.predict_proba(rows)[:, 1]
            return np.log(second / (1.0 - second))

        assert check(model, log_odds, atol=PROBABILITY).unit == "log-odds of class 1"
        probability = explain(model, ROWS, BACKGROUND, output="probability")
        np.testing.assert_allclose(probability.prediction, model.predict_proba(ROWS)[:, 1], rtol=PROBABILITY)
        three = self.fitted(perpetual, THREE, objective="LogLoss")
        with pytest.raises(UnsupportedStructureError, match=r"LogLoss with 3 outputs.*model\.predict_proba"):
            explain(three, ROWS, BACKGROUND)
        assert explain(three.predict_proba, ROWS, BACKGROUND).certificate().passed

    def test_missing_cells_go_their_own_way(self, perpetual):
        holes = X.mask(rng.random(X.shape) < 0.2)
        model = self.fitted(perpetual, SCORE, holes, objective="SquaredLoss")
        check_reader(model, holes[:6], holes[50:70])
        right = interventional_values(model.predict, holes[:3], holes[50:56])
        np.testing.assert_allclose(explain(model, holes[:3], holes[50:56]).values, right, rtol=0, atol=SUM_OF_TREES)

    def test_trees_that_lack_nodes_are_refused(self, perpetual):
        class Cut(perpetual.PerpetualBooster):
            def get_node_lists(self, **settings):
                return [nodes[: len(nodes) // 2 + 1] for nodes in super().get_node_lists(**settings)]

        model = self.fitted(perpetual, SCORE, objective="SquaredLoss")
        model.__class__ = Cut
        with pytest.raises(ModelFormatError, match="lacks nodes"):
            convert(model)

    def test_categories_are_refused_with_a_way(self, perpetual):
        towns = X.assign(town=pd.Categorical(rng.choice(list("uvwxyz"), size=150)))
        model = self.fitted(perpetual, SCORE + 3 * (towns.town == "u"), towns, objective="SquaredLoss")
        with pytest.raises(
            UnsupportedStructureError, match=r"splits on categories.*explain\(lambda rows: model.predict\(rows\)"
        ):
            explain(model, towns[:3], towns[50:56])
        assert explain(lambda rows: model.predict(rows), towns[:3], towns[50:56]).certificate().passed


class TestYdf:
    """Forests and boosted trees, which take a dictionary of columns."""

    @pytest.fixture(autouse=True)
    def ydf(self):
        ydf = pytest.importorskip("ydf")
        ydf.verbose(0)
        return ydf

    def fitted(self, ydf, learner, y, **settings):
        task = ydf.Task.REGRESSION if np.asarray(y).dtype.kind == "f" else ydf.Task.CLASSIFICATION
        settings = {"num_trees": 6} | settings if learner != "CartLearner" else settings
        return getattr(ydf, learner)(label="y", task=task, **settings).train(X.assign(y=y))

    @pytest.mark.parametrize("learner", ["GradientBoostedTreesLearner", "RandomForestLearner", "CartLearner"])
    def test_targets(self, ydf, learner):
        model = self.fitted(ydf, learner, SCORE)
        explanation = check(model, model.predict, atol=SINGLE_RESPONSE)
        assert explanation.unit == "target"
        assert explanation.feature_names == tuple(X.columns)
        np.testing.assert_allclose(explanation.prediction, model.predict(ROWS), rtol=SINGLE_RESPONSE)
        with pytest.raises(InputError):
            explain(model, ROWS.iloc[:, 1:], BACKGROUND)

    @pytest.mark.parametrize("learner", ["GradientBoostedTreesLearner", "RandomForestLearner"])
    def test_subclasses(self, ydf, learner):
        model = self.fitted(ydf, learner, SCORE)
        right, own = explain(model, ROWS, BACKGROUND).values, type(model)
        model.__class__ = type("Mine", (own,), {})
        np.testing.assert_array_equal(explain(model, ROWS, BACKGROUND).values, right)
        model.__class__ = type("Twice", (own,), {"predict": lambda self, rows: 2.0 * own.predict(self, rows)})
        with pytest.warns(ExplanationWarning, match="has its own predict"):
            np.testing.assert_allclose(explain(model, ROWS, BACKGROUND).values, 2.0 * right, rtol=0, atol=10 * SINGLE_RESPONSE)

    @pytest.mark.parametrize("y", [LABEL, np.array(["u", "v", "w"])[THREE]], ids=["two", "three"])
    def test_boosted_classes(self, ydf, y):
        model = self.fitted(ydf, "GradientBoostedTreesLearner", y)

        def scores(rows):
            share = np.asarray(model.predict(rows), float)
            centred = np.log(share) - np.log(share).mean(axis=1, keepdims=True) if share.ndim == 2 else share
            return centred if share.ndim == 2 else np.log(share / (1.0 - share))

        if y is LABEL:
            explanation = check(model, scores, atol=10 * SINGLE_RESPONSE)  # log-odds of a probability in single precision
            assert explanation.unit == "log-odds of class 1"
        else:
            explanation = explain(model, ROWS, BACKGROUND)
            check_reader(model, ROWS, BACKGROUND)
            centred = explanation.prediction - explanation.prediction.mean(axis=1, keepdims=True)
            np.testing.assert_allclose(centred, scores(ROWS), rtol=0, atol=10 * SINGLE_RESPONSE)
            assert explanation.output_names == ("u", "v", "w")
        response = explain(model, ROWS, BACKGROUND, output="response")
        np.testing.assert_allclose(response.prediction, model.predict(ROWS), rtol=SINGLE_RESPONSE)

    @pytest.mark.parametrize("settings", [{}, {"winner_take_all": False}], ids=["votes", "shares"])
    @pytest.mark.parametrize("y", [LABEL, THREE], ids=["two", "three"])
    def test_forests_of_classes(self, ydf, y, settings):
        model = self.fitted(ydf, "RandomForestLearner", y, **settings)
        assert check(model, model.predict, atol=SINGLE_RESPONSE).unit.startswith("probability")

    def test_missing_cells(self, ydf):
        holes = X.mask(rng.random(X.shape) < 0.2)
        for learner in ("GradientBoostedTreesLearner", "RandomForestLearner"):
            model = getattr(ydf, learner)(label="y", task=ydf.Task.REGRESSION, num_trees=6).train(holes.assign(y=SCORE))
            check_reader(model, holes[:6], holes[50:70])

    def test_other_splits_are_refused_with_a_way(self, ydf):
        oblique = self.fitted(ydf, "RandomForestLearner", SCORE, split_axis="SPARSE_OBLIQUE")
        with pytest.raises(UnsupportedStructureError, match="NumericalSparseOblique"):
            explain(oblique, ROWS, BACKGROUND)
        towns = X.assign(town=rng.choice(list("uvwxyz"), size=150))
        table = towns.assign(y=SCORE + 3 * (towns.town == "u"))
        model = ydf.RandomForestLearner(label="y", task=ydf.Task.REGRESSION, num_trees=4).train(table)
        with pytest.raises(UnsupportedStructureError, match=r"CategoricalIsIn.*explain\(lambda rows: model.predict\(rows\), X"):
            explain(model, towns[:3], towns[50:56])
        assert explain(lambda rows: model.predict(rows), towns[:3], towns[50:56]).certificate().passed

    def test_other_tasks_are_refused(self, ydf):
        model = ydf.IsolationForestLearner(num_trees=4).train(X)
        with pytest.raises(Exception, match=r"explain\((lambda rows: )?model\.predict"):
            explain(model, ROWS, BACKGROUND)


WORDS = np.array(["no", "yes"])[LABEL]


def log_odds(model):
    """Return the log-odds of each class against the first."""

    def of(rows):
        shares = model.predict_proba(rows)
        return np.log(shares[:, 1:] / shares[:, :1])

    return of


class TestImodels:
    """Rules are trees that are zero off one path."""

    @pytest.fixture(autouse=True)
    def imodels(self):
        return pytest.importorskip("imodels")

    @pytest.mark.parametrize(
        ("name", "settings", "covers"),
        [
            ("FIGSRegressor", {"max_rules": 8}, True),
            ("FIGSRegressorCV", {"n_rules_list": [4], "n_trees_list": [3], "depth_list": [2], "cv": 2}, True),
            ("RuleFitRegressor", {"n_estimators": 20, "random_state": 0}, False),
            ("RuleFitRegressor", {"n_estimators": 20, "random_state": 0, "lin_standardise": False}, False),
            ("RuleFitRegressor", {"n_estimators": 20, "random_state": 0, "include_linear": False}, False),
            ("HSTreeRegressor", {}, True),
            ("HSTreeRegressor", {"estimator_": RandomForestRegressor(5, random_state=0)}, True),
            ("HSTreeRegressor", {"estimator_": GradientBoostingRegressor(n_estimators=5, random_state=0)}, True),
            ("GreedyTreeRegressor", {"max_depth": 3}, True),
        ],
    )
    def test_regressors(self, imodels, name, settings, covers):
        model = getattr(imodels, name)(**settings).fit(X, SCORE)
        assert check(model, model.predict, covers=covers).unit == "target"
        require_the_usual_errors(model, "predict", getattr(imodels, name)(), {})

    @pytest.mark.parametrize(
        ("name", "settings", "y"),
        [
            ("FIGSClassifier", {"max_rules": 8}, WORDS),
            ("FIGSClassifier", {"max_rules": 8}, np.array(["u", "v", "w"])[THREE]),
            ("RuleFitClassifier", {"n_estimators": 20, "random_state": 0}, WORDS),
            ("HSTreeClassifier", {"estimator_": GradientBoostingClassifier(n_estimators=5, random_state=0)}, WORDS),
        ],
    )
    def test_scores_of_classes(self, imodels, name, settings, y):
        model = getattr(imodels, name)(**settings).fit(X, y)
        explanation = check(model, log_odds(model), atol=PROBABILITY, covers=not name.startswith("RuleFit"))
        if len(model.classes_) == 2:
            assert explanation.unit == "log-odds of class yes"
            shares = explain(model, ROWS, BACKGROUND, output="probability")
            np.testing.assert_allclose(shares.prediction, model.predict_proba(ROWS)[:, 1], rtol=roundings(64))
            assert shares.certificate().passed
        else:
            assert (explanation.unit, explanation.output_names) == ("log-odds against the first class", ("v", "w"))

    @pytest.mark.parametrize("name", ["GreedyRuleListClassifier", "OneRClassifier", "HSTreeClassifier", "GreedyTreeClassifier"])
    def test_probabilities(self, imodels, name):
        model = getattr(imodels, name)().fit(X, WORDS)
        explanation = check(model, lambda rows: model.predict_proba(rows)[:, 1])
        assert explanation.unit == "probability of class yes"
        both = explain(model, ROWS, BACKGROUND, output="all")
        np.testing.assert_array_equal(both.values[:, :, 1], explanation.values)

    def test_thresholds_are_compared_as_the_model_does(self, imodels):
        whole = X.round()  # cells that equal thresholds
        rules = imodels.GreedyRuleListClassifier().fit(whole, LABEL)
        rules.rules_[0]["cutoff"] = float(whole.iloc[0, rules.rules_[0]["index_col"]])
        own = lambda rows: rules.predict_proba(rows)[:, 1]  # noqa: E731
        values = explain(rules, whole[:3], whole[50:56]).values
        np.testing.assert_allclose(values, interventional_values(own, whole[:3], whole[50:56]), rtol=0, atol=SUM_OF_TREES)

    def test_boosted_rules(self, imodels):
        model = imodels.BoostedRulesClassifier().fit(X, LABEL)
        check(model, model.decision_function)
        with pytest.raises(UnsupportedModelError, match=r"explain\(model.predict, X, background\)"):
            explain(imodels.BoostedRulesRegressor().fit(X, SCORE), ROWS, BACKGROUND)

    def test_missing_cells_and_categories(self, imodels):
        model = imodels.FIGSRegressor(max_rules=8).fit(X, SCORE)
        holes = ROWS.copy()
        holes.iloc[1, 2] = np.nan
        with pytest.raises(InputError, match=r"NaN \(first at row 1, column 'bonus'"):
            explain(model, holes, BACKGROUND)
        with pytest.raises(UnsupportedStructureError, match="background=X_reference"):
            explain(imodels.RuleFitRegressor(n_estimators=20, random_state=0).fit(X, SCORE), ROWS)
        towns = X.assign(town=np.where(X.age > 0, "a", "b"))
        coded = imodels.FIGSRegressor(max_rules=4).fit(towns, SCORE, categorical_features=["town"])
        with pytest.raises(UnsupportedStructureError, match=r"categorical_features=\['town'\].*explain\(model.predict"):
            convert(coded)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosters_of_distributions(library):
    """Both LSS packages keep a booster whose margins are the parameters, less their starts, before the response functions."""
    lss = pytest.importorskip(f"{library}lss.model")
    Gaussian = pytest.importorskip(f"{library}lss.distributions.Gaussian").Gaussian
    settings = {"eta": 0.1, "max_depth": 3, "verbosity" if library == "xgboost" else "verbose": 0}
    if library == "xgboost":
        from xgboost import DMatrix

        model = lss.XGBoostLSS(Gaussian(response_fn="exp"))
        model.train(settings, DMatrix(X, label=SCORE), num_boost_round=8)
        own = model.predict(DMatrix(ROWS), pred_type="parameters")
    else:
        from lightgbm import Dataset

        model = lss.LightGBMLSS(Gaussian(response_fn="exp"))
        model.train(settings, Dataset(X, label=SCORE), num_boost_round=8)
        own = model.predict(ROWS, pred_type="parameters")
    explanation = explain(model.booster, ROWS, BACKGROUND)
    assert (explanation.exact, explanation.certificate().passed) == (True, True)
    parameters = explanation.baseline + explanation.values.sum(axis=1) + model.start_values
    right = np.c_[own["loc"], np.log(own["scale"])]
    np.testing.assert_allclose(parameters, right, rtol=0, atol=SINGLE_RESPONSE)
