r"""Decompose R2 of linear, additive and kernel models, at their value functions.

.. math:: \phi_j = -\frac{\operatorname{Shapley}_j(Q)}{\sum_i w_i (y_i - \bar y)^2}, \qquad Q(S) = \sum_i w_i (y_i - v_{x_i}(S))^2

For a sum of terms with Moebius transforms a_U, the product of two terms is a term of the players of both:

.. math:: \operatorname{Shapley}_j(Q) = \sum_{U, U' : j \in U \cup U'} \frac{\sum_i w_i a_{iU} a_{iU'}}{|U \cup U'|}
    - 2 \sum_{U \ni j} \frac{\sum_i w_i (y_i - v_{x_i}(\emptyset)) a_{iU}}{|U|}

The square of a sum of L products is a sum of L^2 products. All 2^d coalitions are visited instead where that costs less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from exactshap._runtime.progress import duration
from exactshap._runtime.slices import slices
from exactshap._runtime.types import Column, Model, TableLike
from exactshap.decompose.r2._input import R2Decomposition, R2Sums, Target, check_seconds, target_of, weights_of
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.games import AdditiveGame, ProductGame, coalition_products
from exactshap.readers import Reader, Request, is_of_target, read
from exactshap.results.decomposition import frame_kind
from exactshap.solvers import solve
from exactshap.trees import convert

BLOCK_ROWS = 256  # rows that are read and solved at a time
PAIRS_AT_A_TIME = 2**16  # pairs of terms that are solved as one game
MOST_TABLE = 2**26  # factors of all coalitions: 512 MiB
OPERATION = 1e-9  # seconds of one multiplication, of a core of 2023


# Shapley(Q), v(none) of each row, and the magnitudes (n_rows,) that rounding is relative to
Sums = tuple[np.ndarray, np.ndarray, np.ndarray]


def fixed_shares(
    model: Model,
    X: TableLike,
    y: Column,
    sample_weight: Column,
    groups: Mapping[str, Any] | None,
    background: TableLike,
    value_function: str,
) -> R2Decomposition:
    """Return the shares of R2 over the players of one fitted model."""
    table = as_table(X)
    reference = None if background is None else as_table(background, what="background")
    reader = read(model, Request(background=reference, value_function=value_function, groups=groups))
    if reader.traits.value_function == "path_dependent":
        convert(model)  # raises for trees inside other models, and says which part to pass
    _require_target(reader)
    target = Target(target_of(model, y, table), weights_of(sample_weight, table))
    target.require_variation()
    blocks = slices(table.n_rows, BLOCK_ROWS)
    parts = [
        _solve(reader.game(table.take(rows)), target.y[rows], target.weights[rows], reader.traits.model_name, table.n_rows)
        for rows in blocks
    ]
    squared_error = target.squared_error(np.asarray(reader.predict(table), float).reshape(-1))
    shares, *by_row = zip(*parts, strict=True)
    empty, sizes = map(np.concatenate, by_row)
    traits, magnitudes = reader.traits, np.abs(target.y) + sizes + reader.traits.rounding.floor
    sums = R2Sums(
        facts={"model": traits.model_name, "checked_against_model": True},
        statistic="R2",
        feature_names=traits.player_names,
        game="ensemble",
        value_function=traits.value_function,
        shares=np.sum(shares, axis=0),
        expected=target.squared_error(empty) - squared_error,
        rounding=16.0 * traits.relative_rounding * float(target.weights @ magnitudes**2),
        squared_error=squared_error,
        weight=target.weight,
        mean=target.mean,
        variation=target.sst,
        n_rows=table.n_rows,
    )
    return sums.result(None, frame_kind(table.native))


def _require_target(reader: Reader) -> None:
    """Refuse outputs that are not on the scale of y."""
    if not is_of_target(reader.traits.unit) or reader.traits.n_outputs != 1:
        got = f"Got {reader.traits.n_outputs} outputs, in the unit of {reader.traits.unit}"
        do = "Pass a regression model with one output"
        raise UnsupportedStructureError(f"{reader.traits.model_name} does not predict y itself, so that it has no R2", got, do)


def _solve(game: Any, y: np.ndarray, weights: np.ndarray, name: str, n_rows: int) -> Sums:
    """Return the sums of some rows, by the solver of their kind of game."""
    if isinstance(game, AdditiveGame):
        return _of_terms(game, y, weights)
    if isinstance(game, ProductGame) and not game.is_complex:
        return _of_products(game, y, weights, name, n_rows)
    do = "Pass a linear, additive or kernel model, or an ensemble of trees"
    raise UnsupportedStructureError(f"The R2 of {name} is not a sum of products", f"Got a {type(game).__name__}", do)


def _of_terms(game: AdditiveGame, y: np.ndarray, weights: np.ndarray) -> Sums:
    """Return the sums of additive games, by pairs of Moebius transforms."""
    empty = np.full(len(y), game.constant[0])
    transforms: dict[tuple[int, ...], np.ndarray] = {}
    for subset, table in zip(game.subsets, game.tables, strict=True):
        moebius = _moebius(table[:, :, 0])
        for code in range(moebius.shape[1]):
            players = tuple(sorted(player for p, player in enumerate(subset) if code >> p & 1))
            if players:
                # Terms may overlap: equal sets of players are added up before the pairs, of which there are then fewer.
                transforms[players] = transforms.get(players, 0.0) + moebius[:, code]
            else:
                empty = empty + moebius[:, 0]
    shares = np.zeros(game.n_players)
    if not transforms:
        return shares, empty, np.abs(empty)
    sets, columns = list(transforms), np.stack(list(transforms.values()), axis=1)
    linear, products = (weights * (y - empty)) @ columns, columns.T @ (weights[:, None] * columns)
    member = np.zeros((len(sets), game.n_players), bool)
    for u, members in enumerate(sets):
        member[u, list(members)] = True
    # A product of indicators of U is the unanimity game of U: its value 1 / |U| goes to each member.
    shares -= 2.0 * (linear / member.sum(axis=1)) @ member
    # A union of one set with each other one: O(terms^2 players).
    for u in range(len(sets)):
        union = member[u] | member
        shares += (products[u] / union.sum(axis=1)) @ union
    return shares, empty, np.abs(empty) + np.abs(columns).sum(axis=1)


def _moebius(table: np.ndarray) -> np.ndarray:
    """Return the Moebius transforms (n_rows, 2^k) of tables over coalitions."""
    values = table.copy()
    for p in range(values.shape[1].bit_length() - 1):
        cells = values.reshape(len(values), -1, 2, 2**p)
        # One player at a time: a(U) = sum over T in U of (-1)^(|U| - |T|) v(T).
        cells[:, :, 1] -= cells[:, :, 0]
    return values


def _of_products(game: ProductGame, y: np.ndarray, weights: np.ndarray, name: str, n_rows: int) -> Sums:
    """Return the sums of product games, by all coalitions or by pairs of terms."""
    n_terms, d = game.n_terms * game.n_background, game.n_players
    # 2.0^1024 would overflow; pairs of terms are cheaper long before.
    table = game.n_terms * 2.0 ** min(d, 1000)
    pairs = n_terms**2 / 2.0 * d * ((d + 1) // 2)
    by_table = table <= MOST_TABLE and table < pairs
    seconds = n_rows * (table if by_table else 4.0 * pairs) * OPERATION
    what = f"The R2 of {name}, of {n_terms:,} products of {d} players, is forecast to take {duration(seconds)} on one core"
    check_seconds(seconds, what, "Pass fewer rows, a smaller background (one row for the baseline), or groups=")
    largest = np.maximum(np.abs(game.a), np.abs(game.b).max(axis=0)).prod(axis=2)
    sizes = largest @ np.abs(game.c[:, 0]) + abs(game.constant[0])
    empty = np.full(len(y), np.einsum("m,ml,l->", game.weights, game.b.prod(axis=2), game.c[:, 0]) + game.constant[0])
    shares = _by_coalitions(game, y, weights) if by_table else _by_pairs(game, y, weights)
    return shares, empty, sizes


def _by_coalitions(game: ProductGame, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Shapley(Q) from Q of every coalition. Bit j of its number is player j."""
    absent = sum(weight * coalition_products(b.T, absent=True) for weight, b in zip(game.weights, game.b, strict=True))
    outside = absent * game.c[:, 0]
    squares = np.zeros(2**game.n_players)
    for a, target, weight in zip(game.a, y, weights, strict=True):
        values = np.einsum("sl,sl->s", coalition_products(a.T), outside) + game.constant[0]
        squares += weight * (target - values) ** 2
    return np.asarray(solve(AdditiveGame(game.n_players, [range(game.n_players)], [squares])).values).ravel()


def _by_pairs(game: ProductGame, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Shapley(Q) from products of pairs of terms: each is a product again."""
    m = game.n_background
    inside, outside = np.repeat(game.a, m, axis=1), game.b.transpose(1, 0, 2).reshape(-1, game.n_players)
    c = np.outer(game.c[:, 0], game.weights).ravel()
    first, second = np.triu_indices(len(c))
    # (sum c p)^2: each pair of different terms occurs twice.
    both = np.where(first == second, 1.0, 2.0) * c[first] * c[second]
    shares = np.zeros(game.n_players)
    for a, target, weight in zip(inside, y - game.constant[0], weights, strict=True):
        shares -= 2.0 * weight * target * solve(ProductGame(c, a, outside)).values
        for some in slices(len(both), PAIRS_AT_A_TIME):
            u, w = first[some], second[some]
            pairs = ProductGame(both[some], a[u] * a[w], outside[u] * outside[w])
            shares += weight * np.asarray(solve(pairs).values).ravel()
    return shares
