r"""Bound the change of Shapley values under small changes of the inputs.

Shapley values are linear in f, so :math:`|\phi_{x,j}(f) - \phi_{x',j}(f)| \le \|f\|\, \|\phi_{x,j} - \phi_{x',j}\|`, and the norm of
the difference of functionals does not depend on f. :func:`functional_distance` computes it exactly for two rows,
:func:`machine_stability` bounds it for all rows with columns that differ by at most delta (Theorem 6 of RKHS-SHAP).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactshap._runtime.slices import slices
from exactshap._runtime.types import TableLike
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.kernels import Component, Kernel
from exactshap.semivalues import find
from exactshap.solvers.rkhs._gp_covariance import fill_prior

# Rows of a block of the kernel matrix in a norm.
NORM_ROWS = 1024


@dataclass(frozen=True, eq=False)
class Stability:
    """Hold a bound on the change of every Shapley value.

    Attributes
    ----------
    bound : array of shape (n_outputs,)
        Bound on the change of any value of any row, in units of the output.
    rkhs_norm : array of shape (n_outputs,)
        ``|f|``, in the space of the kernel.
    functional : float
        Bound on |phi_x - phi_x'|.
    delta : array of shape (n_features,)
        Largest absolute change of each column.
    """

    bound: np.ndarray
    rkhs_norm: np.ndarray
    functional: float
    delta: np.ndarray


def machine_stability(
    parts: Sequence[tuple[Component, np.ndarray, np.ndarray]],
    monomials: tuple[np.ndarray, np.ndarray],
    reach: np.ndarray,
    delta: ArrayLike,
) -> Stability:
    r"""Bound the change of interventional Shapley values of a kernel machine.

    No column moves by more than delta:

    .. math:: |\phi_{x,j}(f) - \phi_{x',j}(f)| \le \|f\| \sqrt{4 \sum_p s_p \Bigl(1 - \prod_j \kappa_{pj}(\delta_j)\Bigr)}

    For the RBF kernel this is equation (12) of the paper; it holds for any background, and delta is the root of the theorem's.
    With :math:`c_p = s_p \alpha` the coefficients of component p, :math:`|f|^2 = \alpha^\top K \alpha = \sum_p c_p^\top K_p c_p / s_p`,
    where :math:`K_p` has amplitude 1; a monomial is a component of amplitude 1 with its coefficient as norm. Powers of columns can
    be negative and are not bounded: for them the constant of the theorem is 4, and the bound holds for the explained rows.

    ``parts`` are (component, coefficients (n_outputs, n_terms), points (n_features, n_terms)), ``monomials`` powers (n_features, n_monomials)
    and coefficients (n_outputs, n_monomials), ``reach`` (2, n_features) the largest absolute value of each column of the explained rows and
    of the background.
    """
    powers, slopes = monomials
    change = _checked_change(delta, reach.shape[1])
    squared_norm = (slopes**2).sum(axis=1)
    squared_move = (slopes != 0) @ _functional_bound(_power_change(powers, change, reach)[0] ** 2, signed=True) ** 2
    moves = [_component_move(component, change, reach) for component, _, _ in parts]
    return _of_parts(parts, moves, change, squared_norm, squared_move)


def _functional_bound(change: Any, *, signed: bool = False) -> Any:
    r"""Return Theorem 6's bound on |phi_x - phi_x'|, with the constant that holds.

    .. math:: \|\phi_{x,j} - \phi_{x',j}\|^2 \le c\, L_\delta

    for feature maps of norm 1 at most. L_delta, ``change``, is the largest squared distance of the feature maps of x_S and x'_S over all
    S. c is 2 for kernels that are not negative, as printed, and 4 for ``signed`` ones: for the linear kernel on [-1, 1]^2 with z = (-1, 1), x = (1, 1), x' = 0 the left side is
    2.25 L_delta, so that 2 is too small.
    """
    return np.sqrt((4.0 if signed else 2.0) * change)


def _of_parts(
    parts: Sequence[tuple[Component, np.ndarray, np.ndarray]],
    moves: Sequence[float],
    change: np.ndarray,
    squared_norm: np.ndarray,
    squared_move: np.ndarray,
) -> Stability:
    """Add the parts' norms and moves to those of other terms. Each is in the space of a component of amplitude 1."""
    for (component, coefficients, points), move in zip(parts, moves, strict=True):
        squared_norm = squared_norm + _squared_norm(component, coefficients, points)
        squared_move = squared_move + np.where(np.any(coefficients != 0, axis=1), component.amplitude * move**2, 0.0)
    norm, functional = np.sqrt(np.maximum(squared_norm, 0.0)), np.sqrt(squared_move)
    return Stability(norm * functional, norm, float(functional.max(initial=0.0)), change)


def _component_move(part: Component, change: np.ndarray, reach: np.ndarray) -> float:
    r"""Return a bound on |phi_x - phi_x'| in the space of a component of amplitude 1.

    Without powers :math:`L_\delta = 2 (1 - \kappa)` and :math:`M_\mu = 1`. With powers m the feature map is :math:`m_S(x)\, \psi_S(x)`, and
    :math:`\|m \psi - m' \psi'\| \le |m - m'| + |m'| \sqrt{2 (1 - \kappa)}`.
    """
    squared = 2.0 * (1.0 - _falls_to(replace(part, powers=None), change))
    if part.powers is None:
        return float(_functional_bound(squared))
    moved, height = (found.item() for found in _power_change(part.powers[:, None], change, reach))
    return float(_functional_bound((moved + height * np.sqrt(squared)) ** 2, signed=True))


def _power_change(powers: np.ndarray, change: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Return bounds (n_monomials,) on each monomial's change and height.

    .. math:: |m_S(x') - m_S(x)|\, |m_{\bar S}(z)| \le \sum_k (h_k - l_k) \prod_{j \ne k} t_j, \qquad
              |m_S(x')|\, |m_{\bar S}(z)| \le \prod_j t_j

    with :math:`l = r^e,\; h = (r + \delta)^e,\; t = \max(h, b^e)` for |x| <= r and |z| <= b.
    """
    low, high, far = (edge[:, None] ** powers for edge in (reach[0], reach[0] + change, reach[1]))
    tops = np.maximum(high, far)
    ones = np.ones((1, powers.shape[1]))
    # Products over all other columns from both ends, without division, as a top may be 0
    before = np.cumprod(np.concatenate([ones, tops]), axis=0)[:-1]
    behind = np.cumprod(np.concatenate([ones, tops[::-1]]), axis=0)[-2::-1]
    return ((high - low) * before * behind).sum(axis=0), tops.prod(axis=0)


def conditional_stability(
    parts: Sequence[tuple[Component, np.ndarray, np.ndarray]], delta: ArrayLike, eta: float, players: Sequence[Sequence[int]]
) -> Stability:
    r"""Bound the change of observational values with conditional mean embeddings.

    .. math:: \|\phi_{x,j} - \phi_{x',j}\| \le \tfrac1d \sqrt{2 (1 - \kappa)}
              + 2 \bigl(1 - \tfrac1d\bigr) M \sqrt{2 (1 - \kappa\, \bar\kappa)}, \qquad M = \frac{1}{2 \sqrt\eta}

    with :math:`\kappa` and :math:`\bar\kappa` the smallest values, at a distance of delta, of the model's and of the conditioning
    kernel. A proper coalition's functional is :math:`(I \otimes C_S)(k_S(x) \otimes \bar k_S(x))`, the norm of the ridge estimate
    :math:`C_S` of the conditional mean operator is at most :math:`\sqrt{\|K_{\bar S}\|} \max_t \sqrt t / (t + \eta) \le M` whatever
    the rows and their weights, and so is that of its projection on landmarks. v(empty) does not move and v(D) moves as f; of the
    marginals that a value averages, one in d ends in D and one in d begins at the empty coalition.

    Equation (13) of RKHS-SHAP is :math:`\sqrt{8 M_C (1 - \kappa)}` with the squared norm of the population's operator, which can be
    infinite; this is a bound for the estimate that is computed.
    """
    n_outputs, d = parts[0][1].shape[0], len(players)
    change = _checked_change(delta, parts[0][2].shape[0])
    # The smallest value of the conditioning kernel
    factors = [component.factors(np.zeros((1, len(change))), change[:, None])[0, :, 0] for component, _, _ in parts]
    shares = np.abs([component.amplitude for component, _, _ in parts])
    shares = shares / sum(shares)
    known = np.prod([sum(w * f[list(own)].prod() for w, f in zip(shares, factors, strict=True)) for own in players])
    norm = 1.0 / (2.0 * np.sqrt(eta))
    own = np.array([_falls_to(component, change) for component, _, _ in parts])
    moves = np.sqrt(2.0 * (1.0 - own)) / d + 2.0 * (1.0 - 1.0 / d) * norm * np.sqrt(2.0 * (1.0 - own * known))
    return _of_parts(parts, moves.tolist(), change, np.zeros(n_outputs), np.zeros(n_outputs))


def _squared_norm(component: Component, coefficients: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return c^T K c / s of each output, in blocks of rows, with K of amplitude 1."""
    total = np.zeros(len(coefficients))
    for rows in slices(points.shape[1], NORM_ROWS):
        # The matrix includes s, and the norm divides by it once more
        gram = component.matrix(points.T[rows], points.T) / component.amplitude**2
        total += np.einsum("ol,lm,om->o", coefficients[:, rows], gram, coefficients, optimize=True)
    return total


def _checked_change(delta: ArrayLike, n_features: int) -> np.ndarray:
    change = np.asarray(delta, float)
    if change.ndim > 1 or change.size not in (1, n_features):
        raise InputError(f"`delta` must be one number or one per column ({n_features})", f"Got shape {change.shape}")
    change = np.broadcast_to(change, (n_features,))
    if not np.all(np.isfinite(change)) or np.any(change < 0):
        raise InputError("`delta` must be a finite float >= 0, or one per column", f"Got {delta!r}")
    return change


def _falls_to(part: Component, change: np.ndarray) -> float:
    """Return the smallest kernel value of two rows within ``change``."""
    if not part.is_normalised or part.amplitude < 0:
        raise UnsupportedStructureError(
            "The bound needs kernel factors that are 1 at x = x'",
            "The kernel has linear, polynomial or user-given factors, which are not bounded",
            "Use functional_distance(kernel, x, x', background), which is exact for two rows",
        )
    return float(part.factors(np.zeros((1, len(change))), change[:, None]).prod())


def functional_distance(
    kernel: Kernel, X: TableLike, X_moved: TableLike, background: TableLike, weights: Any = None
) -> np.ndarray:
    r"""Return the exact distance of two rows' functionals.

    Shapley values differ by at most this times ``|f|``.

    .. math:: \|\phi_{x,j} - \phi_{x',j}\|^2 = P_{jj}(x, x) - 2 P_{jj}(x, x') + P_{jj}(x', x')

    with P the prior covariance of ``_gp_covariance``, for interventional values.

    Parameters
    ----------
    kernel : Kernel
    X, X_moved : arrays of shape (n_rows, n_features)
        Pairs of rows x, x'.
    background : array of shape (n_background, n_features)
    weights : array of shape (n_background,), default=None
        Summing to one; None means equal weights.

    Returns
    -------
    distance : array of shape (n_rows, n_features)
        In the norm of the kernel's space.

    Notes
    -----
    Cost O(n_rows n_background^2 n_nodes^2 n_features).

    Examples
    --------
    >>> from exactshap.kernels import RBF
    >>> functional_distance(RBF(1.0), [[0.0, 0.0]], [[0.1, 0.0]], [[1.0, 1.0], [2.0, 0.0]]).round(3)
    array([[0.092, 0.022]])
    """
    X, X_moved, background = (np.asarray(array, float) for array in (X, X_moved, background))
    weights = np.full(len(background), 1.0 / len(background)) if weights is None else np.array(weights, float)
    squared: Any = np.zeros(X.shape)
    for part in kernel.expand(X.shape[1]):
        both = _inner(part, X, X, background, weights) + _inner(part, X_moved, X_moved, background, weights)
        squared = squared + both - 2.0 * _inner(part, X, X_moved, background, weights)
    # Rounding can make the square negative for nearly equal rows
    return np.sqrt(np.maximum(squared, 0.0))


def _inner(part: Component, X: np.ndarray, Y: np.ndarray, background: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return <phi_x,j, phi_y,j> (n_rows, n_features) for aligned rows of X and Y."""
    d = X.shape[1]
    nodes, node_weights = (np.array(values) for values in find("shapley").rule(degree=d - 1))
    columns = np.ascontiguousarray(background.T)
    corner = np.concatenate([part.factors(x[None], y[:, None])[:, :, 0] for x, y in zip(X, Y, strict=True)])
    left, right, between = (np.ascontiguousarray(part.factors(rows, columns)) for rows in (X, Y, background))
    pairs = np.zeros((len(X), d * (d + 1) // 2))
    fill_prior(corner, left, right, between, weights, nodes, node_weights, False, pairs)
    first, second = np.triu_indices(d)
    return part.amplitude * pairs[:, first == second]
