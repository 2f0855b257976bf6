r"""What a sum cannot see: whether a few coalitions of an explanation are worth what the model itself predicts for them.

The explainer's own reading of the model is bound once to a single reference row z beside the background. For a hybrid row h, which
takes the players of S from x and the others from a reference row, the model says what that reading must give,

.. math:: v_z(\emptyset) + \sum_j \phi_j(h) = f(h), \qquad \phi_j(h) = 0 \text{ for } j \notin S \text{ if the others come from } z,

so that a few predictions of hybrids tell whether v(S) is right, and whether the credit goes to the players it belongs to. Hybrids of
the background's rows are solved before the first explanation. Those of explained rows are predicted in one call with the rows, and
solved with them where rows are cheap, else only evaluated, v_z(S) being the formula that was read at the hybrid. The mean over the
whole background is compared where it is known without solving: v(empty) with the mean of the model's own predictions.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.process_settings import without_warnings
from exactshap._runtime.shared import STEP
from exactshap.errors import ExactshapError
from exactshap.explainer._hybrids import APART, Hybrids, Pool, hybrids_of, whose_of
from exactshap.explainer._mask_sums import MaskCheck, farthest, largest, magnitude_of, sums, together, worst_within
from exactshap.frames import Table
from exactshap.readers import Reader
from exactshap.semivalues import find
from exactshap.solvers import Solution

__all__ = ["MaskCheck", "MaskChecker"]

FEW = 10  # rows from which on every explanation is checked by itself
EVERY = 200  # rows of smaller explanations after which one of them is
SHARE = 200  # rows for each hybrid beyond two: half a per cent of the rows
MANY = 64  # hybrids at most in an explanation
MADE, MADE_CHEAP = 32, 256  # hybrids before the first explanation: of one reference row; in company, where rows are cheap
PIECE = 64  # of those at a time, whatever memory_limit is
REASON_LENGTH = 300


class MaskChecker:
    """Checks coalitions of what a reader explains: of the background's rows before the first explanation, and of others as they come.

    Parameters
    ----------
    reader : Reader
        Only with a background that replaces columns is there something to compare with.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader, self._waiting = reader, 0
        self._before: MaskCheck | None = None  # of the background's rows; then the worst of earlier explanations
        self._kept = BoundedCache()  # what is made once, whatever threads come
        self._empty: tuple[np.ndarray | float, float] | None = None
        self._replaces = reader.background is not None and reader.value_function in ("interventional", "baseline")
        self._checkable = self._replaces or reader.value_function == "interventional-independent"
        self._is_fresh = self._checkable
        if self._checkable:
            assert reader.background is not None
            self._place = random.Random(0).randrange(reader.background.n_rows)  # of the one reference row
        self.reason = ""  # why nothing could be compared last
        if not self._checkable:
            self.reason = f"{reader.value_function} values have no hybrid rows, of which the model could be asked"

    def _begin(self) -> None:
        """Check hybrids of the background's own rows before the first explanation; an explainer that is only made does not pay."""
        if self._is_fresh:
            self._kept.made(("begun",), self._check_background, keep=1)

    def _check_background(self) -> None:
        reader, background = self._reader, self._reader.background
        assert background is not None
        with without_warnings, np.errstate(all="ignore"):  # what is to be said about the background was said when it was read
            self._empty = self._mean_prediction() if self._replaces else None
            if background.n_rows > 1:
                if isinstance(check := self._compared(background, MADE), str):
                    self.reason = check
                else:
                    self._remember(check)
                many = self._pool().mixed(background, MADE_CHEAP)[0] if reader.rows_are_cheap else None
                if many is not None:
                    for start in range(0, many.n_rows, PIECE):
                        piece = many.take(slice(start, start + PIECE))
                        self._remember(sums(*_ends_of(reader.answer(piece, find("shapley"), 1))))
        self._is_fresh = False

    def first(self) -> tuple[Table, int, int] | None:
        """Return what is solved before the first explanation, for its forecast: rows like those, how many, and how many at a time.

        None where that was done, and where it is little: a few hybrids of one reference row.
        """
        background = self._reader.background
        if not self._is_fresh or not self._reader.rows_are_cheap or background is None or background.n_rows < 2:
            return None
        return background.take(slice(0, PIECE)), MADE_CHEAP, PIECE

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed; a fresh one is checked first, so that workers need not, each by itself."""
        self._begin()
        return self.__dict__

    def company(self, table: Table) -> tuple[Table | None, tuple[int, ...]]:
        """Return hybrids to be predicted in company of the rows, and whose they are; None where they are looked at by themselves.

        In company they cost no call. The first ones of all are solved instead.
        """
        if not self._checkable:
            return None, ()
        self._begin()
        if not self._reader.evaluates or self._before is None or not self._is_due(table):
            return None, ()
        return self._pool().mixed(table, _n_hybrids(table))

    def _pool(self) -> Pool:
        return self._kept.get(("pool",)) or self._kept.made(("pool",), lambda: Pool(self._reader, MADE_CHEAP), keep=1)

    def facts(self, table: Table, solution: Solution, whose: tuple[int, ...]) -> dict[str, Any]:
        """Check a few coalitions, and return what an explanation carries of them, or why none could be compared."""
        check = self._check(table, solution, whose) if self._checkable else self.reason
        if isinstance(check, str):
            return {"mask_reason": check}
        if not math.isfinite(check.tolerance):
            return {"mask_reason": "numbers overflow in them"}
        return {
            "mask_difference": check.difference,
            "mask_tolerance": check.tolerance,
            "n_masks": check.n_masks,
            "mask_rows": check.rows,
        }

    def _check(self, table: Table, solution: Solution, whose: tuple[int, ...]) -> MaskCheck | str:
        """Check a few coalitions of an explanation, those in its company or others; of fewer than ten rows, now and then."""
        before, reason, checks = self._before, self.reason, []
        due = self._is_due(table)
        self._waiting = 0 if due else self._waiting + table.n_rows
        compared, empty = solution.comparison, self._empty
        if before is not None and empty is not None and due == (compared is not None) and isinstance(mean := empty[0], float):
            check = worst_within(solution, whose, before, mean, empty[1])
            if check is not None:
                return check
        if due:
            now = self._compared(table, _n_hybrids(table)) if compared is None else sums(*compared[1:], whose)
            if isinstance(now, str):
                reason = self.reason = now
            else:
                if before is None or not now.passed:
                    self._remember(now)
                checks.append(now)
        if before is not None:
            checks.append(before)
        if checks and (means := self._means(solution)) is not None:
            checks.append(means)
        return together(checks) if checks else reason

    def _is_due(self, table: Table) -> bool:
        n_rows = table.n_rows
        return n_rows >= FEW or self._waiting + n_rows >= EVERY or (self._before is None and n_rows > 0)

    def _remember(self, check: MaskCheck) -> None:
        """Keep a check for the explanations that come: what was wrong once stays wrong."""
        with STEP:
            self._before = (check | self._before)._replace(rows=())

    def _mean_prediction(self) -> tuple[np.ndarray | float, float]:
        """Return the mean of the model's own predictions over the background, and how far rounding can move it."""
        reader, background = self._reader, self._reader.background
        assert background is not None
        own = reader.predicted_background()
        rounding = 8.0 * np.finfo(float).eps * np.sqrt(background.n_rows) * np.abs(own).max(initial=0.0)
        mean = np.average(own, axis=0, weights=reader.weights)
        return mean if mean.ndim else float(mean), float(rounding)

    def _means(self, solution: Solution) -> MaskCheck | None:
        """Compare v(empty) of all rows with the mean over the whole background."""
        if self._empty is None or not len(solution.empty):
            return None
        mean, rounding = self._empty
        assert solution.tolerance is not None
        worst = farthest(solution.empty, mean) if isinstance(mean, float) else _farthest_of_outputs(solution.empty, mean)
        return MaskCheck(magnitude_of(worst), largest(solution.tolerance) + rounding, 1)

    def _compared(self, table: Table, n_hybrids: int) -> MaskCheck | str:
        """Compare hybrids of rows of a table and of the background with the model's own predictions; the first ones are solved."""
        reader, background = self._reader, self._reader.background
        assert background is not None
        bound: Reader | None = self._kept.made(("bound",), lambda: reader.bound_to(background.take([self._place])), keep=1)
        rows, masks, columns, _ = self._pool().drawn(table.n_rows, n_hybrids)
        found = None
        try:
            if bound is None:
                found = _by_game(reader, table.take(rows[:1]), masks[:2], int(rows[0])) if reader.calls_model else None
                return found or f"{reader.model_name} cannot be bound to one reference row"
            with np.errstate(all="ignore"):  # overflow is told by the certificate
                for part in hybrids_of(background, table, rows, np.full(n_hybrids, self._place), masks, columns):
                    solves = self._before is None or not reader.evaluates
                    found = (_solved(bound, part) if solves else _evaluated(reader, part)) | found
            return found or "the columns of an array cannot be put into those of a frame without a guess"
        except (ExactshapError, TypeError, ValueError) as error:  # as for a level that the background's column lacks
            return f"the model refuses rows that mix X and the background: {error}"[:REASON_LENGTH]


def _farthest_of_outputs(values: np.ndarray, means: np.ndarray) -> float:
    """Return the largest distance of values (n_rows, n_outputs) to their means: of many rows one output after the other."""
    if len(values) < APART:
        return float(np.abs(values - means).max())
    return float(np.max([farthest(output, mean) for output, mean in zip(values.T, means.tolist(), strict=True)]))


def _n_hybrids(table: Table) -> int:
    return max(2, min(table.n_rows // SHARE, MANY))


def _evaluated(reader: Reader, hybrids: Hybrids) -> MaskCheck:
    """Hold the formula as it was read against the model."""
    return sums(*reader.compare(hybrids.table)[1:], whose_of(hybrids.rows.tolist()))


def _solved(bound: Reader, hybrids: Hybrids) -> MaskCheck:
    """Hold the values of hybrids against the model: their sum, and nothing for players that come from the reader's reference row."""
    masks = hybrids.masks
    answer = bound.answer(hybrids.table, find("shapley"), 1)
    values = answer.values[:, : masks.shape[1]].reshape(*masks.shape, -1)
    stray = np.abs(values * ~masks[:, :, None]).max(axis=(1, 2), initial=0.0)
    residual, tolerance = _ends_of(answer)
    rows = whose_of(hybrids.rows.tolist())
    return sums(residual, tolerance, rows) | sums(stray, tolerance)._replace(n_masks=0)


def _ends_of(answer: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Return the residuals of a solution beside its predictions, and what rounding explains of them."""
    assert answer.residual is not None
    assert answer.tolerance is not None
    return answer.residual, answer.tolerance


def _by_game(reader: Reader, row: Table, masks: np.ndarray, place: int) -> MaskCheck | None:
    """Compare v(S) of a row over the whole background with the model on rows masked by hand."""
    by_hand = reader.masked_predictions(row, masks)
    if by_hand is None:
        return None
    ours = np.asarray(reader.game(row).value(masks))
    magnitude = float(np.abs(by_hand).max(initial=0.0))
    tolerance = 64.0 * reader.epsilon() * (np.sqrt(reader.n_terms()) + reader.n_features) * magnitude
    return MaskCheck(magnitude_of(float(np.abs(ours - by_hand).max())), float(tolerance), len(masks), (place,))
