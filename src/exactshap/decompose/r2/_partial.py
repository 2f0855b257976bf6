"""R2 of a table in parts: each part is solved where it lies, and the parts add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exactshap.decompose.r2._input import prepare_rows
from exactshap.decompose.r2._result import R2Decomposition, R2Sums, require_variation
from exactshap.decompose.r2._solving import check_game, solve_sums
from exactshap.results.decomposition import frame_backend

__all__ = ["PartialR2"]


class PartialR2:
    """One part of a table, as sums that add up to :func:`exactshap.decompose_r2` of the whole.

    Parameters
    ----------
    model : fitted tree model
    X : array or DataFrame of shape (n_rows, n_features)
        Some of the rows.
    y : array of shape (n_rows,)
        Their target; it may be constant in a part.
    game, sample_weight, groups, n_jobs, memory_limit
        As in :func:`exactshap.decompose_r2`.

    Raises
    ------
    ExactshapError
        Whatever :func:`exactshap.decompose_r2` raises but for a constant y, which ``result`` refuses.

    Notes
    -----
    Shares are off from those of the whole table by rounding only (about 1e-14 in units of R2). A part is picklable and as small
    as the number of features, whatever its rows.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = make_regression(200, 3, n_informative=2, coef=False, random_state=0)
    >>> model = GradientBoostingRegressor(n_estimators=20, max_depth=2, random_state=0).fit(X, y)
    >>> shares = (PartialR2(model, X[:50], y[:50]) + PartialR2(model, X[50:], y[50:])).result()
    >>> bool(abs(shares.total - model.score(X, y)) < 1e-12)
    True
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        y: Any,
        *,
        game: str = "residual",
        sample_weight: Any = None,
        groups: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        memory_limit: float | None = None,
    ) -> None:
        check_game(game)
        problem = prepare_rows(model, X, y, sample_weight, groups, n_jobs)
        self._backend = frame_backend(problem.native)
        self._sums: R2Sums = solve_sums(problem, game, n_jobs, memory_limit)

    def __add__(self, other: PartialR2) -> PartialR2:
        whole = PartialR2.__new__(PartialR2)
        whole._backend, whole._sums = self._backend, self._sums + other._sums
        return whole

    def result(self) -> R2Decomposition:
        """Return the shares of the rows of all parts.

        Returns
        -------
        shares : R2Decomposition

        Raises
        ------
        InputError
            If y does not vary over all parts.
        """
        require_variation(self._sums.variation, self._sums.mean, self._sums.weight)
        return self._sums.result(None, self._backend)

    def __repr__(self) -> str:
        return f"PartialR2 of {self._sums.n_rows:,} rows, {len(self._sums.feature_names)} features, game={self._sums.game!r}"
