r"""Sample responses that are no sum of products, with the exact values of the score as control variate.

.. math:: v(S) = \sum_z w_z\, g\bigl(f(x_S, z_{\bar S})\bigr), \qquad
    \phi(v) = B\, \phi(m) + \phi(v - B\, m), \qquad m(S) = \sum_z w_z f(x_S, z_{\bar S})

:math:`\phi(m)` is exact. The slopes B are those of a least-squares fit of v to m over the coalitions, so that little is left to
sample of :math:`v - B m`. Scores of hybrids are evaluated here, the model itself is not called for each coalition.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from exactshap._runtime.checks import checked_generator
from exactshap._runtime.machine import clocked
from exactshap._runtime.progress import Calls, count_coalitions
from exactshap.errors import ExactnessError, ExplanationWarning, InputError, message
from exactshap.frames import Table
from exactshap.games import OracleGame
from exactshap.readers import Reader, Request, solve_moving
from exactshap.readers.responses._exact import CHUNK_VALUES, LinkedReader
from exactshap.readers.responses._links import Response
from exactshap.readers.responses._orders import CHUNK_SCORES, MIN_PAIRS, Along, OrderSample, sample_orders
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, Part, Solution, choose, n_calls, player_sets, seconds_besides_calls

OPTIONS = ("budget", "tol", "random_state")
DEFAULT_BUDGET = 512  # coalitions of a regression
# Pairs of an order and its reverse, over all background rows (benchmarks/bench_probabilities.py): relative squared errors of 2e-5 for
# any number of columns
DEFAULT_PAIRS = 6144
ORDERS = "orders of the players"
TIMED_PAIRS = 4  # of each background row
# Pairs from which orders have smaller errors than a regression on the coalitions of as many scores (benchmarks/bench_probabilities.py)
MIN_ORDERED_PAIRS = 200
# Players up to which all coalitions are visited, as of any function, unless a budget says less
ENUMERATED = 12
MOST_COALITIONS = 256  # at a time: what the routing kernel takes at once
# Coalitions from which on a search costs as much as all coalitions of the ``cheap_players`` of trees (benchmarks/bench_probabilities.py)
CHEAP_BUDGET = 128
# For each score at least, so that slopes are fitted to more than noise
COALITIONS_OF_A_SLOPE = 4
TIMED_COALITIONS = 32
# Of all players together, in the games that links leave over of trees' scores (2 to 3 for 10 and 30 columns). A search that starts there
# takes half the time, to the same errors, for up to so many calls; of more it starts from few of them, which is as fast
START_RELEVANCE, STARTED_CALLS = 2.5, 240
# Units between the model's own arithmetic and that of its terms, as for the trees themselves
ROUNDING = 64.0


def of_score(request: Request) -> Request:
    """Return the request of the score that a response is a function of."""
    options = {name: value for name, value in request.options.items() if name not in OPTIONS}
    return replace(request, output="auto", options=options)


@dataclass(frozen=True, eq=False)
class RowScores:
    """Hold what is read once of a row: the scores of its hybrids with every background row."""

    of: Callable[[np.ndarray], np.ndarray]  # of masks, as (n_background, n_outputs, n_masks)
    players: list[int]  # those that change any of them

    def along(self, orders: np.ndarray) -> np.ndarray:
        """Return the scores along orders of the players, as of ``Along``, where :attr:`HybridScores.has_orders`."""
        raise NotImplementedError

    def every(self) -> tuple[list[int], Iterable[np.ndarray]] | None:
        """Return the scores for all coalitions of the players; None where :attr:`of` is as fast.

        They are the players, of which the k-th is in the coalitions with bit k, and ``scores (n_some, n_outputs, n_coalitions)`` of some
        background rows after others.
        """
        return None


@dataclass(frozen=True, eq=False)
class HybridScores:
    """Describe scores of rows that mix an explained row with every background row."""

    row: Callable[[Table], RowScores]  # those of one row's hybrids
    cheap_players: int = 0  # up to which all coalitions cost no more than a search from CHEAP_BUDGET of them
    has_orders: bool = False  # whether all coalitions along an order cost far less than as many others
    magnitude: float = 0.0  # of what adds up to a score, where its rounding is relative to more than the score itself
    bytes: float = 0.0  # of the factors of one row and the background


class SampledResponse(LinkedReader[RowScores]):
    """Read an inverse link of scores with exact values, bound to a background.

    The options of the request are ``budget``, ``tol`` and ``random_state``; ``why`` is the reason why values are not exact, for ``method``.
    """

    def __init__(self, inner: Reader, hybrids: HybridScores, response: Response, request: Request, why: str) -> None:
        request.refuse_options(OPTIONS, owner=f"The {response.unit} of {inner.traits.model_name}")
        super().__init__(inner, response, block_rows=16)
        self.hybrids, self._why = hybrids, why
        self.options = {"random_state": 0, **request.options}
        # Here, as no seed is drawn from where all coalitions are visited
        checked_generator(self.options["random_state"])
        coalitions, method = self._coalitions(find("shapley"), 1)
        sentence = (
            f"{method}: {coalitions:,.0f} coalitions for each row, {inner.traits.reference.n_rows:,} background rows for each"
        )
        every = coalitions == 2.0**inner.traits.n_players
        self.traits = replace(self.traits, calls=Calls(sentence, None if "tol" in self.options else coalitions, every=every))
        # What cancels in scores moves the responses of all hybrids
        floor = self._steepness(self._check_link()) * self.hybrids.magnitude
        self.traits = self.traits.with_rounding(floor=floor)

    def _check_link(self) -> float:
        """Compare responses of background rows with the model's; return the largest."""
        rows = self.traits.reference.take(slice(0, min(8, self.traits.reference.n_rows)))
        own = self.predict(rows).reshape(rows.n_rows, -1)
        full = np.ones((1, self.traits.n_players), bool)
        answers = [self._controlled(scores).means(full) for scores, _ in self._rows(rows)]
        ours, scores = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        # Rounding of a score of size s moves a response by about s eps, and the link itself rounds once.
        sizes_of_scores = np.abs(scores).max(axis=1, initial=1.0) + self.hybrids.magnitude
        # Slopes of named links are at most about as large as the response; those of calibrations are not
        steepest = 0.0 if self.response.function is None else self.response.steepest or 0.0
        sizes = np.maximum(np.abs(own).max(axis=1, initial=1e-300), steepest)
        allowed = ROUNDING * self.inner.traits.relative_rounding * (1.0 + sizes_of_scores) * sizes
        worst = np.abs(own - ours).max(axis=1)
        if not np.all(worst <= allowed):
            i = int(np.argmax(worst - allowed))
            got = f"Background row {i}: {ours[i].tolist()} against its own {own[i].tolist()}"
            do = f"Call the model: explain(model.{self.traits.own_call.method}, X, background)"  # type: ignore[union-attr]
            raise ExactnessError(
                f"The {self.traits.unit} of {self.traits.model_name} is not the {self.response.link} of its score", got, do
            )
        return float(np.abs(own).max())

    def _steepness(self, largest: float) -> float:
        """Return the link's steepest slope. An exponential has it at its largest value."""
        steep = self.response.steepest
        return abs(self.response.slope) * largest if steep is None else steep

    def _rows(self, X: Table) -> Iterator[tuple[RowScores, float]]:
        for i in range(X.n_rows):
            yield self.hybrids.row(X.take([i])), 0.0

    def _controlled(self, scores: RowScores) -> ControlledGame:
        step = int(np.clip(CHUNK_VALUES // (len(self._weights) * self.traits.n_outputs), 1, MOST_COALITIONS))
        return ControlledGame(scores.of, self.response.of_scores, self._weights, step)

    def _value(self, row: RowScores) -> Callable[[np.ndarray], np.ndarray]:
        game = self._controlled(row)
        return (lambda masks: game(masks)[:, 0]) if self.traits.single_output else game

    def bind(self, row: Table) -> None:
        """Return None: sampled values of hybrids say nothing of those of a row."""

    def _keep_background(self, rows: Table) -> None:
        raise NotImplementedError  # never bound

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        """Solve row by row what the exact values of the score leave over."""
        # phi(m) of all rows at once, which is exact.
        score = self.inner.solve(X, semivalue, order)
        for i, (scores, _) in enumerate(self._rows(X)):
            yield self._solved(scores, score, i, semivalue, order)

    def _solved(self, scores: RowScores, score: Solution, i: int, semivalue: Semivalue, order: int) -> Solution:
        controlled, live = self._controlled(scores), scores.players
        settings = {name: value for name, value in self.options.items() if value is not None}
        if self.hybrids.has_orders and len(live) <= self._enumerated_players:
            settings.pop("tol", None)  # all coalitions are exact
        if self._pairs(len(live), semivalue, order):
            found = self._of_orders(scores, controlled, score, i)
            if found is not None:
                return found
            settings.pop("tol")
            settings["budget"] = 2 ** len(live)
        game: ControlledGame | AllCoalitions = controlled
        if "tol" not in settings:
            enough = 2 ** max(len(live), 1)
            if len(live) <= self._enumerated_players:
                settings["budget"] = max(settings.get("budget", DEFAULT_BUDGET), enough)
            settings.setdefault("budget", DEFAULT_BUDGET)
            # All coalitions are visited: there is no sampling noise for the score to take away.
            controlled.is_exact = enough <= settings["budget"]
            if controlled.is_exact:
                game = self._all_coalitions(scores) or controlled
            elif settings["budget"] <= STARTED_CALLS:
                settings["start_relevance"] = START_RELEVANCE
        found = solve_moving(OracleGame(game.residual, self.traits.n_players), live, semivalue, order, **settings)
        method = (
            f"{found.method}; from scores of hybrids"
            if found.std_error is None
            else self._sampled_method(found.method, game.slopes)
        )
        part = self._with_score(replace(found.part, method=method), game, game.slopes, score, i)
        return replace(found, part=part).as_batch()

    def _of_orders(self, scores: RowScores, game: ControlledGame, score: Solution, i: int) -> Solution | None:
        """Return the Shapley values of one row from orders of the players that matter; None if all coalitions are no more."""
        live = scores.players
        sample, n_pairs = self._sample_orders(scores.along, _of_scores(score, i)[live])
        if sample is None:
            return None
        n_background, shape = len(self._weights), (self.traits.n_players, self.traits.n_outputs)
        values, std_error = np.zeros(shape), np.zeros(shape)
        values[live], std_error[live] = sample.values, np.sqrt(sample.variance)
        axes = shape[:1] if self.traits.single_output else shape
        method = self._sampled_method(
            f"{2 * n_pairs:,} orders of {len(live)} players for each of {n_background:,} background rows", sample.slopes
        )
        ends = np.zeros(axes[1:])
        part = Part(values.reshape(axes), ends, ends, method, scale=sample.scale)
        part = self._with_score(part, game, sample.slopes, score, i)
        rounding = ROUNDING * np.finfo(float).eps * float(part.scale)  # scores of hybrids are doubles
        std_error[live] = np.maximum(std_error[live], rounding)
        part = replace(part, std_error=std_error.reshape(axes))
        n_evaluations = 2 * n_pairs * (len(live) - 1) + 2
        count_coalitions(n_evaluations)
        residual = part.full - part.empty - part.values.sum(axis=0)
        return Solution(part, player_sets(shape[0], 1), residual, n_evaluations).as_batch()

    def _sample_orders(self, along: Along, exact: np.ndarray) -> tuple[OrderSample | None, int]:
        """Return the sample, and the pairs for each background row; ``tol`` makes as many as it needs."""
        tol, n_players = self.options.get("tol"), len(exact)
        n_pairs = self._pairs(n_players, find("shapley"), 1)
        calls = int(n_calls(n_players, self.options.get("budget"), "regression", tol))
        most = max(n_pairs, calls // (2 * n_players - 2))
        while True:
            sample = self._sample(along, exact, n_pairs, self.options["random_state"])
            largest = float(np.sqrt(sample.variance.max(initial=0.0)))
            if tol is None or largest <= tol or n_pairs >= most:
                break
            n_pairs = min(most, max(2 * n_pairs, int(1.2 * n_pairs * (largest / tol) ** 2)))
        if tol is not None and largest > tol:
            if calls == 2**n_players:
                return None, n_pairs
            text = f"The tolerance was not reached with {2 * n_pairs:,} orders of the players for each background row"
            got = f"Largest standard error {largest:.3g}, tol={tol:.3g}"
            warnings.warn(message(text, got, "Pass a larger budget="), ExplanationWarning, stacklevel=2)
        return sample, n_pairs

    def _sample(self, along: Along, exact: np.ndarray, n_pairs: int, random_state: object) -> OrderSample:
        respond = partial(_answered, self.response.of_scores)
        return sample_orders(along, respond, self._weights, exact, n_pairs, random_state)

    def _pairs(self, n_players: int, semivalue: Semivalue, order: int) -> int:
        """Return the pairs of an order and its reverse for each background row, 0 where another way has smaller errors."""
        n_background, budget, tol = len(self._weights), self.options.get("budget"), self.options.get("tol")
        if not self.hybrids.has_orders or order > 1 or semivalue != find("shapley"):
            return 0
        if n_players < 2 or n_players <= self._enumerated_players:
            return 0
        if tol is not None:
            return max(MIN_PAIRS, -(-MIN_ORDERED_PAIRS // n_background))
        if 2**n_players <= (budget or DEFAULT_BUDGET):
            return 0
        if budget is None:
            return max(MIN_PAIRS, -(-DEFAULT_PAIRS // n_background))
        n_pairs = max(MIN_PAIRS, int(budget) // (2 * n_players - 2))
        return n_pairs if n_pairs * n_background >= MIN_ORDERED_PAIRS else 0

    def _with_score(
        self, part: Part, game: ControlledGame | AllCoalitions, slopes: np.ndarray, score: Solution, i: int
    ) -> Part:
        """Return a part of the residual game v - B m with B phi(m) added, by linearity, and the ends of v."""
        ends = game(np.array([[False], [True]]).repeat(self.traits.n_players, axis=1))
        shape, values = part.values.shape, part.values.reshape(len(part.values), self.traits.n_outputs)
        if slopes.any():
            values = values + _of_scores(score, i) @ slopes
        steep, rows = self._steepness(float(np.abs(ends[1]).max())), len(score.values)
        return replace(
            part,
            values=values.reshape(shape),
            empty=ends[0].reshape(shape[1:]),
            full=ends[1].reshape(shape[1:]),
            scale=float(part.scale) + steep * float(np.broadcast_to(score.scale, rows)[i]),
            error_bound=float(part.error_bound)
            + float(np.abs(slopes).sum()) * float(np.broadcast_to(score.error_bound, rows)[i]),
        )

    def _all_coalitions(self, row: RowScores) -> AllCoalitions | None:
        """Return the values of all coalitions of the players that matter, where the scores know a short way."""
        every = row.every()
        if every is None:
            return None
        players, blocks = every
        values, start = np.zeros((2 ** len(players), self.traits.n_outputs)), 0
        for scores in blocks:
            values += _mean(_answered(self.response.of_scores, scores), self._weights[start : start + len(scores)])
            start += len(scores)
        bits = np.zeros(self.traits.n_players, np.int64)
        # Players that change nothing have bit 0, so that they drop out of a coalition's number.
        bits[players] = 2 ** np.arange(len(players))
        return AllCoalitions(_finite(values), bits)

    def _sampled_method(self, method: str, slopes: np.ndarray) -> str:
        return f"{method}: {self._why}{'; exact values of the score as control variate' if slopes.any() else ''}"

    @property
    def _enumerated_players(self) -> int:
        """Return the number of players up to which all coalitions are visited."""
        budget = self.options.get("budget")
        if budget is None:
            return ENUMERATED
        return self.hybrids.cheap_players if isinstance(budget, (int, np.integer)) and budget >= CHEAP_BUDGET else 0

    def _coalitions(self, semivalue: Semivalue, order: int) -> tuple[float, str]:
        """Return how many coalitions of a row are visited at most, and the method."""
        (budget, tol), n_players = map(self.options.get, ("budget", "tol")), self.traits.n_players
        if tol is None and n_players <= self._enumerated_players:
            budget = None
        elif budget is None and tol is None:
            budget = DEFAULT_BUDGET
        method = "regression" if tol is not None else choose(OracleGame(len, n_players), budget=budget).method
        coalitions, n_pairs = n_calls(n_players, budget, method, tol), self._pairs(n_players, semivalue, order)
        if method == "regression" and n_pairs:
            return max(coalitions if tol is not None else 0.0, 2.0 * n_pairs * (n_players - 1) + 2.0), ORDERS
        return coalitions, method

    def memory(self, n_rows: int, order: int) -> float:
        coalitions, method = self._coalitions(find("shapley"), order)  # orders hold most
        held = self.inner.memory(n_rows, order) + super().memory(n_rows, order) + self.hybrids.bytes
        n_background, n_outputs = len(self._weights), self.traits.n_outputs
        if method == ORDERS:
            of_one_pair = 2.0 * n_background * (self.traits.n_players + 1.0) * n_outputs
            # Scores, responses, their differences, and places
            return held + 48.0 * min(max(CHUNK_SCORES, MIN_PAIRS * of_one_pair), coalitions * of_one_pair)
        return (
            held
            + 24.0 * min(CHUNK_VALUES, coalitions * n_background * n_outputs)
            + 8.0 * coalitions * (3.0 * self.traits.n_players + 4.0 * n_outputs)
        )

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        """Time the scores of a few coalitions or orders, and of one in addition."""
        (coalitions, method), first = self._coalitions(semivalue, order), few.take(slice(0, 1))
        if coalitions <= MOST_COALITIONS:  # of which what surrounds them takes most
            seconds = min(clocked(lambda: self.solve(first, semivalue, order)) for _ in range(2))
            return Cost(n_rows * seconds, self.memory(block_rows, order), exact=method == "enumeration", method=method)
        row = self.hybrids.row(first)
        game, masks = self._controlled(row), np.random.default_rng(0).random((TIMED_COALITIONS, self.traits.n_players)) < 0.5
        if method == ORDERS and len(row.players) > 1:
            exact = np.zeros((len(row.players), self.inner.traits.n_outputs))
            seconds = min(clocked(lambda: self._sample(row.along, exact, TIMED_PAIRS, 0)) for _ in range(2))
            seconds *= coalitions / (2.0 * TIMED_PAIRS * (self.traits.n_players - 1.0))
        elif method == "enumeration" and row.every() is not None:
            seconds = min(clocked(lambda: self._all_coalitions(row)) for _ in range(2))
        else:
            seconds = min(clocked(lambda: game(masks)) for _ in range(2)) * coalitions / TIMED_COALITIONS
            seconds += seconds_besides_calls(coalitions, method, self.traits.n_players, order)
        score = self.inner.cost(few, n_rows, semivalue, order, block_rows)
        own = Cost(n_rows * seconds, exact=method == "enumeration", method=method)
        return replace(own, seconds=own.seconds + score.seconds, bytes=self.memory(block_rows, order))


@dataclass(eq=False)
class ControlledGame:
    """Compute responses of one row's coalitions, and their residuals after regression on scores.

    Slopes are fitted once, to the first coalitions that ``residual`` gets: all that follow belong to one game.
    """

    scores: Callable[[np.ndarray], np.ndarray]
    respond: Callable[[np.ndarray], np.ndarray]
    weights: np.ndarray
    step: int
    is_exact: bool = False  # every coalition is visited: nothing is left to control
    _slopes: np.ndarray | None = field(init=False, default=None)

    @property
    def slopes(self) -> np.ndarray:
        """B of shape (n_scores, n_outputs)."""
        return np.zeros((1, 1)) if self._slopes is None else self._slopes

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) of shape (n_masks, n_outputs)."""
        return self.means(masks)[0]

    def residual(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S) - m(S) B of shape (n_masks, n_outputs)."""
        responses, scores = self.means(masks)
        count_coalitions(len(masks))
        if self._slopes is None:
            self._slopes = np.zeros((scores.shape[1], responses.shape[1])) if self.is_exact else _fitted(responses, scores)
        return np.asarray(responses - scores @ self._slopes if self._slopes.any() else responses)

    def means(self, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean responses and scores over the background, each of shape (n_masks, n_outputs)."""
        responses: list[np.ndarray] = []
        means: list[np.ndarray] = []
        for start in range(0, len(masks), self.step):
            scores = self.scores(masks[start : start + self.step])
            responses.append(_mean(_answered(self.respond, scores), self.weights))
            means.append(_mean(scores, self.weights))
        return _finite(np.concatenate(responses)), np.concatenate(means)


@dataclass(frozen=True, eq=False)
class AllCoalitions:
    """Hold mean responses of all coalitions of the players that matter, instead of a :class:`ControlledGame`."""

    values: np.ndarray  # (n_coalitions, n_outputs)
    bits: np.ndarray  # (n_players,): the bit of each player in the number of a coalition, 0 of those that change nothing
    slopes: ClassVar[np.ndarray] = np.zeros((1, 1))

    def __call__(self, masks: np.ndarray) -> np.ndarray:
        return self.values[masks @ self.bits]

    def residual(self, masks: np.ndarray) -> np.ndarray:
        count_coalitions(len(masks))
        return self(masks)


def _of_scores(score: Solution, i: int) -> np.ndarray:
    """Return the values (n_sets, n_scores) of one row's scores."""
    return score.values[i].reshape(score.values.shape[1], -1)


def _answered(respond: Callable[[np.ndarray], np.ndarray], scores: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return respond(scores)


def _mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums (n_masks, n_outputs) over the background."""
    return np.einsum("zom,z->mo", values, weights)


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise InputError("A response overflows", do="Explain the score itself: output='auto'")
    return values


def _fitted(responses: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the slopes of a least-squares fit with a constant; none where there are too few coalitions."""
    if len(scores) < COALITIONS_OF_A_SLOPE * (scores.shape[1] + 1):
        return np.zeros((scores.shape[1], responses.shape[1]))
    slopes, *_ = np.linalg.lstsq(scores - scores.mean(axis=0), responses - responses.mean(axis=0), rcond=1e-8)
    return slopes
