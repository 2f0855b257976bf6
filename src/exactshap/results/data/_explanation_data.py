"""Hold the arrays of an explanation, select from them, derive further quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from exactshap._runtime.words import unit_of_statistic
from exactshap.errors import InputError, InputTypeError
from exactshap.frames import as_table, warn_of_other_order
from exactshap.results.data import _validation as validation
from exactshap.results.data._certificate import Certificate
from exactshap.results.data._frames import NamedValues

_PER_ROW = ("values", "baseline", "prediction", "residual", "tolerance", *validation.OPTIONAL)
_PER_OUTPUT = tuple(name for name in _PER_ROW if name not in ("tolerance", "approximation_error"))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplanationData:
    """Hold the arrays of a batch of rows, as plots, reports and files take them.

    People hold an :class:`~exactshap.Explanation`, which documents each field and adds words, conversions, pictures and files.
    """

    values: np.ndarray
    baseline: np.ndarray
    prediction: np.ndarray
    residual: np.ndarray
    tolerance: np.ndarray
    feature_names: tuple[str, ...]
    value_function: str
    std_error: np.ndarray | None = None
    data: Any = None
    output_names: tuple[str, ...] | None = None
    index: str = "shapley"
    order: int = 1
    sets: tuple[tuple[int, ...], ...] | None = None
    set_values: np.ndarray | None = None
    set_std_error: np.ndarray | None = None
    unit: str = "response"
    method: str = ""
    model_name: str = ""
    error_bound: float | np.ndarray = 0.0
    n_evaluations: int = 0
    seconds: float | None = None
    background_size: int | None = None
    background_hash: str | None = None
    groups: Mapping[str, Sequence[int | str]] | None = None
    covariances: np.ndarray | None = None
    covariance_residual: np.ndarray | None = None
    set_std: np.ndarray | None = None
    approximation_error: np.ndarray | None = None
    mask_difference: float | None = None
    mask_tolerance: float | None = None
    n_masks: int = 0
    mask_rows: tuple[int, ...] = ()
    mask_reason: str = ""
    stability_bound: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        for name, value in validation.checked(vars(self)).items():
            object.__setattr__(self, name, value)

    # --- sizes and selection -------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        return len(self.values)

    @property
    def n_players(self) -> int:
        return self.values.shape[1]

    @property
    def n_outputs(self) -> int:
        return 1 if self.values.ndim == 2 else self.values.shape[2]

    def __len__(self) -> int:
        return self.n_rows

    def __array__(self, *settings: object) -> Any:
        # NumPy would take rows of rows without end
        do = "Take explanation.values, or explanation.to_shap() for the pictures of shap"
        raise InputTypeError("An explanation is more than an array", f"Got {type(self).__name__}", do)

    def __getitem__(self, rows: Any) -> Any:
        """Return the explanation of some rows: an int, a slice, a boolean mask (a Series too) or an array of row numbers.

        ``explanation[rows, "sex"]`` is the array of one player's values, ``explanation[rows, ["sex", "age"]]`` are
        :class:`NamedValues`: a part of the values does not add up to the prediction, so that it is no explanation.
        """
        if isinstance(rows, tuple) and len(rows) == 2:
            return self[rows[0]]._of_players(rows[1])
        if self.data is not None and getattr(getattr(rows, "dtype", None), "kind", "") == "b":
            warn_of_other_order(as_table(self.data, allow_empty=True), rows, "mask")
        chosen = validation.row_numbers(rows, self.n_rows)
        changes: dict[str, Any] = {name: array[chosen] for name, array in self._arrays(_PER_ROW)}
        if np.ndim(self.error_bound):
            changes["error_bound"] = np.asarray(self.error_bound)[chosen]
        if self.data is not None:
            changes["data"] = as_table(self.data, allow_empty=True).take(chosen).native
        if self.mask_rows:
            changes["mask_rows"] = tuple(new for new, old in enumerate(chosen.tolist()) if old in self.mask_rows)
        return replace(self, **changes)

    def _of_players(self, players: Any) -> Any:
        if isinstance(players, (str, int, np.integer)) and not isinstance(players, bool):
            return self.values[:, validation.player_numbers([players], self.feature_names)[0]]
        chosen = validation.player_numbers(players, self.feature_names)
        return self._named(self.values[:, chosen], tuple(self.feature_names[j] for j in chosen))

    def _named(self, values: np.ndarray, names: tuple[str, ...]) -> NamedValues:
        largest = float(self.tolerance.max(initial=0.0))
        return NamedValues(values, names, self.output_names, tolerance=largest)

    def output(self, which: int | str) -> Self:
        """Return the single-output explanation of one output, by number or name."""
        if self.output_names is None:
            if which in (0, -1):
                return self
            raise InputError("This explanation has a single output", f"Got output {which!r}", "Use it as it is")
        k = validation.place_of(which, self.output_names, "output")
        changes: dict[str, Any] = {name: array[..., k] for name, array in self._arrays(_PER_OUTPUT)}
        name = self.output_names[k]
        # Called as where a reader explains it alone
        unit = unit_of_statistic(self.unit, name) or (f"{self.unit} of {name}" if name else self.unit)
        return replace(self, **changes, output_names=None, unit=unit)

    def _arrays(self, names: Sequence[str]) -> list[tuple[str, np.ndarray]]:
        return [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]

    # --- what follows from the arrays ----------------------------------------------------------------------------------

    @property
    def exact(self) -> bool:
        """Say whether the values are exact up to rounding and ``error_bound``."""
        return self.kind == "exact"

    @property
    def kind(self) -> str:
        """Return "exact", "sampled" (with ``std_error``) or "approximate" (with ``approximation_error``)."""
        if self.std_error is not None or self.set_std_error is not None:
            return "sampled"
        return "exact" if self.approximation_error is None else "approximate"

    @property
    def additive(self) -> bool:
        """Say whether baseline and order-1 values add up to the prediction.

        True for Shapley values; False for indices such as Banzhaf, as their values are not shares of a total.
        """
        return self._adds_up(self.values)

    @property
    def std(self) -> np.ndarray | None:
        """Return the values' standard deviation under a probabilistic model, or None. It has the shape of ``values``.

        For order 2, ``set_std`` has those of all sets, in the order of ``sets``.
        """
        if self.covariances is None:
            return None
        return np.sqrt(np.maximum(np.einsum("ijj...->ij...", self.covariances), 0.0))

    def covariance(self, i: int, output: int | str | None = None) -> np.ndarray:
        """Return the covariance (n_players, n_players) of the order-1 values of row ``i``.

        Parameters
        ----------
        output : int or str, default=None
            One output, by number or name; None with several outputs gives (n_players, n_players, n_outputs).
        """
        if output is not None:
            return self.output(output).covariance(i)
        if self.covariances is None:
            raise InputError(
                "This explanation has no covariances",
                f"It was computed by {self.method or 'a deterministic method'} for {self.model_name or 'its model'}",
                "Gaussian processes give them: pass background= and uncertainty=True",
            )
        return self.covariances[validation.row_numbers(i, self.n_rows)[0]]

    @property
    def interactions(self) -> np.ndarray:
        """Return pairs as symmetric matrices (n_rows, n_players, n_players[, n_outputs]).

        Off the diagonal is the index itself, not halved; on the diagonal are the order-1 values.
        """
        if self.order < 2 or self.set_values is None or self.sets is None:
            raise InputError("Interactions need order=2", f"Got order={self.order}", "Explain with order=2")
        shape = (self.n_rows, self.n_players, *self.values.shape[1:])
        matrix = np.zeros(shape)
        singles = np.arange(self.n_players)
        matrix[:, singles, singles] = self.values
        numbers = [number for number, players in enumerate(self.sets) if len(players) == 2]
        first, second = np.array([self.sets[number] for number in numbers], int).reshape(-1, 2).T
        matrix[:, first, second] = matrix[:, second, first] = self.set_values[:, numbers]
        return matrix

    @property
    def is_within_tolerance(self) -> bool:
        """Say whether the certificate passes: all comparisons are within tolerance."""
        worst, limit = self.mask_difference, self.mask_tolerance
        return (worst is None or limit is None or worst <= limit) and bool(self.rows_within_tolerance.all())

    @property
    def rows_within_tolerance(self) -> np.ndarray:
        """Return which rows have residuals within tolerance, (n_rows,). An infinite tolerance (overflow) allows nothing."""
        return (_largest_of_rows(self.residual) <= self.tolerance) & (self.tolerance < np.inf)

    def certificate(self) -> Certificate:
        """Return the certificate: comparisons with the model's own predictions."""
        size = _largest_of_rows(self.residual)
        excess = np.where(np.isfinite(size), size, np.inf) - np.where(np.isfinite(self.tolerance), self.tolerance, 0.0)
        row = int(np.argmax(excess if np.any(excess > 0) else size)) if self.n_rows else None
        masks = ("mask_difference", "mask_tolerance", "n_masks", "mask_rows", "mask_reason")
        return Certificate(
            max_residual=float(np.max(size, initial=0.0)),
            tolerance=float(self.tolerance[row]) if row is not None else 0.0,
            row=row,
            passed=self.is_within_tolerance,
            exact=self.exact,
            kind=self.kind,
            checks=self.residual_meaning,
            **{name: getattr(self, name) for name in masks},
        )

    @property
    def residual_meaning(self) -> str:
        """Return the sum that leaves ``residual``, in words."""
        if self.additive:
            return "prediction - baseline - sum of values"
        if self.sets_add_up:
            return "prediction - baseline - sum of values over all sets"
        return "prediction - v(all players)"

    @property
    def sets_add_up(self) -> bool:
        """Say whether baseline and all sets add up to the prediction. They do for k-SII, STII and FSII of order 2."""
        return self.set_values is not None and self._adds_up(self.set_values)

    def _adds_up(self, values: np.ndarray) -> bool:
        """Say whether the residual is the sum's remainder, up to rounding."""
        with np.errstate(over="ignore", invalid="ignore"):
            missing = np.abs(self.prediction - self.baseline - values.sum(axis=1) - self.residual)
            magnitude = np.abs(self.prediction) + np.abs(self.baseline) + np.abs(values).sum(axis=1)
            rounding = 8.0 * np.finfo(np.float64).eps * magnitude
        return bool(np.all(missing <= np.maximum(rounding, self.tolerance.reshape(-1, *[1] * (missing.ndim - 1)))))


def _largest_of_rows(residual: np.ndarray) -> np.ndarray:
    """Return the largest magnitude (n_rows,) of each row's residuals (n_rows[, n_outputs])."""
    size = np.abs(residual)
    # A maximum along contiguous rows is ten times as fast.
    return size if size.ndim == 1 else np.ascontiguousarray(size.T).max(axis=0, initial=0.0)
