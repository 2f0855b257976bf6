"""Write a comparison as text: facts, and a table of the largest differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.results.data import ExplanationData, counted, without_noise
from exactshap.results.decomposition import PairwiseDecomposition


def title_of(comparison: Any) -> str:
    """Return which means are compared."""
    return f"Comparison of mean values ({comparison.unit}): {comparison.labels[1]} minus {comparison.labels[0]}"


def rows_of(comparison: Any, most: int | None = None) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of text, by decreasing magnitude of the difference."""
    columns = dict(comparison.columns())
    for name in ("difference", "lower", "upper"):
        columns[name] = without_noise(columns[name], comparison.tolerance)
    outputs = columns.get("output", [None] * len(columns["feature"]))
    names = [name if k is None else f"{name}[{k}]" for name, k in zip(columns["feature"], outputs, strict=True)]
    ends = zip(columns["lower"], columns["upper"], strict=True)
    table = [
        ("feature", names),
        *((f"mean {label}", [f"{v:.4g}" for v in mean]) for label, mean in _means(comparison)),
        ("difference", [f"{v:+.4g}" for v in columns["difference"]]),
        (f"{100 * comparison.level:g} % interval", [f"{low:.3g} to {high:.3g}" for low, high in ends]),
    ]
    known = (("mmd_contribution", "contribution to MMD2"), ("mmd_p", "p"))
    table += [(heading, [f"{v:.3g}" for v in columns[name]]) for name, heading in known if name in columns]
    order = np.argsort(-np.abs(columns["difference"]), kind="stable")[:most]
    return [heading for heading, _ in table], [[cells[j] for _, cells in table] for j in order]


def _means(comparison: Any) -> list[tuple[str, np.ndarray]]:
    return [
        (label, without_noise(np.ravel(mean), comparison.tolerance))
        for label, mean in zip(comparison.labels, comparison.means, strict=True)
    ]


def facts_of(comparison: Any) -> dict[str, str]:
    """Return facts next to the table as short texts by name."""
    ends = (comparison.predictions, comparison.baselines)
    moved, shifted = (without_noise(np.atleast_1d(end[1] - end[0]), comparison.tolerance) for end in ends)
    rows = [f"{label}: {counted(n, 'row')}" for label, n in zip(comparison.labels, comparison.n_rows, strict=True)]
    found = {
        "groups": ", ".join(rows),
        "prediction": f"changed by {_numbers(moved)} in the mean; the baseline by {_numbers(shifted)}, the rest is below",
        "data": "" if comparison.drift is None else _drift_words(comparison.drift),
        "notes": " ".join(comparison.notes),
    }
    return {name: words for name, words in found.items() if words}


def differing(first: ExplanationData, second: ExplanationData) -> list[str]:
    """Say what differs besides the rows, as it causes part of the differences."""
    notes = []
    if first.background_hash != second.background_hash:
        notes.append("The backgrounds differ: part of the differences is theirs.")
    if first.model_name != second.model_name:
        notes.append(f"The models differ: {first.model_name or 'not named'} and {second.model_name or 'not named'}.")
    if not (first.exact and second.exact):
        notes.append("Not all values are exact: the intervals hold their errors only as far as rows do not share them.")
    return notes


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{value:+.4g}" if value else "0" for value in values[:6]) + (", ..." if len(values) > 6 else "")


def _drift_words(drift: PairwiseDecomposition) -> str:
    p = "" if drift.p_value is None else f", p = {drift.p_value:.3g}"
    strongest = drift.feature_names[int(np.argmax(drift.values))]
    return f"MMD2 = {drift.total:.4g}{p}; largest contribution: {strongest} ({drift.values.max():.3g})"
