"""Hold results of decompositions: shares of one number, certificate and errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap._runtime.words import PrintedTable, in_words
from exactshap.errors import ExactnessError, InputError
from exactshap.results.data import bibtex, cited_by_decomposition, frame_of, picture, without_noise
from exactshap.results.plots import Marginal, Shown, current_palette, draw_bars, name_lines, new_axes, prepare_marginals

_SHOWN = 10
_ARRAY_SHAPES = {
    "values": (None,),
    "std_error": (None,),
    "p_values": (None,),
    "intervals": (None, 2),
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Decomposition(PrintedTable):
    """Hold one number, split over the features: ``sum(values) = total + drift``.

    Attributes
    ----------
    statistic : str
        Name of the number that is split, for titles and tables ("R2", "MMD2", "HSIC").
    values : array of shape (n_features,)
        Share of each feature, in the unit of ``total``. Read-only.
    total : float
        The number itself, computed on its own, not as the sum of the shares.
    feature_names : tuple of str
        Names of the features (or groups of columns), in the order of ``values``.
    drift : float or None
        ``sum(values) - total`` where the shares do not add up to ``total`` by definition of the game; None where they do.
    per_row : array of shape (n_rows, n_features), or None
        Contribution of each row; sums to ``values`` over the rows.
    std_error, p_values : arrays of shape (n_features,), or None
        Of sampled or inferred quantities; None (not 0) where the shares are exact and nothing is inferred.
    intervals : array of shape (n_features, 2), or None
        Lower and upper end of an interval for each share; ``details["level"]`` says at which level.
    details : mapping
        Settings and facts worth keeping (game, method, forecast, kernel, bandwidth ...). Read-only.
    residual : float or None
        ``sum(values)`` and what it must be by another computation, less each other; None where they were not compared.
    tolerance : float
        Largest residual that rounding can explain; a larger one raises.
    backend : str or None
        Kind of frame that :meth:`to_frame` returns ("pandas", "polars", "pyarrow"); None takes what is installed.

    Examples
    --------
    >>> import numpy as np
    >>> shares = Decomposition(statistic="R2", values=np.array([0.5, 0.25]), total=0.75, feature_names=("age", "bmi"))
    >>> shares
    R2 = 0.75 over 2 features
      feature  contribution  of total
      age               0.5    66.7 %
      bmi              0.25    33.3 %
    """

    statistic: str
    values: np.ndarray
    total: float
    feature_names: tuple[str, ...]
    drift: float | None = None
    per_row: np.ndarray | None = None
    std_error: np.ndarray | None = None
    p_values: np.ndarray | None = None
    intervals: np.ndarray | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    residual: float | None = None
    tolerance: float = 0.0
    backend: str | None = None

    def __post_init__(self) -> None:
        names = tuple(map(str, self.feature_names))
        object.__setattr__(self, "feature_names", names)
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))
        object.__setattr__(self, "total", float(self.total))
        for name, shape in _ARRAY_SHAPES.items():
            self._freeze(name, (len(names), *shape[1:]))
        if self.per_row is not None:
            self._freeze("per_row", (len(self.per_row), len(names)))

    def _freeze(self, name: str, shape: tuple[int | None, ...]) -> None:
        """Store a read-only float64 copy of an array of the right shape."""
        value = getattr(self, name)
        if value is None:
            return
        array = np.array(value, float)
        if array.shape != shape:
            raise InputError(f"`{name}` must have shape {shape}", f"Got {array.shape}")
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "details": dict(self.details)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def fractions(self) -> np.ndarray:
        """Return the shares divided by ``total``; NaN if that is rounding."""
        return self.values / self.total if self.readable(self.total) else np.full(len(self.values), np.nan)

    @property
    def plot(self) -> Shares:
        """Return plots of the shares: ``plot.bar(ax=None)``."""
        return Shares(self)

    def cite(self) -> str:
        """Return BibTeX of the library and the statistic's paper."""
        return bibtex(cited_by_decomposition(self.statistic, getattr(self, "game", "")))

    def to_frame(self) -> Any:
        """Return one row per feature, in feature order, as a frame.

        It is of the kind that came in, pandas where arrays came in.

        Columns: ``feature``, ``value``, ``fraction`` (of the total), and ``std_error``, ``p_value``, ``lower``, ``upper``
        where they are known.
        """
        return frame_of(None, self._columns(), self.backend)

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"feature": list(self.feature_names), "value": self.values, "fraction": self.fractions}
        optional = {"std_error": self.std_error, "p_value": self.p_values}
        columns |= {name: values for name, values in optional.items() if values is not None}
        if self.intervals is not None:
            columns |= {"lower": self.intervals[:, 0], "upper": self.intervals[:, 1]}
        return columns

    def readable(self, numbers: np.ndarray | float) -> np.ndarray:
        """Return numbers with 0 for those within the certificate's tolerance."""
        return without_noise(numbers, self.tolerance)

    def facts(self) -> list[str]:
        """Return sentences on the number that is split, and the certificate."""
        game = f" ({self.game} game)" if hasattr(self, "game") else ""
        facts = [f"{self.statistic} = {self._total()}{game} over {len(self)} features"]
        if self.question:
            facts.append(self.question)
        if self.drift is not None:
            facts.append(f"shares sum to {np.sum(self.values):.6g} (drift {self.readable(self.drift):.3g})")
        if self.residual is not None:
            facts.append(f"residual {self.residual:.1e} (tolerance {self.tolerance:.1e})")
        return facts

    @property
    def question(self) -> str:
        """Return the value function in words; "" where there is no choice."""
        name = getattr(self, "value_function", self.details.get("value_function", ""))
        return f"value function: {name}" if name else ""

    def _total(self) -> str:
        return f"{self.readable(self.total):.6g}"

    def rows(self, noun: str = "feature", most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of text, the largest shares first."""
        values = self.readable(self.values)
        # Parts of a negative total, such as an unbiased MMD of equal samples, would have the wrong sign
        fractions = np.where(values == 0.0, 0.0, self.fractions if self.total > 0.0 else np.nan)
        columns = {
            noun: list(self.feature_names),
            "contribution": [f"{v:.4g}" for v in values],
            "of total": ["" if np.isnan(f) else f"{100 * f:.1f} %" for f in fractions],
        }
        if self.intervals is not None:
            ends = self.readable(self.intervals)
            columns[f"{100 * self.details['level']:g} % interval"] = [f"{low:.3g} to {high:.3g}" for low, high in ends]
        elif self.std_error is not None:
            columns["std error"] = [f"{e:.2g}" for e in self.readable(self.std_error)]
        columns |= self._p_values()
        order = np.argsort(-np.abs(self.values), kind="stable")[:most]
        return list(columns), [[column[j] for column in columns.values()] for j in order]

    def _p_values(self) -> dict[str, list[str]]:
        return {} if self.p_values is None else {"p": [f"{p:.4g}" for p in self.p_values]}

    def _head(self) -> tuple[str, Mapping[str, str]]:
        return "; ".join(self.facts()), {}

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        return *self.rows(most=_SHOWN), len(self)


@dataclass(frozen=True, eq=False)
class ShareBars:
    labels: tuple[str, ...]  # feature names; the last one reads "12 others" where features were put together
    values: np.ndarray  # (n_bars,)
    cumulative: np.ndarray  # (n_bars,): running sum of ``values``
    ends: np.ndarray | None  # (2, n_bars): lower and upper ends of the error bars; NaN for the bar of the rest
    total: float  # the number that is split; drawn as a vertical line
    statistic: str  # its name, for the axis


@dataclass(frozen=True)
class Shares:
    """Draw the plots of a :class:`Decomposition`. Nothing is shown, the axes are returned."""

    decomposition: Decomposition

    @picture
    def bar(self, ax: Axes = None, *, max_display: int = 10) -> Any:
        """Draw the largest shares, the rest as one bar, and their cumulative sum.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made without one.
        max_display : int, default=10
            Number of bars, that of the rest included.
        """
        bars = self.prepare(max_display=max_display)
        ax = new_axes(6.0, 1.2 + 0.35 * len(bars.labels)) if ax is None else ax
        position, colours = np.arange(len(bars.labels)), current_palette()
        draw_bars(ax, bars.values, bars.ends, color=colours.neutral, label="contribution")
        ax.plot(bars.cumulative, position, color=colours.accent, marker="o", markersize=3, zorder=3, label="cumulative")
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.axvline(bars.total, color="gray", linewidth=0.8, linestyle="--", label=f"{bars.statistic} = {in_words(bars.total)}")
        name_lines(ax, bars.labels)
        ax.set_xlabel("\n".join(filter(None, (f"contribution to {bars.statistic}", self.decomposition.question))))
        ax.legend(loc="best", frameon=False)
        return ax

    __call__ = bar  # the only picture, as ``plot()`` of comparisons

    def prepare(self, *, max_display: int = 10) -> ShareBars:
        """Return the data that :meth:`bar` draws."""
        one, ends = self.decomposition, None
        if one.intervals is not None:
            ends = one.intervals.T
        elif one.std_error is not None:
            ends = one.values + np.stack([-one.std_error, one.std_error])
        shown = Shown.of(np.abs(one.values), max_display)
        heights = shown.values(one.values)
        return ShareBars(
            labels=shown.labels(one.feature_names, "other"),
            values=heights,
            cumulative=np.cumsum(heights),
            ends=None if ends is None else shown.known(ends),
            total=one.total,
            statistic=one.statistic,
        )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PairwiseDecomposition(Decomposition):
    """Hold a decomposition of a statistic over pairs of rows (MMD, HSIC).

    Attributes
    ----------
    index : str
        Which semivalue or interaction index the values are.
    order : int
        Sets of 1..order players have a value.
    residual : float or None
        For efficient indices the statistic by its textbook formula minus the sum of all values; for others that statistic
        minus its value by the fast path. None for sampled (block) estimates of several blocks, which are all checked.
    total_std_error : float or None
        Standard error of ``total`` as an estimate of the population's value.
    p_value : float or None
        Permutation p-value of ``total``.
    p_adjusted : array of shape (n_features,), or None
        ``p_values`` adjusted for looking at all shares; ``details["correction"]`` says how.
    null_values : array of shape (n_permutations, n_features), or None
        Shares of the permuted samples.
    null_totals : array of shape (n_permutations,), or None
        Statistic of the permuted samples.
    sets, set_values : tuple of tuples of int, array of shape (n_sets,), or None
        All sets of 1..order players and their values, for order >= 2.
    """

    index: str = "shapley"
    order: int = 1
    total_std_error: float | None = None
    p_value: float | None = None
    p_adjusted: np.ndarray | None = None
    null_values: np.ndarray | None = None
    null_totals: np.ndarray | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    set_values: np.ndarray | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        n = len(self.feature_names)
        for name, shape in (("p_adjusted", (n,)), ("set_values", (len(self.sets or ()),))):
            self._freeze(name, shape)
        for name, trailing in (("null_values", (n,)), ("null_totals", ())):
            if getattr(self, name) is not None:
                self._freeze(name, (len(getattr(self, name)), *trailing))

    @property
    def interactions(self) -> np.ndarray:
        """Return pairs as a symmetric matrix (n_features, n_features): the index itself, not halved; singles on the diagonal."""
        if self.sets is None or self.set_values is None:
            raise InputError("Interactions need order=2", f"Got order={self.order}", "Decompose with order=2")
        matrix = np.diag(self.values)
        for players, value in zip(self.sets, self.set_values, strict=True):
            if len(players) == 2:
                matrix[players], matrix[players[::-1]] = value, value
        return matrix

    def _columns(self) -> dict[str, Any]:
        columns = super()._columns()
        return columns if self.p_adjusted is None else {**columns, "p_adjusted": self.p_adjusted}

    def facts(self) -> list[str]:
        """Return sentences on the statistic, its error, p-value and certificate."""
        head, *certificate = super().facts()
        facts = [head]
        if self.p_value is not None and self.null_totals is not None:
            facts.append(f"p = {self.p_value:.4g} ({len(self.null_totals)} permutations)")
        if self.details.get("n_blocks", 1) > 1:
            facts.append(f"mean over {self.details['n_blocks']} random blocks of rows")
        return [*facts, *certificate]

    def _total(self) -> str:
        return super()._total() + ("" if self.total_std_error is None else f" ± {self.total_std_error:.2g}")

    def _p_values(self) -> dict[str, list[str]]:
        columns = super()._p_values()
        if columns and self.p_adjusted is not None:
            columns[f"p ({self.details['correction']})"] = [f"{p:.4g}" for p in self.p_adjusted]
        return columns


def pair_tolerance(scale: float, n_rows: int, n_columns: int) -> float:
    r"""Return the largest difference of two exact computations that rounding can explain.

    .. math:: 16\, \epsilon\, (n + d)\, \mathrm{scale}

    Kernel values are products of d rounded factors (Higham 2002, Lemma 3.1); n^2 of them are added up, with a rounding
    error that grows like the square root of their number (Higham & Mary 2019). ``scale`` bounds the sum of the magnitudes.
    """
    return 16.0 * float(np.finfo(float).eps) * (n_rows + n_columns) * scale


def check_residual(name: str, residual: float, tolerance: float, other: str = "its direct computation") -> None:
    """Raise if two independent computations of a statistic disagree: then no number may be trusted."""
    if not abs(residual) <= tolerance:
        raise ExactnessError(
            f"The shares of {name} do not add up to {other}",
            f"They differ by {residual:.3g} (tolerance {tolerance:.3g})",
            "This is a bug of exactshap: please report it, with exactshap.show_versions()",
        )


def strongest_marginals(shares: PairwiseDecomposition, samples: tuple[Any, Any]) -> tuple[Marginal, ...]:
    """Return both samples' distributions of the four columns with the largest shares, with these shares."""
    strongest = np.argsort(-shares.values, kind="stable")[:4]
    captions = [f"contribution {shares.values[j]:.3g}" for j in strongest]
    return prepare_marginals(*samples, [shares.feature_names[j] for j in strongest], captions)
