"""Find each row's strongest adverse values; present them in frames and letters."""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from exactshap import __version__
from exactshap._runtime.checks import check_count, check_level, checked_generator
from exactshap._runtime.words import PrintedTable
from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from exactshap.results.data import (
    ExplanationData,
    cells,
    checked_background_values,
    frame_of,
    game_sentence,
    normal_reach,
    percentile_expansion,
    place_of,
    row_bytes,
    row_name,
    row_numbers,
)
from exactshap.results.plots import cell_words
from exactshap.results.report import rendered, write_page

_SHOWN = 5
_SIGNS = {"positive": 1.0, "negative": -1.0}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reasons(PrintedTable):
    """Hold the strongest adverse reasons of each row; made by :meth:`exactshap.Explanation.reasons`.

    Attributes
    ----------
    explanation : Explanation
        Of one output, which the reasons are taken from.
    adverse : {"positive", "negative"}
        Which values speak against the row.
    texts_by_player : tuple of str
        What stands for each player: its code, or its name.
    players : array of int of shape (n_rows, k)
        Players by decreasing adverse value; -1 where a row has fewer reasons.
    values : array of shape (n_rows, k)
        Their values, in the unit of the model output; NaN where there is no reason.
    decided : array of bool of shape (n_rows, k)
        Whether a reason is ahead of the next player by more than the errors of both: rounding, and standard errors of sampled values.
    intervals : array of shape (n_rows, k, 2), or None
        Of the values with other background rows, by the bootstrap; None without ``background_values``.
    kept : array of shape (n_rows, k), or None
        Share of the resampled backgrounds in which it is among the k reasons.
    level : float
        Of the intervals, and of the standard errors.
    model_digest : str or None
        What identifies the model, as given.

    Examples
    --------
    >>> from exactshap import Explanation
    >>> explanation = Explanation(
    ...     values=[[1.0, -2.0, 0.5]], baseline=[0.0], prediction=[-0.5], residual=[0.0], tolerance=1e-12,
    ...     feature_names=["debt", "income", "age"], value_function="baseline", data=[[9.0, 1.0, 30.0]],
    ... )
    >>> explanation.reasons(2, adverse="positive", codes={"debt": "R01: debt is high"})
      row  reason 1           reason 2
        0  R01: debt is high  age
    """

    explanation: ExplanationData
    adverse: str
    texts_by_player: tuple[str, ...]
    players: np.ndarray
    values: np.ndarray
    decided: np.ndarray
    intervals: np.ndarray | None = None
    kept: np.ndarray | None = None
    level: float = 0.95
    model_digest: str | None = None

    @property
    def k(self) -> int:
        """Return the largest number of reasons of a row."""
        return self.players.shape[1]

    @property
    def texts(self) -> np.ndarray:
        """Return codes or names as an array of texts (n_rows, k), "" where a row has fewer reasons."""
        return np.array([*self.texts_by_player, ""], dtype=object)[self.players]

    def hashes(self) -> list[str]:
        """Return a SHA-256 of each row's reasons, to find out whether they can be repeated.

        It covers the version, the model (its name, and ``model_digest`` where one was given), the row's cells, the digest of the
        background, value function, index, output and unit, the settings of the reasons, and their players in order.
        """
        rows = self.explanation
        if rows.data is None:
            got = "This explanation has data=None"
            raise InputError("A hash needs the row's data", got, "Explain rows, and keep their data")
        shared = {
            "version": __version__,
            "model": rows.model_name,
            "model digest": self.model_digest,
            "background": rows.background_hash,
            "value function": rows.value_function,
            "index": rows.index,
            "unit": rows.unit,
            "players": list(rows.feature_names),
            "texts": list(self.texts_by_player),
            "adverse": self.adverse,
            "k": self.k,
            "level": None if rows.std_error is None else self.level,
        }
        # Hashed once for all rows: each row goes on from a copy.
        start = hashlib.sha256(json.dumps(shared, sort_keys=True).encode())
        found = []
        # Little-endian, so that hashes can be compared between machines.
        for row, players in zip(row_bytes(rows.data), self.players.astype("<i8"), strict=True):
            digest = start.copy()
            digest.update(row)
            digest.update(players.tobytes())
            found.append(digest.hexdigest())
        return found

    def to_frame(self, kind: str | None = None) -> Any:
        """Return one line per row: its prediction, each reason with value and verdict, and the hash.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"} or None, default=None
            None: as the data; for arrays the first of these three that is installed.
        """
        return frame_of(self.explanation.data, self.columns(), kind)

    def columns(self) -> dict[str, Any]:
        """Return the columns of :meth:`to_frame`."""
        texts, columns = self.texts, {"prediction": self.explanation.prediction}
        for r in range(self.k):
            numbered = {"reason": texts[:, r], "value": self.values[:, r], "decided": self.decided[:, r]}
            if self.intervals is not None and self.kept is not None:
                numbered |= {"lower": self.intervals[:, r, 0], "upper": self.intervals[:, r, 1], "kept": self.kept[:, r]}
            columns |= {f"{name}_{r + 1}": column for name, column in numbered.items()}
        if self.explanation.data is not None:
            columns["hash"] = np.array(self.hashes(), dtype=object)
        return columns

    def letter(
        self,
        path: str | Path,
        i: int = 0,
        *,
        title: str = "Reasons for our decision",
        recipient: str = "",
        sender: str = "",
        opening: str = "",
        closing: str = "",
        language: str = "en",
    ) -> Path:
        """Write the reasons of row ``i`` as a letter of one page, ``.html`` or ``.pdf``.

        Parameters
        ----------
        path : str or Path
            A PDF needs WeasyPrint: ``pip install "exactshap[pdf]"``.
        i : int, default=0
            The row.
        title, recipient, sender, opening, closing : str, optional
            Your own words, above and below the reasons; lines are kept.
        language : str, default="en"
            Of the page, for hyphenation and screen readers.
        """
        one, (row,) = self[i], row_numbers(i, len(self))
        words = {"title": title, "recipient": recipient, "sender": sender, "opening": opening, "closing": closing}
        page = rendered(
            "letter.html.jinja",
            reasons=_listed(one),
            notes=_notes(one, row_name(self.explanation, row)),
            date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            language=language,
            **words,
        )
        return write_page(path, page, "A letter")

    def _table(self) -> tuple[list[str], list[list[str]], int]:
        """Return the first rows, marked where the order to the next is not decided."""
        texts = self.texts
        marked = np.where((texts != "") & ~self.decided, texts + " (order not certain)", texts)
        rows = [[row_name(self.explanation, i).removeprefix("row "), *marked[i]] for i in range(min(_SHOWN, len(self.players)))]
        return ["row", *(f"reason {r + 1}" for r in range(self.k))], rows, len(self.players)

    def __len__(self) -> int:
        return len(self.players)

    def __getitem__(self, rows: Any) -> Reasons:
        """Return the reasons of some rows: an int, a slice, a boolean mask or an array of row numbers."""
        chosen = row_numbers(rows, len(self))
        arrays = {name: getattr(self, name) for name in ("players", "values", "decided", "intervals", "kept")}
        changes: dict[str, Any] = {name: array[chosen] for name, array in arrays.items() if array is not None}
        return replace(self, explanation=self.explanation[chosen], **changes)


def _listed(one: Reasons) -> list[dict[str, str]]:
    """Return each reason's text, its cells, and a remark on its order."""
    shown, listed = cells(one.explanation), []
    for r, player in enumerate(one.players[0]):
        if player < 0:
            continue
        cell: Any = None if shown is None else shown.display[0, player]
        record = "" if cell is None else f"{one.explanation.feature_names[player]} = {cell_words(cell, sys.maxsize)}."
        order = "" if one.decided[0, r] else "It is not certain whether this or the next column weighs more."
        kept = "" if one.kept is None else f"Among these reasons in {one.kept[0, r]:.0%} of resampled backgrounds."
        listed.append({"text": one.texts_by_player[player], "record": record, "order": f"{order} {kept}".strip()})
    return listed


def _notes(one: Reasons, name: str) -> list[str]:
    rows = one.explanation
    direction = "raise" if one.adverse == "positive" else "lower"
    model = rows.model_name or "the model"
    notes = [
        f"Reasons are the columns that {direction} the output ({rows.unit}) of {model} most, by their Shapley values, for {name}. "
        f"Value function {rows.value_function}: {game_sentence(rows)}",
        f"Certificate: {rows.certificate()}.",
    ]
    if rows.background_hash:
        notes.append(f"Compared with {rows.background_size} reference rows, SHA-256 {rows.background_hash}.")
    if rows.data is not None:
        notes.append(f"Hash of row, model, background and settings: SHA-256 {one.hashes()[0]}.")
    return notes


def find_reasons(
    explanation: ExplanationData,
    k: int = 3,
    *,
    adverse: str,
    codes: Mapping[str, str] | None = None,
    output: int | str | None = None,
    background_values: np.ndarray | None = None,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
    model_digest: str | None = None,
) -> Reasons:
    """Return the strongest adverse reasons of each row.

    A value is a reason if it is adverse by more than its own error: rounding, and standard errors of sampled values.

    Parameters
    ----------
    k : int, default=3
        How many reasons a row has at most.
    adverse : {"positive", "negative"}
        Which values speak against the row: "positive" where the output is a risk, "negative" where it is a score.
    codes : mapping of player to text, default=None
        What stands for the players; those without a code are named.
    output : int or str, default=None
        Which of several outputs.
    background_values : array of shape (n_background, n_rows, n_players[, n_outputs]), default=None
        Of :meth:`exactshap.Explainer.background_values`: intervals of the reasons with other background rows of the same kind.
    n_bootstrap, level, random_state : int, float and int, default=1000, 0.95 and 0
        Of these intervals; the level is that of standard errors too.
    model_digest : str, default=None
        What identifies the model, such as the SHA-256 of its file; part of the hashes.

    Returns
    -------
    reasons : Reasons
        ``texts``, ``values``, ``decided``, ``hashes()``, ``to_frame()``, ``letter(path, i)``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> from exactshap import explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> reasons = explain(SVR(C=10.0).fit(X, y), X[:2], X[:50]).reasons(2, adverse="positive", codes={"bmi": "R4: weight"})
    >>> reasons.texts.tolist(), reasons.decided.all()
    ([['R4: weight', 's5'], ['sex', 's6']], np.True_)
    """
    rows = explanation if output is None else explanation.output(output)
    sign = _checked(rows, k, adverse, level)
    texts = _texts(rows.feature_names, codes)
    players, decided = _strongest(sign * rows.values, _errors(rows, level), k)
    intervals = kept = None
    if background_values is not None:
        by_row = np.asarray(background_values)
        if output is not None and explanation.output_names is not None and by_row.ndim == 4:  # of all outputs
            by_row = by_row[..., place_of(output, explanation.output_names, "output")]
        by_row = checked_background_values(rows, by_row)
        intervals, kept = _resampled(by_row, players, sign, level, n_bootstrap, random_state)
    return Reasons(
        explanation=rows,
        adverse=adverse,
        texts_by_player=texts,
        players=players,
        values=np.where(players < 0, np.nan, np.take_along_axis(rows.values, np.maximum(players, 0), axis=1)),
        decided=decided,
        intervals=intervals,
        kept=kept,
        level=level,
        model_digest=model_digest,
    )


def _checked(rows: ExplanationData, k: int, adverse: str, level: float) -> float:
    if rows.output_names is not None:
        do = "Pass output= (a number or a name)"
        raise InputError("Reasons explain one output", f"This explanation has {list(rows.output_names)}", do)
    if not rows.additive:
        got = f"Got index={rows.index!r} of order {rows.order}"
        raise InputError("Reasons are shares of the prediction", got, "Explain with index='shapley' and order=1")
    if not rows.is_within_tolerance:
        raise InputError("The values do not add up to the prediction", f"{rows.certificate()}", "Explain the rows again")
    if not isinstance(adverse, str) or adverse not in _SIGNS:
        do = '"positive": what raises the output speaks against the row (a risk); "negative": what lowers it does (a score)'
        raise InputError("The 'adverse' parameter must be 'positive' or 'negative'", f"Got {adverse!r}", do)
    check_count("k", k)
    check_level(level)
    return _SIGNS[adverse]


def _texts(names: tuple[str, ...], codes: Mapping[str, str] | None) -> tuple[str, ...]:
    if codes is not None and not isinstance(codes, Mapping):
        raise InputTypeError("`codes` must map names of features to texts", f"Got {type(codes).__name__}")
    codes = codes or {}
    unknown = next((name for name in codes if name not in names), None)
    if unknown is not None:
        raise UnknownNameError(f"Unknown feature {unknown!r} in codes", do=did_you_mean(str(unknown), names))
    texts = tuple(str(codes.get(name, name)) for name in names)
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        same = [name for name, text in zip(names, texts, strict=True) if text == twice]
        do = "Make them one player, Explainer(..., groups=), so that their joint value is exact"
        raise InputError(f"Features {same} have one code", f"Got {twice!r}", do)
    return texts


def _errors(rows: ExplanationData, level: float) -> np.ndarray:
    r"""Return error bounds (n_rows, n_players) of the values.

    .. math:: \mathrm{tolerance} + \mathrm{error\_bound} + 2\,\mathrm{approximation\_error} + z\,\mathrm{std\_error}
    """
    known = rows.tolerance + np.asarray(rows.error_bound)
    if rows.approximation_error is not None:  # of v(S): a value is a mean of differences of two
        known = known + 2.0 * rows.approximation_error
    errors = np.broadcast_to(known[:, None], rows.values.shape)
    if rows.std_error is None:
        return errors
    return errors + normal_reach(level) * rows.std_error


def _strongest(adverse: np.ndarray, errors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's k strongest players, and whether their order is certain.

    The errors of two values may go together in any way: their difference is known to within the sum of both, which is at least the
    joint standard error.
    """
    n, d = adverse.shape
    kept = min(k + 1, d)
    players = np.argpartition(-adverse, kept - 1, axis=1)[:, :kept] if kept < d else np.tile(np.arange(d), (n, 1))
    players = np.sort(players, axis=1)  # ties go by the order of the columns
    order = np.argsort(-np.take_along_axis(adverse, players, axis=1), axis=1, kind="stable")
    players = np.take_along_axis(players, order, axis=1)
    values, error = (np.take_along_axis(table, players, axis=1) for table in (adverse, errors))
    ahead = np.ones(players.shape, bool)  # the last of all players has none behind it
    ahead[:, :-1] = values[:, :-1] - values[:, 1:] > error[:, :-1] + error[:, 1:]
    is_reason = values > error
    return _of_width(np.where(is_reason, players, -1), k, -1), _of_width(ahead & is_reason, k, False)


def _of_width(table: np.ndarray, k: int, empty: Any) -> np.ndarray:
    table = table[:, :k]
    return np.pad(table, ((0, 0), (0, k - table.shape[1])), constant_values=empty)


def _resampled(
    by_background: np.ndarray, players: np.ndarray, sign: float, level: float, n_bootstrap: int, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return intervals (n_rows, k, 2) of reasons, and how many resamples keep them.

    The background is drawn again, with replacement; the values are means over it.

    .. math:: \phi^{(b)}_j = \frac1m \sum_z n^{(b)}_z\, \phi_j(x; z)

    Percentiles of few background rows are wider by Student's quantile.
    """
    m, (n, k) = len(by_background), players.shape
    counts = checked_generator(random_state).multinomial(m, np.full(m, 1.0 / m), size=n_bootstrap) / m
    intervals, kept = np.full((n, k, 2), np.nan), np.full((n, k), np.nan)
    tails, wider = [(1.0 - level) / 2.0, (1.0 + level) / 2.0], percentile_expansion(level, m)
    for i in range(n):
        found = players[i][players[i] >= 0]
        values = counts @ by_background[:, i]
        adverse = sign * values
        kth = np.partition(adverse, -min(k, adverse.shape[1]), axis=1)[:, -min(k, adverse.shape[1])]
        mean = by_background[:, i, found].mean(axis=0)
        intervals[i, : len(found)] = (mean + wider * (np.quantile(values[:, found], tails, axis=0) - mean)).T
        kept[i, : len(found)] = np.mean(adverse[:, found] >= np.maximum(kth, 0.0)[:, None], axis=0)
    return intervals, kept
