"""Compiled sweeps over sums of small terms.

Drivers validate, allocate and cut; these kernels fill ``out``. A coalition of a term's own players is a code: bit p says
whether its p-th player is inside. Only sums and differences of table entries: a player that a term does not react to gets
exactly zero.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["fill_fold", "fill_lookups", "fill_sets"]


@njit(nogil=True, cache=True, error_model="numpy")
def fill_sets(tables, members, sizes, positions, weights, out, empty, full, scale):
    r"""Add the values of the sets within each term to ``out`` (n_rows, n_sets, n_outputs), and the ends of the games.

    .. math:: \phi_T \mathrel{+}= \sum_{S \subseteq I \setminus T} p_{|T|}(|S|)\, \Delta_T v_I(S)

    ``tables (n_terms, n_rows, 2^|I|, n_outputs)``; local set s has ``sizes[s]`` players ``members[s]`` (ascending bits) and
    goes to ``positions[l, s]``; ``weights[size, code]`` is p of the coalition that is left when T is cut out of the code.
    ``scale (n_rows,)`` grows by the largest magnitude of each table.
    """
    n_terms, n_rows, n_codes, n_outputs = tables.shape
    work = np.empty(n_codes)
    for l in range(n_terms):
        for i in range(n_rows):
            largest = 0.0
            for o in range(n_outputs):
                empty[i, o] += tables[l, i, 0, o]
                full[i, o] += tables[l, i, n_codes - 1, o]
                for code in range(n_codes):
                    largest = max(largest, abs(tables[l, i, code, o]))
                for s in range(sizes.shape[0]):
                    width = n_codes
                    for code in range(n_codes):
                        work[code] = tables[l, i, code, o]
                    for m in range(sizes[s] - 1, -1, -1):  # highest bit first: the lower ones keep their places
                        bit = 1 << members[s, m]
                        target = 0
                        for code in range(width):
                            if code & bit == 0:
                                work[target] = work[code + bit] - work[code]
                                target += 1
                        width = target
                    value = 0.0
                    for code in range(width):
                        value += weights[sizes[s], code] * work[code]
                    out[i, positions[l, s], o] += value
            scale[i] += largest


@njit(nogil=True, cache=True, error_model="numpy")
def fill_fold(scores, inside, outside, weights, out):
    r"""Set ``out`` (n_inside, n_outputs) to the mean of a binned term over the background's bins outside a coalition.

    .. math:: T_A[x_A] = \sum_z w_z\, f_I(x_A, z_{I \setminus A})

    ``scores (n_cells, n_outputs)``; a cell's number is ``inside[x_A] + outside[z]``: both are sums of strides times bins.
    """
    for cell in range(inside.shape[0]):
        for o in range(scores.shape[1]):
            total = 0.0
            for z in range(outside.shape[0]):
                total += weights[z] * scores[inside[cell] + outside[z], o]
            out[cell, o] = total


@njit(nogil=True, cache=True, error_model="numpy")
def fill_lookups(cells, shape, strides, folded, out):
    r"""Look up all coalition values of one binned term: ``out[i, A] = folded[start_A + sum_{p in A} stride_{A,p} bin_p(i)]``.

    ``cells (n_rows,)`` numbers the bins of a row in C order within ``shape (n_columns,)``; ``strides (2^|I|, 1 + n_columns)``
    holds the start of each coalition's table and its strides, 0 for columns outside; ``out (n_rows, 2^|I|, n_outputs)``.
    """
    bins = np.empty(shape.shape[0], np.int64)
    for i in range(cells.shape[0]):
        cell = cells[i]
        for p in range(shape.shape[0] - 1, -1, -1):
            bins[p] = cell % shape[p]
            cell //= shape[p]
        for code in range(strides.shape[0]):
            place = strides[code, 0]
            for p in range(shape.shape[0]):
                place += strides[code, p + 1] * bins[p]
            for o in range(folded.shape[1]):
                out[i, code, o] = folded[place, o]
