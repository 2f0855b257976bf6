"""Decompositions of Parquet folders: the numbers of the table in memory, a piece of rows at a time."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

import exactshap.decompose.pairwise._panels as panels
import exactshap.frames.stored._source as stored_module
from exactshap import decompose_hsic, decompose_mmd, decompose_r2
from exactshap.decompose import PairwiseSettings
from exactshap.errors import ExactnessError, InputError, InputTypeError, UnknownNameError, UnsupportedStructureError
from exactshap.scale import StoredTable
from tolerances import assert_close

pa = pytest.importorskip("pyarrow")

NAMES = [*"abcd"]


def frame(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=NAMES)
    kinds = {"kind": rng.choice(["u", "v", "w"], n_rows), "weight": rng.random(n_rows), "id": np.arange(n_rows)}
    return X.assign(y=X["a"] * X["b"] + X["c"], **kinds)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of two files in row groups of 50, of which the second is decoded in steps of 40 rows."""
    T = frame()
    T[:100].to_parquet(tmp_path / "1.parquet", row_group_size=50)
    T[100:].to_parquet(tmp_path / "2.parquet", row_group_size=50)
    return tmp_path


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(stored_module, "decoded_rows", lambda n_columns: 40)


def test_pieces_are_the_rows(folder):
    rows = StoredTable(folder, drop=["id"])
    pieces = [piece.native.to_pandas() for piece in rows.pieces()]
    assert [len(piece) for piece in pieces] == [40, 10] * 6
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), frame().drop(columns="id"))
    assert repr(rows) == f"StoredTable({folder.name!r}: 300 rows, 7 columns)"
    assert StoredTable(folder, ["b", "a"]).names == ("b", "a")


@pytest.mark.parametrize("groups", [None, {"g": ["a", "kind"]}])
def test_mmd_has_the_bits_of_the_table(folder, groups):
    columns, Z = [*NAMES, "kind"], frame(200, 1)
    settings = {"groups": groups, "n_permutations": 19, "order": 2}
    found = decompose_mmd(StoredTable(folder, columns), Z[columns], **settings)
    expected = decompose_mmd(frame()[columns], Z[columns], **settings)
    for name in ("values", "set_values", "std_error", "p_values"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert found.total == expected.total
    blocks = {"settings": PairwiseSettings(method="blocks", block_size=50)}
    one, other = (decompose_mmd(X, Z[columns], **blocks) for X in (StoredTable(folder, columns), frame()[columns]))
    assert np.array_equal(one.values, other.values)


def test_hsic_takes_names_of_columns(folder):
    T = frame()
    for Y in ("y", ["y", "kind"]):
        names = [Y] if isinstance(Y, str) else Y
        X = T.drop(columns=["id", *names])
        found = decompose_hsic(StoredTable(folder, drop=["id"]), Y, n_permutations=19)
        expected = decompose_hsic(X, T[names], n_permutations=19)
        assert found.feature_names == tuple(X.columns)
        assert np.array_equal(found.values, expected.values)
        assert found.p_value == expected.p_value
    in_memory = decompose_hsic(StoredTable(folder, NAMES), T["y"])
    assert np.array_equal(in_memory.values, decompose_hsic(T[NAMES], T["y"]).values)


@pytest.mark.parametrize("game", ["residual", "ensemble"])
@pytest.mark.parametrize("weight", [None, "weight"])
def test_r2_adds_up_over_pieces(folder, game, weight):
    T = frame()
    model = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(T[NAMES], T["y"])
    rows = StoredTable(folder, [*NAMES, "y", "weight"], drop=[] if weight else ["weight"])
    found = decompose_r2(model, rows, "y", sample_weight=weight, game=game)
    expected = decompose_r2(model, T[NAMES], T["y"], sample_weight=weight and T[weight], game=game)
    assert_close(found.values, expected.values, scale=1.0, n_terms=300)
    assert_close(found.total, expected.total, scale=1.0, n_terms=300)


def test_r2_of_labels(folder):
    T = frame().assign(label=lambda T: np.where(T["y"] > 0, "yes", "no"))
    T.to_parquet(folder / "1.parquet")
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(T[NAMES], T["label"])
    found = decompose_r2(model, StoredTable(folder / "1.parquet", [*NAMES, "label"]), "label")
    assert_close(found.values, decompose_r2(model, T[NAMES], T["label"]).values, scale=1.0, n_terms=300)


def test_gaps_are_levels_and_infinite_cells_are_named_by_their_row(folder):
    T = frame()
    T.loc[217, "b"] = np.nan
    T[100:].to_parquet(folder / "2.parquet", row_group_size=50)
    found, expected = (decompose_mmd(X, frame()[NAMES]) for X in (StoredTable(folder, NAMES), T[NAMES]))
    assert np.array_equal(found.values, expected.values)
    T.loc[217, "b"] = np.inf
    T[100:].to_parquet(folder / "2.parquet", row_group_size=50)
    with pytest.raises(InputError, match=r"Input X contains infinity.*column 'b', row 217"):
        decompose_mmd(StoredTable(folder, NAMES), frame()[NAMES])


def test_what_does_not_fit_is_refused(folder, tmp_path_factory):
    model = GradientBoostingRegressor(n_estimators=2).fit(frame()[NAMES], frame()["y"])
    rows = StoredTable(folder, [*NAMES, "y"])
    with pytest.raises(InputError, match="per_row=True"):
        decompose_r2(model, rows, "y", per_row=True)
    with pytest.raises(InputTypeError, match="names of its columns"):
        decompose_r2(model, rows, frame()["y"])
    with pytest.raises(UnknownNameError, match="no column 'z'"):
        decompose_r2(model, rows, "z")
    with pytest.raises(UnknownNameError, match="no column 'aa'"):
        StoredTable(folder, drop=["aa"])
    with pytest.raises(InputTypeError, match="lists of columns"):
        StoredTable(folder, "a")
    other = tmp_path_factory.mktemp("csv") / "a.csv"
    other.write_text("a\n1\n")
    with pytest.raises(InputError, match="is not Parquet"):
        decompose_mmd(other, other)
    frame()[:5].drop(columns="b").to_parquet(folder / "3.parquet")
    with pytest.raises(InputError, match=r"3.parquet has no column 'b'"):
        StoredTable(folder, NAMES)
    frame()[:5].astype({"b": str}).to_parquet(folder / "3.parquet")
    with pytest.raises(InputError, match=r"Column 'b' of 3.parquet has another type"):
        StoredTable(folder, NAMES)


def test_damaged_pages_are_named(folder):
    path, rows = folder / "2.parquet", StoredTable(folder, NAMES)
    path.write_bytes(path.read_bytes()[:4] + bytes(300) + path.read_bytes()[304:])
    with pytest.raises(InputError, match=r"2\.parquet cannot be read as Parquet"):
        decompose_mmd(rows, frame(50, 1)[NAMES])


# --- tasks over pairs of blocks of rows: the statistic of all rows, and the same bits for any number of workers -------


def here(function, *lists):
    """Stand for an executor's map: not the built-in one, which needs no waves."""
    yield from map(function, *lists)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(panels, "TASK_ROWS", 64)
    monkeypatch.setattr(panels, "TASKS_AT_ONCE", 5)


@pytest.fixture(scope="module")
def two_samples():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc")).assign(kind=rng.choice(["u", "v"], 150))
    Z = pd.DataFrame(rng.normal([0.0, 1.0, 0.0], size=(90, 3)), columns=list("abc")).assign(kind=rng.choice(["u", "w"], 90))
    return X, Z


@pytest.mark.parametrize("whole", [False, True])
def test_pairs_of_blocks_are_all_pairs(whole):
    for n_rows, boundary in ((1, 0), (64, 0), (200, 0), (200, 70), (200, 128)):
        met = np.zeros((n_rows, n_rows), int)
        for pair in panels.block_pairs(n_rows, boundary, whole=whole):
            rows, begin = pair.rows, pair.begin
            if begin:
                met[np.ix_(rows[:begin], rows[begin:])] += 1
            else:
                met[np.ix_(rows, rows)] += np.triu(np.ones((len(rows), len(rows)), int), 1)
        assert np.array_equal(met, np.triu(np.ones((n_rows, n_rows), int), 1))


def assert_same(found, expected):
    for name in ("values", "total", "std_error", "set_values", "null_values"):
        one, other = getattr(found, name, None), getattr(expected, name, None)
        assert (one is None) == (other is None)
        if one is not None:
            assert_close(np.asarray(one), np.asarray(other), scale=1.0, n_terms=240)


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("order", [1, 2])
def test_mmd_of_pairs_is_that_of_all_rows(two_samples, order, estimator):
    settings = {"order": order, "estimator": estimator, "n_permutations": 19}
    found = decompose_mmd(*two_samples, **settings, settings=PairwiseSettings(map=here))
    whole = decompose_mmd(*two_samples, **settings)
    assert_same(found, whole)
    assert found.p_value == whole.p_value


@pytest.mark.parametrize("estimator", ["biased", "unbiased"])
@pytest.mark.parametrize("order", [1, 2])
def test_hsic_of_pairs_is_that_of_all_rows(two_samples, order, estimator):
    X, settings = two_samples[0], {"order": order, "estimator": estimator, "kernel_y": "categorical"}
    y = (X["a"] * X["b"] > 0).astype(int)
    assert_same(decompose_hsic(X, y, **settings, settings=PairwiseSettings(map=here)), decompose_hsic(X, y, **settings))


def test_workers_do_not_change_bits(two_samples, pool):
    X, Z = two_samples
    calls = [
        lambda run: decompose_mmd(X, Z, n_permutations=9, settings=PairwiseSettings(map=run)),
        lambda run: decompose_mmd(X, Z, n_permutations=9, settings=PairwiseSettings(method="blocks", block_size=20, map=run)),
        lambda run: decompose_hsic(X, X["a"] ** 2, settings=PairwiseSettings(map=run)),
        lambda run: decompose_hsic(
            X,
            X["a"] ** 2,
            estimator="unbiased",
            n_permutations=9,
            settings=PairwiseSettings(method="blocks", block_size=40, map=run),
        ),
    ]
    for call in calls:
        one, two = call(here), call(pool.map)
        assert np.array_equal(one.values, two.values)
        assert np.array_equal(one.std_error, two.std_error)
        assert one.p_value == two.p_value
    assert np.array_equal(calls[1](None).values, calls[1](here).values)  # blocks are the same with and without a map


def test_a_task_that_loses_a_pair_is_caught(two_samples):
    def careless(function, *lists):
        for number, part in enumerate(map(function, *lists)):
            part[0][...] *= number != 3  # the sums by row
            yield part

    def forgetful(function, *lists):
        for number, part in enumerate(map(function, *lists)):
            yield (0.0, *part[1:]) if number == 3 and isinstance(part[0], float) else part

    with pytest.raises(ExactnessError, match="MMD2 do not add up to its direct computation"):
        decompose_mmd(*two_samples, settings=PairwiseSettings(map=careless))
    with pytest.raises(ExactnessError, match="HSIC do not add up to its direct computation"):
        decompose_hsic(two_samples[0], two_samples[0]["a"], settings=PairwiseSettings(map=forgetful))


def test_what_tasks_cannot_do_is_refused(two_samples):
    X = two_samples[0]
    for settings in ({"joint": True}, {"n_permutations": 9}):
        with pytest.raises(UnsupportedStructureError, match="map= supports the shares of one game only"):
            decompose_hsic(X, X["a"], **settings, settings=PairwiseSettings(map=here))
