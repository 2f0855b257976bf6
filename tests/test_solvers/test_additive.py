"""Additive games and the other forms of small terms, against all coalitions and against tables of coalition values."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from exactshap import semivalues
from exactshap._native import Handle
from exactshap.errors import InputError, InputTypeError
from exactshap.games import AdditiveGame
from exactshap.semivalues import find
from exactshap.solvers import choose, player_sets, solve
from exactshap.solvers.additive import (
    Bins,
    Factors,
    Linear,
    Lookups,
    Monomials,
    Stack,
    fill_cells,
    fill_fold,
    fill_lookups,
    solve_linear,
    solve_stacks,
)
from exactshap.solvers.core import set_values
from strategies import additive_games
from tolerances import assert_close, roundings

INDICES = [*semivalues.available(), semivalues.beta(4, 1)]
PARTS = ("values", "empty", "full", "scale")
RNG = np.random.default_rng(0)


def random_game(d=6, terms=5, rows=3, outputs=2, seed=0, sizes=(0, 1, 2, 3)):
    rng = np.random.default_rng(seed)
    subsets = [tuple(int(j) for j in rng.permutation(d)[: rng.choice(sizes)]) for _ in range(terms)]
    tables = [rng.normal(size=(rows, 2 ** len(subset), outputs)) for subset in subsets]
    return AdditiveGame(d, subsets, tables, constant=[1.0, -2.0][:outputs])


def scale_of(game, order=1):
    return 2.0 ** (order + 2) * (sum(np.abs(table).max() for table in game.tables) + np.abs(game.constant).max())


def per_term(game, index, order):
    """The slow twin: numpy differences of each term's table, added up set by set."""
    semivalue, sets = find(index), player_sets(game.n_players, order)
    values = np.zeros((game.n_rows, len(sets), game.n_outputs))
    for subset, table in zip(game.subsets, game.tables, strict=True):
        for size in range(1, min(order, len(subset)) + 1):
            for local in itertools.combinations(range(len(subset)), size):
                place = sets.index(tuple(sorted(subset[p] for p in local)))
                values[:, place] += set_values(table, local, semivalue, order, len(subset))
    return values


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
@given(game=additive_games())
@settings(max_examples=15, deadline=None)
def test_terms_agree_with_enumeration_of_all_players_value_by_value(index, order, game):
    order = min(order, game.n_players)
    fast, slow = solve(game, index, order), solve(game, index, order, method="enumeration")
    assert fast.sets == slow.sets
    assert_close(fast.values, slow.values, 2.0**game.n_players * scale_of(game, order), len(game.tables), game.n_players)
    assert_close(fast.empty, slow.empty, scale_of(game), len(game.tables), 1)
    assert_close(fast.full, slow.full, scale_of(game), len(game.tables), 1)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_batches_of_rows_and_outputs_agree_with_the_slow_twin_beyond_enumeration(index, order):
    game = random_game(30 if order < 4 else 12, terms=25, rows=4, seed=order, sizes=(0, 1, 2, 3, 5))
    solution, plan = solve(game, index, order), choose(game, index, order)
    assert_close(solution.values, per_term(game, index, order), scale_of(game, order), 25, 5)
    expected = sum(np.abs(table).max(axis=(1, 2)) for table in game.tables)
    assert_close(solution.scale, expected, expected.max(), 30, 1)
    if solution.residual is not None:
        assert np.abs(solution.residual).max() <= roundings(5_000) * solution.scale.max()
    assert solution.method == "per-term enumeration (25 terms)"
    assert plan.method == "per-term enumeration"
    assert "25 terms" in plan.reason


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_dummies_get_exactly_nothing(index):
    pair = RNG.normal(size=2)
    table = np.array([pair[0], pair[1], pair[0], pair[1]])  # the second player of the term changes nothing
    solution = solve(AdditiveGame(4, [(2, 0)], [table]), index, 2)
    assert [T for T, value in zip(solution.sets, solution.values, strict=True) if value != 0.0] == [(2,)]


def test_rows_and_memory_order_change_no_bit():
    game = random_game(7, terms=40, rows=6)
    together = solve(game, "k-sii", 2).values
    for i in range(6):
        tables = [table[i] if table.ndim == 2 else np.asfortranarray(table[i : i + 1]) for table in game.tables]
        alone = AdditiveGame(7, game.subsets, tables, game.constant)
        np.testing.assert_array_equal(solve(alone, "k-sii", 2).values[0], together[i])


def test_thousands_of_players_cost_nothing():
    game = AdditiveGame(5000, [(4999, 17), (3,)], [RNG.normal(size=(2, 4)), RNG.normal(size=(2, 2))])
    values = solve(game).values
    assert values.shape == (2, 5000)
    assert set(np.flatnonzero(values[0])) == {3, 17, 4999}
    small = AdditiveGame(3, [(2, 1), (0,)], game.tables, 0.0)
    assert_close(values[:, [3, 17, 4999]], solve(small).values[..., 0], scale_of(game), 2, 2)


# -- monomials -----------------------------------------------------------------------------------------------------------


def monomials(k, n_terms, n_rows, n_outputs, n_columns=11, width=2, seed=0):
    """Return products of powers of two columns for each of k players, and the same with tables by the definition."""
    rng = np.random.default_rng(seed)
    subsets = tuple(tuple(int(j) for j in rng.permutation(n_columns)[:k]) for _ in range(n_terms))
    columns, powers = rng.integers(0, n_columns, (n_terms, k, width)), rng.integers(0, 4, (n_terms, k, width))
    coefficients, moments = rng.normal(size=(n_terms, n_outputs)), rng.normal(size=(n_terms, 2**k))
    rows = rng.normal(size=(n_rows, n_columns))

    def tabulate(rows):
        factors = np.prod(rows[:, columns] ** powers, axis=3)
        inside = (np.arange(2**k)[:, None] >> np.arange(k)) & 1 == 1
        products = np.where(inside, factors[:, :, None, :], 1.0).prod(axis=3) * moments
        return products.transpose(1, 0, 2)[..., None] * coefficients[:, None, None, :]

    return Monomials(subsets, rows, Handle(Factors(columns, powers, coefficients, moments)), tabulate)


def solved(stack, n_rows, n_outputs, name, order, n_players=11):
    part = solve_stacks([stack], n_players, n_rows, n_outputs, find(name), order)
    return [np.asarray(getattr(part, each)) for each in PARTS]


@pytest.mark.parametrize("n_rows", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize(
    ("k", "name", "order", "n_outputs"),
    [
        (1, "shapley", 1, 1),
        (2, "shapley", 1, 3),
        (3, "sii", 2, 3),
        (3, "sii", 3, 1),
        (4, "banzhaf", 4, 3),
        (8, "shapley", 1, 1),
    ],
)
def test_monomials_have_the_values_of_their_tables(n_rows, k, name, order, n_outputs):
    stack = monomials(k, 12, n_rows, n_outputs)
    question = (n_outputs, name, order)
    found = solved(stack, n_rows, *question)
    expected = solved(Stack(stack.subsets, stack.tables), n_rows, *question)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 2.0**order * np.max(expected[-1], initial=0.0), 12, 2 * k)
    for some in (slice(0, 1), slice(5, 70), slice(n_rows - 1, n_rows)) if n_rows > 65 else ():  # no row depends on the others
        alone = Monomials(stack.subsets, stack.rows[some], stack.factors, stack.tabulate)
        for one, other in zip(solved(alone, len(stack.rows[some]), *question), found, strict=True):
            np.testing.assert_array_equal(one, other[some])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_monomials_that_are_not_finite_are_refused_by_their_row(bad):
    stack = monomials(2, 40, 90, 1)
    stack.rows[77] = bad
    with pytest.raises(InputError, match="coalition value that is NaN or infinite\\. First at row 77"):
        solved(stack, 90, 1, "shapley", 1)


# -- terms over bins -----------------------------------------------------------------------------------------------------


def bins(**changes):
    """Return columns 0 and 2 cut into bins, column 0 in two ways; terms of column 0, of 2 and of both."""
    given = {
        "cuts": np.array([-1.0, 0.0, 0.0, 2.0, 0.5]),
        "cut_start": np.array([0, 4, 4, 5]),
        "column": np.array([0, 2, 0]),
        "way_start": np.array([0, 1, 2, 4]),
        "way": np.array([0, 1, 2, 1]),
        "stride": np.array([1, 1, 3, 1]),
    }
    return Bins(**given | changes)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_cells_of_bins(dtype):
    column = np.tile([np.nan, -np.inf, -1.5, -1.0, -0.0, 0.0, 0.3, 0.5, 2.0, 1e300, np.inf], 13)  # more than a tile of rows
    X = np.stack([column, np.zeros(len(column)), column[::-1]], axis=1)
    out = np.empty((len(X), 3), dtype)
    fill_cells(X, bins(), out)
    fine = np.where(np.isnan(X[:, 0]), 0, 1 + np.searchsorted([-1.0, 0.0, 0.0, 2.0], X[:, 0], side="right"))
    coarse = np.where(np.isnan(X[:, 0]), 0, 1 + (X[:, 0] >= 0.5))
    other = np.where(np.isnan(X[:, 2]), 0, 1)
    np.testing.assert_array_equal(out, np.stack([fine, other, 3 * coarse + other], axis=1))


SPREADS = {
    **{f"{n} even": np.arange(float(n)) for n in (*range(18), 40)},
    "random": np.sort(RNG.normal(size=300)),
    "equal": np.repeat([-1.0, 2.0], 9),
    "all equal": np.full(5, 3.0),
    "heavy tails": np.sort(RNG.standard_cauchy(500) ** 3),
    "one far away": np.append(np.arange(30.0), 1e300),
    "beyond what a difference holds": np.array([-1.7e308, 0.0, 1.0, 1.7e308]),
    "smallest numbers": np.arange(6) * 5e-324,
    "close neighbours": 1e15 + 0.125 * np.arange(50),
}


@pytest.mark.parametrize("name", SPREADS)
def test_numbers_on_cuts_next_to_them_and_beyond_are_found(name):
    cuts = SPREADS[name]
    ends = [np.nan, -np.inf, np.inf, -0.0, 1e-300, -1.79e308, 1.79e308]
    x = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), RNG.normal(size=200), ends])
    one = {"column": np.zeros(1, int), "way_start": np.array([0, 1]), "way": np.zeros(1, int), "stride": np.ones(1, int)}
    out = np.empty((len(x), 1), np.int64)
    fill_cells(x[:, None], bins(cuts=cuts, cut_start=np.array([0, len(cuts)]), **one), out)
    np.testing.assert_array_equal(out[:, 0], np.where(np.isnan(x), 0, 1 + np.searchsorted(cuts, x, side="right")))


@pytest.mark.parametrize(("n_inside", "n_outside", "n_outputs"), [(5, 7, 2), (0, 3, 1), (4, 0, 1), (1, 1, 3)])
def test_folded_backgrounds(n_inside, n_outside, n_outputs):
    scores, weights = RNG.normal(size=(60, n_outputs)), RNG.random(n_outside)
    inside, outside = RNG.integers(0, 30, n_inside), RNG.integers(0, 30, n_outside)
    out = np.full((n_inside, n_outputs), 7.0)
    fill_fold(scores, inside, outside, weights, out)
    assert_close(out, np.einsum("z,czo->co", weights, scores[inside[:, None] + outside]), 20.0, n_outside)


def looked_up(n_columns=2, n_rows=3, n_outputs=1, dtype=np.int64, **changes):
    """Return the cells of some rows in two terms, with any tables, and their coalition values."""
    width, n_codes = max(1, n_columns), 2**n_columns
    shape = RNG.integers(2, 5, (2, width))
    strides = np.zeros((2, n_codes, 1 + width), np.int64)
    strides[:, :, 0] = np.arange(2 * n_codes).reshape(2, n_codes)
    strides[:, :, 1:] = RNG.integers(0, 20, (2, n_codes, width)) * (np.arange(n_codes) > 0)[:, None]
    cells = RNG.integers(0, shape.prod(axis=1), (n_rows, 2)).astype(dtype) + changes.pop("cell", 0)
    given = {"term": np.array([0, 1]), "shape": shape, "strides": strides, "folded": RNG.normal(size=(300, n_outputs))}
    lookups, tables = Lookups(**given | changes), np.empty((2, n_rows, n_codes, n_outputs))
    fill_lookups(cells, Handle(lookups), tables)
    return cells, lookups, tables


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("n_columns", [0, 1, 2, 3])
@pytest.mark.parametrize("n_rows", [0, 1, 150])
def test_coalition_values_are_looked_up_by_bin(n_rows, n_columns, n_outputs, dtype):
    cells, (_, shape, strides, folded), found = looked_up(n_columns, n_rows, n_outputs, dtype)
    for term, tables in enumerate(found):
        cell = np.stack(np.unravel_index(cells[:, term], shape[term]), axis=1)
        np.testing.assert_array_equal(tables, folded[strides[term, :, 0] + cell @ strides[term, :, 1:].T])


# -- linear models -------------------------------------------------------------------------------------------------------


def as_terms(linear, rows):
    """Return a linear model as terms of one player each, with both of their coalition values."""
    present = np.moveaxis(rows[:, :, None] * linear.coefficients, 1, 0)
    tables = np.stack([np.broadcast_to(linear.absent[:, None], present.shape), present], axis=2)
    return Stack(tuple((int(player),) for player in linear.players), tables)


@pytest.mark.parametrize(
    ("index", "order"), [*((index, 1) for index in INDICES), *((name, 2) for name in ("k-sii", "banzhaf"))], ids=str
)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("players", [range(9), (0, 0, 1, 3, 0, 1), (3, 2, 1, 0, 0, 0), (1,) * 6], ids=str)
def test_linear_models_have_the_values_of_their_terms(index, order, n_outputs, players):
    n_players, rows = max(players) + 1, RNG.normal(size=(150, len(players)))
    linear = Linear(*RNG.normal(size=(2, len(players), n_outputs)), np.array(players))
    question = (n_players, find(index), order)
    found = solve_linear(Handle(linear), rows, *question)
    expected = solve_stacks([as_terms(linear, rows)], n_players, len(rows), n_outputs, *question[1:])
    for name in PARTS:
        assert_close(getattr(found, name), getattr(expected, name), expected.scale.max(), len(players))
    assert not np.signbit(found.values[found.values == 0.0]).any()
    for some in (slice(4, 5), slice(60, 140)):  # no row depends on the others
        alone = solve_linear(Handle(linear), np.asfortranarray(rows[some]), *question)
        for name in ("values", "full", "scale"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(found, name)[some])


def test_a_sum_of_finite_terms_that_overflows_is_left_to_the_certificate():
    linear = Linear(np.ones((9, 1)), np.zeros((9, 1)), np.arange(9))
    part = solve_linear(Handle(linear), np.full((2, 9), 1e308), 9, find("shapley"), 1)
    assert np.isfinite(part.values).all()
    assert np.isinf(part.full).all()


# -- what is refused -----------------------------------------------------------------------------------------------------


def test_coalition_values_that_are_not_finite_are_refused_by_term_and_row():
    tables = np.zeros((2, 3, 4, 1))
    tables[1, 2, 1, 0] = np.nan
    with pytest.raises(InputError, match=r"players \(0, 2\) has a coalition value that is NaN or infinite. First at row 2"):
        solved(Stack(((0, 1), (0, 2)), tables), 3, 1, "shapley", 1, n_players=3)


def changed(build, name, *values):
    """Return a call for each value, with one array replaced by it."""
    return [functools.partial(build, **{name: np.array(value)}) for value in values]


def solve_linear_changed(**changes):
    linear = Linear(np.ones((3, 1)), np.ones((3, 1)), np.arange(3))._replace(**changes)
    return solve_linear(Handle(linear), np.ones((5, 3)), 3, find("shapley"), 1)


def solve_monomials_changed(**changes):
    factors = Factors(np.zeros((3, 2, 1), np.int64), np.ones((3, 2, 1), np.int64), np.ones((3, 1)), np.ones((3, 4)))
    stack = Monomials(((0, 1),) * 3, np.ones((5, 4)), Handle(factors._replace(**changes)), None)
    return solved(stack, 5, 1, "shapley", 1, n_players=3)


def fill_cells_changed(**changes):
    fill_cells(np.zeros((2, 3)), bins(**changes), np.empty((2, 3), np.int64))


def fold_changed(inside=(1,), outside=(2,)):
    fill_fold(np.zeros((60, 1)), np.array(inside), np.array(outside), np.ones(1), np.zeros((1, 1)))


def solve_stack_changed(subset=(0, 1), tables=((0.0,) * 4,)):
    return solved(Stack((tuple(subset),), np.array(tables)[:, None, :, None]), 1, 1, "shapley", 1, n_players=3)


LOOKUPS = {"cell": (-100,), "shape": ([[0, 5], [4, 1]], [[90, 5], [4, 1]]), "term": ([0, 2], [-1, 1])}
LOOKUPS["strides"] = [np.full((2, 4, 3), one) for one in (300, -1, 2**62)]
WRONG = {
    solve_linear_changed: {
        "players": ([0, 1, 3], [0, -1, 2], [0, 1]),
        "coefficients": (np.ones((2, 1)), np.ones((3, 2))),
    },
    solve_monomials_changed: {
        "columns": (np.full((3, 2, 1), 4), np.full((3, 2, 1), -1)),
        "powers": (np.full((3, 2, 1), -1), np.ones((3, 2, 2), np.int64)),
        "coefficients": (np.ones((3, 2)), np.ones((2, 1))),
        "moments": (np.ones((3, 8)), np.ones((2, 4))),
    },
    looked_up: LOOKUPS,
    fill_cells_changed: {
        "cut_start": ([0, 4, 3, 5], [0, 4, 4, 6]),
        "column": ([0, 3, 0], [0, -1, 0]),
        "way": ([0, 1, 3, 1], [0, 1, -1, 1]),
        "way_start": ([0, 1, 2, 5], np.zeros(0, int)),
        "stride": ([1, 1, 3],),
    },
    fold_changed: {"inside": ([-1], [59]), "outside": ([-1], [59])},
    solve_stack_changed: {"subset": ([0, 70], [-1, 1]), "tables": ([[0.0] * 3], [[0.0] * 4] * 2)},
}


@pytest.mark.parametrize(
    "call", [call for build, table in WRONG.items() for name, values in table.items() for call in changed(build, name, *values)]
)
def test_arrays_that_do_not_belong_together_reach_no_kernel(call):
    call.func()
    with pytest.raises(InputTypeError, match="do not belong together"):
        call()
