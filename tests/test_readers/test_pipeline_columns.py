"""Steps in front of a model: which column each output is made of, by their structure, their names, or a trial on the background."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer, StandardScaler
from sklearn.svm import SVR

from exactshap import explain
from exactshap.errors import InputError, UnsupportedModelError, UnsupportedStructureError
from reader_checks import check_answers
from tolerances import SINGLE_PRECISION_SUM, conditioned

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


NEVER_CHANGES = FunctionTransformer(lambda rows: np.c_[rows, np.asarray(rows)[:, 0] > 9.0])


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Spilling(), "Spilling is not known to work column by column"),
        (NEVER_CHANGES, r"input column of output 4 of FunctionTransformer.* cannot be determined"),
    ],
)
def test_steps_that_mix_columns_or_hide_them_are_refused(step, words):
    with pytest.raises(UnsupportedStructureError, match=words):
        explain(make_pipeline(step, Ridge()).fit(X, Y), X[:3], X[:20])


def squares(X):
    return np.hstack([np.asarray(X), np.asarray(X) ** 2])


def sizes(X):
    return pd.concat([X, X.abs().add_suffix("_size")], axis=1)


def kept(X):
    return X[["c", "a"]]


def backwards(X):
    return np.asarray(X)[:, ::-1]


def differences(X):
    """Return columns and what is left of one less itself, whose last bits depend on how many rows there are."""
    values = np.asarray(X, float)
    left = np.where(np.arange(len(values)) == len(values) - 1, 1e-16, 0.0) + np.where(values[:, 0] > 0, values[:, 0], 0.0)
    return np.column_stack([values, left])


TAILS = [Ridge(), SVR(), RandomForestRegressor(3, random_state=0)]
PAIRS = [(squares, 0), (squares, 1), (sizes, 1), (sizes, 2), (kept, 2), (kept, 0), (backwards, 0), (backwards, 1)]
PAIRS = [(FunctionTransformer(function), tail) for function, tail in [*PAIRS, (differences, 0)]] + [(Squares(), 0)]


@pytest.mark.parametrize(("step", "tail"), PAIRS)
def test_steps_that_are_not_known_are_read_where_rows_show_that_they_mix_nothing(step, tail):
    model = make_pipeline(step, TAILS[tail]).fit(X, Y)
    check_answers(model, model.predict, X[50:54], X.sort_values("a")[::6], SINGLE_PRECISION_SUM)


@pytest.mark.parametrize("n_rows", [1, 30])
def test_mixing_that_only_the_explained_rows_show_is_refused(n_rows):
    mixing = FunctionTransformer(lambda rows: np.c_[np.where(rows[:, 1] > 2.0, 0.0, rows[:, 0]), rows[:, 1:]])
    rows, background = X.to_numpy()[:n_rows].copy(), np.minimum(X.to_numpy()[60:], 1.9)
    model = make_pipeline(mixing, Ridge(1e-9)).fit(X.to_numpy(), Y)
    rows[:, 1] = np.minimum(rows[:, 1], 1.9)
    assert explain(model, rows, background).exact
    rows[-1, 1] = 2.5
    with pytest.raises(UnsupportedStructureError, match=f"Row {n_rows - 1} mixed with background row .* shows it"):
        explain(model, rows, background)
    assert explain(model, rows, background, groups={"both": [0, 1]}).exact
    # one row of the background shows it, with one row that is explained
    both = FunctionTransformer(lambda rows: np.c_[np.where((rows[:, 1:3] > 2.0).all(axis=1), 0.0, rows[:, 0]), rows[:, 1:]])
    model, row = make_pipeline(both, Ridge(1e-9)).fit(X.to_numpy(), Y), np.full((1, 4), 1.0)
    background[7, 1], row[0, 2] = 2.5, 2.5
    with pytest.raises(UnsupportedStructureError, match="Row 0 mixed with background row 7 shows it"):
        explain(model, row, background)


def test_mixing_that_only_late_rows_of_the_background_show_is_refused():
    """Gaps are filled by another column: the first 256 rows have none."""
    rows = np.random.default_rng(0).normal(size=(400, 2))
    rows[:, 1] = np.arange(400) % 3
    filled = FunctionTransformer(lambda rows: np.c_[np.where(np.isnan(rows[:, 0]), 5.0 * rows[:, 1], rows[:, 0]), rows[:, 1]])
    model, gaps = make_pipeline(filled, Ridge()).fit(rows, rows.sum(axis=1)), rows.copy()
    assert explain(model, rows[:3], rows).exact
    gaps[390:, 0] = np.nan
    with pytest.raises(UnsupportedStructureError, match=r"Background row \d+ mixed with background row \d+ shows it"):
        explain(model, rows[:3], gaps)
    assert explain(model, rows[:3], gaps, groups={"both": [0, 1]}).exact


OTHER_ROWS = {
    "centred": lambda rows: rows - rows.mean(axis=0),
    "ranks": lambda rows: np.argsort(np.argsort(rows, axis=0), axis=0),
    "sums so far": lambda rows: np.cumsum(rows, axis=0),
    "row before": lambda rows: np.r_[rows[:1], rows[:-1]],
    "backwards": lambda rows: rows[::-1],
    "rows dropped": lambda rows: rows[rows[:, 0] < -0.3] if len(rows) < 100 else rows,
}


@pytest.mark.parametrize("n_background", [1, 20])
@pytest.mark.parametrize("name", OTHER_ROWS)
def test_steps_that_use_other_rows_are_refused(name, n_background):
    rows = X.to_numpy()[np.argsort(X.to_numpy()[:, 0])]  # the first is not dropped
    model = make_pipeline(FunctionTransformer(OTHER_ROWS[name]), Ridge()).fit(rows, Y)
    with pytest.raises(UnsupportedStructureError, match="differently when other rows come with it"):
        explain(model, rows[40:62], rows[:100:5][:n_background])


OF_ONE_COLUMN = {
    "centred": lambda column: column - column.mean(),
    "gaps filled by the mean": lambda column: column.fillna(column.mean()),
    "values numbered as they come": lambda column: column.apply(lambda cells: pd.Categorical(cells).codes),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", OF_ONE_COLUMN)
def test_steps_of_one_column_that_use_other_rows_are_refused(name, nested):
    """They mix no columns, so that nothing else is tried."""
    rows = X.assign(c=X["c"].round().where(np.arange(len(X)) % 7 > 0) if "gaps" in name else X["c"].round())
    step = FunctionTransformer(OF_ONE_COLUMN[name])
    front = ColumnTransformer(
        [("c", make_pipeline(step, StandardScaler()) if nested else step, ["c"])], remainder="passthrough"
    )
    model = make_pipeline(front, Ridge()).fit(rows, Y)
    with pytest.raises(UnsupportedStructureError, match="ColumnTransformer transforms a row differently when other rows come"):
        explain(model, rows[40:62], rows[:30])
    if "gaps" in name:  # the background has none
        with pytest.raises(UnsupportedStructureError, match="the pipeline transforms a row differently when other rows come"):
            explain(model, rows[40:62], rows[1:7])


MIXED = X.assign(town=RNG.choice(["u", "v", "w"], 120), day=pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(120), "D"))


def assert_read(model):
    """Hold a pipeline on frames of numbers, texts and dates against its own predictions."""
    model.fit(MIXED, Y)
    check_answers(model, model.predict, MIXED[50:53], MIXED[:20], SINGLE_PRECISION_SUM, contract=False)
    with pytest.raises(InputError):
        explain(model, MIXED[50:53].drop(columns="c"), MIXED[:20])


@pytest.mark.parametrize("kind", ["defaults", "boosting", "squashed", "cleaned"])
def test_skrub(kind):
    skrub = pytest.importorskip("skrub")
    assert_read(
        {
            "defaults": lambda: make_pipeline(skrub.TableVectorizer(), Ridge()),
            "boosting": lambda: skrub.tabular_pipeline(HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)),
            "squashed": lambda: skrub.tabular_pipeline(Ridge()),
            "cleaned": lambda: make_pipeline(skrub.Cleaner(), skrub.TableVectorizer(), Ridge()),
        }[kind]()
    )


@pytest.mark.parametrize("kind", ["one-hot", "ordinal", "means", "bins", "dates"])
def test_feature_engine(kind):
    pytest.importorskip("feature_engine")
    from feature_engine.datetime import DatetimeFeatures
    from feature_engine.discretisation import EqualFrequencyDiscretiser
    from feature_engine.encoding import MeanEncoder, OneHotEncoder, OrdinalEncoder
    from feature_engine.selection import DropFeatures

    steps = {
        "one-hot": [OneHotEncoder()],
        "ordinal": [OrdinalEncoder()],
        "means": [MeanEncoder()],
        "bins": [OneHotEncoder(), EqualFrequencyDiscretiser(variables=["a", "c"])],
        "dates": [OneHotEncoder(), DatetimeFeatures(features_to_extract=["month", "weekend"])],
    }[kind]
    dates = [] if kind == "dates" else [DropFeatures(["day"])]
    assert_read(make_pipeline(*dates, *steps, Ridge()))


@pytest.mark.parametrize("df_out", [False, True])
def test_sklearn_pandas(df_out):
    mapper = pytest.importorskip("sklearn_pandas", exc_type=ImportError).DataFrameMapper
    columns = [(["a", "c"], StandardScaler()), (["d"], None), ("town", LabelBinarizer()), (["a_b"], StandardScaler())]
    assert_read(make_pipeline(mapper(columns, df_out=df_out), Ridge()))


def test_without_rows_to_see_it_on_a_step_is_not_trusted():
    model = make_pipeline(Squares(), SVR()).fit(X, Y)
    with pytest.raises(UnsupportedStructureError, match=r"needs rows to show that it works column by column.*Pass background="):
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


def test_a_method_that_no_prediction_goes_through_may_be_changed():
    class Balanced(RandomForestClassifier):
        def _validate_estimator(self):
            return super()._validate_estimator()

        def _set_oob_score_and_attributes(self, *arguments, **settings):
            raise NotImplementedError

    model = Balanced(5, random_state=0).fit(X.to_numpy(), Y > 0)
    assert explain(model, X.to_numpy()[:3]).exact


def test_messages_name_three_methods_at_most():
    names = ("predict", "_validate_for_predict", "_dense_predict", "_sparse_predict", "_compute_kernel")
    changed = type("Changed", (SVR,), {name: lambda self, rows, name=name: getattr(SVR, name)(self, rows) for name in names})
    with pytest.raises(UnsupportedModelError, match=r"has its own \w+, \w+, \w+ and 2 more"):
        explain(changed().fit(X, Y), X[:3])


def test_a_pipeline_with_a_sampler_predicts_without_it():
    imblearn = pytest.importorskip("imblearn")
    from imblearn.over_sampling import RandomOverSampler

    model = imblearn.pipeline.make_pipeline(StandardScaler(), RandomOverSampler(random_state=0), RandomForestClassifier(5))
    model.fit(X, Y > 0.5)
    check_answers(model, lambda rows: model.predict_proba(rows)[:, 1], X[:4], X[:20], SINGLE_PRECISION_SUM)
    assert explain(model, X[:4]).value_function == "path_dependent"


@pytest.mark.parametrize("name", ["TargetEncoder", "OneHotEncoder", "BinaryEncoder", "CountEncoder"])
def test_category_encoders_are_read_column_by_column(name):
    encoders, xgboost = pytest.importorskip("category_encoders"), pytest.importorskip("xgboost")
    frame = X[["a", "c"]].assign(town=RNG.choice(list("uvw"), len(X)), town_b=RNG.choice(list("xyz"), len(X)))
    encoder = getattr(encoders, name)(cols=["town", "town_b"])
    model = make_pipeline(encoder, xgboost.XGBRegressor(n_estimators=8)).fit(frame, Y + (frame.town == "u"))
    check_answers(model, model.predict, frame[:4], frame[40:46], SINGLE_PRECISION_SUM, contract=False)
    by_covers = explain(model, frame[:4])
    total = by_covers.baseline + by_covers.values.sum(axis=1)
    np.testing.assert_allclose(total, model.predict(frame[:4]), atol=SINGLE_PRECISION_SUM)


def test_all_that_is_made_of_one_column_needs_no_background():
    """Also of a function in a union, which does not say how many columns it makes."""
    both = make_union(FunctionTransformer(lambda cells: cells**2), StandardScaler())
    model = make_pipeline(ColumnTransformer([("both", both, ["c"])], remainder="passthrough"), SVR()).fit(X, Y)
    found = explain(model, X[:3])
    assert (found.value_function, found.feature_names) == ("functional", tuple(X.columns))
    np.testing.assert_allclose(found.baseline + found.values.sum(axis=1), model.predict(X[:3]), atol=conditioned(100))
