"""Send rows through trees: drivers of the compiled routing."""

from __future__ import annotations

import numpy as np

from exactshap.trees.ensemble._flat import FlatTrees

__all__ = ["apply", "decisions", "margin", "prepared"]


def prepared(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return ``X`` as contiguous float64 (n_rows, n_features), rounded to float32 first where the library does so."""
    X = np.asarray(X, np.float64)
    if trees.single_precision:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32).astype(np.float64)
    return np.ascontiguousarray(X)


def decisions(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return 1 where a row goes left at a node, 0 where right (and at leaves), uint8 of shape (n_nodes, n_rows)."""
    from exactshap.trees.ensemble._kernels import fill_decisions

    out = np.zeros((trees.n_nodes, len(X)), np.uint8)
    fill_decisions(np.ascontiguousarray(prepared(trees, X).T), trees.nodes, out)
    return out


def apply(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return the global number of the leaf of each row in each tree, int32 of shape (n_rows, n_trees)."""
    from exactshap.trees.ensemble._kernels import fill_leaves

    out = np.empty((len(X), trees.n_trees), np.int32)
    fill_leaves(prepared(trees, X), trees.tree_start, trees.nodes, out)
    return out


def margin(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    r"""Return the constant plus the values of the reached leaves, of shape (n_rows, n_outputs), in float64.

    .. math:: f(x) = c + \sum_k v_{\mathrm{leaf}_k(x)}
    """
    from exactshap.trees.ensemble._kernels import sum_leaf_values

    out = np.tile(trees.constant, (len(X), 1))
    sum_leaf_values(prepared(trees, X), trees.tree_start, trees.nodes, trees.value, out)
    return out
