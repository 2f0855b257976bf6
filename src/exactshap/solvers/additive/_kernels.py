"""Compiled sweeps over sums of small terms (``src/native/additive/terms.cpp``, ``bins.cpp``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from exactshap._native import kernel

__all__ = ["Bins", "Lookups", "Sets", "add_lookups", "fill_cells", "fill_fold", "fill_lookups", "fill_sets"]


class Bins(NamedTuple):
    """How columns are cut into bins, perhaps several ways each, and how terms number their cells."""

    cuts: np.ndarray  # ascending, of one way of cutting after the other
    cut_start: np.ndarray  # way w has cuts[cut_start[w]:cut_start[w + 1]]
    column: np.ndarray  # that it cuts
    way_start: np.ndarray  # term l uses the ways way[way_start[l]:way_start[l + 1]]
    way: np.ndarray
    stride: np.ndarray  # of each of them in the number of a cell


class Lookups(NamedTuple):
    """Terms of equally many players with the background folded in: one table for each coalition of a term's players."""

    term: np.ndarray  # which of a row's cells belongs to it
    shape: np.ndarray  # (n_terms, n_columns): bins of its columns; 1 where there are fewer columns
    strides: (
        np.ndarray
    )  # (n_terms, n_codes, 1 + n_columns): where a coalition's table starts, its strides, 0 for columns outside
    folded: np.ndarray  # (n_places, n_outputs): all tables


class Tables(NamedTuple):
    """Terms of one output each of whose columns is a player: those of one, and those of two."""

    singles: Lookups
    pairs: Lookups


class Shares(NamedTuple):
    """What the values of sets are within terms of one and two players, and where they go."""

    weights: np.ndarray  # p(0) of a player that is alone; p(0) and p(1) of one of two; p(0) of both together
    singles: np.ndarray  # (n_singles, 1): where the player of each term stands among the sets
    pairs: np.ndarray  # (n_pairs, 2 or 3): where the first and the second do, and the two together, if they are asked for


class Sets(NamedTuple):
    """The sets within a term of k players whose values are asked for."""

    members: np.ndarray  # (n_sets, order): ascending bits of a code
    sizes: np.ndarray
    weights: np.ndarray  # (order + 1, 2^k): by size, of the coalition that is left when a set is cut out of the code


fill_sets = kernel("additive.fill_sets(tables, sets, positions, out, empty, full, scale)")
add_lookups = kernel("additive.add_lookups(cells, lookups, sets, positions, out, empty, full, scale)")
fill_fold = kernel("additive.fill_fold(scores, inside, outside, weights, out)")
fill_cells = kernel("additive.fill_cells(X, bins, out)")
fill_searched = kernel("additive.fill_searched(X, bins, tables, shares, out, empty, full, scale)")
fill_lookups = kernel("additive.fill_lookups(cells, lookups, out)")
