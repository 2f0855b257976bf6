"""Steps in front of a model: which column each output is made of, by their structure, their names, or a trial on the background."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.errors import ExplanationWarning, UnsupportedModelError, UnsupportedStructureError
from oracles import interventional_values
from tolerances import SINGLE_PRECISION_SUM

RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(120, 4)), columns=["a", "a_b", "c", "d"])
Y = X["a"] * X["c"] + X["d"]


class Squares(TransformerMixin, BaseEstimator):
    """A step of somebody's own: each column and its square, named after it."""

    spill = 0.0  # of the next column into each

    def fit(self, X, y=None):
        self.feature_names_in_ = np.asarray(X.columns, object)
        return self

    def transform(self, X):
        values = np.asarray(X, float)
        return np.hstack([values, values**2 + self.spill * np.roll(values, 1, axis=1)])

    def get_feature_names_out(self, names=None):
        return np.array([*self.feature_names_in_, *(f"{name}_squared" for name in self.feature_names_in_)], object)


class Spilling(Squares):
    """Names that lie: each square holds something of another column."""

    spill = 0.1


def test_a_step_that_is_not_known_is_read_where_the_background_shows_that_it_mixes_nothing():
    model = make_pipeline(Squares(), Ridge()).fit(X, Y)
    explainer = Explainer(model, X[:20])
    explanation = explainer(X[50:54])
    assert explanation.exact
    own = interventional_values(model.predict, X[50:54], X[:20])
    np.testing.assert_allclose(explanation.values, own, atol=SINGLE_PRECISION_SUM)
    assert explainer.verify(X[50:54]).passed


def test_names_that_lie_are_seen_on_the_background():
    model = make_pipeline(Spilling(), Ridge()).fit(X, Y)
    with pytest.raises(UnsupportedStructureError, match="Spilling is not known to work column by column"):
        explain(model, X[:3], X[:20])


def test_without_rows_to_see_it_on_a_step_is_not_trusted():
    model = make_pipeline(Squares(), SVR()).fit(X, Y)
    with pytest.raises(UnsupportedStructureError, match=r"can only be seen on rows.*Pass background="):
        explain(model, X[:3])


@pytest.mark.parametrize("background", [X[:20], None])
def test_columns_of_one_player_may_be_mixed(background):
    front = ColumnTransformer([("p", PCA(2), ["a", "a_b", "c"])], remainder=StandardScaler())
    model = make_pipeline(front, SVR()).fit(X, Y)
    groups = {"abc": ["a", "a_b", "c"]}
    explanation = explain(model, X[:3], background, groups=groups)
    assert explanation.certificate().passed
    assert explanation.feature_names == ("abc", "d")
    with pytest.raises(UnsupportedStructureError, match=r"PCA is not known.*one player with groups="):
        explain(model, X[:3], background, groups={"ab": ["a", "a_b"]})


def test_one_player_of_all_columns_may_be_mixed_by_whatever_step():
    model = make_pipeline(PCA(2), SVR()).fit(X, Y)
    explanation = explain(model, X[:3], X[:20], groups={"all": list(X.columns)})
    expected = model.predict(X[:3]) - model.predict(X[:20]).mean()
    np.testing.assert_allclose(explanation.values[:, 0], expected, atol=SINGLE_PRECISION_SUM)


def test_a_method_that_no_prediction_goes_through_may_be_changed():
    class Balanced(RandomForestClassifier):
        def _validate_estimator(self):
            return super()._validate_estimator()

        def _set_oob_score_and_attributes(self, *arguments, **settings):
            raise NotImplementedError

    model = Balanced(5, random_state=0).fit(X.to_numpy(), Y > 0)
    assert explain(model, X.to_numpy()[:3]).exact


def test_a_method_that_predictions_go_through_may_not():
    class Clipping(RandomForestClassifier):
        def _validate_X_predict(self, rows):
            return super()._validate_X_predict(np.clip(rows, -1, 1))

    model = Clipping(5, random_state=0).fit(X.to_numpy(), Y > 0)
    with pytest.warns(ExplanationWarning, match="has its own _validate_X_predict"):
        assert not np.any(np.isnan(explain(model, X.to_numpy()[:3], X.to_numpy()[:9]).values))


def test_messages_name_three_methods_at_most():
    class Changed(SVR):
        def predict(self, rows):
            return super().predict(rows)

        def _validate_for_predict(self, rows):
            return super()._validate_for_predict(rows)

        def _dense_predict(self, rows):
            return super()._dense_predict(rows)

        def _sparse_predict(self, rows):
            return super()._sparse_predict(rows)

        def _compute_kernel(self, rows):
            return super()._compute_kernel(rows)

    with pytest.raises(UnsupportedModelError, match=r"has its own \w+, \w+, \w+ and 2 more"):
        explain(Changed().fit(X, Y), X[:3])


def test_a_pipeline_with_a_sampler_predicts_without_it():
    imblearn = pytest.importorskip("imblearn")
    from imblearn.over_sampling import RandomOverSampler

    model = imblearn.pipeline.make_pipeline(StandardScaler(), RandomOverSampler(random_state=0), RandomForestClassifier(5))
    model.fit(X, Y > 0.5)
    explainer = Explainer(model, X[:20])
    explanation = explainer(X[:4])
    own = interventional_values(lambda rows: model.predict_proba(rows)[:, 1], X[:4], X[:20])
    np.testing.assert_allclose(explanation.values, own, atol=SINGLE_PRECISION_SUM)
    assert explain(model, X[:4]).value_function == "path_dependent"


@pytest.mark.parametrize("name", ["TargetEncoder", "OneHotEncoder", "BinaryEncoder", "CountEncoder"])
@pytest.mark.parametrize("with_background", [True, False])
def test_category_encoders_are_read_column_by_column(name, with_background):
    encoders, xgboost = pytest.importorskip("category_encoders"), pytest.importorskip("xgboost")
    frame = X.assign(town=RNG.choice(list("uvw"), len(X)), town_b=RNG.choice(list("xyz"), len(X)))
    target = Y + (frame.town == "u")
    model = make_pipeline(getattr(encoders, name)(cols=["town", "town_b"]), xgboost.XGBRegressor(n_estimators=8)).fit(
        frame, target
    )
    background = frame[40:50] if with_background else None
    explanation = explain(model, frame[:4], background)
    if with_background:
        own = interventional_values(model.predict, frame[:4], background)
        np.testing.assert_allclose(explanation.values, own, atol=SINGLE_PRECISION_SUM)
    total = explanation.baseline + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(frame[:4]), atol=SINGLE_PRECISION_SUM)


def test_hashing_encoders_mix_columns():
    encoders = pytest.importorskip("category_encoders")
    frame = pd.DataFrame({"town": RNG.choice(list("uvw"), 60), "way": RNG.choice(list("xyz"), 60)})
    model = make_pipeline(encoders.HashingEncoder(n_components=3), Ridge()).fit(frame, RNG.normal(size=60))
    with pytest.raises(UnsupportedStructureError, match="HashingEncoder is not known"):
        explain(model, frame[:3], frame[:9])
