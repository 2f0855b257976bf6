r"""Solve games of rectified sums exactly, by meeting in the middle.

.. math:: v(S) = \sum_k c_k \max\Bigl(0,\; \beta_k + \sum_{j \in S} s_{i(k) j}\Bigr)

A kink has no short sum of exponentials. The coalitions of either half of the players are sorted by their sums instead:
for each coalition of one half the sum is positive for a tail of the other list; its weights are added up by size as it grows.
A sum of d players costs some d 2^(d / 2) operations instead of 2^d, and sums that are positive, or negative, for every coalition cost d.
"""

from __future__ import annotations

import itertools

import numpy as np

from exactshap._native import kernel
from exactshap.errors import BudgetError
from exactshap.semivalues import Semivalue
from exactshap.solvers.core import Part, count_sets, set_sizes

fill_hinges = kernel("product.fill_hinges(steps, starts, shifts, c, marginal, joined, mass, out)")

# Players that move one sum: 2^15 coalitions of a half, 2 ms a sum
MAX_HINGE_PLAYERS = 30
# Numbers of a row of weights, as in src/native/product/hinges.cpp
_PADDED = 64


def solve_hinges(
    steps: np.ndarray,
    starts: np.ndarray,
    shifts: np.ndarray,
    coefficients: np.ndarray,
    semivalue: Semivalue,
    order: int,
) -> Part:
    """Return the values (1, n_sets, n_outputs) of one row, without a constant.

    ``steps`` (n_sums, n_players) are s, what each player adds to a sum; the hinges of sum i are ``starts[i]`` to ``starts[i + 1] - 1``, with
    ``shifts`` beta and ``coefficients`` (n_hinges, n_outputs) c. A set of several players is solved as the last of them in the differences
    of the game in all others.
    """
    _check_width(steps, starts, shifts)
    n_players, n_outputs = steps.shape[1], coefficients.shape[1]
    parts = []
    for size in set_sizes(order):
        weights = semivalue.weights(n_players, size, order)
        # A set is its first players, which are fixed, and its last one: sets come in lexicographic order
        for fixed in itertools.combinations(range(n_players), size - 1):
            last = max(fixed, default=-1) + 1
            parts.append(_differences(steps, starts, shifts, coefficients, weights, fixed)[last:])
    ends, owner = np.zeros((2, n_outputs)), np.repeat(np.arange(len(steps)), np.diff(starts))
    for k, rise in enumerate((0.0, steps.sum(axis=1)[owner])):
        ends[k] = np.maximum(shifts + rise, 0.0) @ coefficients
    sizes = np.abs(shifts) + np.abs(steps).sum(axis=1)[owner]
    scale = float((sizes * np.abs(coefficients).max(axis=1, initial=0.0)).sum())
    values = np.concatenate(parts) if parts else np.zeros((count_sets(n_players, order), n_outputs))
    one = np.full(1, scale)
    return Part(values[None], ends[None, 0], ends[None, 1], "meet in the middle", error_bound=np.zeros(1), scale=one)


def _check_width(steps: np.ndarray, starts: np.ndarray, shifts: np.ndarray) -> None:
    moving = (steps != 0.0).sum(axis=1)
    if steps.shape[1] <= MAX_HINGE_PLAYERS or moving.max(initial=0) <= MAX_HINGE_PLAYERS:
        return
    owner = np.repeat(np.arange(len(steps)), np.diff(starts))
    # Sums with the same sign for every coalition are linear or 0, for any number of players
    low, high = np.minimum(steps, 0.0).sum(axis=1)[owner], np.maximum(steps, 0.0).sum(axis=1)[owner]
    bent = owner[(shifts + low < 0.0) & (shifts + high > 0.0)]
    most = int(moving[bent].max(initial=0))
    if most > MAX_HINGE_PLAYERS:
        got = (
            f"Got a sum that {most} players move across zero; at most {MAX_HINGE_PLAYERS}, with halves of 2^15 coalitions each"
        )
        raise BudgetError("Rectified sums have too many players", got, "Join players into groups")


def _differences(
    steps: np.ndarray,
    starts: np.ndarray,
    shifts: np.ndarray,
    coefficients: np.ndarray,
    weights: np.ndarray,
    fixed: tuple[int, ...],
) -> np.ndarray:
    """Return single players' values (n_players, n_outputs) in differences of the game."""
    n_players = steps.shape[1]
    out = np.zeros((n_players, coefficients.shape[1]))
    others = [j for j in range(n_players) if j not in fixed]
    if not others or not len(steps):
        return out
    owner, n_corners = np.repeat(np.arange(len(steps)), np.diff(starts)), 2 ** len(fixed)
    # A difference in k fixed players is a signed sum over their 2^k states, each of which shifts the hinge
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=len(fixed)))).reshape(n_corners, len(fixed))
    signs = (-1.0) ** (len(fixed) - corners.sum(axis=1))
    moved = (shifts[:, None] + steps[owner][:, list(fixed)] @ corners.T).ravel()
    c = (coefficients[:, None] * signs[:, None]).reshape(-1, coefficients.shape[1])
    marginal, joined = _weight_tables(weights)
    part = np.zeros((len(others), c.shape[1]))
    mass = float(marginal[1, 0])  # sums over all coalitions: the weight of the only marginal of one player
    arrays = (np.ascontiguousarray(steps[:, others]), np.asarray(starts, np.int64) * n_corners, moved, np.ascontiguousarray(c))
    fill_hinges(*arrays, marginal, joined, mass, part)
    out[others] = part
    return out


def _weight_tables(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return p(s) and p(s - 1) + p(s) for every number of players that are not null in a sum.

    Coalitions with and without a null player have one value, so their weights are added.
    """
    n = len(weights)  # players that are not fixed
    marginal, joined = np.zeros((n + 1, _PADDED)), np.zeros((n + 1, _PADDED))
    row = np.asarray(weights, float)
    for count in range(n, 0, -1):
        if count <= MAX_HINGE_PLAYERS:
            marginal[count, :count] = row
            joined[count, :count] = row
            joined[count, 1 : count + 1] += row
        row = row[:-1] + row[1:]
    return marginal, joined
