"""Verify reading and solving of a model, independently of every fast path."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.checks import check_count, checked_generator
from exactshap._runtime.slices import slices
from exactshap._runtime.words import fields_html
from exactshap.errors import InputError, rows_from
from exactshap.explainer._certify import Certified, Check, largest_of_rows, residual_of
from exactshap.explainer._offset import certified_with, check_offsets
from exactshap.explainer._plan import block_size
from exactshap.explainer._solve import predict
from exactshap.frames import Table
from exactshap.games import AdditiveGame, LiveGame, ProductGame, SumGame, all_masks, spread
from exactshap.readers import Reader
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Solution, player_sets, sets_by_size, solve

# Of rows that are masked by hand: rows, background, their hybrids, and what the model makes of these.
COPIES = 4
SOLVED_ROWS = 4  # rows compared with the definition: each costs all coalitions
# Dumps print float32 and counts with about eight digits; covers are sums of them
SAME_READING = 1e-7

ALL_COALITIONS = 10  # players: up to here all 2^d coalitions are evaluated
FACTORS = 2**22  # of one tile of terms
MOST_FACTORS = 2**31  # of all of them at all nodes: half a minute


@dataclass(frozen=True, repr=False)
class Verification:
    """Hold the outcome of :meth:`exactshap.Explainer.verify`.

    Attributes
    ----------
    max_residual : float
        Largest ``|prediction - baseline - sum of values|``.
    max_mask_difference : float or None
        Largest difference of v(S) and the prediction of rows masked by hand; None where no such reference exists.
    tolerance : float
        What rounding explains of either.
    passed : bool
        Whether all that was compared is within its tolerance; ``unchecked`` tells what was not.
    n_rows, n_masks : int
        What was checked.
    max_value_difference : float or None
        Largest difference of a value and its definition, over all players of a few rows; None where it is out of reach. Of other
        indices and orders beyond ten players, that of a mean of the values of all sets of one size, with random weights.
    reading_difference : float or None
        Largest relative difference of leaf values and covers to the library's own dump, infinity for another split; None without.
    unchecked : tuple of str
        What could not be compared, and why.
    """

    max_residual: float
    max_mask_difference: float | None
    tolerance: float
    passed: bool
    n_rows: int
    n_masks: int
    max_value_difference: float | None = None
    reading_difference: float | None = None
    unchecked: tuple[str, ...] = ()

    def _parts(self) -> dict[str, str]:
        """Return the compared differences as text by name."""
        facts = {"largest residual": f"{self.max_residual:.2g}"}
        if self.max_mask_difference is not None:
            of = f"on {self.n_masks} random coalitions"
            facts["largest difference to the hand-masked model"] = f"{self.max_mask_difference:.2g} {of}"
        if self.max_value_difference is not None:
            facts["of values to their definition"] = f"{self.max_value_difference:.2g}"
        if self.reading_difference is not None:
            facts["of nodes to the library's dump"] = f"{self.reading_difference:.2g}"
        return facts

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {text}" for name, text in self._parts().items())
        missing = "".join(f"; not checked: {text}" for text in self.unchecked)
        return f"{self._verdict()}: {parts}; tolerance {self.tolerance:.2g}; {self.n_rows} rows{missing}"

    def __repr__(self) -> str:
        return f"Verification {self}"

    def _repr_html_(self) -> str:
        facts = {**self._parts(), "tolerance": f"{self.tolerance:.2g}", "rows": str(self.n_rows)}
        facts |= {"not checked": "; ".join(self.unchecked)} if self.unchecked else {}
        return fields_html(f"Verification {self._verdict()}", facts)

    def _verdict(self) -> str:
        """Return the verdict on what was compared."""
        if not self.passed:
            return "FAILED"
        if self.max_mask_difference is not None and self.max_value_difference is not None:
            return "passed"
        known = ((self.max_mask_difference, "coalitions"), (self.max_value_difference, "values"))
        return f"{' and '.join(['residual', *(name for difference, name in known if difference is not None)])} passed"


def verify(
    reader: Reader,
    table: Table,
    *,
    n_masks: int,
    random_state: int,
    semivalue: Semivalue,
    order: int,
    offsets: np.ndarray | None,
    memory_limit: float,
) -> Verification:
    """Check an explainer's values by independent means.

    Compare v(S) with rows masked by hand, values with the definition, nodes with dumps, and sums with predictions.
    """
    check_count("n_masks", n_masks)
    rng, n_rows = checked_generator(random_state), table.n_rows
    if not n_rows:
        raise InputError("There is nothing to verify", "`X` has no rows", "Pass some of the rows to be explained")
    if offsets is not None:
        check_offsets(reader, n_rows, offsets)
    # A share of players is drawn for each coalition, so that all sizes are equally likely, as in a Shapley value.
    masks = rng.random((n_masks, reader.traits.n_players)) < rng.random((n_masks, 1))
    step, parts = _rows_at_a_time(reader, n_rows, memory_limit), []
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        with rows_from(start, table.row_label):
            block, of_block = table.take(rows), None if offsets is None else offsets[rows]
            # The definition costs all coalitions: it is compared on rows of the first block only.
            parts.append(_compared(reader, block, masks, of_block, (semivalue, order, rng) if start == 0 else None))
    second, first = reader.traits.second_reading(), parts[0]
    return Verification(
        max_residual=max(part.residual for part in parts),
        max_mask_difference=None if first.masked is None else max(part.masked or 0.0 for part in parts),
        tolerance=max(part.tolerance for part in parts),
        passed=all(part.within for part in parts) and not (second.difference is not None and second.difference > SAME_READING),
        n_rows=n_rows,
        n_masks=0 if first.masked is None else n_masks,
        max_value_difference=first.values,
        reading_difference=second.difference,
        unchecked=_unchecked(reader, first, second.gap),
    )


class _Compared(NamedTuple):
    """Hold the largest differences of some rows and their tolerance; None for what could not be compared."""

    residual: float
    masked: float | None
    values: float | None
    tolerance: float
    within: bool
    exact: bool


def _compared(
    reader: Reader,
    table: Table,
    masks: np.ndarray,
    offsets: np.ndarray | None,
    question: tuple[Semivalue, int, np.random.Generator] | None,
) -> _Compared:
    """Compare sums with predictions, v(S) with masked rows, and an index's values."""
    with np.errstate(all="ignore"):
        answer = reader.solve(table, find("shapley"), 1)
        own = predict(reader, table)
        residual, allowed = residual_of(reader, answer, own, efficient=True)
        # An offset widens the tolerance of sums only: v(S) by hand and values are compared without it.
        adding_up = allowed
    if offsets is not None:
        certified, _ = certified_with(reader, table, answer, Certified(own, residual, allowed, Check()), offsets)
        residual, adding_up = certified.residual, certified.tolerance
    by_hand = reader.masked_predictions(table, masks)
    masked = None if by_hand is None else largest_of_rows(reader.game(table).value(masks) - by_hand)
    solved = None if question is None else _values(reader, table, answer, *question)
    worst = largest_of_rows(residual)
    within = [worst <= adding_up]
    within += [] if masked is None else [masked <= allowed]
    if solved is not None:
        within.append(solved.size <= solved.n_roundings * _solving(reader, answer, allowed)[: len(solved.size)])
    return _Compared(
        float(worst.max(initial=0.0)),
        _maximum(masked),
        None if solved is None else _maximum(solved.size),
        float(np.max(allowed, initial=0.0)),
        bool(all(map(np.all, within))),
        answer.exact,
    )


def _rows_at_a_time(reader: Reader, n_rows: int, memory_limit: float) -> int:
    """Return the number of rows to compare at a time."""
    n_background = 1 if reader.traits.background is None else reader.traits.background.n_rows
    by_hand = memory_limit / (8.0 * COPIES * n_background * reader.traits.n_features)
    return max(1, min(block_size(reader, n_rows, 1, memory_limit), int(by_hand)))


class _Differences(NamedTuple):
    """Hold the differences of values to their definition, and how many roundings of a value explain them, both (n_rows,)."""

    size: np.ndarray
    n_roundings: np.ndarray


def _values(
    reader: Reader, table: Table, answer: Solution, semivalue: Semivalue, order: int, rng: np.random.Generator
) -> _Differences | None:
    """Return the largest difference to the definition's values, or None beyond reach."""
    if not answer.exact:
        return None
    some = table.take(slice(0, min(SOLVED_ROWS, table.n_rows)))
    if semivalue.name != "shapley" or order > 1:
        return _sets(reader, some, semivalue, order, rng)
    expected = reference_values(reader.game(some))
    return None if expected is None else _one_by_one(answer.values[: some.n_rows, : reader.traits.n_players] - expected)


def _one_by_one(difference: np.ndarray) -> _Differences:
    return _Differences(largest_of_rows(difference), np.ones(len(difference)))


def _sets(reader: Reader, some: Table, semivalue: Semivalue, order: int, rng: np.random.Generator) -> _Differences | None:
    """Compare an index with all coalitions; beyond ten players by random means of its values."""
    game, n_players = reader.game(some), reader.traits.n_players
    if n_players <= ALL_COALITIONS:
        expected = solve(game, semivalue, order, method="enumeration").values
        return _one_by_one(reader.solve(some, semivalue, order).values.reshape(expected.shape) - expected)
    sets = sets_by_size(player_sets(n_players, order), order)  # refuses orders beyond the players and more sets than fit
    # Of magnitude 1/2 to 1 and any sign, so that any two sets have different weights
    directions = rng.uniform(0.5, 1.0, (some.n_rows, n_players)) * rng.choice([-1.0, 1.0], (some.n_rows, n_players))
    sums = reference_sums(game, semivalue, order, directions)
    if sums is None:
        return None
    values = reader.solve(some, semivalue, order).values.reshape(some.n_rows, -1, reader.traits.n_outputs)
    worst, start = _one_by_one(np.zeros((some.n_rows, 1))), 0
    for size, members in enumerate(sets, start=1):
        weights = np.prod(directions[:, members], axis=2)
        found = np.einsum("it,itk->ik", weights, values[:, start : start + len(members)])
        start += len(members)
        # As a mean: where no value is off by more than its tolerance, neither is their mean
        missed = largest_of_rows(found - sums[:, size - 1]) / np.abs(weights).sum(axis=1)
        # A discrete derivative adds up 2^|T| products at each node
        n_roundings = 2.0**size * max(1.0, float(np.abs(semivalue.rule(size, order, degree=n_players - size)[1]).sum()))
        is_worse = missed * worst.n_roundings >= worst.size * n_roundings
        worst = _Differences(*(np.where(is_worse, new, old) for new, old in zip((missed, n_roundings), worst, strict=True)))
    return worst


def _solving(reader: Reader, answer: Solution, tolerance: np.ndarray) -> np.ndarray:
    """Return the tolerance for rounding of our values, which is that of float64 for any model."""
    bound = np.asarray(answer.error_bound)
    # The certificate's tolerance is that of the model's precision: its rounding part is scaled back to that of float64.
    return np.asarray((tolerance - bound) * (np.finfo(float).eps / reader.traits.rounding.precision) + bound)


def _unchecked(reader: Reader, first: _Compared, gap: str) -> tuple[str, ...]:
    """Say in words what could not be compared."""
    texts = []
    if first.masked is None:
        texts.append(
            f"v(S), as value_function={reader.traits.value_function!r} of {reader.traits.model_name} cannot be masked by hand"
        )
    if gap:
        texts.append(f"the nodes of the trees, as {gap}")
    if first.values is None:
        why = f"the coalitions of {reader.traits.n_players} players are out of reach" if first.exact else "they are estimates"
        texts.append(f"values one by one, as {why}")
    return tuple(texts)


def _maximum(differences: np.ndarray | None) -> float | None:
    return None if differences is None else float(differences.max(initial=0.0))


def reference_values(game: Any) -> np.ndarray | None:
    """Return values (n_rows, n_players[, n_outputs]) by the definition, or None if out of reach."""
    if game.n_players <= ALL_COALITIONS:
        return by_coalitions(np.asarray(game.value(all_masks(game.n_players))), game.n_players)
    if isinstance(game, AdditiveGame) and max(map(len, game.subsets), default=0) <= ALL_COALITIONS:
        return _by_terms(game)
    if isinstance(game, SumGame):
        return _added(game, reference_values)
    if isinstance(game, LiveGame):
        values = reference_values(game.inner)
        return None if values is None else spread(values, 1, game.n_players, list(game.live))
    return _by_quadrature(game) if isinstance(game, ProductGame) else None


def _added(game: SumGame, reference: Callable[[Any], np.ndarray | None]) -> np.ndarray | None:
    """Return the weighted sum of what a reference says of each game, or None if one is out of reach."""
    parts = []
    for one in game.games:
        part = reference(one)
        if part is None:
            return None
        parts.append(part)
    return game.total(parts)


def by_coalitions(values: np.ndarray, n_players: int) -> np.ndarray:
    """Return values (n_rows, n_players, ...) from v of all coalitions.

    They are (n_rows, 2^d, ...), in the order of ``all_masks``.
    """
    # Bit j of a coalition's number says whether player j is in it, which is the order of ``all_masks``.
    codes = np.arange(2**n_players)
    sizes = all_masks(n_players).sum(axis=1)
    # phi_j = sum over S without j of |S|! (d - 1 - |S|)! / d! (v(S + j) - v(S)).
    share = np.array([math.factorial(s) * math.factorial(n_players - 1 - s) for s in range(n_players)]) / math.factorial(
        n_players
    )
    total = np.zeros((len(values), n_players, *values.shape[2:]))
    for j in range(n_players):
        without = codes[codes >> j & 1 == 0]
        gains = values[:, without | 1 << j] - values[:, without]
        total[:, j] = np.einsum("c,rc...->r...", share[sizes[without]], gains)
    return total


def _by_terms(game: AdditiveGame) -> np.ndarray:
    """Add up each term's values over the coalitions of its players."""
    tail = () if game.single_output else (game.n_outputs,)
    total = np.zeros((game.n_rows or 1, game.n_players, *tail))
    for subset, table in zip(game.subsets, game.tables, strict=True):
        # A term's table holds all coalitions of its own players: players outside get nothing, by the dummy axiom.
        values = np.asarray(table).reshape(-1, 2 ** len(subset), game.n_outputs)
        part = by_coalitions(values, len(subset)) if subset else np.zeros((len(values), 0, game.n_outputs))
        total[:, list(subset)] += part[..., 0] if game.single_output else part
    return total


def reference_sums(game: Any, semivalue: Semivalue, order: int, directions: np.ndarray) -> np.ndarray | None:
    r"""Return weighted sums of an index's values for sets of each size (n_rows, order, n_outputs), or None if out of reach.

    The weight of a set T is the product of its players' numbers r in ``directions`` (n_rows, n_players). The sums are derivatives of
    the multilinear extension f, which sums of products and of small terms have in closed form:

    .. math:: \sum_{|T| = s} \prod_{j \in T} r_j\, \phi_T = \int [x^s]\, f(t + x r_1, \dots, t + x r_d)\, \mathrm{d}\mu_s(t)
    """
    if isinstance(game, SumGame):
        return _added_sums(game, semivalue, order, directions)
    if isinstance(game, LiveGame):
        return reference_sums(game.inner, semivalue, order, directions[:, list(game.live)])
    along: Callable[[float, int], np.ndarray]
    # degree: that of f along a line
    if isinstance(game, ProductGame):
        along, degree = functools.partial(_products_along, game, directions), game.n_players
        n_factors = game.a.size * len(game.b)
    elif isinstance(game, AdditiveGame):
        along, degree = functools.partial(_terms_along, game, directions), max(map(len, game.subsets), default=0)
        n_factors = sum(table.size for table in game.tables)
    else:
        return None
    rules = [semivalue.rule(size, order, degree=max(0, degree - size)) for size in range(1, order + 1)]
    n_steps = sum(len(nodes) * (size + 1) for size, (nodes, _) in enumerate(rules, start=1))
    if n_factors * n_steps > MOST_FACTORS:
        return None
    total = np.zeros((len(directions), order, game.n_outputs))
    for size, rule in enumerate(rules, start=1):
        for t, weight in zip(*rule, strict=True):
            total[:, size - 1] += weight * along(float(t), size)
    return total


def _added_sums(game: SumGame, semivalue: Semivalue, order: int, directions: np.ndarray) -> np.ndarray | None:
    """Return the sums of a sum of games, with an axis of outputs."""

    def one(part: Any) -> np.ndarray | None:
        sums = reference_sums(part, semivalue, order, directions)
        return sums[..., 0] if sums is not None and part.single_output else sums

    sums = _added(game, one)
    return sums[..., None] if sums is not None and game.single_output else sums


def _products_along(game: ProductGame, directions: np.ndarray, t: float, size: int) -> np.ndarray:
    """Return the coefficient of x^size of the multilinear extension at t + x r, (n_rows, n_outputs)."""
    total, step = np.zeros((len(directions), game.n_outputs)), FACTORS // len(game.b)
    for i, direction in enumerate(directions):
        for terms in slices(game.n_terms, step):
            powers = np.zeros((size + 1, len(game.b), len(game.c[terms])), np.result_type(game.a, game.b))
            powers[0] = 1.0
            for j, r in enumerate(direction):
                outside = game.b[:, terms, j]
                gain = game.a[i, terms, j] - outside
                # In place, from the highest power: each needs the one below as it was
                for power in range(size, -1, -1):
                    powers[power] *= outside + t * gain
                    if power:
                        powers[power] += r * gain * powers[power - 1]
            total[i] += np.einsum("m,ml,lk->k", game.weights, powers[size], game.c[terms]).real
    return total


def _terms_along(game: AdditiveGame, directions: np.ndarray, t: float, size: int) -> np.ndarray:
    """Return the same of a sum of terms, each folded player by player."""
    total = np.zeros((len(directions), game.n_outputs))
    for subset, table in zip(game.subsets, game.tables, strict=True):
        if len(subset) < size:
            continue
        powers = np.zeros((size + 1, *table.shape))
        powers[0] = table
        for j in reversed(subset):  # the last player's bit halves the table
            outside, inside = np.split(powers, 2, axis=2)
            gain = inside - outside
            powers = outside + t * gain
            powers[1:] += directions[:, j, None, None] * gain[:-1]
        total += powers[size, :, 0]
    return total


def _by_quadrature(game: ProductGame) -> np.ndarray | None:
    """Integrate d/dt of the multilinear extension exactly, with ceil(d / 2) nodes."""
    n_rows, n_terms, d = game.a.shape
    if game.a.size * len(game.b) * (d // 2 + 1) > MOST_FACTORS:
        return None
    # The integrand has degree d - 1 in t: n Gauss nodes are exact up to degree 2 n - 1, from n = ceil(d / 2) on.
    nodes, weights = np.polynomial.legendre.leggauss(d // 2 + 1)
    mixture = np.full(len(game.b), 1.0 / len(game.b)) if game.weights is None else game.weights
    total = np.zeros((n_rows, d, game.n_outputs))
    step = FACTORS // (len(game.b) * d)
    for i in range(n_rows):
        for terms in slices(n_terms, step):
            a, b, c = game.a[i, None, terms], game.b[:, terms], game.c[terms]
            for t, w in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
                factors = t * a + (1.0 - t) * b
                ones = np.ones_like(factors[..., :1])
                # The product of all factors but the j-th, without a division: factors may be zero.
                before = np.cumprod(np.concatenate([ones, factors[..., :-1]], axis=-1), axis=-1)
                after = np.cumprod(np.concatenate([ones, factors[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
                # Feature maps of kernels may have complex factors; their imaginary parts cancel in the sum.
                total[i] += w * np.einsum("m,mlj,lk->jk", mixture, (a - b) * before * after, c).real
    return total[..., 0] if game.single_output else total
