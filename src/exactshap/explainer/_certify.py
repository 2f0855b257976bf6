r"""Compare each explanation with the user's model, by its documented call.

**Sums.** The residual of a row is its prediction minus the baseline and the values, within a tolerance for rounding.

**Hybrids** show what no sum does: credit for the wrong player, and values of a game that is not the model's. A hybrid row h takes the
players of S from an explained row, the others from one reference row z. The reading bound to z must give

.. math:: v_z(\emptyset) + \sum_j \phi_j(h) = f(h), \qquad \phi_j(h) = 0 \text{ for } j \notin S.

**Other questions.** A hybrid that differs from the reference row in the players of T only has one answer under every index: the
discrete derivative for T, times the mass of the index, and nothing for sets with other players.

.. math:: \phi_T(h_T) = \mu_{|T|} \sum_{U \subseteq T} (-1)^{|T| - |U|} f(h_U)

**The background** has the mean prediction v(empty). It is predicted before the first explanation, and a few of its rows again with
each: a model that was fitted anew since it was read is noticed.

Hybrids and those rows are predicted in one call with the explained rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from exactshap._runtime.cache import BoundedCache
from exactshap._runtime.process_settings import without_warnings
from exactshap._runtime.slices import slices
from exactshap.errors import ExactshapError
from exactshap.explainer._solve import predict
from exactshap.frames import Table, hybrid_cells
from exactshap.games import all_masks
from exactshap.readers import COARSE, Reader, columns_of, warn_of_rounding
from exactshap.semivalues import Hierarchy, Semivalue, find
from exactshap.solvers import Cost, Solution, count_sets, player_sets, sets_by_size

BACKGROUND_HYBRIDS = 32  # hybrids of the background's own rows, before the first explanation
ROWS_OF_A_HYBRID = 200  # explained rows for each hybrid beyond two: half a per cent
MOST_HYBRIDS = 64  # hybrids at most with one explanation
# Background rows that are predicted again with an explanation; of many explained rows a fiftieth of their number.
PREDICTED_AGAIN = 16
# Explained rows from which hybrids are compared each time, and tables that do not combine have separate calls.
SEPARATE_CALLS = 10
ROWS_BETWEEN = 50  # explained rows between two comparisons, on average, where each request has fewer
QUESTION_VALUES = 2**24  # numbers of the solutions of its hybrids at a time: 128 MiB
# Coalitions of an index or order, of a row each: one sees two swapped sets with a chance of a third to a half.
RANDOM_SETS = 16
# Explained rows between two comparisons of an index or order, on average: binding a reference row and solving the hybrids costs what a
# few hundred rows of boosted trees cost (benchmarks/bench_checks.py), so that this is less than a tenth.
ROWS_BETWEEN_QUESTIONS = 5000
KEPT_QUESTIONS = 16  # indices and orders that are remembered as compared
REASON_LENGTH = 300
ROWS_AT_ONCE = 2**16  # in a comparison


class Check(NamedTuple):
    """Hold the largest difference to the model's own predictions."""

    difference: float = 0.0  # of the worst case
    tolerance: float = 0.0  # of that case
    n_masks: int = 0  # how many coalitions were compared
    rows: tuple[int, ...] = ()  # the explained rows that they belong to
    reason: str = ""  # why nothing was compared

    @property
    def passed(self) -> bool:
        return self.difference <= self.tolerance


def largest_of_rows(differences: np.ndarray) -> np.ndarray:
    """Return the largest magnitude of each row, infinity for NaN.

    >>> largest_of_rows(np.array([[1.0, -2.0], [np.nan, 0.0]]))
    array([ 2., inf])
    """
    size = np.abs(differences).max(axis=tuple(range(1, differences.ndim)), initial=0.0)
    return np.where(np.isnan(size), np.inf, size)


def worst_of(residual: np.ndarray, tolerance: np.ndarray | float) -> tuple[float, float]:
    """Return the residual worst for its tolerance, and that tolerance.

    ``residual`` has shape (n_rows[, n_outputs]), ``tolerance`` (n_rows,).

    A residual above its tolerance is worse than one that overflows with its tolerance, and that is worse than one within.
    """
    if len(residual) > ROWS_AT_ONCE:
        # The worst of the worst of some rows each: of millions of rows each array in between counts
        blocks = slices(len(residual), ROWS_AT_ONCE)
        limits = (tolerance[block] if isinstance(tolerance, np.ndarray) else tolerance for block in blocks)
        parts = [worst_of(residual[block], limit) for block, limit in zip(blocks, limits, strict=True)]
        residual, tolerance = np.array(parts).T
    # A NaN of the model is an infinite difference; as NaN it would look like an overflow below.
    size = largest_of_rows(residual)
    with np.errstate(invalid="ignore"):
        # Infinity less infinity is NaN here, which is how a row is recognised in which the tolerance overflows as well.
        over = size - tolerance
    overflows = np.isnan(over)
    # 0 is above all that is within (negative), and below all that is not (positive).
    largest = np.where(overflows, 0.0, over)
    place = int(np.argmax(largest))
    return float(size[place]), float(tolerance[place] if isinstance(tolerance, np.ndarray) else tolerance)


def together(checks: Iterable[Check]) -> Check:
    """Return some checks as one."""
    known = list(checks)
    # A check without coalitions only has a reason; its zeros are no comparison that passed.
    compared = [check for check in known if check.n_masks]
    if not compared:
        return Check(reason=next((check.reason for check in known if check.reason), ""))
    differences = np.array([check.difference for check in compared])
    difference, tolerance = worst_of(differences, np.array([check.tolerance for check in compared]))
    rows = tuple(sorted({row for check in compared for row in check.rows}))
    return Check(difference, tolerance, sum(check.n_masks for check in compared), rows)


@dataclass(frozen=True, eq=False)
class CheckRows:
    """Hold rows that are predicted with the explained rows: hybrids of these and of the background."""

    table: Table
    masks: np.ndarray  # bool (n, n_players): the coalition of each; the first ones are empty: rows of the background
    rows: np.ndarray  # (n,): the explained row with the columns in its coalition
    references: np.ndarray  # (n,): the background row with the others
    n_present: int  # how many are such rows of the background
    joins: bool  # whether the explained rows and these are one table for the model
    is_exact: bool  # whether the background's cells are unchanged: doubles become singles in a table of singles

    @property
    def has_hybrids(self) -> bool:
        return len(self.masks) > self.n_present


def n_predicted_again(n_background: int, n_rows: int) -> int:
    """Return the number of background rows that are predicted again with explained rows."""
    return min(n_background, max(PREDICTED_AGAIN, n_rows // 50))


def most_hybrids(n_rows: int) -> int:
    """Return the largest number of hybrids that are compared with explained rows."""
    return max(2, min(n_rows // ROWS_OF_A_HYBRID, MOST_HYBRIDS))


class Certified(NamedTuple):
    """Hold the residuals, tolerances and checks of an explanation."""

    prediction: np.ndarray
    residual: np.ndarray
    tolerance: np.ndarray
    check: Check
    approximation_error: np.ndarray | None = None  # if rounding leaves too few digits for values to be called exact


class _Background(NamedTuple):
    """Hold the model's predictions of the background before the first explanation."""

    prediction: np.ndarray
    mean: np.ndarray
    rounding: float
    check: Check


class Certifier:
    """Compare explanations with the model's own predictions."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._kept = reader, BoundedCache()
        self._rng = np.random.default_rng(0)  # draws of one generator may come from several threads
        # A failure is remembered, as the next request may draw no hybrid that shows it.
        self._failed: Check | None = None
        self._replaces = reader.traits.background is not None and reader.traits.value_function in ("interventional", "baseline")
        self._has_hybrids = self._replaces or reader.traits.value_function == "interventional-independent"
        # One reference row for all explanations, so that the reader bound to it is made once.
        self._place = 0 if reader.traits.background is None else int(self._rng.integers(reader.traits.background.n_rows))

    def check_rows(self, table: Table) -> CheckRows | None:
        """Return the rows to be predicted together with those of a table; None where there are none."""
        background = self._reader.traits.background
        if background is None or not table.n_rows:
            return None
        # The background is predicted before any explanation, for comparison with later calls.
        self._first()
        return self._mixed(table, self._n_hybrids(table.n_rows), n_predicted_again(background.n_rows, table.n_rows))

    def _n_hybrids(self, n_rows: int) -> int:
        """Return the number of hybrids to compare. Small requests, which take less time, are compared by chance."""
        if not self._has_hybrids or self._reader.traits.calls is not None:
            return 0
        # Other rows of the background were compared with it before the first explanation, if there are any.
        was_compared = self._reader.traits.reference.n_rows > 1
        # By chance, with probability n_rows / ROWS_BETWEEN: one comparison in 50 rows, however they come in requests.
        if was_compared and n_rows < SEPARATE_CALLS and self._rng.random() * ROWS_BETWEEN > n_rows:
            return 0
        return most_hybrids(n_rows)

    def prepare(self) -> None:
        """Predict the background, as the first explanation does otherwise."""
        if self._reader.traits.background is not None:
            self._first()

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int) -> tuple[int, Cost]:
        """Return the number of additional rows to predict, and the cost of solving hybrids."""
        reader, background = self._reader, self._reader.traits.background
        if background is None:
            return 0, Cost()
        others = n_predicted_again(background.n_rows, n_rows)
        if not self._has_hybrids or reader.traits.calls is not None:
            return others, Cost()
        reference, n_hybrids, cost = background.take([self._place]), most_hybrids(n_rows), Cost()
        # Binding is timed as it happens: it is paid again only for a question, which has a reference row of its own.
        started = time.process_time()
        bound = reader.bind(reference)
        seconds = time.process_time() - started
        if bound is None:
            return others, Cost()
        if n_rows >= SEPARATE_CALLS:
            cost += bound.cost(few, n_hybrids, find("shapley"), 1, n_hybrids)
        # An index that was compared before is compared rarely, which is not in the forecast.
        is_new = self._kept.get(("question", semivalue, order)) is None and not isinstance(semivalue, Hierarchy)
        if is_new and (semivalue.name != "shapley" or order > 1):
            n = RANDOM_SETS + 2 ** min(order, reader.traits.n_players)
            piece = max(1, min(n, QUESTION_VALUES // (count_sets(reader.traits.n_players, order) * reader.traits.n_outputs)))
            solving = bound.cost(few, n, semivalue, order, piece)
            cost = Cost(seconds + cost.seconds + solving.seconds, max(cost.bytes, solving.bytes))
            n_hybrids += n
        return others + n_hybrids, cost

    def certify(
        self,
        table: Table,
        solution: Solution,
        prediction: np.ndarray,
        check_rows: CheckRows | None,
        semivalue: Semivalue,
        order: int,
        *,
        remember: bool = True,
    ) -> Certified:
        """Compare a solution with the model's predictions of its rows and hybrids; ``remember`` a failure."""
        n_rows = table.n_rows
        with np.errstate(all="ignore"):  # overflows are never within their tolerance
            own, others = prediction[:n_rows], prediction[n_rows:]
            # Only efficient indices sum to f(x) - v(empty); of others v(D) itself is compared with the prediction.
            residual, tolerance = residual_of(self._reader, solution, own, efficient=semivalue.is_efficient(order))
            check = self._check(table, solution.part.empty, tolerance, check_rows, others, remember=remember)
            if n_rows and (semivalue.name != "shapley" or order > 1):
                check = together([check, self._question(table, semivalue, order)])
        return Certified(own, residual, tolerance, check, self._approximation_error(solution, own, tolerance))

    def _approximation_error(self, solution: Solution, own: np.ndarray, tolerance: np.ndarray) -> np.ndarray | None:
        """Return the tolerance if it leaves too few digits, else the solution's error."""
        reader, limit = self._reader, float(tolerance.max(initial=0.0))
        # The background, which must be predicted, only matters if the tolerance is coarse for the rows themselves.
        if not reader.traits.rounding.cancels or not solution.exact or limit <= COARSE * np.abs(own).max(initial=0.0):
            return solution.approximation_error
        # A sum may nearly cancel for the explained rows alone: digits count against the largest number that is shown.
        numbers = [own, solution.values, solution.empty]
        numbers += [self._first().prediction] if reader.traits.background is not None else []
        largest = max(float(np.abs(part).max(initial=0.0)) for part in numbers)
        return (
            tolerance
            if largest and warn_of_rounding(reader.traits.model_name, limit, largest, reader.traits.rounding.precision)
            else None
        )

    def _check(
        self,
        table: Table,
        empty: np.ndarray,
        tolerance: np.ndarray,
        check_rows: CheckRows | None,
        others: np.ndarray,
        *,
        remember: bool,
    ) -> Check:
        """Compare the background and hybrids, which show what sums do not."""
        if not self._has_hybrids:
            name = self._reader.traits.value_function
            present = Check() if check_rows is None else self._present(check_rows, others, tolerance)
            # Without hybrids an unchanged background proves nothing about the values: only a failure is reported.
            if not present.passed:
                return present
            return Check(reason=f"{name} games have no hybrid rows that the model could predict")
        checks = [self._first().check]
        if len(empty):
            try:
                if check_rows is not None:
                    # Predicted with the last block, or separately here.
                    others = others if len(others) else predict(self._reader, check_rows.table)
                    checks += [self._present(check_rows, others, tolerance), self._hybrids(check_rows, others)]
                if check_rows is None or not check_rows.has_hybrids:
                    checks.append(self._by_hand(table))
            except (ExactshapError, TypeError, ValueError) as error:  # as for a level that the background's column lacks
                checks.append(Check(reason=_refused(error)))
            checks += [self._means(empty, tolerance)] if self._replaces else []
        check = together(checks if self._failed is None else [*checks, self._failed])
        if not check.passed and remember:
            # Rows are numbered within one request.
            self._failed = check._replace(rows=())
        return check

    # -- the background ------------------------------------------------------------------------------------------------

    def _first(self) -> _Background:
        """Predict the background and solve hybrids of its own rows, once."""
        # Two steps, so that the common case does not wait for the lock of get_or_make.
        known = self._kept.get(("background",))
        return known or self._kept.get_or_make(("background",), self._predicted_background, keep=1)  # type: ignore[no-any-return]

    def _predicted_background(self) -> _Background:
        reader, background = self._reader, self._reader.traits.reference
        with without_warnings, np.errstate(all="ignore"):  # warnings about the background were given when it was read
            prediction, check = predict(reader, background), Check()
            if self._has_hybrids and background.n_rows > 1:
                check_rows = None if reader.traits.calls is not None else self._mixed(background, BACKGROUND_HYBRIDS, 1)
                try:
                    if check_rows is not None and check_rows.has_hybrids:
                        check = self._hybrids(check_rows, predict(reader, check_rows.table))._replace(rows=())
                    else:
                        check = self._by_hand(background, always=True)._replace(rows=())
                except (ExactshapError, TypeError, ValueError) as error:
                    check = Check(reason=_refused(error))
        mean = np.average(prediction, axis=0, weights=reader.traits.weights)
        # Both sides add up m terms: each is off by about sqrt(m) eps of the largest (see ``Traits``), with room for constants.
        rounding = 8.0 * np.finfo(float).eps * np.sqrt(len(prediction)) * np.abs(prediction).max(initial=0.0)
        return _Background(prediction, mean, float(rounding), check)

    def _means(self, empty: np.ndarray, tolerance: np.ndarray) -> Check:
        """Compare v(empty) of all rows with the mean prediction over the background."""
        background = self._first()
        allowed = float(np.max(tolerance)) + background.rounding  # of v(empty), which all rows share
        return Check(*worst_of(empty - background.mean, allowed), 1)

    def _present(self, check_rows: CheckRows, others: np.ndarray, tolerance: np.ndarray) -> Check:
        """Compare the model's current predictions of background rows with earlier ones."""
        n, background = check_rows.n_present, self._reader.traits.reference
        if not n or not len(tolerance):
            return Check()
        references = check_rows.references[:n]
        before = self._first().prediction[references]
        # Cells that were rounded to single precision may cross a split: such rows are predicted as they are.
        now = others[:n] if len(others) and check_rows.is_exact else predict(self._reader, background.take(references))
        # Twice, as both predictions are rounded.
        return Check(*worst_of(now - before, 2.0 * float(np.max(tolerance))), 1)

    # -- hybrids -------------------------------------------------------------------------------------------------------

    def _mixed(self, table: Table, n_hybrids: int, n_present: int) -> CheckRows:
        """Return a few background rows, then hybrids with the one reference row."""
        background = self._reader.traits.reference
        n, rng = n_present + n_hybrids, self._rng
        masks = np.zeros((n, self._reader.traits.n_players), bool)
        # Entry 0 stays the one reference row: ``_hybrids`` reads it off the table to bind the reader.
        rows, references = rng.integers(table.n_rows, size=n), np.full(n, self._place)
        references[1:n_present] = rng.integers(background.n_rows, size=n_present - 1)
        masks[n_present:] = coalitions(rng, n_hybrids, self._reader.traits.n_players)
        mixed = hybrid_cells(table, background, rows, references, columns_of(self._reader, masks)) if n_hybrids else None
        if mixed is None:  # rows of the background as they are
            rows, references = rows[:n_present], references[:n_present]
            present = background.take(references)
            return CheckRows(present, masks[:n_present], rows, references, n_present, table.stacks_with(present), True)
        kinds = table.stacks_with(mixed), background.stacks_with(mixed)
        return CheckRows(mixed, masks, rows, references, n_present, *kinds)

    def _hybrids(self, check_rows: CheckRows, own: np.ndarray) -> Check:
        """Compare hybrids with the model's predictions: sums of values, and zeros for players of the reference row."""
        n, reader = check_rows.n_present, self._reader
        masks, own = check_rows.masks[n:], own[n:]
        if not len(masks):
            return Check()
        reference = check_rows.table.take([0])
        # Dtypes are part of the key, as the reference row differs in single precision.
        key = "bound", *reference.dtypes, getattr(reference.native, "dtype", None)
        bound = self._kept.get(key) or self._kept.get_or_make(key, lambda: reader.bind(reference), keep=2)
        if bound is None:
            return Check(reason=f"{reader.traits.model_name} cannot be bound to one reference row")
        solution = bound.solve(check_rows.table.take(slice(n, None)), find("shapley"), 1)
        residual, tolerance = residual_of(bound, solution, own, efficient=True)
        # A player outside S has the same cells in the hybrid and in the reference row, so that phi_j(h) = 0.
        values = solution.values[:, : masks.shape[1]].reshape(*masks.shape, -1)
        stray = np.abs(values * ~masks[:, :, None]).max(axis=(1, 2), initial=0.0)
        size = np.maximum(largest_of_rows(residual), stray)
        return Check(*worst_of(size, tolerance), len(masks), tuple(sorted(set(check_rows.rows[n:].tolist()))))

    def _question(self, table: Table, semivalue: Semivalue, order: int) -> Check:
        """Compare another index or order with discrete derivatives of the model's own predictions."""
        if isinstance(semivalue, Hierarchy):  # values of nested groups are sums of no one derivative
            return Check()
        compared = self._kept.get(("question", semivalue, order))
        if not self._has_hybrids or self._reader.traits.calls is not None:
            return Check()
        # As for hybrids, by chance: a request of n rows is compared with probability n / ROWS_BETWEEN_QUESTIONS.
        if compared and self._rng.random() * ROWS_BETWEEN_QUESTIONS > table.n_rows:
            return Check()
        self._kept.get_or_make(("question", semivalue, order), lambda: True, keep=KEPT_QUESTIONS)
        reader, background = self._reader, self._reader.traits.reference
        chosen = self._rng.choice(reader.traits.n_players, min(order, reader.traits.n_players), replace=False)
        # Coalitions that hold half of all sets of the largest size: swapped values show where one holds one set and not the other.
        of_sets = self._rng.random((RANDOM_SETS, reader.traits.n_players)) < 2.0 ** (-1.0 / max(len(chosen), 1))
        masks = np.concatenate([np.zeros((2 ** len(chosen), reader.traits.n_players), bool), of_sets])
        masks[: 2 ** len(chosen), chosen] = all_masks(len(chosen))  # all subsets of the chosen players, the empty one first
        rows = self._rng.integers(table.n_rows, size=len(masks))
        rows[: 2 ** len(chosen)] = rows[0]  # a discrete derivative is of one row
        # Another row each time: the derivative of a pair may be 0 against one of them.
        references = np.full(len(masks), self._rng.integers(background.n_rows))
        mixed = hybrid_cells(table, background, rows, references, columns_of(reader, masks))
        if mixed is None:
            return Check()
        try:
            own, bound = predict(reader, mixed), reader.bind(mixed.take([0]))
            if bound is None:
                return Check()
            missed, tolerance = _compared_sets(bound, mixed, own, masks, len(chosen), semivalue, order)
        except (ExactshapError, TypeError, ValueError) as error:
            return Check(reason=_refused(error))
        return Check(*worst_of(missed, tolerance), len(missed), tuple(sorted(set(rows[1:].tolist()))))

    def _by_hand(self, table: Table, *, always: bool = False) -> Check:
        """Compare a row's v(S) with the model on rows masked by hand."""
        reader = self._reader
        if not (always or table.n_rows >= SEPARATE_CALLS):
            return Check()
        place = int(self._rng.integers(table.n_rows))
        row, masks = table.take([place]), coalitions(self._rng, 2, reader.traits.n_players)
        by_hand = reader.masked_predictions(row, masks)
        if by_hand is None:
            return Check(reason=f"{reader.traits.model_name} has no rows to be masked by hand")
        magnitude = reader.traits.rounding.floor + float(np.abs(by_hand).max(initial=0.0))
        allowed = 16.0 * reader.traits.relative_rounding * magnitude
        if reader.traits.calls is None:  # terms may cancel in a prediction; a function that is called has none
            allowed += float(tolerance_of(reader, by_hand[0], reader.solve(row, find("shapley"), 1))[0])
        difference, _ = worst_of(np.asarray(reader.game(row).value(masks))[0] - by_hand[0], allowed)
        return Check(difference, allowed, len(masks), (place,))


def _compared_sets(
    bound: Reader, mixed: Table, own: np.ndarray, masks: np.ndarray, k: int, semivalue: Semivalue, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences of hybrids' set values to those of every index.

    The first hybrid is the reference row, which is only a term of derivatives. Sets with a player from it have value 0; of the
    subsets of k players T, T itself has its discrete derivative.
    """
    sets = player_sets(bound.traits.n_players, order)
    by_size, flat = sets_by_size(sets, order), own.reshape(len(own), -1)
    missed, tolerance, step = np.zeros(len(masks)), np.zeros(len(masks)), max(1, QUESTION_VALUES // (len(sets) * flat.shape[1]))
    # All U that are subsets of T, by number of the first 2^k masks.
    below = [[u for u in range(i + 1) if not (masks[u] & ~masks[i]).any()] for i in range(2**k)]
    for start in range(0, len(masks), step):
        piece = slice(start, start + step)
        solution = bound.solve(mixed.take(piece), semivalue, order)
        tolerance[piece] = tolerance_of(bound, own[piece], solution)
        values = solution.values.reshape(-1, len(sets), flat.shape[1])
        for i, of_sets in enumerate(values, start=start):
            inside = np.concatenate([masks[i, members].all(axis=1) for members in by_size])  # sets come by size
            missed[i] = np.abs(of_sets[~inside]).max(initial=0.0)
        for i in range(max(start, 1), min(start + step, 2**k)):
            T = tuple(np.flatnonzero(masks[i]).tolist())
            derivative = sum((-1.0) ** (len(T) - masks[u].sum()) * flat[u] for u in below[i])
            # mu_|T|: the weights of all coalitions for sets of this size, each of which sees the same derivative.
            mass = float(np.sum(semivalue.of_size(len(T), order).rule(0)[1]))
            missed[i] = max(missed[i], np.abs(values[i - start, sets.index(T)] - mass * derivative).max())
    # A derivative of k players adds up 2^k predictions with signs, each of them off by its own tolerance.
    tolerance = np.append([tolerance[of_subsets].sum() for of_subsets in below], 2.0**k * tolerance[2**k :])
    return missed[1:], tolerance[1:]


def residual_of(reader: Reader, solution: Solution, own: np.ndarray, *, efficient: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return a solution's residual to the model's own predictions, and its tolerance (n_rows,)."""
    part = solution.part
    residual = sum_of_sets(part.values) if efficient else np.array(part.full)
    # In place, as below: of millions of rows each array counts
    if efficient:
        residual += part.empty
    return np.subtract(own, residual, out=residual), tolerance_of(reader, own, solution)


def tolerance_of(reader: Reader, prediction: np.ndarray, solution: Solution) -> np.ndarray:
    """Return the largest residual (n_rows,) that rounding and error bounds explain."""
    part, tolerance = solution.part, np.empty(len(prediction))
    np.add(part.scale, reader.traits.rounding.floor, out=tolerance)
    tolerance += (
        np.abs(prediction).max(axis=tuple(range(1, prediction.ndim)), initial=0.0)
        if prediction.ndim > 1
        else np.abs(prediction)
    )
    tolerance *= reader.traits.relative_rounding
    tolerance += part.error_bound
    return tolerance


def sum_of_sets(values: np.ndarray) -> np.ndarray:
    """Return sums over the second axis. They have the same bits for any layout in memory."""
    # Row by row, in a quarter of the time of np.sum: 2 of 15 ms for 100,000 rows of a linear model
    return np.asarray(np.einsum("ij...->i...", np.ascontiguousarray(values)))


def coalitions(rng: np.random.Generator, n: int, n_players: int) -> np.ndarray:
    """Return random coalitions (n, n_players) of all sizes, each with its complement."""
    # The share of players is drawn as well, from a quarter to three quarters: fair coins alone give halves of many players.
    half = rng.random((-(-n // 2), n_players)) < rng.uniform(0.25, 0.75, (-(-n // 2), 1))
    return np.stack([half, ~half], axis=1).reshape(-1, n_players)[:n]


def _refused(error: Exception) -> str:
    return f"the model refuses rows that mix X and the background: {error}"[:REASON_LENGTH]
