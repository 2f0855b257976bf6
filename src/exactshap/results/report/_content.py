"""Prepare what the report shows as plain data: players, rows and numbers. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.results.data import Cells, ExplanationData, Observed, axis_name, cells, readable, row_name
from exactshap.results.plots import Shown, cell_words
from exactshap.results.report._svg import number

_DEPENDENCES = 6  # features of an output that are drawn against their cells
_PLACES = {0.0: "lowest", 0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile", 1.0: "highest"}


@dataclass(frozen=True, eq=False)
class Row:
    title: str
    caption: str
    labels: tuple[str, ...]  # "name = cell" by decreasing magnitude; the last one may stand for the rest
    # values, starts: (n_bars,): length and beginning of each bar, in the unit of the model output
    values: np.ndarray
    starts: np.ndarray
    # (n_bars,): standard errors of sampled values, or standard deviations under a probabilistic model; NaN for the rest
    errors: np.ndarray | None
    # baseline, total: v(empty) and the model's prediction
    baseline: float
    total: float
    additive: bool  # whether baseline + values is the prediction
    response: str = ""  # the prediction in a readable unit, such as "probability 0.8"; "" if it has one already


@dataclass(frozen=True, eq=False)
class Dependence:
    """Hold the cells and values of one player on the drawn rows; ``categories`` for text, days since 1970 for dates."""

    name: str
    x: np.ndarray
    values: np.ndarray
    categories: tuple[str, ...] | None
    dates: bool = False


@dataclass(frozen=True, eq=False)
class Pairs:
    """Hold mean magnitudes over all rows: a matrix of the strongest players, and the strongest pairs."""

    names: tuple[str, ...]
    matrix: np.ndarray
    strongest: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True, eq=False)
class Content:
    names: tuple[str, ...]
    n_left_out: int
    strength: np.ndarray
    error: np.ndarray | None
    mean: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    values: np.ndarray
    numbers: np.ndarray | None
    dependences: tuple[Dependence, ...]
    rows: tuple[Row, ...]
    pairs: Pairs | None
    errors: dict[str, Any] | None  # summaries, and the rows with the largest: (row, observed, predicted, error)


def content(
    explanation: ExplanationData,
    *,
    drawn: np.ndarray,
    max_display: int,
    n_rows: int,
    observed: Observed | None = None,
    response: tuple[str, np.ndarray] | None = None,
) -> Content:
    """Prepare a single-output explanation; ``drawn`` are the rows that beeswarms and dependence plots show.

    ``response`` has a name and one number per row: the predictions in a readable unit.
    """
    explanation = readable(explanation)
    strength = np.abs(explanation.values).mean(axis=0)
    order = np.argsort(-strength, kind="stable")[:max_display]
    shown = cells(explanation, drawn)
    values = explanation.values[drawn]
    numbers = None if shown is None else np.where(shown.numeric, shown.numbers, np.nan)[:, order]
    rows = explanation.values[:, order]
    return Content(
        names=tuple(explanation.feature_names[j] for j in order),
        n_left_out=explanation.n_players - len(order),
        strength=strength[order],
        error=None if explanation.std_error is None else explanation.std_error.mean(axis=0)[order],
        mean=rows.mean(axis=0),
        lowest=rows.min(axis=0),
        highest=rows.max(axis=0),
        values=values[:, order],
        numbers=numbers,
        dependences=tuple(_dependence(explanation, int(j), shown, values) for j in order[:_DEPENDENCES]) if shown else (),
        rows=tuple(
            _row(explanation, i, caption, max_display, response) for i, caption in _chosen(explanation, n_rows, observed)
        ),
        pairs=_pairs(explanation),
        errors=None if observed is None else _errors(explanation, observed),
    )


def choose_rows(prediction: np.ndarray, wanted: int = 5) -> list[tuple[int, str]]:
    """Return rows at the quantiles 0, 1/4, 1/2, 3/4 and 1 of the predictions, with their names.

    >>> import numpy as np
    >>> choose_rows(np.array([3.0, 1.0, 2.0]), wanted=3)
    [(1, 'lowest'), (2, 'median'), (0, 'highest')]
    """
    order = np.argsort(prediction, kind="stable")
    if len(order) == 0 or wanted < 1:
        return []
    shares = np.linspace(0.0, 1.0, wanted) if wanted > 1 else np.array([0.5])
    chosen: dict[int, str] = {}
    for share in shares.tolist():
        chosen.setdefault(int(order[round(share * (len(order) - 1))]), _PLACES.get(share, f"{share:.0%} quantile"))
    return list(chosen.items())


def _chosen(explanation: ExplanationData, n_rows: int, observed: Observed | None) -> list[tuple[int, str]]:
    """Return the row with the largest known error, then rows spread over the predictions."""
    spread = {i: f"{place} prediction" for i, place in choose_rows(explanation.prediction, n_rows)}
    if observed is None or not spread or np.isnan(observed.error).all():
        return list(spread.items())
    worst = int(np.nanargmax(np.abs(observed.error)))
    words = f"largest error, {number(observed.error[worst])}"
    caption = f"{words}; {spread.pop(worst)}" if worst in spread else words
    return [(worst, caption), *spread.items()]


def _errors(explanation: ExplanationData, observed: Observed, shown: int = 5) -> dict[str, Any] | None:
    size = np.abs(observed.error)
    if np.isnan(size).all():
        return None
    predicted = explanation.prediction if observed.response is None else observed.response
    largest = [int(i) for i in np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")[:shown] if not np.isnan(size[i])]
    return {
        "sentence": observed.sentence,
        "predicted": observed.response_name,
        "mean": float(np.nanmean(size)),
        "largest": [(row_name(explanation, i), observed.target[i], predicted[i], observed.error[i]) for i in largest],
    }


def _dependence(explanation: ExplanationData, j: int, shown: Cells, values: np.ndarray) -> Dependence:
    days = shown.days(j)
    if days is not None:
        return Dependence(axis_name(explanation, j), days, values[:, j], None, dates=True)
    categories = shown.categories(j) or (None if shown.numeric[j] else ())
    return Dependence(axis_name(explanation, j), shown.numbers[:, j], values[:, j], categories)


def _row(
    explanation: ExplanationData, i: int, caption: str, max_display: int, response: tuple[str, np.ndarray] | None = None
) -> Row:
    row = explanation[i]
    values, errors = row.values[0], row.std_error if row.std_error is not None else row.std
    shown, content = Shown.of(np.abs(values), max_display), cells(row)
    labels, lengths = [_labelled(row, int(j), content) for j in shown.single], shown.values(values)
    additive, baseline = explanation.additive, float(row.baseline[0])
    ends = baseline + np.cumsum(lengths)
    return Row(
        title=row_name(explanation, i),
        caption=caption,
        labels=(*labels, *shown.name_of_rest()),
        values=lengths,
        starts=np.concatenate([[baseline], ends[:-1]]) if additive else np.zeros(len(lengths)),
        errors=None if errors is None else shown.known(errors[0]),
        baseline=baseline,
        total=float(row.prediction[0]),
        response="" if response is None else f"{response[0]} {number(float(response[1][i]))}",
        additive=additive,
    )


def _labelled(row: ExplanationData, j: int, shown: Cells | None) -> str:
    if shown is None:
        return row.feature_names[j]
    cell = shown.display[0, j]
    return f"{row.feature_names[j]} = {cell_words(cell) if isinstance(cell, str) else number(float(cell))}"


def _pairs(explanation: ExplanationData, shown: int = 10) -> Pairs | None:
    if explanation.set_values is None or explanation.sets is None:
        return None
    means = np.abs(explanation.set_values).mean(axis=0)
    matrix = np.diag(means[: explanation.n_players])
    sets = zip(explanation.sets, means.tolist(), strict=True)
    pairs = [(players[0], players[1], mean) for players, mean in sets if len(players) == 2]
    for j, k, mean in pairs:
        matrix[j, k] = matrix[k, j] = mean
    order: Sequence[int] = np.argsort(-matrix.sum(axis=1), kind="stable")[:shown].tolist()
    names = explanation.feature_names
    strongest = sorted(pairs, key=lambda pair: -pair[2])[:shown]
    return Pairs(
        names=tuple(names[j] for j in order),
        matrix=matrix[np.ix_(order, order)],
        strongest=tuple((names[j], names[k], mean) for j, k, mean in strongest),
    )
