"""Compiled sweeps over sums of small terms (``src/native/additive/``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

__all__ = [
    "Bins",
    "Factors",
    "Lookups",
    "Sets",
    "Shares",
    "Tables",
    "add_lookups",
    "add_monomials",
    "fill_cells",
    "fill_fold",
    "fill_lookups",
    "fill_searched",
    "fill_sets",
]


class Bins(NamedTuple):
    """Hold how columns are cut, and how terms number their cells."""

    cuts: np.ndarray  # ascending, of one way of cutting after the other
    cut_start: np.ndarray  # way w has cuts[cut_start[w]:cut_start[w + 1]]
    column: np.ndarray  # that it cuts
    way_start: np.ndarray  # term l uses the ways way[way_start[l]:way_start[l + 1]]
    way: np.ndarray
    stride: np.ndarray  # of each of them in the number of a cell


class Lookups(NamedTuple):
    """Hold terms with the background folded in: one table for each coalition."""

    term: np.ndarray  # which of a row's cells belongs to it
    # (n_terms, n_columns): bins of its columns; 1 where there are fewer columns
    shape: np.ndarray
    strides: (
        np.ndarray
    )  # (n_terms, n_codes, 1 + n_columns): where a coalition's table starts, its strides, 0 for columns outside
    folded: np.ndarray  # (n_places, n_outputs): all tables


class Factors(NamedTuple):
    """Monomials of k players with the background folded in: factor p of a term is the product of ``columns ** powers`` of its p-th player."""

    columns: np.ndarray  # (n_terms, k, n_columns_of_player)
    powers: np.ndarray  # 0 where there are fewer columns
    coefficients: np.ndarray  # (n_terms, n_outputs)
    # (n_terms, 2^k): the background's mean of the factors outside of each coalition
    moments: np.ndarray


class Tables(NamedTuple):
    """Hold terms of one and of two columns, each a player."""

    singles: Lookups
    pairs: Lookups


class Shares(NamedTuple):
    """Hold weights and places of sets in small terms. Terms have one or two players."""

    # p(0) of a player that is alone; p(0) and p(1) of one of two; p(0) of both together
    weights: np.ndarray
    # (n_singles, 1): where the player of each term stands among the sets
    singles: np.ndarray
    # (n_pairs, 2 or 3): where the first and the second do, and both together at order 2
    pairs: np.ndarray


class Sets(NamedTuple):
    """Hold the sets within a term of k players that are solved."""

    members: np.ndarray  # (n_sets, order): ascending bits of a code
    sizes: np.ndarray
    # (order + 1, 2^k): by size, of the coalition that is left when a set is cut out of the code
    weights: np.ndarray


fill_sets = kernel("additive.fill_sets(tables, sets, positions, out, empty, full, scale)")
add_lookups = kernel("additive.add_lookups(cells, lookups, sets, positions, out, empty, full, scale)")
fill_fold = kernel("additive.fill_fold(scores, inside, outside, weights, out)")
fill_cells = kernel("additive.fill_cells(X, bins, out)")
fill_searched = kernel("additive.fill_searched(X, bins, tables, shares, out, empty, full, scale)")
fill_lookups = kernel("additive.fill_lookups(cells, lookups, out)")
add_monomials = kernel("additive.add_monomials(X, factors, sets, positions, out, empty, full, scale)")
