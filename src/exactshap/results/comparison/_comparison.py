"""Compare mean values of two explanations, and their data by MMD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count, check_level, checked_generator
from exactshap._runtime.words import PrintedTable
from exactshap.errors import ExactshapError, InputError, InputTypeError
from exactshap.frames import Table, as_table
from exactshap.results.comparison import _report as pages
from exactshap.results.data import (
    ExplanationData,
    as_days,
    bootstrap_deviations,
    cell_text,
    counted,
    frame_kind,
    frame_of,
    interval_around,
    player_columns,
    without_noise,
)
from exactshap.results.decomposition import PairwiseDecomposition

# Rows of both samples together: the statistic is quadratic in them.
MAX_EXACT_ROWS = 5000
# Differences of a printed table.
_SHOWN = 10
_SAME = {
    "feature_names": "the same features",
    "output_names": "the same outputs",
    "value_function": "the same value function",
    "index": "the same index",
    "unit": "the same unit",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Comparison(PrintedTable):
    r"""Hold two groups' mean values and their differences; made by :meth:`exactshap.Explanation.compare`.

    .. math:: \Delta_j = \bar\phi_j^{(2)} - \bar\phi_j^{(1)}, \qquad
              \bar f^{(2)} - \bar f^{(1)} = \Delta_\mathrm{baseline} + \sum_j \Delta_j + \Delta_\mathrm{residual}

    Attributes
    ----------
    labels : tuple of str
        Names of the two groups.
    n_rows : tuple of int
    feature_names, output_names, unit
        As of the explanations.
    means : array of shape (2, n_players[, n_outputs])
        Mean value of each player in both groups, in the unit of the model output.
    magnitudes : array of shape (2, n_players[, n_outputs])
        Mean absolute value.
    baselines, predictions, residuals : arrays of shape (2[, n_outputs])
        Their means.
    difference : array of shape (n_players[, n_outputs])
        Second mean minus the first: exact for these rows.
    intervals : array of shape (n_players[, n_outputs], 2)
        Bootstrap intervals of ``difference`` over rows; NaN where a group has one row.
    mean_intervals : array of shape (2, n_players[, n_outputs], 2)
        The same of ``means``.
    level : float
        Of the intervals.
    data : pair of tables, or None
        Of both groups, as the explanations hold them; None where one holds none.
    drift : Decomposition or None
        The MMD of the data of both groups, split over the players; None where they were not compared.
    notes : tuple of str
        What a reader must know besides.
    tolerance : float
        Numbers up to this one are printed as 0: rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from exactshap import Explanation
    >>> def linear(X):
    ...     return Explanation(values=X, baseline=np.zeros(len(X)), prediction=X.sum(axis=1), residual=np.zeros(len(X)),
    ...                        tolerance=1e-12, feature_names=["age", "bmi"], value_function="baseline", data=X)
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> comparison = linear(X).compare(linear(X + [0.0, 2.0]))
    >>> comparison.difference.round(12), comparison.drift.values.argmax()
    (array([0., 2.]), np.int64(1))
    """

    labels: tuple[str, str]
    n_rows: tuple[int, int]
    feature_names: tuple[str, ...]
    means: np.ndarray
    magnitudes: np.ndarray
    baselines: np.ndarray
    predictions: np.ndarray
    residuals: np.ndarray
    difference: np.ndarray
    intervals: np.ndarray
    mean_intervals: np.ndarray
    level: float
    unit: str = "response"
    output_names: tuple[str, ...] | None = None
    drift: PairwiseDecomposition | None = None
    data: tuple[Any, Any] | None = None
    notes: tuple[str, ...] = ()
    backend: str | None = None
    tolerance: float = 0.0

    def to_frame(self, kind: str | None = None) -> Any:
        """Return one row per player (and output). It has means, magnitudes, difference, interval, MMD contribution, p-value.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"} or None, default=None
            None: as the data; for arrays the first of these that is installed.
        """
        return frame_of(None, self.columns(), kind or self.backend)

    def columns(self) -> dict[str, Any]:
        """Return the columns of :meth:`to_frame`, outputs within players."""
        n_outputs = 1 if self.output_names is None else len(self.output_names)
        columns: dict[str, Any] = {"feature": [name for name in self.feature_names for _ in range(n_outputs)]}
        if self.output_names is not None:
            columns["output"] = list(self.output_names) * len(self.feature_names)
        numbers = {
            "mean_first": self.means[0],
            "mean_second": self.means[1],
            "difference": self.difference,
            "lower": self.intervals[..., 0],
            "upper": self.intervals[..., 1],
            "magnitude_first": self.magnitudes[0],
            "magnitude_second": self.magnitudes[1],
        }
        columns |= {name: np.ravel(values) for name, values in numbers.items()}
        if self.drift is not None:
            columns["mmd_contribution"] = np.repeat(self.drift.values, n_outputs)
            if self.drift.p_adjusted is not None:
                columns["mmd_p"] = np.repeat(self.drift.p_adjusted, n_outputs)
        return columns

    plot, report = pages.plot, pages.report

    def changed(self, threshold: float | Mapping[str, float] | None = None) -> tuple[str, ...]:
        """Return features with a difference beyond the threshold, its whole interval included.

        Parameters
        ----------
        threshold : float, mapping of feature to float, or None, default=None
            In the unit of the output; None is a tenth of the first group's largest mean magnitude, which a mapping has for other features, too.

        Returns
        -------
        names : tuple of str
            For an alarm: ``if comparison.changed(0.1): ...``. Of several outputs, those with a change in one of them.
        """
        found = pages.statuses(self, pages.thresholds_of(self, threshold)).reshape(len(self.feature_names), -1) == pages.CHANGED
        return tuple(name for name, any_output in zip(self.feature_names, found.any(axis=1), strict=True) if any_output)

    def facts(self) -> dict[str, str]:
        """Return facts next to the table as short texts by name."""
        drift, ends = "", (self.predictions, self.baselines)
        if self.drift is not None:
            p = "" if self.drift.p_value is None else f", p = {self.drift.p_value:.3g}"
            strongest = self.drift.feature_names[int(np.argmax(self.drift.values))]
            drift = f"MMD2 = {self.drift.total:.4g}{p}; largest contribution: {strongest} ({self.drift.values.max():.3g})"
        moved, shifted = (without_noise(np.atleast_1d(end[1] - end[0]), self.tolerance) for end in ends)
        found = {
            "groups": ", ".join(f"{label}: {counted(n, 'row')}" for label, n in zip(self.labels, self.n_rows, strict=True)),
            "prediction": f"changed by {_numbers(moved)} in the mean; the baseline by {_numbers(shifted)}, the rest is below",
            "data": drift,
            "notes": " ".join(self.notes),
        }
        return {name: words for name, words in found.items() if words}

    def rows(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of text, by decreasing magnitude of the difference."""
        columns = self.columns()
        for name in ("mean_first", "mean_second", "difference", "lower", "upper"):
            columns[name] = without_noise(columns[name], self.tolerance)
        outputs = columns.get("output", [None] * len(columns["feature"]))
        names = [name if k is None else f"{name}[{k}]" for name, k in zip(columns["feature"], outputs, strict=True)]
        ends = zip(columns["lower"], columns["upper"], strict=True)
        means = zip(self.labels, ("mean_first", "mean_second"), strict=True)
        table = [
            ("feature", names),
            *((f"mean {label}", [f"{v:.4g}" for v in columns[name]]) for label, name in means),
            ("difference", [f"{v:+.4g}" for v in columns["difference"]]),
            (f"{100 * self.level:g} % interval", [f"{low:.3g} to {high:.3g}" for low, high in ends]),
        ]
        known = (("mmd_contribution", "contribution to MMD2"), ("mmd_p", "p"))
        table += [(heading, [f"{v:.3g}" for v in columns[name]]) for name, heading in known if name in columns]
        order = np.argsort(-np.abs(columns["difference"]), kind="stable")[:most]
        return [heading for heading, _ in table], [[cells[j] for _, cells in table] for j in order]

    def _head(self) -> tuple[str, Mapping[str, str]]:
        return f"Comparison of mean values ({self.unit}): {self.labels[1]} minus {self.labels[0]}", self.facts()

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        return *self.rows(_SHOWN), self.difference.size


def compare(
    first: ExplanationData,
    other: ExplanationData,
    *,
    labels: Sequence[str] = ("first", "second"),
    drift: bool = True,
    level: float = 0.95,
    n_bootstrap: int = 1000,
    n_permutations: int = 99,
    random_state: int = 0,
) -> Comparison:
    """Compare these rows' mean values with another explanation's, of the same index.

    Parameters
    ----------
    other : Explanation
        Differences are its means minus these.
    labels : pair of str, default=("first", "second")
        Names of the two.
    drift : bool, default=True
        Also split the MMD of their data over the players: beyond 5,000 rows from blocks of rows, which the notes say.
    level : float, default=0.95
        Of the intervals.
    n_bootstrap : int, default=1000
        Resamples of the rows.
    n_permutations : int, default=99
        Of the MMD's p-values.
    random_state : int, default=0

    Returns
    -------
    comparison : Comparison
        ``difference``, ``intervals``, ``drift``, ``to_frame()``, ``plot()``.
    """
    _check(first, other, labels, level, n_bootstrap)
    pair, generator = (first, other), checked_generator(random_state)
    spread = [bootstrap_deviations(one.values, n_bootstrap, generator, level) for one in pair]
    means = np.stack([one.values.mean(axis=0) for one in pair])
    difference = means[1] - means[0]
    moved, notes = _data_drift(first, other, n_permutations, random_state) if drift else (None, ())
    names = tuple(map(str, labels))
    return Comparison(
        labels=names,  # type: ignore[arg-type]
        n_rows=(first.n_rows, other.n_rows),
        feature_names=first.feature_names,
        output_names=first.output_names,
        unit=first.unit,
        means=means,
        magnitudes=np.stack([np.abs(one.values).mean(axis=0) for one in pair]),
        baselines=np.stack([one.baseline.mean(axis=0) for one in pair]),
        predictions=np.stack([one.prediction.mean(axis=0) for one in pair]),
        residuals=np.stack([one.residual.mean(axis=0) for one in pair]),
        difference=difference,
        intervals=interval_around(difference, spread[1] - spread[0], level),
        mean_intervals=np.stack([interval_around(mean, each, level) for mean, each in zip(means, spread, strict=True)]),
        level=level,
        drift=moved,
        data=None if first.data is None or other.data is None else (first.data, other.data),
        notes=(*_differing(first, other), *notes),
        backend=frame_kind(first.data),
        tolerance=max(float(one.tolerance.max(initial=0.0)) for one in pair),
    )


def _check(first: ExplanationData, second: Any, labels: Sequence[str], level: float, n_bootstrap: int) -> None:
    if not isinstance(second, ExplanationData):
        raise InputTypeError("An Explanation is compared with another one", f"Got {type(second).__name__}")
    for name, question in _SAME.items():
        one, other = getattr(first, name), getattr(second, name)
        if one != other:
            raise InputError(f"Two explanations are compared with {question}", f"Got {one!r} and {other!r}")
    if not first.n_rows or not second.n_rows:
        raise InputError("A mean needs at least one row", f"Got {first.n_rows} and {second.n_rows} rows")
    if isinstance(labels, str) or len(labels) != 2:
        raise InputError("The 'labels' parameter must be two names", f"Got {labels!r}")
    check_level(level)
    check_count("n_bootstrap", n_bootstrap, 0)


def _differing(first: ExplanationData, second: ExplanationData) -> list[str]:
    """Say what differs besides the rows, as it causes part of the differences."""
    notes = []
    if first.background_hash != second.background_hash:
        notes.append("The backgrounds differ: part of the differences is theirs.")
    if first.model_name != second.model_name:
        notes.append(f"The models differ: {first.model_name or 'not named'} and {second.model_name or 'not named'}.")
    elif first.background_hash == second.background_hash and _have_other_baselines(first, second):
        notes.append("The models, or weights of the background, differ: without another background they have other baselines.")
    if not (first.exact and second.exact):
        notes.append("Not all values are exact: the intervals hold their errors only as far as rows do not share them.")
    return notes


def _have_other_baselines(first: ExplanationData, second: ExplanationData) -> bool:
    """Say whether both have one baseline, and not the same. Offsets make one of each row."""
    ends = np.stack([end for one in (first, second) for end in (one.baseline.min(axis=0), one.baseline.max(axis=0))])
    tolerance = max(float(one.tolerance.max()) for one in (first, second))
    return bool(np.all(np.ptp(ends.reshape(2, 2, -1), axis=1) <= tolerance) and np.any(np.ptp(ends, axis=0) > tolerance))


def _data_drift(
    first: ExplanationData, second: ExplanationData, n_permutations: int, seed: Any
) -> tuple[PairwiseDecomposition | None, tuple[str, ...]]:
    """Return the data's MMD split over the players, or None. Sentences on the method come with it."""
    if first.data is None or second.data is None:
        return None, ("The data are not compared: an explanation holds none.",)
    if min(first.n_rows, second.n_rows) < 2:
        return None, ("The data are not compared: a sample needs two rows.",)
    from exactshap.decompose import PairwiseSettings, decompose_mmd

    try:
        samples, groups, kernels, gaps = _coded(first, second)
        (one, other), choice, notes = _thinned(samples, np.random.default_rng(seed))
        drift = decompose_mmd(
            one,
            other,
            bandwidth="column-median",
            kernel=kernels,
            groups=groups,
            n_permutations=n_permutations,
            random_state=seed,
            settings=PairwiseSettings(**choice),
        )
    except ExactshapError as error:
        return None, (f"The data are not compared: {error}",)
    missing = f"Missing numbers of {', '.join(gaps)} count as a category of their own." if gaps else ""
    return drift, tuple(text for text in (*notes, missing) if text)


def _coded(first: ExplanationData, second: ExplanationData) -> tuple[Any, dict[str, list[int]], dict[int, str], list[str]]:
    """Return both samples as numbers, with columns, categories and gaps by player.

    They are the columns of each player, which columns are categories, and the players with gaps.
    """
    tables = as_table(first.data), as_table(second.data)
    if tables[0].names and tables[1].names and set(tables[0].names) == set(tables[1].names):
        # Functions may take the columns of a frame in any order.
        tables = tables[0], tables[1].select([tables[1].names.index(name) for name in tables[0].names])
    columns: list[np.ndarray] = []
    groups: dict[str, list[int]] = {}
    kernels: dict[int, str] = {}
    for name, members in zip(first.feature_names, player_columns(first, tables[0]), strict=True):
        groups[name] = list(range(len(columns), len(columns) + len(members)))
        for j in members:
            cells, is_category = _column(tables, j)
            kernels |= {len(columns): "categorical"} if is_category else {}
            columns.append(cells)
    gaps = [name for name, places in groups.items() if any(np.isnan(columns[place]).any() for place in places)]
    pooled = np.stack(columns, axis=1)
    return (pooled[: first.n_rows], pooled[first.n_rows :]), groups, kernels, gaps


def _column(tables: tuple[Table, Table], j: int) -> tuple[np.ndarray, bool]:
    """Return a column of both tables as numbers, and whether these are categories."""
    first, second = (table.numbers([j]) for table in tables)
    if first is not None and second is not None:
        return np.concatenate([first, second])[:, 0], False
    texts = [cell_text(value) for table in tables for value in table.column(j)]
    days = as_days(np.array(texts, object))
    return (np.unique(texts, return_inverse=True)[1].astype(float), True) if days is None else (days, False)


def _thinned(samples: tuple[np.ndarray, np.ndarray], generator: np.random.Generator) -> tuple[Any, dict[str, Any], list[str]]:
    """Return samples, a method and a sentence on it: blocks of rows beyond 5,000, of which both samples need enough."""
    sizes = [len(sample) for sample in samples]
    if sum(sizes) <= MAX_EXACT_ROWS:
        return samples, {"method": "exact"}, []
    if min(sizes) >= 100 * (sum(sizes) // 2000):
        return (
            samples,
            {"method": "blocks", "block_size": 1000},
            ["The MMD is the mean over random blocks of about 2,000 rows."],
        )
    keep = MAX_EXACT_ROWS - min(min(sizes), MAX_EXACT_ROWS // 2)
    chosen = [sample[np.sort(generator.permutation(len(sample))[:keep])] for sample in samples]
    return chosen, {"method": "exact"}, [f"The MMD is that of a random choice of {keep:,} rows of the larger sample."]


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{value:+.4g}" if value else "0" for value in values[:6]) + (", ..." if len(values) > 6 else "")
