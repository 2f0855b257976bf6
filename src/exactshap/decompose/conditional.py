"""Split conditional dependence over the columns, with a permutation test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.checks import checked_generator
from exactshap._runtime.types import PerColumn, RandomState, TableLike
from exactshap.decompose.pairwise import (
    Factors,
    check_inference,
    check_reach,
    check_room,
    read_side,
    tested,
    two_dimensional,
    whole_kernel,
)
from exactshap.errors import InputError, refused_beyond_memory
from exactshap.frames import Table, as_table
from exactshap.results.decomposition import PairwiseDecomposition, check_residual, frame_kind
from exactshap.semivalues import Semivalue, find
from exactshap.solvers.product import set_sums

# Candidate multiples of the bandwidth of Z: narrower kernels leave hardly any neighbours to learn from.
WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
# Candidate ridges, to be multiplied by the number of rows.
RIDGES = np.geomspace(1e-4, 1.0, 9) * 0.3
# Rows: d + 8 matrices of shape (n, n) are kept in memory.
MAX_ROWS = 5000


@refused_beyond_memory("The decomposition", "Pass fewer rows")
def decompose_conditional_hsic(
    X: TableLike,
    Y: TableLike,
    Z: TableLike,
    *,
    kernel_x: PerColumn = "rbf",
    kernel_y: PerColumn = "rbf",
    kernel_z: PerColumn = "rbf",
    bandwidth_x: PerColumn = "median",
    bandwidth_y: PerColumn = "median",
    bandwidth_z: PerColumn = "median",
    groups: Mapping[str, Any] | None = None,
    index: str | Semivalue = "shapley",
    n_permutations: int = 0,
    neighbours: int = 5,
    correction: str = "max",
    level: float = 0.95,
    random_state: RandomState = 0,
) -> PairwiseDecomposition:
    r"""Split the dependence of X and Y given Z over X's columns.

    .. math:: v(S) = \frac{1}{n^2}\, \mathrm{tr}\bigl(R_X H K_S H R_X \cdot R_Y H L H R_Y\bigr), \qquad
              K_S = \bigodot_{j \in S} K_j, \quad R = \varepsilon\, (H K_Z H + \varepsilon I)^{-1}

    the HSIC of what kernel ridge regression on Z leaves of the features of :math:`X_S` and of Y. It is linear in the kernel of
    :math:`X_S`, hence a product game over pairs of rows with v(empty) = 0, and its values are exact.

    Parameters
    ----------
    X, Y, Z : arrays or DataFrames of shape (n_rows, n_columns)
        At most 5000 rows. The columns of X are the players; Y may be a vector.
    kernel_x, kernel_y, kernel_z, bandwidth_x, bandwidth_y, bandwidth_z, groups
        As in :func:`exactshap.decompose_hsic`. For X and for Y, the kernel of Z is chosen by leave-one-out error among 1/2, 1, 2, 4 and 8 times
        its bandwidth and nine ridges.
    index : str or Semivalue, default="shapley"
    n_permutations : int, default=0
        Permutations of what is left of Y among rows that are neighbours in Z.
    neighbours : int, default=5
        Smallest number of rows in a neighbourhood: Z is halved at medians down to sets of fewer than twice as many rows. 0 permutes
        all rows, which is valid where the noise does not depend on Z.
    correction, level
        As in :func:`exactshap.decompose_mmd`.
    random_state : int, Generator or None, default=0

    Returns
    -------
    decomposition : PairwiseDecomposition
        ``values`` (n_columns,), in the unit of the statistic; p-values are approximate, see Notes.

    Raises
    ------
    InputError
        For too many or too few rows, different numbers of rows, or values that are missing.
    ExactnessError
        If the shares do not add up to the trace, computed on its own.

    Notes
    -----
    No test of conditional independence holds its level for every distribution (Shah and Peters 2020). This one assumes that the ridge
    regressions find the conditional means and that the residuals are exchangeable among neighbours; ``docs/drift.md`` shows its level in
    simulations: with some 20 rows it is about twice the nominal one. Cost O(n^3) for five eigenvalue problems, O(n^2 d^2) for the shares, O(n^2 d) for each permutation.

    References
    ----------
    .. [1] Zhang, K., Peters, J., Janzing, D. and Schoelkopf, B. (2011). Kernel-based conditional independence test. UAI, section 3.2.
    .. [2] Kim, I., Neykov, M., Balakrishnan, S. and Wasserman, L. (2022). Local permutation tests for conditional independence.
       Annals of Statistics 50(6).
    .. [3] Mohammadi, Chau and Muandet (2025). Computing exact Shapley values in polynomial time for product-kernel methods.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z, noise = rng.normal(size=(120, 1)), rng.normal(size=(120, 3))
    >>> X = np.hstack([Z + noise[:, :1], Z + noise[:, 1:2]])  # both depend on Z
    >>> Y = Z[:, 0] + noise[:, 1] + 0.5 * noise[:, 2]  # only the second tells more of Y than Z does
    >>> shares = decompose_conditional_hsic(X, Y, Z, n_permutations=99)
    >>> shares.p_values.round(2).tolist()[1]
    0.01
    """
    check_inference(n_permutations, correction, level)
    tables = [as_table(two_dimensional(one), what=name) for one, name in ((X, "X"), (Y, "Y"), (Z, "Z"))]
    _check_rows(tables, neighbours)
    rng, semivalue = checked_generator(random_state), find(index)
    settings = ((kernel_x, bandwidth_x), (kernel_y, bandwidth_y), (kernel_z, bandwidth_z))
    factors = [
        read_side(table, name, kernel, bandwidth, groups if name == "X" else None, rng)
        for table, name, (kernel, bandwidth) in zip(tables, "XYZ", settings, strict=True)
    ]
    spectra = _spectra(factors[2])
    x, y = (_regressed(_whole(one), spectra) for one in factors[:2])
    shares, left_of_y = [x.left(share) for share in _shares(factors[0], semivalue)], y.left(y.kernel) / tables[0].n_rows ** 2
    values, total = np.array([(left_of_y * share).sum() for share in shares]), float(np.trace(x.left(x.kernel) @ left_of_y))
    efficient = semivalue.is_efficient(1)
    rounding = 64.0 * np.finfo(float).eps * (tables[0].n_rows + len(values)) / tables[0].n_rows ** 2
    # Shares are those of a radial kernel's Gaussians, the trace is that of the kernel itself; centring adds four errors up.
    tolerance = (rounding + 4.0 * factors[0].error) * np.abs(left_of_y).sum()
    # Only efficient indices have shares that sum to v(D), by its trace.
    residual = float(total - values.sum()) if efficient else None
    if residual is not None:
        check_residual("conditional HSIC", residual, float(tolerance))
    tests: dict[str, Any] = {}
    if n_permutations:
        check_room(n_permutations, len(values), 8)
        check_reach(n_permutations, correction, len(values), level)
        orders = _orders(factors[2], n_permutations, neighbours, rng)
        # Only the residuals of Y are permuted: those of X stay, and no regression is refitted.
        null = np.array([[(left_of_y[np.ix_(order, order)] * share).sum() for share in shares] for order in orders]).T
        observed = values
        if efficient:
            observed, null = np.append(values, values.sum()), np.vstack([null, null.sum(axis=0)])
        tests = tested(observed, null, len(values), correction, float(tolerance))
    return PairwiseDecomposition(
        statistic="conditional HSIC",
        values=values,
        total=total,
        feature_names=factors[0].names,
        index=semivalue.name,
        residual=residual,
        tolerance=float(tolerance),
        details={
            "given": factors[2].names,
            "ridge": {"X": x.chosen, "Y": y.chosen},  # width of the kernel of Z, and ridge
            "neighbours": neighbours,
            "correction": correction,
            "level": level,
        },
        backend=frame_kind(tables[0].native),
        **tests,
    )


class _Regressed(NamedTuple):
    """Hold a kernel, and R, width and ridge of its regression on Z."""

    kernel: np.ndarray
    maker: np.ndarray
    chosen: tuple[float, float]

    def left(self, kernel: np.ndarray) -> np.ndarray:
        """Return R H K H R, what the regression leaves of a kernel K."""
        return self.maker @ _centred(kernel) @ self.maker


def _whole(factors: Factors) -> np.ndarray:
    """Return the kernel on all columns (n, n)."""
    rows = slice(0, factors.n_rows)
    return whole_kernel(factors, rows, rows)


def _spectra(z: Factors) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Return eigenvalues and vectors of H K_Z H at every width."""
    found = []
    for width in WIDTHS:
        eigenvalues, vectors = np.linalg.eigh(_centred(_whole(replace(z, bandwidths=width * z.bandwidths))))
        # A positive semi-definite matrix has no negative eigenvalues but for rounding.
        found.append((width, np.maximum(eigenvalues, 0.0), vectors))
    return found


def _regressed(kernel: np.ndarray, spectra: list[tuple[float, np.ndarray, np.ndarray]]) -> _Regressed:
    """Choose the width and ridge of least leave-one-out error.

    Means are fitted as well: of row i, (R H)_ii = R_ii - 1 / n is not fitted. Without this a ridge that interpolates seems to err by nothing.
    """
    best, centred, n = None, _centred(kernel), len(kernel)
    for width, eigenvalues, vectors in spectra:
        rotated = vectors.T @ centred @ vectors
        # R = ridge (K + ridge)^-1 for every ridge, from one decomposition for each width.
        for ridge in RIDGES * n:
            shrink = ridge / (eigenvalues + ridge)
            left = ((vectors * shrink) @ rotated * (vectors * shrink)).sum(axis=1)  # diagonal of R K R
            error = float(np.mean(left / (vectors**2 @ shrink - 1.0 / n) ** 2))
            if best is None or error < best[0]:
                best = error, (vectors * shrink) @ vectors.T, (width, float(ridge))
    assert best is not None
    return _Regressed(kernel, *best[1:])


def _shares(x: Factors, semivalue: Semivalue) -> np.ndarray:
    """Return each player's value in the kernel of pairs of rows, (n_players, n, n)."""
    rows = np.arange(x.n_rows)
    total = np.zeros((x.n_players, len(rows), len(rows)))
    for weight, one in x.gaussians:
        parts = set_sums(list(one.kernel_matrices(rows, rows) - 1.0), semivalue)
        for share, part in zip(total, parts, strict=True):
            share += weight * part
    return total


def _orders(z: Factors, count: int, neighbours: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield permutations of the rows among neighbours in Z."""
    # Standardised, so that no column counts more for its unit; constant columns do not count.
    scaled, rows = z.columns / np.where(z.columns.std(axis=1) > 0, z.columns.std(axis=1), 1.0)[:, None], np.arange(z.n_rows)
    parts = _halved(rows, scaled, neighbours) if neighbours else [rows]
    for _ in range(count):
        order = rows.copy()
        for part in parts:
            order[part] = rng.permutation(part)
        yield order


def _halved(rows: np.ndarray, columns: np.ndarray, neighbours: int) -> list[np.ndarray]:
    """Split rows at medians of their widest column, to fewer than twice ``neighbours`` rows."""
    if len(rows) < 2 * neighbours:
        return [rows]
    widest = int(np.argmax(columns[:, rows].std(axis=1)))
    order = rows[np.argsort(columns[widest, rows], kind="stable")]
    middle = len(order) // 2
    return _halved(order[:middle], columns, neighbours) + _halved(order[middle:], columns, neighbours)


def _centred(kernel: np.ndarray) -> np.ndarray:
    return kernel - kernel.mean(axis=0) - kernel.mean(axis=1)[:, None] + kernel.mean()


def _check_rows(tables: list[Table], neighbours: int) -> None:
    counts = [table.n_rows for table in tables]
    if len(set(counts)) > 1:
        raise InputError("X, Y and Z must have the same number of rows", f"Got {counts}")
    if not 4 <= counts[0] <= MAX_ROWS:
        do = "Take a random part of the rows" if counts[0] > 4 else "Pass more rows"
        raise InputError(f"Conditional HSIC takes 4 to {MAX_ROWS} rows", f"Got {counts[0]}", do)
    if not isinstance(neighbours, (int, np.integer)) or neighbours < 0 or neighbours == 1:
        raise InputError("The 'neighbours' parameter must be 0 or an int >= 2", f"Got {neighbours!r}")
