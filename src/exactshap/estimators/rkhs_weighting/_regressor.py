"""Fit RKHS weightings of functions as scikit-learn regressors, and prune them."""

from __future__ import annotations

import copy
import functools
import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from exactshap._runtime.checks import check_parameters, is_number, sample_weights
from exactshap._runtime.types import Column, Model, RandomState, TableLike
from exactshap.errors import InputError
from exactshap.estimators.rkhs_weighting._instantiations import instantiation
from exactshap.estimators.rkhs_weighting._interface import Instantiation, MonteCarlo, checked
from exactshap.estimators.rkhs_weighting._problem import (
    SOLVERS,
    Group,
    NormalEquations,
    WeightingProblem,
    kept_terms,
    pieces_of,
)
from exactshap.estimators.rkhs_weighting._subsets import SubsetDistribution, subset_distribution


class _Drawn(NamedTuple):
    base: Instantiation
    distribution: SubsetDistribution
    groups: list[Group]
    rng: np.random.Generator


def _adds_up(model: Model) -> bool:
    # A search over alpha needs folds of rows, and other solvers revisit rows: sums are not enough.
    if model.solver == "least_squares" and not hasattr(model, "cv"):
        return True
    raise AttributeError("partial_fit is for solver='least_squares' and a penalty that is given: its normal equations add up")


@dataclass(eq=False, repr=False)
class WeightingSettings(BaseEstimator):  # type: ignore[misc]
    """Hold the parameters that all weightings share, and evaluate their sums. The estimators document them."""

    base: str | Instantiation = "relu"
    _: KW_ONLY
    subsets: Any = None
    sequence: bool = False
    n_terms: int = 100
    alpha: float = 1e-5
    ridge: float = 1e-10
    sigma: float = 1.0
    gamma: float | None = None
    max_theta: float = 0.5
    random_state: RandomState = None

    def _function(self, X: TableLike) -> np.ndarray:
        """Return f(x) of a fitted weighting, (n_rows,)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        total = np.full(len(X), self.intercept_)
        for term in self.terms_:
            total += term(X[:, list(term.subset)])
        return total


@dataclass(eq=False, repr=False, kw_only=True)
class RKHSWeightingRegressor(RegressorMixin, WeightingSettings):
    r"""Fit base predictors weighted by a function of an RKHS.

    .. math:: f(x) = b + \sum_t a_t\, p(I_t)\, E_{w \sim p_k}\bigl[K(w_t, w)\, \phi(w, x_{I_t})\bigr]

    With ``subsets`` the model is a sum of functions of few columns each (STAR), which is explained exactly.

    Parameters
    ----------
    base : {"relu", "sign", "polynomial-sign", "exponential-sign", "stump", "uniform-stump"} or Instantiation, default="relu"
        Base predictor, kernel and distribution of its parameters.
    subsets : None, int, list of int, list of subsets or SubsetDistribution, default=None
        None uses all columns at once; an int only subsets of that size; a list of sizes each of them equally often.
    sequence : bool, default=False
        Only adjacent columns, for ordered features such as time series.
    n_terms : int, default=100
        T, the number of random parameters.
    alpha : float, default=1e-5
        Weight lambda of the squared RKHS norm a' G a.
    ridge : float, default=1e-10
        epsilon, a tiny squared l2 penalty of the coefficients that keeps the system regular.
    sigma : float, default=1.0
        Deviation of the parameters' distribution.
    gamma : float, default=None
        Width of the kernel; None: from ``max_theta`` (relu, sign), ``sigma`` (stumps), sqrt(2) ``sigma`` (exponential-sign).
    max_theta : float, default=0.5
        c in (0, 1): the width gamma is chosen such that (1 + 2 sigma^2 / gamma^2)^(-k/4) = c for every subset size k.
    fit_intercept : bool, default=False
        Whether to fit b; the published learner does not.
    penalty_width : {"subset", "input"}, default="subset"
        Columns that set the kernel's width in the penalty a' G a: those of each term's subset, or all, as in the authors'
        code. Only "subset" penalises the RKHS norm; both fit the same functions. "input" needs least squares.
    solver : {"least_squares", "lasso", "gradient", "greedy"}, default="least_squares"
        Regularised least squares (Eq. 64); least squares with the l1 norm of the coefficients; stochastic functional gradient
        descent with averaging; greedy optimal steps.
    random_state : int, RandomState or None, default=None
        Seed of the parameters and subsets.

    Attributes
    ----------
    terms_ : list of WeightingTerm
        One function for each subset.
    coef_ : array of shape (n_kept,)
        a_t, in the order of ``terms_``.
    intercept_ : float
    rkhs_norm_ : float
        The norm of the weight function, sqrt(a' G a).
    theta_ : float
        Bound of the evaluation: ``|f(x) - b| <= theta_ * rkhs_norm_`` for rows with norms in any k columns within those of
        the training rows; NaN without closed form.
    kappa_ : float
        Bound on the root of E[K(w, w) phi(w, x)^2] for the same rows (Eq. 59); NaN without closed form.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Fitting costs O(n T^2 + T^3), prediction O(n T). ``rkhs_norm_`` and ``theta_`` are those of the
    width of the subset, whatever the penalty.

    References
    ----------
    .. [1] Dubé, G. and Marchand, M. Shapley Values of Structured Additive Regression Models and Application to RKHS Weightings of
       Functions. Transactions on Machine Learning Research, 2025. Eq. 25-29, 61-65.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = np.maximum(X[:, 0] + X[:, 1], 0) - np.abs(X[:, 2])
    >>> model = RKHSWeightingRegressor(subsets=2, n_terms=200, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    fit_intercept: bool = False
    penalty_width: str = "subset"
    solver: str = "least_squares"

    def fit(self, X: TableLike, y: Column, sample_weight: Column = None) -> RKHSWeightingRegressor:
        """Draw parameters and subsets, and fit their coefficients.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), default=None
            None of them negative. A weight of 2 is the same as repeating the row.
        """
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        weights = sample_weights(sample_weight, len(X))
        check_parameters(self, self._checks())
        # ``fit`` forgets the rows of earlier calls of ``partial_fit``.
        for name in ("_drawn", "_equations", "_largest"):
            self.__dict__.pop(name, None)
        drawn = self._draw()
        center = float(np.average(y, weights=weights)) if self.fit_intercept else 0.0
        problem = WeightingProblem(drawn.groups, X, y - center, weights, self.alpha, self.ridge, drawn.rng)
        coefficients = self._coefficients(problem)
        self.intercept_ = center + (problem.mean_residual(coefficients) if self.fit_intercept else 0.0)
        return self._keep(drawn, coefficients, _largest_norms(X))

    @available_if(_adds_up)
    def partial_fit(self, X: TableLike, y: Column, sample_weight: Column = None) -> RKHSWeightingRegressor:
        """Add rows to those of earlier calls, and fit to all. ``fit`` starts anew.

        The first call draws parameters and subsets as ``fit`` does with the same ``random_state``. The model is that of ``fit`` on all
        rows up to rounding, however they are split. T^2 numbers are kept, but no rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), default=None
        """
        begins = not hasattr(self, "_equations")
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64, reset=begins)
        weights = sample_weights(sample_weight, len(X))
        if begins:
            check_parameters(self, self._checks())
            self._drawn = self._draw()
        problem = WeightingProblem(self._drawn.groups, X, y, weights, self.alpha, self.ridge, self._drawn.rng)
        part, norms = NormalEquations.of(problem), _largest_norms(X)
        self._equations: NormalEquations = part if begins else self._equations + part
        self._largest: np.ndarray = norms if begins else np.maximum(self._largest, norms)
        # The sums replace the rows; only the penalty of the problem is used.
        coefficients, self.intercept_ = self._equations.solve(replace(problem, X=X[:0]), centred=self.fit_intercept)
        return self._keep(self._drawn, coefficients, self._largest)

    def _coefficients(self, problem: WeightingProblem) -> np.ndarray:
        return SOLVERS[self.solver](problem)

    def _checks(self) -> list[tuple[str, bool, str]]:
        """Return the conditions on the parameters: name, whether it holds, and as text."""
        width = self.penalty_width == "subset" or (self.penalty_width == "input" and self.solver == "least_squares")
        return [
            ("alpha", is_number(self.alpha), "a float >= 0"),
            ("n_terms", is_number(self.n_terms, 1, whole=True) and self.n_terms < 2**31, "an int >= 1"),
            ("ridge", is_number(self.ridge), "a float >= 0"),
            ("sequence", isinstance(self.sequence, (bool, np.bool_)), "a bool"),
            ("fit_intercept", isinstance(self.fit_intercept, (bool, np.bool_)), "a bool"),
            ("solver", isinstance(self.solver, str) and self.solver in SOLVERS, f"one of {list(SOLVERS)}"),
            ("penalty_width", width, "'subset', or 'input' with solver='least_squares'"),
        ]

    def _draw(self) -> _Drawn:
        """Draw n_terms subsets and their parameters. Terms with the same subset form one group."""
        # Accepts scikit-learn's seeds and generators, and draws with NumPy's newer ones.
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        base = instantiation(self.base, sigma=self.sigma, gamma=self.gamma, max_theta=self.max_theta)
        distribution = subset_distribution(self.subsets, self.sequence)
        distribution.check(self.n_features_in_)
        groups, penalty_size = [], self.n_features_in_ if self.penalty_width == "input" else None
        for subset, count in Counter(distribution.draw(rng, self.n_features_in_, int(self.n_terms))).items():
            probability = distribution.mass_of(subset, self.n_features_in_)
            parameters = np.asarray(base.sample(rng, len(subset), count), float)
            parameters = checked(base, "sample", parameters, (count, parameters.shape[1] if parameters.ndim == 2 else None))
            groups.append(Group(subset, parameters, probability, base, penalty_size))
        return _Drawn(base, distribution, groups, rng)

    def _keep(self, drawn: _Drawn, coefficients: np.ndarray, largest: np.ndarray) -> Self:
        """Store the functions with nonzero terms, and the constants for rows of the ``largest`` norms."""
        self.terms_, self.coef_, self.rkhs_norm_ = kept_terms(pieces_of(drawn.groups, coefficients))
        base, masses = drawn.base, functools.partial(drawn.distribution.masses, self.n_features_in_)
        self.theta_ = _evaluation_constant(base.theta, masses(power=2), largest)
        self.kappa_ = _evaluation_constant(base.kappa, masses(), largest)
        return self

    def predict(self, X: TableLike) -> np.ndarray:
        """Return f(x), of shape (n_rows,)."""
        return self._function(X)

    def monte_carlo_error(self, X: TableLike) -> np.ndarray:
        r"""Return the standard error (n_rows,) of predictions; 0 for closed forms.

        .. math:: \sum_k \mathrm{sd}_w\Bigl(\sum_{t: |I_t| = k} a_t\, p(I_t)\, K(w_t, w)\, \phi(w, x_{I_t})\Bigr) / \sqrt{n_\mathrm{draws}}

        Terms with equally many columns share their draws w; errors of different sizes are added up, which is an upper bound.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        by_size: dict[int, Any] = {}
        for term in self.terms_:
            if isinstance(term.base, MonteCarlo):
                part = term.base.contributions(term.parameters, X[:, list(term.subset)], term.coefficients)
                by_size[len(term.subset)] = by_size.get(len(term.subset), 0.0) + part
        errors = [values.std(axis=1, ddof=1) / math.sqrt(values.shape[1]) for values in by_size.values()]
        return np.sum(errors, axis=0) if errors else np.zeros(len(X))

    def generalization_bound(self, X: TableLike, y: Column, *, delta: float = 0.05, loss: str = "absolute") -> float:
        r"""Bound the expected loss with probability at least 1 - delta.

        .. math:: \mathrm{risk} \le \frac{1}{m} \sum_i \ell_i + \frac{2 \rho \|\alpha\| \theta}{\sqrt{m}}
                  + r \sqrt{\frac{\ln(1/\delta)}{2 m}}

        with the Lipschitz constant rho and the range r of the loss on predictions within \|alpha\| theta of the intercept and
        targets in the range of the sample. It is the Rademacher bound for the ball of this norm.

        Parameters
        ----------
        X, y : the training sample
        delta : float, default=0.05
        loss : {"absolute", "squared"}, default="absolute"
        """
        check_is_fitted(self)
        if not 0 < delta < 1:
            raise InputError("`delta` must be in (0, 1)", f"Got {delta!r}")
        if loss not in ("absolute", "squared"):
            raise InputError("`loss` must be 'absolute' or 'squared'", f"Got {loss!r}")
        if math.isnan(self.theta_):
            raise InputError("The bound needs theta", f"{type(self.base).__name__} has no closed form for it")
        y = targets_of(X, y)
        residual = np.abs(y - self.predict(X))
        reach = self.rkhs_norm_ * self.theta_ + float(np.abs(y - self.intercept_).max())
        lipschitz, spread = (1.0, reach) if loss == "absolute" else (2.0 * reach, reach**2)
        losses = residual if loss == "absolute" else residual**2
        complexity = 2.0 * lipschitz * self.rkhs_norm_ * self.theta_ / math.sqrt(len(y))
        return float(losses.mean() + complexity + spread * math.sqrt(math.log(1.0 / delta) / (2.0 * len(y))))

    def prune(
        self, penalty: float | str = "smart", *, X: TableLike = None, y: Column = None, tolerance: float = 0.01
    ) -> RKHSWeightingRegressor:
        r"""Return a copy with fewer terms: the Lasso in the RKHS norm.

        .. math:: \min_{a'} \frac{1}{2T} \|U a' - U a\|^2 + \beta |a'|_1, \qquad G = U^\top U

        Parameters
        ----------
        penalty : float, "sure", "safe" or "smart", default="smart"
            beta. "safe" guarantees that no prediction on the training radius moves by more than ``tolerance``, by the largest of many
            penalties; "sure" does so by one computed in advance, at the cost of one Lasso. "smart" takes
            the largest power of ten for which the training loss on ``X, y`` grows by less than ``tolerance`` relative.
        X, y : arrays, needed by "smart"
        tolerance : float, default=0.01
        """
        check_is_fitted(self)
        return prune(self, penalty, X, y, tolerance)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # only least squares in 100 weightings of all columns passes scikit-learn's checks on arbitrary data
        tags.regressor_tags.poor_score = (
            self.solver != "least_squares" or self.base not in ("relu", "sign") or self.subsets is not None
        )
        return tags


def _evaluation_constant(of_size: Callable[[int, float], float], masses: dict[int, float], largest: np.ndarray) -> float:
    r"""Return :math:`\sqrt{\sum_k m_k\, c_k(r_k)^2}` (Eq. 59, 60), r_k the largest norm of any k columns of a row; or NaN."""
    try:
        return math.sqrt(sum(mass * of_size(k, float(largest[k - 1])) ** 2 for k, mass in masses.items()))
    except NotImplementedError:
        return math.nan


def _largest_norms(X: np.ndarray) -> np.ndarray:
    """Return the largest norm of any 1, 2, ... columns of a row of X, of shape (n_features,)."""
    return np.sqrt(np.cumsum(np.sort(X**2, axis=1)[:, ::-1], axis=1).max(axis=0))


def targets_of(X: TableLike, y: Column) -> np.ndarray:
    """Return y as finite numbers (n_rows,); a column would broadcast."""
    y = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return np.asarray(y)


def prune(model: Model, penalty: float | str, X: TableLike, y: Column, tolerance: float) -> Model:
    """Return a pruned copy of a fitted weighting; see :meth:`RKHSWeightingRegressor.prune`."""
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
    """Solve the Lasso in the RKHS norm. Groups do not interact, because G is block-diagonal."""
    from sklearn.linear_model import Lasso

    pieces, result = [], copy.deepcopy(model)
    for term, a in pieces_of(model.terms_, model.coef_):
        gram = term.base.kernel(term.parameters, term.parameters, len(term.subset))
        root = np.linalg.cholesky(gram + 1e-8 * np.eye(len(a))).T
        # The Lasso of scikit-learn divides by its own number of rows
        scale = len(model.coef_) / len(a)
        lasso_fit = Lasso(alpha=max(penalty * scale, 1e-15), fit_intercept=False, max_iter=10_000, tol=1e-8)
        probability = term.coefficients[0] / a[0]
        pieces.append((Group(term.subset, term.parameters, probability, term.base), lasso_fit.fit(root, root @ a).coef_))
    result.terms_, result.coef_, result.rkhs_norm_ = kept_terms(pieces)
    return result


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
