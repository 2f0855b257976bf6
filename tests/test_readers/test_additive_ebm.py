import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from additive_oracle import largest, masked_games, values_of
from exactshap.errors import ExactnessError, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.explainer import Explainer
from exactshap.frames import as_table
from exactshap.testing import check_reader
from tolerances import assert_close, roundings

glassbox = pytest.importorskip("interpret.glassbox")
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")

FAST = {"outer_bags": 2, "max_rounds": 40, "n_jobs": 1, "random_state": 0}
ORDERS = [(0, 1), (1, 3), (0, 2, 3), (0, 1, 2, 3)]


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, n).round(1),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "rooms": rng.integers(1, 5, n),
            "size": rng.normal(size=n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "city"] = None
    return frame


F = table(300, 0)
Y = (F["size"] * (F["city"] == "Oslo") + F["rooms"] * F["age"].fillna(30.0) / 20.0 + F["size"] * F["rooms"]).to_numpy()
Z = table(12, 1)
WEIGHTS = np.linspace(1.0, 3.0, 12)
X = table(4, 2)
X.loc[1, "city"] = "Paris"  # a category that the model never saw
X.loc[2, "age"] = -1000.0


@pytest.fixture(scope="module")
def regressor():
    return fitted(glassbox.ExplainableBoostingRegressor, F, Y, interactions=ORDERS)


def fitted(cls, X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**(FAST | settings)).fit(X, y)


def models():
    regressor, classifier = glassbox.ExplainableBoostingRegressor, glassbox.ExplainableBoostingClassifier
    numbers = F[["age", "rooms", "size"]].to_numpy(float)
    cases = {
        "interactions of orders 2, 3, 4": (regressor, F, Y, {"interactions": ORDERS}),
        "no interactions": (regressor, F, Y, {"interactions": 0}),
        "log link": (regressor, F, np.exp(Y / 5.0), {"interactions": 2, "objective": "poisson_deviance"}),
        "two classes": (classifier, F, np.where(np.median(Y) < Y, "yes", "no"), {"interactions": 3}),
        "three classes": (classifier, F, np.digitize(Y, [2.0, 6.0]), {"interactions": 3}),
        "array": (regressor, numbers, Y, {"interactions": 3}),
        "one column": (regressor, F[["age"]], Y, {"interactions": 0}),
    }
    return [pytest.param(*case, id=name) for name, case in cases.items()]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, "pandas", "polars"])
def test_cells_are_found_as_the_model_finds_them(kind):
    numbers = F[["age", "rooms", "size"]].fillna({"age": 1.0} if kind is np.int64 else {})
    model = fitted(glassbox.ExplainableBoostingRegressor, numbers, Y, interactions=[(0, 1), (0, 2), (0, 1, 2)])
    encode = Explainer(model).reader.form.encode
    assert encode.bins is not None
    rows = table(400, 5)[["age", "rooms", "size"]]
    rows.loc[3:5, "size"] = [np.inf, -np.inf, -0.0]
    frames = {"pandas": rows, "polars": pl.from_pandas(rows)}
    given = (
        frames[kind]
        if kind in frames
        else np.nan_to_num(rows.to_numpy()).clip(-9, 9).astype(kind)
        if kind is np.int64
        else rows.to_numpy(kind)
    )
    np.testing.assert_array_equal(encode(as_table(given), "X"), encode.twin.eval_terms(given))


def test_a_model_that_cuts_otherwise_is_asked_itself(monkeypatch):
    numbers = F[["age", "rooms", "size"]].to_numpy(float)
    model = fitted(glassbox.ExplainableBoostingRegressor, numbers, Y, interactions=2)
    cells = type(model).eval_terms
    monkeypatch.setattr(
        type(model), "eval_terms", lambda self, X: cells(self, X + 1e-9)
    )  # the next bin begins a little earlier
    encode = Explainer(model).reader.form.encode
    assert encode.bins is None
    np.testing.assert_array_equal(encode(as_table(numbers), "X"), encode.twin.eval_terms(numbers))


@pytest.mark.parametrize(
    ("columns", "changes"), [(["age", "city"], {}), (["age", "rooms"], {"feature_types": ["continuous", "nominal"]})]
)
def test_columns_that_are_no_numbers_are_left_to_the_model(columns, changes):
    model = fitted(glassbox.ExplainableBoostingRegressor, F[columns], Y, interactions=0, **changes)
    assert Explainer(model).reader.form.encode.bins is None


@pytest.mark.parametrize(("cls", "data", "y", "settings"), models())
@pytest.mark.parametrize("groups", [None, {"both": [0, 2]}], ids=["columns", "groups"])
def test_contract(cls, data, y, settings, groups):
    model = fitted(cls, data, y, **settings)
    if groups and data.shape[1] < 3:
        pytest.skip("needs three columns")
    rows, background = (X, Z) if data.shape[1] == 4 else (X[["age"]], Z[["age"]])
    if isinstance(data, np.ndarray):
        rows, background = (t[["age", "rooms", "size"]].to_numpy(float) for t in (X, Z))
    check_reader(model, rows, background, groups=groups, background_weights=WEIGHTS)


def test_two_classes_are_explained_in_log_odds():
    model = fitted(glassbox.ExplainableBoostingClassifier, F, np.where(Y > 4.0, "yes", "no"), interactions=2)
    games = masked_games(model.decision_function, X, Z)
    explanation = Explainer(model, Z)(X)
    assert_close(explanation.values, values_of(games, 4, "shapley", 1), 8 * largest(games), 25 * 6, 4)
    np.testing.assert_array_equal(explanation.prediction, model.decision_function(X))
    assert explanation.unit == "log-odds of class yes"
    assert explanation.values.ndim == 2


def test_classes_are_outputs_by_name_and_number():
    model = fitted(
        glassbox.ExplainableBoostingClassifier, F, np.array(["a", "b", "c"])[np.digitize(Y, [2.0, 6.0])], interactions=2
    )
    everything = Explainer(model, Z)(X)
    assert everything.values.shape == (4, 4, 3)
    assert everything.output_names == ("a", "b", "c")
    for k, name in enumerate("abc"):
        for output in (k, name):
            single = Explainer(model, Z, output=output)(X)
            np.testing.assert_array_equal(single.values, everything.values[:, :, k])
    assert Explainer(model, Z, output="probability")(X).unit == "probability"


def test_regression_links_are_explained_in_link_space():
    model = fitted(glassbox.ExplainableBoostingRegressor, F, np.exp(Y / 5.0), interactions=2, objective="poisson_deviance")
    explanation = Explainer(model, Z)(X)
    assert explanation.unit == "log of the target"
    np.testing.assert_allclose(explanation.prediction, np.log(model.predict(X)), rtol=roundings(50))


def test_without_a_background_the_training_rows_are_one(regressor):
    implicit, explicit = Explainer(regressor)(X), Explainer(regressor, F)(X)
    assert implicit.value_function == "interventional"
    assert_close(implicit.values, explicit.values, 8 * np.abs(explicit.prediction).max(), 300, 4)
    assert_close(implicit.baseline, explicit.baseline, 8 * np.abs(explicit.prediction).max(), 300, 4)
    assert implicit.certificate().passed
    grouped = Explainer(regressor, groups={"g": ["age", "size"]})(X).values
    assert_close(grouped, Explainer(regressor, F, groups={"g": ["age", "size"]})(X).values, 8 * np.abs(Y).max(), 300, 4)


def test_training_weights_are_part_of_the_training_background():
    weights = np.linspace(0.5, 2.0, len(F))
    model = glassbox.ExplainableBoostingRegressor(**FAST, interactions=2).fit(F, Y, sample_weight=weights)
    explicit = Explainer(model, F, background_weights=weights)(X)
    assert_close(Explainer(model)(X).values, explicit.values, 8 * np.abs(Y).max(), 300, 4)


def test_merged_models_are_exact_and_need_a_background():
    one = fitted(glassbox.ExplainableBoostingRegressor, F, Y, interactions=[(0, 1)])
    two = fitted(glassbox.ExplainableBoostingRegressor, F.iloc[:200], Y[:200] + 1.0, interactions=[(0, 1), (2, 3)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        merged = glassbox.merge_ebms([one, two])
    check_reader(merged, X, Z)
    with pytest.raises(InputError, match=r"needs reference rows\. Got background=None, and this model does not hold its exact"):
        Explainer(merged)


def test_private_models_need_a_background():
    model = fitted_private()
    check_reader(model, X[["rooms", "size"]], Z[["rooms", "size"]])
    with pytest.raises(InputError, match="only a directly fitted, non-private EBM does"):
        Explainer(model)


def fitted_private():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from interpret.privacy import DPExplainableBoostingRegressor

        return DPExplainableBoostingRegressor(n_jobs=1, outer_bags=1, max_rounds=20, random_state=0).fit(
            F[["rooms", "size"]], Y
        )


def test_edited_models_are_read_as_they_are(regressor):
    edited = regressor.copy()
    edited.remove_terms([0, 4])
    check_reader(edited, X, Z)
    edited.scale(1, 0.0)
    edited.sweep()
    check_reader(edited, X, Z)
    empty = regressor.copy()
    empty.remove_terms(list(range(len(empty.term_features_))))
    explanation = Explainer(empty, Z)(X)
    assert not explanation.values.any()
    np.testing.assert_array_equal(explanation.baseline, empty.predict(X))


def test_a_background_of_one_row_and_constant_columns_give_exactly_nothing(regressor):
    assert not Explainer(regressor, X.iloc[[3]])(X.iloc[[3]]).values.any()
    constant = Z.assign(city=X["city"][0])
    for index in ("shapley", "banzhaf", "k-sii"):
        values = Explainer(regressor, constant)(X.iloc[[0]], index).values
        assert values[0, 1] == 0.0
        assert values[0, [0, 2, 3]].all()


def test_the_cost_does_not_depend_on_the_background(regressor):
    large = pd.concat([Z] * 40, ignore_index=True)
    few, many = Explainer(regressor, Z), Explainer(regressor, large)
    np.testing.assert_allclose(many(X).values, few(X).values, rtol=0, atol=roundings(500))
    sizes = [sum(term.folded.size for term in explainer.reader._bound[0].terms) for explainer in (few, many)]
    assert sizes[0] == sizes[1]


def test_reordered_and_renamed_columns_are_refused(regressor):
    with pytest.raises(UnknownNameError, match="same order as they were in fit"):
        Explainer(regressor, Z[["city", "age", "rooms", "size"]])
    with pytest.raises(UnknownNameError, match=r"Missing: \['size'\]"):
        Explainer(regressor, Z)(X.rename(columns={"size": "width"}))
    with pytest.raises(InputError, match="X has 3 features"):
        Explainer(regressor, Z)(X.to_numpy(object)[:, :3])


def test_single_class_models_are_refused():
    one = fitted(glassbox.ExplainableBoostingClassifier, F, np.zeros(len(F), int))
    with pytest.raises(UnsupportedStructureError, match=r"scores that are not finite\. It was fitted on a single class"):
        Explainer(one, Z)


def add_to_a_score(model):
    model.term_scores_[0][...] += 0.01  # in place


def move_the_intercept(model):
    model.intercept_ = model.intercept_ + 1.0


def predict_more(model):
    model.predict = lambda rows: type(model).predict(model, rows) + 1.0


@pytest.mark.parametrize("change", [add_to_a_score, move_the_intercept, predict_more])
def test_a_model_that_changed_since_it_was_read_is_refused(regressor, change):
    model = copy.deepcopy(regressor)
    explainer = Explainer(model)
    explainer(X)
    change(model)
    with pytest.raises(ExactnessError, match="has changed since it was read"):
        explainer(X)


def test_an_edited_prediction_is_noticed(regressor, monkeypatch):
    """The residual is against the model's own predict: a model that predicts something else is refused when it is read."""
    own = glassbox.ExplainableBoostingRegressor.predict
    monkeypatch.setattr(glassbox.ExplainableBoostingRegressor, "predict", lambda self, rows: 2.0 * own(self, rows))
    with pytest.raises(UnsupportedStructureError, match="ExplainableBoostingRegressor does not predict the sum of its terms"):
        Explainer(regressor, Z)


def test_the_model_is_not_changed(regressor):
    before = pickle.dumps(regressor)
    Explainer(regressor)(X)
    assert pickle.dumps(regressor) == before


@pytest.mark.peer
def test_models_without_interactions_agree_with_their_centred_scores():
    """Without interactions the Shapley value is the score minus its mean over the background."""
    model = fitted(glassbox.ExplainableBoostingRegressor, F, Y, interactions=0)
    expected = model.eval_terms(X) - model.eval_terms(Z).mean(axis=0)
    np.testing.assert_allclose(Explainer(model, Z)(X).values, expected, rtol=0, atol=roundings(500))
