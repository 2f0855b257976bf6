"""Routing for the kernels of trees that are still compiled by numba: a copy of ``src/native/trees/routing.h``.

``nodes`` is a :class:`Nodes` tuple (``FlatTrees.nodes``). Values must have been rounded to the precision of the model before
(:func:`exactshap.trees.prepared`): the kernels compare float64 with float64.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from exactshap.trees.ensemble._flat import MISSING_LEFT, MISSING_NEVER, ZERO

__all__ = ["compare", "decide", "fill_decisions_njit", "goes_left"]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _in_category_set(x, start, count, words):
    """Whether the bit of category ``int(x)`` is set; outside the set (negative, too large, infinite) it is not."""
    if not (-1.0 < x < 32.0 * count):
        return False
    code = np.int64(x)
    return (words[start + (code >> 5)] >> np.uint32(code & 31)) & np.uint32(1) == np.uint32(1)


@njit(nogil=True, cache=True, error_model="numpy")
def goes_left(x, q, nodes):
    r"""Whether a value ``x`` of the column that node ``q`` splits on goes to its left child.

    .. math:: x \text{ is missing} \;?\; \mathrm{missing}_q : x \in C_q \text{ or } x \le \theta_q \text{ or } x < \theta_q
    """
    if np.isnan(x):
        if nodes.missing[q] != MISSING_NEVER:
            return nodes.missing[q] == MISSING_LEFT
        x = 0.0
    elif nodes.zero_is_missing[q] and abs(x) <= ZERO:
        return nodes.missing[q] == MISSING_LEFT
    if nodes.category_start[q] >= 0:
        return _in_category_set(x, nodes.category_start[q], nodes.category_count[q], nodes.category_words)
    if nodes.less_equal:
        return x <= nodes.threshold[q]
    return x < nodes.threshold[q]


@njit(nogil=True, cache=True, error_model="numpy")
def compare(values, theta, less_equal, missing_left, out):
    """Write 1 where a row goes left at a numerical split, 0 where right, to ``out`` (n_rows,) uint8.

    ``values`` (n_rows,) of the split's column are contiguous, so that a plain comparison runs on many rows at once.
    """
    if less_equal and missing_left:
        for i in range(out.shape[0]):
            out[i] = not (values[i] > theta)
    elif less_equal:
        for i in range(out.shape[0]):
            out[i] = values[i] <= theta
    elif missing_left:
        for i in range(out.shape[0]):
            out[i] = not (values[i] >= theta)
    else:
        for i in range(out.shape[0]):
            out[i] = values[i] < theta


@njit(nogil=True, cache=True, error_model="numpy")
def decide(values, q, nodes, out):
    """Write 1 where a row goes left at node ``q``, 0 where right, to ``out`` (n_rows,) uint8; ``values`` as in :func:`compare`."""
    if nodes.category_start[q] >= 0 or nodes.zero_is_missing[q]:
        for i in range(out.shape[0]):
            out[i] = goes_left(values[i], q, nodes)
    else:
        compare(values, nodes.threshold[q], nodes.less_equal, goes_left(np.nan, q, nodes), out)


@njit(nogil=True, cache=True, error_model="numpy")
def fill_decisions_njit(columns, nodes, out):
    """Write 1 where a row goes left, node by node, to ``out`` (n_nodes, n_rows) uint8; leaves are left alone.

    ``columns`` (n_features, n_rows) is contiguous. Handing ``nodes`` over to :func:`decide` would cost as much as 300 comparisons.
    """
    for q in range(out.shape[0]):
        j = nodes.feature[q]
        if j < 0:
            continue
        if nodes.category_start[q] >= 0 or nodes.zero_is_missing[q]:
            for i in range(out.shape[1]):
                out[q, i] = goes_left(columns[j, i], q, nodes)
        else:
            compare(columns[j], nodes.threshold[q], nodes.less_equal, goes_left(np.nan, q, nodes), out[q])
