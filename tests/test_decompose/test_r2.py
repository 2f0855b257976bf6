"""decompose_r2 against enumeration of all coalitions, value by value, for every kind of tree ensemble."""

import functools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from exactshap.decompose import decompose_r2
from exactshap.trees import TreeModel, build, convert
from r2_oracle import r2_rows
from tolerances import assert_close, assert_close_r2, roundings
from trees_by_rule import chain

N_ROWS, N_FEATURES = 44, 4


def data(missing=False, binary=False, categorical=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).round(2)
    X[:, 1] = 0.7 * X[:, 0] + 0.5 * X[:, 1]
    if categorical:
        X[:, 2] = rng.integers(0, 5, N_ROWS)
    y = X[:, 0] * X[:, 1] + np.sin(3.0 * X[:, 2]) + 0.3 * rng.normal(size=N_ROWS)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, (y > np.median(y)).astype(int) if binary else y


def sklearn_models():
    from sklearn import ensemble, tree

    X, y = data()
    gaps, z = data(missing=True)
    Xb, yb = data(binary=True)
    Xc, yc = data(categorical=True)
    yield "tree", tree.DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y), X, y
    yield "tree full", tree.DecisionTreeRegressor(random_state=0).fit(X, y), X, y
    yield "tree missing", tree.DecisionTreeRegressor(max_depth=4, random_state=0).fit(gaps, z), gaps, z
    yield "tree classifier", tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(Xb, yb), Xb, yb
    yield "forest", ensemble.RandomForestRegressor(4, max_depth=5, random_state=0).fit(X, y), X, y
    yield "forest classifier", ensemble.RandomForestClassifier(3, max_depth=4, random_state=0).fit(Xb, yb), Xb, yb
    yield "extra trees", ensemble.ExtraTreesRegressor(3, random_state=0).fit(X, y), X, y
    yield "boosting", ensemble.GradientBoostingRegressor(n_estimators=5, max_depth=3, learning_rate=0.4).fit(X, y), X, y
    yield "stumps", ensemble.GradientBoostingRegressor(n_estimators=6, max_depth=1, learning_rate=0.4).fit(X, y), X, y
    yield "deep", ensemble.GradientBoostingRegressor(n_estimators=2, max_depth=9, learning_rate=0.4).fit(X, y), X, y
    hist = {"max_iter": 4, "max_depth": 4, "learning_rate": 0.4, "min_samples_leaf": 3}
    yield "hist missing", ensemble.HistGradientBoostingRegressor(**hist).fit(gaps, z), gaps, z
    yield "hist categorical", ensemble.HistGradientBoostingRegressor(**hist, categorical_features=[2]).fit(Xc, yc), Xc, yc


def booster_model(name):
    library, _, kind = name.partition(" ")
    module = pytest.importorskip(library)
    X, y = data(categorical=True) if kind == "categorical" else data(missing=True)
    if library == "xgboost":
        settings = {"n_estimators": 5, "max_depth": 4, "n_jobs": 1}
        if kind == "forest":
            return module.XGBRFRegressor(**settings, subsample=0.7, random_state=0).fit(X, y), X, y
        if kind == "categorical":
            settings |= {"feature_types": ["q", "q", "c", "q"], "enable_categorical": True}
        return module.XGBRegressor(**settings, learning_rate=0.4).fit(X, y), X, y
    if library == "lightgbm":
        settings = {"n_estimators": 5, "num_leaves": 8, "learning_rate": 0.4, "min_child_samples": 3, "verbose": -1}
        if kind == "categorical":
            settings |= {"min_data_per_group": 1, "cat_smooth": 1}
        codes = [2] if kind == "categorical" else "auto"
        return module.LGBMRegressor(**settings, n_jobs=1).fit(X, y, categorical_feature=codes), X, y
    settings = {"iterations": 4, "depth": 3, "learning_rate": 0.5, "verbose": 0, "thread_count": 1}
    return module.CatBoostRegressor(**settings, allow_writing_files=False).fit(X, y), X, y


BOOSTERS = ["xgboost missing", "xgboost categorical", "xgboost forest", "lightgbm missing", "lightgbm categorical", "catboost"]
SKLEARN = {name: (model, X, y) for name, model, X, y in sklearn_models()}


@pytest.fixture(params=[*SKLEARN, *BOOSTERS], scope="module")
def case(request):
    return SKLEARN[request.param] if request.param in SKLEARN else booster_model(request.param)


@pytest.mark.parametrize("game", ["residual", "ensemble"])
def test_values_and_rows_by_enumeration(case, game):
    model, X, y = case
    rows, total = r2_rows(model, X, np.asarray(y, float), game)
    shares = decompose_r2(model, X, y, game=game)
    detail = decompose_r2(model, X, y, game=game, per_row=True)
    assert_close_r2(shares.values, rows.sum(axis=0))
    assert_close_r2(detail.values, rows.sum(axis=0))
    assert_close_r2(detail.per_row, rows)
    assert_close_r2(shares.total, total)
    assert shares.drift == shares.values.sum() - shares.total
    assert shares.per_row is None
    assert detail.per_row.shape == X.shape


@pytest.mark.parametrize("game", ["residual", "ensemble"])
def test_cells_that_sparse_rows_do_not_store_are_missing_to_xgboost(game):
    sparse = pytest.importorskip("scipy.sparse")
    model, X, y = booster_model("xgboost missing")
    stored = sparse.csr_array(np.nan_to_num(X))
    dense = decompose_r2(model, np.where(stored.toarray(), X, np.nan), y, game=game)
    np.testing.assert_array_equal(decompose_r2(model, stored, y, game=game).values, dense.values)


@pytest.mark.parametrize("game", ["residual", "ensemble"])
def test_weights_held_out_rows_and_groups_by_enumeration(case, game):
    model, X, y = case
    rng = np.random.default_rng(1)
    keep = rng.permutation(N_ROWS)[:30]
    weights = rng.integers(0, 4, 30) + rng.random(30).round(1)
    held, target = X[keep], np.asarray(y)[keep]
    rows, total = r2_rows(model, held, target.astype(float), game, weights, np.array([0, 1, 1, 2]))
    shares = decompose_r2(model, held, target, game=game, sample_weight=weights, groups={"pair": [1, 2]})
    assert_close_r2(shares.values, rows.sum(axis=0))
    assert_close_r2(shares.total, total)
    assert shares.feature_names[1] == "pair"


def test_integer_weights_repeat_rows():
    model, X, y = SKLEARN["boosting"]
    weights = np.random.default_rng(2).integers(0, 4, N_ROWS)
    repeated = np.repeat(np.arange(N_ROWS), weights)
    for game in ("residual", "ensemble"):
        one = decompose_r2(model, X, y, sample_weight=weights, game=game)
        other = decompose_r2(model, X[repeated], y[repeated], game=game)
        assert_close_r2(one.values, other.values)


def wide_problem(depth, n_rows=300, n_trees=6, seed=3):
    from sklearn.ensemble import GradientBoostingRegressor

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 20))
    y = X[:, 0] * X[:, 1] + X[:, 2:8].sum(axis=1) + rng.normal(size=n_rows)
    settings = {"n_estimators": n_trees, "max_depth": depth, "max_features": 0.3, "random_state": 0}
    return GradientBoostingRegressor(**settings).fit(X, y), X, y


def deep_problem():
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 30))
    y = X @ rng.normal(size=30)
    model = DecisionTreeRegressor(splitter="random", max_features=1, random_state=0).fit(X, y)
    assert model.get_depth() > 10
    return model, X, y


def chains(depth, n_trees):
    """Trees that are one path, each split on a column of its own: more players than a code has bits."""
    raw = []
    for k in range(n_trees):
        tree = chain(depth, depth, np.arange(2 * depth + 1) % 7.0)
        raw.append(replace(tree, feature=tree.feature + k * depth, threshold=np.full(2 * depth + 1, 0.5)))
    trees = build(raw, n_features=n_trees * depth, constant=np.zeros(1), less_equal=True, single_precision=False)
    outputs, stages = np.full(n_trees, -1, np.int32), np.arange(n_trees, dtype=np.int32)
    model = TreeModel(trees, "test", "chain", "target", ("output",), True, outputs, stages, boosted=n_trees > 1)
    X = (np.random.default_rng(0).random((40, n_trees * depth)) < 0.97).astype(float)
    return model, X, np.arange(40.0)


PROBLEMS = {
    **{f"depth {depth}": functools.partial(wide_problem, depth) for depth in (1, 2, 3, 4, 6)},
    "depth 8": functools.partial(wide_problem, 8, n_rows=120, n_trees=2),
    "random splits": deep_problem,
    "two chains": functools.partial(chains, 20, 2),
    "a chain": functools.partial(chains, 70, 1),
}


@pytest.mark.parametrize("game", ["residual", "ensemble"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_tables_agree_with_quadrature(name, game):
    model, X, y = PROBLEMS[name]()
    table, rows = (decompose_r2(model, X, y, game=game, per_row=per_row) for per_row in (False, True))
    assert_close_r2(table.values, rows.values, n_terms=X.shape[1] * table.details["n_trees"] ** 2)
    assert abs(table.residual) <= table.tolerance
    if name == "random splits":  # which fit every row
        assert table.total == 1.0
        assert_close_r2(table.values.sum(), 1.0, n_terms=120)
    assert table.details["checked_against_model"] == ("chain" not in name)


@pytest.mark.parametrize(
    ("game", "kind", "n_rows", "most"),
    [
        ("residual", "boosting", 1500, None),  # more rows than a task takes through the trees
        ("ensemble", "boosting", 300, None),
        ("residual", "boosting", 1500, 0),
        ("residual", "forest", 1500, 0),
    ],
)
def test_same_bits_for_every_number_of_threads(game, kind, n_rows, most, monkeypatch):
    """Also where residuals are more than are held at once."""
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

    from exactshap.decompose.r2 import _games

    if most is not None:
        monkeypatch.setattr(_games, "WAVE_BYTES", most)
        monkeypatch.setattr(_games, "WAVE_CHUNKS", 2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    make = RandomForestRegressor if kind == "forest" else GradientBoostingRegressor
    model = make(n_estimators=60, max_depth=5, random_state=0).fit(X, y)
    one, two = (decompose_r2(model, X, y, game=game, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert np.array_equal(one.values, two.values)
    assert one.drift == two.drift


@pytest.mark.parametrize("most", [0, 2**27])
def test_residuals_that_are_held_at_once_are_forecast(most, monkeypatch):
    from exactshap.decompose.r2 import _decompose, _games

    held, known, original = [], [], _games._met_by_chunks
    monkeypatch.setattr(_games, "WAVE_BYTES", most)
    monkeypatch.setattr(_games, "WAVE_CHUNKS", 2)

    def met_by_chunks(layout, *rest):
        met = original(layout, *rest)
        held.append(sum(each.nbytes for each in met))
        known.append(_games.bytes_of_a_wave(layout))
        with_them = _decompose.cost_of(layout, "residual", False).bytes
        assert with_them >= known[-1] + 2.0 * _decompose.CHUNK_BYTES
        return met

    monkeypatch.setattr(_games, "_met_by_chunks", met_by_chunks)
    model, X, y = wide_problem(4, n_trees=70)
    decompose_r2(model, X, y, n_jobs=2)
    assert len(held) == (3 if most == 0 else 1)
    assert max(held) <= min(known)


@pytest.mark.parametrize(("name", "game"), [("boosting", "ensemble"), ("boosting", "residual"), ("forest", "residual")])
def test_only_the_residual_game_of_boosted_trees_depends_on_their_order(name, game):
    from exactshap.trees import take_trees

    model, X, y = SKLEARN[name]
    ensemble = convert(model)
    order = [2, 0, 3, 1] if name == "forest" else [4, 3, 2, 1, 0]
    turned = replace(ensemble, trees=take_trees(ensemble.trees, np.array(order)))
    one, other = (decompose_r2(m, X, y, game=game) for m in (ensemble, turned))
    assert one.details["order"] == ("averaged" if name == "forest" else "given")
    if (name, game) == ("boosting", "residual"):
        assert np.abs(one.values - other.values).max() > 1e-3
    else:
        assert_close_r2(one.values, other.values)


def test_drift_is_zero_only_where_the_trees_are_centred_on_y():
    from sklearn.ensemble import GradientBoostingRegressor

    X, y = data()
    model = GradientBoostingRegressor(n_estimators=10, max_depth=2, random_state=0).fit(X[:30], y[:30])
    assert abs(decompose_r2(model, X[:30], y[:30]).drift) < roundings(5_000)
    held = decompose_r2(model, X[30:], y[30:])
    assert abs(held.drift) > 1e-4
    assert held.total == pytest.approx(model.score(X[30:], y[30:]), abs=roundings(5_000))
    assert abs(held.residual) <= held.tolerance


@pytest.mark.parametrize("game", ["residual", "ensemble"])
@pytest.mark.parametrize("name", ["tree", "forest", "boosting", "lightgbm missing"])
def test_a_target_far_from_zero_loses_the_digits_of_its_level_and_no_more(name, game):
    from sklearn.base import clone

    level = 2.0**20  # of spread 1: games that square it would be off by 1e-4
    model, X, y = SKLEARN[name] if name in SKLEARN else booster_model(name)
    model = clone(model).fit(X, y + level)
    rows, total = r2_rows(model, X, y + level, game)
    shares = decompose_r2(model, X, y + level, game=game)
    assert_close(shares.values, rows.sum(axis=0), scale=level, n_terms=100, n_players=16)
    assert_close(shares.total, total, scale=level, n_terms=100, n_players=16)


def test_brier_skill_score_of_a_forest():
    from sklearn.metrics import brier_score_loss

    model, X, y = SKLEARN["forest classifier"]
    labels = np.where(y == 1, "yes", "no")
    named = type(model)(3, max_depth=4, random_state=0).fit(X, labels)
    shares = decompose_r2(named, X, labels)
    score = 1.0 - brier_score_loss(y, named.predict_proba(X)[:, 1]) / np.var(y)
    assert shares.statistic == "Brier skill score"
    assert shares.total == pytest.approx(score, abs=roundings(5_000))
    assert_close_r2(shares.values, decompose_r2(model, X, y).values)


def test_frames_give_names_and_frames():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    from sklearn.tree import DecisionTreeRegressor

    X, y = data()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(frame, y)
    shares = decompose_r2(model, frame, pandas.Series(y))
    assert shares.feature_names == tuple("abcd")
    assert isinstance(shares.to_frame(), pandas.DataFrame)
    again = decompose_r2(model, polars.DataFrame(frame), polars.Series(y))
    assert isinstance(again.to_frame(), polars.DataFrame)
    assert np.array_equal(shares.values, again.values)
    assert list(shares.to_frame()["feature"]) == list("abcd")
    copy = pickle.loads(pickle.dumps(shares))
    assert np.array_equal(copy.values, shares.values)
    assert copy.game == "residual"
    assert "R2 = " in repr(copy)


def test_model_and_data_are_left_alone():
    model, X, y = SKLEARN["hist missing"]
    X, y = X.copy(), y.copy()
    X.flags.writeable = y.flags.writeable = False
    before = pickle.dumps(model)
    decompose_r2(model, np.asfortranarray(X), y, game="ensemble")
    assert pickle.dumps(model) == before
