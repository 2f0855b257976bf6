"""Send rows through trees: drivers of the compiled routing."""

from __future__ import annotations

import numpy as np

from exactshap.trees.ensemble._flat import FlatTrees
from exactshap.trees.ensemble._kernels import add_leaf_functions, fill_decisions, fill_leaves, sum_leaf_values

__all__ = ["apply", "decisions", "function_sizes", "margin", "prepared"]


def prepared(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return rows as they are compared with thresholds: float64, rounded to float32 first where the library does so.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)

    Returns
    -------
    X : C-contiguous float64 array of shape (n_rows, n_features)

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from exactshap.trees import flatten, prepared
    >>> trees = flatten(DecisionTreeRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]))
    >>> prepared(trees, [[0.1]]) == np.float32(0.1)
    array([[ True]])
    """
    X = np.asarray(X, np.float64)
    if trees.single_precision:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32).astype(np.float64)
    return np.ascontiguousarray(X)


def decisions(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return which way each row goes at each node.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)

    Returns
    -------
    decisions : uint8 array of shape (n_nodes, n_rows)
        1 where the row goes left, 0 where right and at leaves.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from exactshap.trees import decisions, flatten
    >>> trees = flatten(DecisionTreeRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]))
    >>> decisions(trees, [[0.2], [3.0]])[0]
    array([1, 0], dtype=uint8)
    """
    out = np.zeros((trees.n_nodes, len(X)), np.uint8)
    fill_decisions(np.ascontiguousarray(prepared(trees, X).T), trees.nodes, out)
    return out


def apply(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return the leaf that each row reaches in each tree.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)

    Returns
    -------
    leaves : int32 array of shape (n_rows, n_trees)
        Global numbers of nodes.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from exactshap.trees import apply, flatten
    >>> trees = flatten(DecisionTreeRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]))
    >>> trees.value[apply(trees, [[0.2], [3.0]])[:, 0], 0]
    array([0., 5.])
    """
    out = np.empty((len(X), trees.n_trees), np.int32)
    fill_leaves(prepared(trees, X), trees.tree_start, trees.nodes, out)
    return out


def margin(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    r"""Return the sum of the leaves that each row reaches, in float64.

    .. math:: f(x) = c + \sum_k v_{\mathrm{leaf}_k(x)}

    Parameters
    ----------
    X : array of shape (n_rows, n_features)

    Returns
    -------
    margin : array of shape (n_rows, n_outputs)
        The constant plus the values of the leaves and their linear functions.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from exactshap.trees import flatten, margin
    >>> trees = flatten(DecisionTreeRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]))
    >>> margin(trees, [[0.2], [3.0]])
    array([[0.],
           [5.]])
    """
    out = np.empty((len(X), trees.n_outputs))
    out[...] = trees.constant
    X = prepared(trees, X)
    sum_leaf_values(X, trees.routes, out)
    if trees.linear is not None:
        with np.errstate(all="ignore"):
            add_leaf_functions(X, apply(trees, X), trees.linear.arrays, out, np.zeros(0))
    return out


def function_sizes(trees: FlatTrees, X: np.ndarray) -> np.ndarray:
    """Return the magnitudes (n_rows,) that the linear functions of the reached leaves add up; zeros where leaves are constant."""
    sizes = np.zeros(len(X))
    if trees.linear is not None:
        X = prepared(trees, X)
        add_leaf_functions(X, apply(trees, X), trees.linear.arrays, np.zeros((len(X), trees.n_outputs)), sizes)
    return sizes
