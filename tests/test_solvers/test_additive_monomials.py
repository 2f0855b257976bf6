"""Monomials whose coalition values the solver makes itself: the same bits as of values that are there already."""

import numpy as np
import pytest

from exactshap.errors import InputError, InputTypeError
from exactshap.readers.additive._monomials import MonomialTerms
from exactshap.readers.additive._terms import Reference
from exactshap.semivalues import find
from exactshap.solvers.additive import Monomials, Stack, solve_stacks
from exactshap.solvers.additive._stacks import Factors, _local_sets, add_monomials

D, TILE = 11, 64


def bound(seed, n_outputs, *, most=4, owner=range(D), n_terms=40, degree=3):
    rng = np.random.default_rng(seed)
    powers = np.zeros((n_terms, D), np.int64)
    for row in powers:
        used = rng.permutation(D)[: rng.integers(1, most + 1)]
        row[used] = rng.integers(1, degree + 1, len(used))
    coefficients = rng.normal(size=(n_terms, n_outputs))
    background = Reference(rng.normal(size=(7, D)), np.full(7, 1 / 7))
    return MonomialTerms(powers, coefficients).bind(background, list(owner))


def solved(stacks, n_rows, n_players, n_outputs, name, order):
    part = solve_stacks(stacks, n_players, n_rows, n_outputs, find(name), order)
    return [np.asarray(values) for values in (part.values, part.empty, part.full, part.scale)]


@pytest.mark.parametrize("n_rows", [0, 1, TILE - 1, TILE, TILE + 1, 200])
@pytest.mark.parametrize(
    ("name", "order", "n_outputs"),
    [("shapley", 1, 1), ("shapley", 1, 3), ("banzhaf", 1, 1), ("sii", 2, 3), ("sii", 3, 1), ("banzhaf", 4, 3)],
)
@pytest.mark.parametrize("owner", [range(D), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0]], ids=["columns", "groups"])
def test_the_bits_of_kept_coalition_values(n_rows, n_outputs, name, order, owner):
    terms = bound(n_rows + order, n_outputs, owner=owner)
    rows = np.random.default_rng(1).normal(size=(n_rows, D))
    stacks, n_players = list(terms.stacks(rows)), len(set(owner))
    assert all(isinstance(stack, Monomials) for stack in stacks)
    kept = [Stack(stack.subsets, stack.tables) for stack in stacks]
    asked = (n_rows, n_players, n_outputs, name, order)
    for ours, theirs in zip(solved(stacks, *asked), solved(kept, *asked), strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


def test_no_row_depends_on_the_others():
    terms, rows = bound(3, 2), np.random.default_rng(1).normal(size=(150, D))
    whole = solved(terms.stacks(rows), 150, D, 2, "sii", 2)
    for first, last in ((0, 1), (5, 70), (149, 150)):
        part = solved(terms.stacks(rows[first:last]), last - first, D, 2, "sii", 2)
        for ours, theirs in zip(part, whole, strict=True):
            np.testing.assert_array_equal(ours, theirs[first:last])


def test_terms_of_many_players_are_kept():
    terms = bound(4, 1, most=D, n_terms=60, degree=1)
    rows = np.random.default_rng(1).normal(size=(70, D))
    kinds = {len(stack.subsets[0]): type(stack) for stack in terms.stacks(rows)}
    assert {k for k, kind in kinds.items() if kind is Monomials} == {k for k in kinds if k <= Monomials.MOST_PLAYERS}
    assert max(kinds) > Monomials.MOST_PLAYERS
    assert not terms.streams
    kept = [Stack(stack.subsets, stack.tables) for stack in terms.stacks(rows)]
    asked = (70, D, 1, "shapley", 1)
    for ours, theirs in zip(solved(terms.stacks(rows), *asked), solved(kept, *asked), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_what_is_not_finite_is_refused_by_its_row(bad):
    terms, rows = bound(5, 1), np.random.default_rng(1).normal(size=(90, D))
    rows[77] = bad
    with pytest.raises(InputError, match="coalition value that is NaN or infinite\\. First at row 77"):
        solved(terms.stacks(rows), 90, D, 1, "shapley", 1)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": np.full((3, 2, 1), 4)},
        {"columns": np.full((3, 2, 1), -1)},
        {"powers": np.full((3, 2, 1), -1)},
        {"powers": np.ones((3, 2, 2), np.int64)},
        {"coefficients": np.ones((3, 2))},
        {"coefficients": np.ones((2, 1))},
        {"moments": np.ones((3, 8))},
        {"moments": np.ones((2, 4))},
    ],
)
def test_what_does_not_belong_together_is_refused(change):
    factors = Factors(np.zeros((3, 2, 1), np.int64), np.ones((3, 2, 1), np.int64), np.ones((3, 1)), np.ones((3, 4)))
    out = [np.zeros((5, 4, 1)), np.zeros((5, 1)), np.zeros((5, 1)), np.zeros(5)]
    rest = (_local_sets(2, find("shapley"), 1), np.tile([0, 1], (3, 1)))
    add_monomials(np.ones((5, 4)), factors, *rest, *out)
    with pytest.raises(InputTypeError, match="do not belong together"):
        add_monomials(np.ones((5, 4)), factors._replace(**change), *rest, *out)


@pytest.mark.parametrize("n_players", [8, 9])
def test_terms_of_more_players_than_are_made_at_once_are_kept(n_players):
    powers, rows = np.ones((1, n_players), np.int64), np.random.default_rng(0).normal(size=(70, n_players))
    terms = MonomialTerms(powers, np.ones((1, 1))).bind(Reference(rows[:3], np.full(3, 1 / 3)), range(n_players))
    (stack,) = terms.stacks(rows)
    assert isinstance(stack, Monomials) == terms.streams == (n_players == Monomials.MOST_PLAYERS)
    ours, theirs = (solved([s], 70, n_players, 1, "shapley", 1) for s in (stack, Stack(stack.subsets, stack.tables)))
    for array, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_sets_and_positions_that_do_not_belong_to_the_terms_are_refused():
    factors = Factors(np.zeros((1, 2, 1), np.int64), np.ones((1, 2, 1), np.int64), np.ones((1, 1)), np.ones((1, 4)))
    out = [np.zeros((5, 4, 1)), np.zeros((5, 1)), np.zeros((5, 1)), np.zeros(5)]
    sets, positions = _local_sets(2, find("k-sii"), 2).value, np.array([[0, 1, 2]])
    add_monomials(np.ones((5, 1)), factors, sets, positions, *out)
    turned = sets._replace(members=sets.members[::-1].copy(), sizes=sets.sizes[::-1].copy())
    for wrong in ((turned, positions), (sets, np.array([[0, 1, 4]])), (sets, np.array([[0, -1, 2]])), (sets, positions[:, :2])):
        with pytest.raises(InputTypeError, match="do not belong together"):
            add_monomials(np.ones((5, 1)), factors, *wrong, *out)
