"""The immutable batch that every question is answered with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap.errors import InputError, UnknownNameError, did_you_mean, message, printable
from exactshap.results.explanation import _validation as validation
from exactshap.results.explanation._certificate import Certificate
from exactshap.results.explanation._facts import facts, headline
from exactshap.results.explanation._words import NAMES_ELSEWHERE, called_here, hanging

if TYPE_CHECKING:
    from pathlib import Path

    from exactshap.results.plots import PlotAccessor

__all__ = ["Explanation"]

_PER_ROW = (
    "values",
    "baseline",
    "prediction",
    "residual",
    "tolerance",
    "std_error",
    "set_values",
    "set_std_error",
    "set_std",
    "covariances",
    "covariance_residual",
    "approximation_error",
)
_PER_OUTPUT = ("values", "baseline", "prediction", "residual", "std_error", "set_values", "set_std_error",
               "set_std", "covariances", "covariance_residual")  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, slots=True)
class Explanation:
    r"""Hold the values of a batch of rows with everything needed to judge them; compute nothing.

    One shape rule for ever: ``(n_rows, n_players)`` for one output, ``(n_rows, n_players, n_outputs)`` for many, and
    accordingly ``baseline`` ``(n_rows,)`` or ``(n_rows, n_outputs)``. For an efficient index

    .. math:: f(x_i) = \mathrm{baseline}_i + \sum_j \mathrm{values}_{ij} + \mathrm{residual}_i.

    Parameters
    ----------
    values : array of shape (n_rows, n_players[, n_outputs])
        Order-1 values of the index, in the unit of the model output.
    baseline : array of shape (n_rows[, n_outputs])
        v(empty).
    prediction : array of shape (n_rows[, n_outputs])
        The model's own prediction.
    residual : array of shape (n_rows[, n_outputs])
        ``prediction - baseline - sum(values)`` for efficient indices (the sum over all sets for order > 1),
        ``prediction - v(D)`` otherwise.
    tolerance : float or array of shape (n_rows,)
        Largest residual that rounding can explain.
    feature_names : sequence of str
        Names of the players: columns, or groups of columns.
    value_function : str
        Which game was played; see :func:`value_function_sentence`.
    std_error : array like ``values``, or None
        Standard errors of sampled values; None (never 0) for exact ones.
    data : table or None
        The explained rows as the user passed them: an array or a DataFrame. Not copied.
    output_names : sequence of str, or None
        Names of the outputs; None for one output.
    index, order : str and int, default="shapley" and 1
        Which question was asked.
    sets : sequence of tuples of int, or None
        For order > 1 the sets of players, by size and then lexicographically, beginning with all single players.
    set_values, set_std_error : array of shape (n_rows, n_sets[, n_outputs]), or None
        Values of ``sets`` and their standard errors.
    unit : str, default="response"
        Of the model output: "response", "log-odds", "margin", ...
    method, model_name : str
        How the values were computed, and what was explained.
    error_bound : float or array of shape (n_rows,), default=0.0
        A-priori bound on the quadrature error of each value.
    n_evaluations : int, default=0
        Calls of the game or model that sampling or enumeration used.
    seconds : float or None
        Wall time.
    background_size, background_hash : int and str, or None
        Of the reference rows; see :func:`fingerprint`.
    groups : mapping of player name to a sequence of columns (numbers or names), or None
        The columns of each player that is a group.
    covariances : array of shape (n_rows, n_players, n_players[, n_outputs]), or None
        Covariance of the order-1 values under a probabilistic model (a Gaussian process), output by output.
    covariance_residual : array of shape (n_rows[, n_outputs]), or None
        The model's own variance of f(x) - baseline less the sum of all entries of the covariance: rounding.
    set_std : array like ``set_values``, or None
        Standard deviations of all sets under a probabilistic model, for order 2.
    approximation_error : array of shape (n_rows,), or None
        Estimate of how far any v(S) of a row is off, where the game itself was approximated (low-rank embeddings).
    mask_difference, mask_tolerance : float, or None
        Largest difference of a few coalitions to the model's own predictions of hybrid rows, and what rounding explains of it; None
        where none were compared.
    n_masks : int, default=0
        How many coalitions were.
    mask_rows : sequence of int
        The rows that they belong to; none where those of an earlier explanation, or of the background, speak for this one.
    stability_bound : callable, or None
        What :meth:`stability` calls; it is not saved.

    Raises
    ------
    InputError
        If two of the arrays do not fit together; the message has both shapes.

    Examples
    --------
    >>> import numpy as np
    >>> explanation = Explanation(
    ...     values=[[1.0, 2.0]], baseline=[0.5], prediction=[3.5], residual=[0.0], tolerance=1e-12,
    ...     feature_names=["age", "bmi"], value_function="baseline", data=np.array([[40.0, 22.5]]),
    ... )
    >>> explanation.values.sum(axis=1) + explanation.baseline
    array([3.5])
    >>> explanation.certificate().passed
    True
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
    stability_bound: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        for name, value in validation.checked(self).items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, ({field.name: getattr(self, field.name) for field in fields(self)},)

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

    def __getattr__(self, name: str) -> Any:
        if name in NAMES_ELSEWHERE:
            raise AttributeError(called_here("Explanation", name))
        return object.__getattribute__(self, name)  # raises again, whatever it was

    def __getitem__(self, rows: Any) -> Explanation:
        """Return an Explanation of some rows: an int, a slice, a boolean mask or an array of row numbers."""
        chosen = validation.row_numbers(rows, self.n_rows)
        changes: dict[str, Any] = {name: array[chosen] for name, array in self._arrays(_PER_ROW)}
        if np.ndim(self.error_bound):
            changes["error_bound"] = np.asarray(self.error_bound)[chosen]
        if self.data is not None:
            changes["data"] = validation.take_rows(self.data, chosen)
        if self.mask_rows:
            changes["mask_rows"] = tuple(new for new, old in enumerate(chosen.tolist()) if old in self.mask_rows)
        return replace(self, **changes)

    def output(self, which: int | str) -> Explanation:
        """Return a single-output Explanation of one output, by number or name."""
        if self.output_names is None:
            if which in (0, -1):
                return self
            raise InputError(message("This explanation has a single output", f"Got output {which!r}", "Use it as it is"))
        k = self._output_number(which)
        changes: dict[str, Any] = {name: array[..., k] for name, array in self._arrays(_PER_OUTPUT)}
        unit = self.unit if not self.output_names[k] else f"{self.unit} of {self.output_names[k]}"
        return replace(self, **changes, output_names=None, unit=unit)

    def _output_number(self, which: int | str) -> int:
        assert self.output_names is not None
        if isinstance(which, str):
            if which in self.output_names:
                return self.output_names.index(which)
            raise UnknownNameError(message(f"Unknown output {which!r}", do=did_you_mean(which, self.output_names)))
        if not isinstance(which, (int, np.integer)) or not -self.n_outputs <= which < self.n_outputs:
            raise InputError(message(f"There is no output {which!r}", f"There are {self.n_outputs}: {list(self.output_names)}"))
        return int(which) % self.n_outputs

    def _arrays(self, names: Sequence[str]) -> list[tuple[str, np.ndarray]]:
        return [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]

    # --- what follows from the arrays ----------------------------------------------------------------------------------

    @property
    def exact(self) -> bool:
        """Whether the values are exact up to rounding and ``error_bound``, neither sampled nor of an approximated game."""
        return self.kind == "exact"

    @property
    def kind(self) -> str:
        """The word for it: "exact", "sampled" (``std_error``) or "approximate" (``approximation_error``)."""
        if self.std_error is not None or self.set_std_error is not None:
            return "sampled"
        return "exact" if self.approximation_error is None else "approximate"

    @property
    def additive(self) -> bool:
        """Whether baseline plus the order-1 values is the prediction, up to the reported residual.

        True for Shapley values; False for indices such as Banzhaf, whose values are not shares of a total.
        """
        return self._adds_up(self.values)

    @property
    def std(self) -> np.ndarray | None:
        """Standard deviation of the values under a probabilistic model, of the shape of ``values``, or None.

        For order 2, ``set_std`` has those of all sets, in the order of ``sets``.
        """
        if self.covariances is None:
            return None
        return np.sqrt(np.maximum(np.einsum("ijj...->ij...", self.covariances), 0.0))

    def covariance(self, i: int, output: int | str | None = None) -> np.ndarray:
        """Return the covariance (n_players, n_players) of the order-1 values of row ``i``.

        Parameters
        ----------
        i : int
        output : int or str, default=None
            One output, by number or name; None with several outputs gives (n_players, n_players, n_outputs).
        """
        if output is not None:
            return self.output(output).covariance(i)
        if self.covariances is None:
            raise InputError(
                message(
                    "This explanation has no covariances",
                    f"It was computed by {self.method or 'a deterministic method'} for {self.model_name or 'its model'}",
                    "Only probabilistic models (Gaussian processes) give them",
                )
            )
        return self.covariances[validation.row_numbers(i, self.n_rows)[0]]

    def stability(self, delta: Any) -> Any:
        r"""Return a bound on how far any value can move when no column moves by more than ``delta``.

        .. math:: |\phi_j(x) - \phi_j(x')| \le |f| \sqrt{c\, M_\mu L_\delta}, \qquad |x_k - x'_k| \le \delta_k

        Parameters
        ----------
        delta : float or array of shape (n_features,)
            In the units of the columns.

        Returns
        -------
        stability : object with ``bound (n_outputs,)``, ``rkhs_norm (n_outputs,)``, ``functional`` and ``delta``

        Notes
        -----
        Theorem 6 of RKHS-SHAP (Chau et al. 2022) for Shapley values of kernel machines, with its constants corrected: for signed
        kernels, and for observational values, where they depend on the ridge. It is loose, and holds for all rows; where columns
        are factors themselves (linear and polynomial kernels), for the explained ones. Loaded explanations do not carry it.
        """
        if self.stability_bound is None:
            raise InputError(
                message(
                    "This explanation has no stability bound",
                    f"It is of {self.model_name or 'its model'} with value_function={self.value_function!r}, index {self.index!r}",
                    "It exists for interventional, baseline and enumerated observational Shapley values of kernel machines by themselves, not "
                    "inside pipelines (explain the last step, on transformed rows), nor for random features",
                )
            )
        return self.stability_bound(delta)

    @property
    def interactions(self) -> np.ndarray:
        """Pairs as symmetric matrices (n_rows, n_players, n_players[, n_outputs]).

        Off the diagonal is the index itself, not halved; on the diagonal are the order-1 values.
        """
        if self.order < 2 or self.set_values is None or self.sets is None:
            raise InputError(message("Interactions need order=2", f"Got order={self.order}", "Explain with order=2"))
        shape = (self.n_rows, self.n_players, *self.values.shape[1:])
        matrix = np.zeros(shape)
        singles = np.arange(self.n_players)
        matrix[:, singles, singles] = self.values
        numbers = [number for number, players in enumerate(self.sets) if len(players) == 2]
        first, second = np.array([self.sets[number] for number in numbers], int).reshape(-1, 2).T
        matrix[:, first, second] = matrix[:, second, first] = self.set_values[:, numbers]
        return matrix

    def certificate(self) -> Certificate:
        """Hold the largest residual against its tolerance."""
        size = np.abs(self.residual).reshape(self.n_rows, self.n_outputs).max(axis=1, initial=0.0)
        excess = np.where(np.isnan(size), np.inf, size - self.tolerance)
        row = int(np.argmax(excess if np.any(excess > 0) else size)) if self.n_rows else None
        return Certificate(
            max_residual=float(np.max(size, initial=0.0)),
            tolerance=float(self.tolerance[row]) if row is not None else 0.0,
            row=row,
            passed=bool(np.all(size <= self.tolerance)) and self._masks_passed,
            exact=self.exact,
            mask_difference=self.mask_difference,
            mask_tolerance=self.mask_tolerance,
            n_masks=self.n_masks,
            mask_rows=self.mask_rows,
            kind=self.kind,
            checks=self.residual_meaning,
        )

    @property
    def _masks_passed(self) -> bool:
        return self.mask_difference is None or self.mask_tolerance is None or self.mask_difference <= self.mask_tolerance

    @property
    def residual_meaning(self) -> str:
        """The identity that ``residual`` is the remainder of."""
        if self.additive:
            return "prediction - baseline - sum of values"
        if self.set_values is not None and self._adds_up(self.set_values):
            return "prediction - baseline - sum of values over all sets"
        return "prediction - v(all players)"

    def _adds_up(self, values: np.ndarray) -> bool:
        """Say whether the residual is what the sum leaves, up to the rounding of this very sum."""
        missing = np.abs(self.prediction - self.baseline - values.sum(axis=1) - self.residual)
        magnitude = np.abs(self.prediction) + np.abs(self.baseline) + np.abs(values).sum(axis=1)
        rounding = 8.0 * np.finfo(np.float64).eps * magnitude
        return bool(np.all(missing <= np.maximum(rounding, self.tolerance.reshape(-1, *[1] * (missing.ndim - 1)))))

    # --- words ---------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return "\n".join([f"Explanation: {headline(self)}", *(hanging(name, text) for name, text in self.facts().items())])

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self.facts().items()
        )
        return printable(f"<div><strong>Explanation: {escape(headline(self))}</strong><table>{rows}</table></div>")

    def facts(self) -> dict[str, str]:
        """Return what a reader must know besides the numbers, as short texts by name."""
        return facts(self)

    # --- conversions, pictures, files ----------------------------------------------------------------------------------

    def to_frame(self, kind: str | None = None) -> Any:
        """Return one column per player (and per set for order > 1), in the kind of frame that the data came in.

        Several outputs give columns ``"player[output]"``. A pandas index is kept.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"} or None, default=None
            None: as the data; for arrays the first of these three that is installed.
        """
        from exactshap.results.explanation._conversion import to_frame

        return to_frame(self, kind)

    def to_shap(self) -> Any:
        """Return a real ``shap.Explanation`` of the order-1 values, for every plot of shap.

        Numbers go to its ``data``; text goes to ``display_data`` and its sorted category codes to ``data``. A group of columns
        shows the mean of its columns if they are numeric, else their text.
        """
        from exactshap.results.explanation._conversion import to_shap

        return to_shap(self)

    def to_shapiq(self, i: int, output: int | str = 0) -> Any:
        """Return a ``shapiq.InteractionValues`` of one row and one output."""
        from exactshap.results.explanation._conversion import to_shapiq

        return to_shapiq(self, i, output)

    def save(self, path: str | Path) -> None:
        """Write one ``.npz`` file (arrays and JSON, no pickle), all of it or nothing."""
        from exactshap.results.explanation._storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int = 2**33) -> Explanation:
        """Read a file of :meth:`save` as untrusted data; raise ModelFormatError if it is damaged, or no such file.

        ``max_bytes`` bounds what is unpacked: zip entries while they are, a Parquet table's pages before they are.
        """
        from exactshap.results.explanation._storage import load

        return load(path, max_bytes=max_bytes)

    @property
    def plot(self) -> PlotAccessor:
        """Plots: ``waterfall(i)``, ``beeswarm()``, ``bar()``, ``scatter(feature)``, ``interactions(i)``; each takes ``ax``."""
        from exactshap.results.plots import PlotAccessor

        return PlotAccessor(self)

    def report(self, path: str | Path, **settings: Any) -> Path:
        """Write one static HTML file without scripts; see :func:`exactshap.results.report.write_report`."""
        from exactshap.results.report import write_report

        return write_report(self, path, **settings)


def _rebuild(arguments: dict[str, Any]) -> Explanation:
    return Explanation(**arguments)
