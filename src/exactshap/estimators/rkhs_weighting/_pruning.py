"""Prune terms of a fitted weighting by the Lasso in its RKHS norm."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator

import numpy as np

from exactshap._runtime.checks import is_number
from exactshap._runtime.types import Column, Model, TableLike
from exactshap.errors import InputError
from exactshap.estimators.rkhs_weighting._problem import Group, kept_terms, pieces_of


def prune(model: Model, penalty: float | str, X: TableLike, y: Column, tolerance: float) -> Model:
    """Return a pruned copy of a fitted weighting; see :meth:`RKHSWeightingRegressor.prune`."""
    from sklearn.exceptions import ConvergenceWarning

    if not is_number(tolerance, above=True):
        raise InputError("`tolerance` must be > 0", f"Got {tolerance!r}")
    if isinstance(penalty, str):
        if penalty not in ("sure", "safe", "smart"):
            raise InputError("`penalty` must be a number, 'sure', 'safe' or 'smart'", f"Got {penalty!r}")
        # Checked against the tolerance, as the Lasso may not have converged.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return _smart(model, X, y, tolerance) if penalty == "smart" else _safe(model, tolerance, penalty)
    if not is_number(penalty):
        raise InputError("`penalty` must be a float >= 0", f"Got {penalty!r}")
    return _pruned(model, float(penalty))


def targets_of(X: TableLike, y: Column) -> np.ndarray:
    """Return y as finite numbers (n_rows,); a column would broadcast."""
    from sklearn.utils import check_array, check_consistent_length, column_or_1d

    y = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return np.asarray(y)


def _safe(model: Model, tolerance: float, penalty: str) -> Model:
    r"""Prune while |f'(x) - f(x)| <= theta |alpha' - alpha| stays within tolerance.

    "sure" computes a penalty in advance: at a minimum the objective is at most its value without any change, so that

    .. math:: \frac{1}{2T} \|\alpha' - \alpha\|^2 \le \beta\, |a|_1, \qquad \beta = \frac{\mathrm{tolerance}^2}{2 T \theta^2 |a|_1}

    (12 in place of 2 in the published code). "safe" tries penalties from large to small.
    """
    theta, a = model.theta_, model.coef_
    if math.isnan(theta):
        got = "This instantiation has no closed form for it"
        raise InputError(f"penalty={penalty!r} needs theta", got, "Use penalty='smart' or a number")
    if penalty == "sure":
        tried = [tolerance**2 / (2.0 * len(a) * theta**2 * np.abs(a).sum())] if theta > 0 and a.any() else []
    else:
        tried = list(10.0 ** np.arange(2.0, -16.0, -0.5))
    for beta in tried:
        candidate = _pruned(model, float(beta))
        # Checked against the bound, as the Lasso may not have converged.
        if theta * _distance(model, candidate) <= tolerance:
            return candidate
    return copy.deepcopy(model)


def _smart(model: Model, X: TableLike, y: Column, tolerance: float) -> Model:
    if X is None or y is None:
        raise InputError("penalty='smart' needs the training sample", "Got X=None or y=None", "Pass X= and y=")
    y = targets_of(X, y)
    reference = float(np.mean((y - model.predict(X)) ** 2))
    best = copy.deepcopy(model)
    for penalty in 10.0 ** np.arange(-10.0, 1.0):
        candidate = _pruned(model, float(penalty))
        if np.mean((y - candidate.predict(X)) ** 2) > reference + tolerance * max(reference, 1e-12):
            break
        best = candidate
    return best


def _pruned(model: Model, penalty: float) -> Model:
    result = copy.deepcopy(model)
    result.terms_, result.coef_, result.rkhs_norm_ = kept_terms(_of_lasso(model, penalty))
    return result


def _of_lasso(model: Model, penalty: float) -> Iterator[tuple[Group, np.ndarray]]:
    """Solve the Lasso in the RKHS norm; groups do not interact, because G is block-diagonal."""
    from sklearn.linear_model import Lasso

    for term, a in pieces_of(model.terms_, model.coef_):
        gram = term.base.kernel(term.parameters, term.parameters, len(term.subset))
        root = np.linalg.cholesky(gram + 1e-8 * np.eye(len(a))).T
        # The Lasso of scikit-learn divides by its own number of rows
        scale = len(model.coef_) / len(a)
        lasso_fit = Lasso(alpha=max(penalty * scale, 1e-15), fit_intercept=False, max_iter=10_000, tol=1e-8)
        probability = term.coefficients[0] / a[0]
        yield Group(term.subset, term.parameters, probability, term.base), lasso_fit.fit(root, root @ a).coef_


def _distance(model: Model, other: Model) -> float:
    """Return the RKHS distance of two weight functions; ``other`` has a subset of the terms."""
    remaining = {term.subset: (term, np.asarray(values)) for term, values in pieces_of(other.terms_, other.coef_)}
    squared = 0.0
    for term, a in pieces_of(model.terms_, model.coef_):
        difference = a.copy()
        if term.subset in remaining:
            kept, values = remaining[term.subset]
            places = {tuple(row): i for i, row in enumerate(term.parameters)}
            for row, value in zip(kept.parameters, values, strict=True):
                difference[places[tuple(row)]] -= value
        squared += float(difference @ term.base.kernel(term.parameters, term.parameters, len(term.subset)) @ difference)
    return math.sqrt(max(squared, 0.0))
