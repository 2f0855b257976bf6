"""CatBoost's categorical columns: one-hot splits, target statistics of one column and of several, unknown categories, refusals."""

import json
import pickle

import numpy as np
import pytest

from exactshap import Explainer, decompose_r2, explain
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.testing import check_reader
from exactshap.trees import convert, load
from exactshap.trees.ensemble import encode
from tolerances import assert_close, roundings
from tree_models import brute_shapley

catboost = pytest.importorskip("catboost")
pd = pytest.importorskip("pandas")
SMALL = {"iterations": 12, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
SMALL |= {"max_ctr_complexity": 1, "cat_features": ["city", "k", "side"]}
COMBINED = {"max_ctr_complexity": 3, "iterations": 40, "depth": 6}
CITIES = ["Rome", "Oslo", "Zürich", "nan", "", "a city whose name is longer than sixty-four bytes, to reach every hash formula"]


def mixed(seed=0, n=400):
    """Text, whole numbers, two-valued text, numbers with holes; targets that use combinations."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n), 2)),
            "city": rng.choice(CITIES, n),
            "k": rng.integers(-3, 6, n),
            "side": rng.choice(["left", "right"], n),
            "b": np.round(rng.normal(size=n), 2),
        }
    )
    y = np.nan_to_num(frame.a) + 2.0 * (frame.city == "Rome") * (frame.k == 3) + 3.0 * ((frame.k + (frame.city == "Oslo")) % 2)
    return frame, (y + (frame.side == "left") * frame.b + 0.1 * rng.normal(size=n)).to_numpy()


FRAME, Y = mixed()
UNKNOWN = FRAME.assign(
    city=np.where(np.arange(len(FRAME)) % 3 == 0, "Atlantis", FRAME.city), k=FRAME.k.where(FRAME.b > 0, 10**12)
)
TERNARY = np.digitize(Y, [0.5, 2.5])


def fitted(frame=FRAME, y=Y, kind=None, **settings):
    kind = catboost.CatBoostRegressor if kind is None else kind
    return kind(**{**SMALL, **settings}).fit(frame, y)


MODELS = {
    "default": fitted(),
    "one-hot": fitted(one_hot_max_size=20),
    "depth-wise": fitted(grow_policy="Depthwise"),
    "leaf-wise, one-hot": fitted(grow_policy="Lossguide", one_hot_max_size=20),
    "means and counts": fitted(simple_ctr=["BinarizedTargetMeanValue", "Counter"]),
    "many target borders": fitted(simple_ctr=["Borders:TargetBorderCount=4", "Buckets:TargetBorderCount=3"]),
    "ternary": fitted(y=TERNARY, kind=catboost.CatBoostClassifier, simple_ctr=["Buckets", "Counter"]),
    "binary": fitted(y=TERNARY > 0, kind=catboost.CatBoostClassifier),
    "combined": fitted(**COMBINED),
    "combined, missing are largest": fitted(nan_mode="Max", **COMBINED),
    "combined, ternary": fitted(y=TERNARY, kind=catboost.CatBoostClassifier, **COMBINED),
}
COMBINATIONS = [name for name in MODELS if name.startswith("combined")]


def raw(model, rows):
    return model.predict(rows, prediction_type="RawFormulaVal")


def closed_groups(model):
    """The groups that the refusal names."""
    with pytest.raises(UnsupportedStructureError) as caught:
        Explainer(model)
    text = str(caught.value)
    return json.loads(text[text.index("{") : text.index("}") + 1].replace("'", '"'))


@pytest.mark.parametrize("rows", [FRAME, UNKNOWN], ids=["known", "unknown"])
@pytest.mark.parametrize("name", MODELS)
def test_margins(name, rows):
    margin = raw(MODELS[name], rows)
    assert_close(convert(MODELS[name]).predict(rows), margin, np.abs(margin).max(), 4)


def test_the_models_use_what_they_are_here_for():
    def kinds(name):
        hashed = convert(MODELS[name]).hashed
        return {len(s.sources) for s in hashed.statistics}, any(s.above for s in hashed.statistics)

    assert kinds("default") == ({1}, False)
    assert kinds("one-hot") == (set(), False)
    assert (convert(MODELS["one-hot"]).trees.category_start >= 0).any()
    assert kinds("combined") == ({1, 2}, True)
    assert (convert(MODELS["default"]).trees.category_start >= 0).any()


@pytest.mark.parametrize("name", MODELS)
def test_games_and_values(name):
    settings = {"groups": closed_groups(MODELS[name])} if name in COMBINATIONS else {}
    check_reader(MODELS[name], UNKNOWN[:3], FRAME[20:24], **settings)
    check_reader(MODELS[name], FRAME[:3], n_masks=2, indices=("shapley",), **settings)


@pytest.mark.parametrize(("name", "groups"), [("default", None), ("one-hot", None), ("combined", "closed")])
def test_path_dependent_values_by_brute_force(name, groups):
    """Every coalition of players by the recursive definition on the trees' columns."""
    ensemble = convert(MODELS[name])
    groups = closed_groups(MODELS[name]) if groups else None
    explainer = Explainer(MODELS[name], groups=groups)
    players = ensemble.tree_players(explainer.reader.traits.players)
    d = len(players)

    rows = encode(ensemble, as_table(UNKNOWN[:2]))
    values = explainer(UNKNOWN[:2]).values
    for i, row in enumerate(rows):
        assert_close(values[i], brute_shapley(ensemble.trees, row, d, players=players), 10.0, ensemble.trees.n_trees, d)


def test_groups_that_do_not_hold_a_combination_are_refused():
    model = MODELS["combined"]
    groups = closed_groups(model)
    with pytest.raises(
        UnsupportedStructureError, match=r"combine columns. The first combines .* is not a product. Pass groups=\{'"
    ):
        explain(model, FRAME[:3], groups={"numbers": ["a", "b"]})
    with pytest.raises(UnsupportedStructureError, match="refit with max_ctr_complexity=1"):
        decompose_r2(model, FRAME, Y)
    assert decompose_r2(model, FRAME, Y, groups=groups).feature_names == (
        "+".join(next(iter(groups.values()))),
        *(name for name in FRAME.columns if name not in next(iter(groups.values()))),
    )


def frames():
    pl = pytest.importorskip("polars")
    own = pl.from_pandas(FRAME)
    k = FRAME.k.astype(str)
    return {
        "category": FRAME.assign(city=FRAME.city.astype("category"), k=FRAME.k.astype("category")),
        "category in another order": FRAME.assign(city=pd.Categorical(FRAME.city, categories=sorted(CITIES)[::-1])),
        "nullable": FRAME.assign(city=FRAME.city.astype("string"), k=FRAME.k.astype("Int64")),
        "text of numbers": FRAME.assign(k=k),
        "polars": own,
        "polars Categorical": own.with_columns(pl.col("city").cast(pl.Categorical)),
        "polars Enum": own.with_columns(pl.col("city").cast(pl.Enum(sorted(CITIES)))),
        "arrow": own.to_arrow(),
    }


@pytest.mark.parametrize("name", frames())
def test_frames_of_every_kind(name):
    frame = frames()[name]
    np.testing.assert_array_equal(convert(MODELS["default"]).predict(frame), convert(MODELS["default"]).predict(FRAME))
    explanation = explain(MODELS["default"], frame)
    assert explanation.certificate().passed
    np.testing.assert_array_equal(explanation.values, explain(MODELS["default"], FRAME).values)
    assert_close(decompose_r2(MODELS["default"], frame, Y).values, decompose_r2(MODELS["default"], FRAME, Y).values, 1.0, 1)


def test_arrays_and_truth_values():
    cells = FRAME.to_numpy(object)
    positions = [FRAME.columns.get_loc(name) for name in SMALL["cat_features"]]
    model = fitted(cells, Y, cat_features=positions)
    check_reader(model, cells[:4], cells[20:26])
    frame = FRAME.assign(side=FRAME.side == "left")
    check_reader(fitted(frame), frame[:4], frame[20:26])
    check_reader(fitted(frame), frame[:4].assign(side=frame.side.astype(object)), frame[20:26])


MISSING, FRACTION = (
    r"holds a missing value. Got (None|nan). CatBoost refuses it .*: make it text",
    r"neither text nor a whole n",
)


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [("city", None, MISSING), ("city", np.nan, MISSING), ("k", 1.5, FRACTION), ("k", 2.0, "Got 2.0")],
)
def test_cells_that_are_no_category(column, value, text):
    frame = FRAME[:5].copy()
    frame[column] = frame[column].astype(object)
    frame.loc[2, column] = value
    with pytest.raises((catboost.CatBoostError, TypeError)):
        MODELS["default"].predict(frame)
    with pytest.raises(InputError, match=text):
        convert(MODELS["default"]).predict(frame)


def test_unknown_names_of_unused_columns_and_pickles():
    ensemble = pickle.loads(pickle.dumps(convert(MODELS["combined"])))
    np.testing.assert_array_equal(ensemble.predict(UNKNOWN), convert(MODELS["combined"]).predict(UNKNOWN))
    constant = fitted(FRAME.assign(side="left"))
    assert_close(convert(constant).predict(UNKNOWN), raw(constant, UNKNOWN), 10.0, 4)


def test_statistics_of_several_targets_are_refused_as_json_loses_all_but_one(tmp_path):
    model = catboost.CatBoostRegressor(**SMALL, loss_function="MultiRMSE").fit(FRAME, np.c_[Y, -(Y**2)])
    model.save_model(tmp_path / "model.json", format="json")
    own = catboost.CatBoostRegressor().load_model(tmp_path / "model.json", format="json")
    assert np.abs(own.predict(FRAME) - model.predict(FRAME)).max() > 0.1  # the library's own loss
    for refused in (lambda: Explainer(model, FRAME[:5]), lambda: load(tmp_path / "model.json")):
        with pytest.raises(UnsupportedStructureError, match="MultiRMSE"):
            refused()
    sampled = Explainer(model.predict, FRAME[:5])(FRAME[:2])
    assert_close(sampled.prediction, model.predict(FRAME[:2]), roundings(64))
    one_hot = catboost.CatBoostRegressor(**SMALL | {"one_hot_max_size": 20}, loss_function="MultiRMSE").fit(
        FRAME, np.c_[Y, -(Y**2)]
    )
    assert Explainer(one_hot, FRAME[:5])(FRAME[:2]).certificate().passed
