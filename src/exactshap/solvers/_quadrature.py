"""Product games by quadrature: exact, polynomial in the number of players, without cancellation."""

from __future__ import annotations

import numpy as np

from exactshap.games import ProductGame
from exactshap.games._base import squeeze
from exactshap.semivalues import Beta, Rule, Semivalue
from exactshap.solvers._nodes import bound, enough_nodes
from exactshap.solvers._solution import Solution, player_sets, set_sizes

__all__ = ["solve_product"]


def solve_product(game: ProductGame, semivalue: Semivalue, order: int, *, all_nodes: bool = False) -> Solution:
    r"""Solve a product game for every set of 1..order players.

    .. math:: \phi_T = \int_0^1 \sum_l c_l \prod_{j \in T} (a_{lj} - b_{lj})
              \prod_{k \notin T} \bigl(t\, a_{lk} + (1 - t)\, b_{lk}\bigr)\, \mathrm{d}\mu(t)

    The integrand has degree d - |T|, so that ceil((d - |T| + 1) / 2) Gauss-Jacobi nodes are exact. Fewer are used when the
    a-priori bound of ``_nodes`` puts the error below rounding; ``all_nodes=True`` forbids it. Cost
    O(n_rows n_background n_terms n_nodes n_players) for order 1, times C(d, order) / d beyond.
    """
    from exactshap.solvers import _kernels

    a, b, c = _terms_last(game)
    n_rows, n_players = a.shape[:2]
    sets = player_sets(n_players, order)
    weights = np.ascontiguousarray(game.weights)
    empty, full = np.zeros((n_rows, game.n_outputs)), np.zeros((n_rows, game.n_outputs))
    scale, spread = np.empty(n_rows), np.empty(n_rows)
    _kernels.fill_ends(a, b, c, weights, empty, full, scale, spread)
    values = np.zeros((n_rows, len(sets), game.n_outputs))
    error_bound, used, offset = 0.0, [], 0
    for size in set_sizes(order):
        nodes, node_weights, relative = _rule(
            semivalue, size, order, n_players, None if all_nodes else float(spread.max(initial=0))
        )
        error_bound = max(error_bound, relative)
        used.append(len(nodes))
        count = sum(len(players) == size for players in sets)
        block = np.zeros((n_rows, count, game.n_outputs))
        if size == 1:
            _kernels.fill_singles(a, b, c, weights, nodes, node_weights, block)
        else:
            _kernels.fill_interactions(a, b, c, weights, size, nodes, node_weights, block)
        values[:, offset : offset + count] = block
        offset += count
    residual = full - empty - values.sum(axis=1) if semivalue.is_efficient(order) else None
    return Solution(
        values=squeeze(game, values),
        sets=sets,
        empty=squeeze(game, empty + game.constant),
        full=squeeze(game, full + game.constant),
        residual=None if residual is None else squeeze(game, residual),
        method=f"quadrature ({max(used)} nodes)",
        error_bound=2.0 * error_bound * (scale[0] if game.n_rows is None else scale),
        scale=scale[0] if game.n_rows is None else scale,
    )


def _terms_last(game: ProductGame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a, b, c with the terms on the last, contiguous axis and one dtype; free of copies where a reader laid them so."""
    dtype = np.complex128 if game.is_complex else np.float64
    a, b = (np.ascontiguousarray(array.transpose(0, 2, 1), dtype) for array in (game.a, game.b))
    return a, b, np.ascontiguousarray(game.c.T, dtype)


def _rule(
    semivalue: Semivalue, size: int, order: int, n_players: int, spread: float | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return nodes, weights and the bound on the relative truncation error (0.0 for an exact rule)."""
    degree = n_players - size
    measure = semivalue.of_size(size, order)
    if spread is not None and isinstance(measure, Beta):
        n_nodes = enough_nodes(spread, degree)
        if n_nodes < degree // 2 + 1:
            return *_writable(measure.gauss(n_nodes)), bound(spread, n_nodes)
    return *_writable(measure.rule(degree)), 0.0


def _writable(rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Return copies: numba compiles a second version of each kernel for read-only arrays."""
    return np.array(rule[0], float), np.array(rule[1], float)
