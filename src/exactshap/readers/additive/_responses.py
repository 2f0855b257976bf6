r"""Read responses of additive models: by scores of players, factors of few players, or sampled from hybrids.

With terms on few players, the response

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_f s_{fz}(S \cap I_f)\Bigr)

is exact by variable elimination: a sum of exponentials in place of g makes every wave a product of factors on the players of a term each,
a graphical model. Its players have two states (:func:`exactshap.solvers.product.solve_factors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from exactshap.expansions import expand, links
from exactshap.frames import Table
from exactshap.readers import Reader, Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._terms import TermBlock, players_of_term
from exactshap.readers.responses import (
    ALL_COALITIONS,
    SAMPLING_OPTIONS,
    HybridScores,
    Isotonic,
    LinkedReader,
    PiecewiseReader,
    Response,
    ResponseReader,
    RowScores,
    SampledResponse,
    needs_rows,
)
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution
from exactshap.solvers.product import eliminate, solve_factors

HINGE_ROUNDING = 1e-6  # of a probability: of the rounding of the score, times the steepest slope
MAX_WIDTH = 12  # of the graph of factors: tables of 2^13 states for each wave and background row


def response_of_score(score: AdditiveReader, response: Response, request: Request) -> Reader:
    """Return the reader of a response, exact if its terms are small."""
    if score.traits.background is None:
        raise needs_rows(response.unit)
    owners, several = score.owners(), not score.traits.single_output
    members = [players_of_term(columns, owners) for block in score.form.blocks for columns in block.columns]
    joins, samples = max(map(len, members), default=0) > 1, any(name in request.options for name in SAMPLING_OPTIONS)
    if isinstance(response.function, Isotonic) and not (several or joins or samples):
        # Hinges of close knots, which cancel beyond them, may lose too many digits
        size = float(score.form.scale(score.encode(score.traits.reference, "background")).max())
        if response.function.steepest * size * float(np.finfo(float).eps) <= HINGE_ROUNDING:
            return PiecewiseReader(score, _PlayerScores(score, members), response)
    expands = not several and response.link in links()
    if expands and not joins:
        request.refuse_options(owner=f"The {response.unit} of {score.traits.model_name}")
        return ResponseReader(score, _PlayerScores(score, members), response)
    factors, why = TermFactors(score), "terms join players"
    if several:
        why = f"the {response.link} joins the scores of all classes"
    elif not joins:
        why = f"the {response.link} has no short sum of exponentials"
    elif expands and (width := eliminate(score.traits.n_players, members).width) > MAX_WIDTH:
        why = f"terms join players in a graph of width {width}, above {MAX_WIDTH}"
    elif expands and score.traits.n_players > ALL_COALITIONS and not samples:
        return FactorReader(score, factors, response)
    return SampledResponse(score, HybridScores(factors.hybrids, magnitude=factors.largest), response, request, why)


class _PlayerScores:
    """Evaluate an additive model with one player per term."""

    def __init__(self, inner: AdditiveReader, members: list[tuple[int, ...]]) -> None:
        self._inner, self._form, self._n_players = inner, inner.form, inner.traits.n_players
        self._player_of_term = [player for (player,) in members]
        self.intercept = float(inner.form.intercept[0])

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players), the terms of each player added up."""
        rows = self._inner.encode(X, what)
        scores, place = np.zeros((X.n_rows, self._n_players)), 0
        for block in self._form.blocks:
            terms = block.evaluate(rows)[:, :, 0]
            for k in range(terms.shape[1]):  # one by one, so that a row has the same bits in every batch
                scores[:, self._player_of_term[place + k]] += terms[:, k]
            place += terms.shape[1]
        return scores

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""
        return self._form.scale(self._inner.encode(X))


# -- terms that join players -------------------------------------------------------------------------------------------------


class Factor(NamedTuple):
    """Hold the sum of the terms of some players for each of their coalitions."""

    players: tuple[int, ...]  # ascending
    table: np.ndarray  # (n_background, n_outputs, 2^k): bit p of a column says whether the p-th player comes from the row


class TermFactors:
    """Evaluate an additive model as factors on its players, bound to background rows."""

    def __init__(self, inner: AdditiveReader, background: Table | None = None) -> None:
        self._inner, self._form, self._owner = inner, inner.form, inner.owners()
        self._rows = inner.encode(inner.traits.reference if background is None else background, "background")
        self._absent = [block.evaluate(self._rows) for block in self._form.blocks]
        self.largest = float(self._form.scale(self._rows).max())  # magnitude that is added up for a background row
        self.intercept = inner.form.intercept

    def bound(self, background: Table) -> TermFactors:
        """Return the same with other background rows."""
        return TermFactors(self._inner, background)

    def rows(self, X: Table) -> Iterator[tuple[list[Factor], float]]:
        """Yield the factors of each row, and the magnitudes that are added up in its score."""
        encoded = self._inner.encode(X)
        for i, size in enumerate(self._form.scale(encoded).tolist()):
            yield self._of_row(encoded[i : i + 1]), size

    def _of_row(self, row: np.ndarray) -> list[Factor]:
        """Return the factors of one row, added up for the same players, single players first."""
        everyone, factors = tuple(range(self._inner.traits.n_players)), dict[tuple[int, ...], np.ndarray]()
        for block, absent in zip(self._form.blocks, self._absent, strict=True):
            # Values of all terms, by which players come from the row
            values = {(): absent, everyone: np.broadcast_to(block.evaluate(row), absent.shape)}
            for l, columns in enumerate(block.columns):
                players = tuple(sorted(players_of_term(columns, self._owner)))
                codes = range(2 ** len(players))
                inside = [tuple(player for p, player in enumerate(players) if code >> p & 1) for code in codes]
                inside[-1] = everyone  # no other player changes the term
                for some in inside:
                    if some not in values:
                        values[some] = self._mixed(block, row, some)
                table = np.stack([values[some][:, l] for some in inside], axis=2)
                factors[players] = factors[players] + table if players in factors else table
        return [Factor(players, factors[players]) for players in sorted(factors, key=lambda players: (len(players), players))]

    def _mixed(self, block: TermBlock, row: np.ndarray, players: tuple[int, ...]) -> np.ndarray:
        """Return the terms (n_background, n_terms, n_outputs) of background rows with the cells of some players from the row."""
        chosen = np.isin(self._owner, players)
        mix = getattr(block, "hybrid", None)
        return block.evaluate(np.where(chosen, row, self._rows) if mix is None else mix(row, self._rows, chosen))

    def scores(self, factors: list[Factor], masks: np.ndarray) -> np.ndarray:
        """Return the scores (n_background, n_outputs, n_masks) of hybrids."""
        out = np.empty((len(self._rows), len(self.intercept), len(masks)))
        out[...] = self.intercept[:, None]
        for factor in factors:
            bits = masks[:, list(factor.players)] @ (1 << np.arange(len(factor.players)))
            out += factor.table[:, :, bits]
        return out

    def hybrids(self, X: Table) -> RowScores:
        """Return the scores of one row's hybrids, for sampling."""
        ((factors, _),) = self.rows(X)
        moving = {p for factor in factors for k, p in enumerate(factor.players) if _moves(factor.table, k)}
        return RowScores(partial(self.scores, factors), sorted(moving))


def _moves(table: np.ndarray, k: int) -> bool:
    """Say whether the k-th player of a factor changes it."""
    with_player = (np.arange(table.shape[2]) >> k) & 1 == 1
    return bool((table[:, :, with_player] != table[:, :, ~with_player]).any())


class FactorReader(LinkedReader[list[Factor]]):
    """Read an inverse link of a sum of factors with one output, bound to a background."""

    timed_background = 16  # which take as long as one

    def __init__(self, inner: AdditiveReader, factors: TermFactors, response: Response) -> None:
        super().__init__(inner, response, block_rows=16)
        self.factors = factors
        ((first, _),) = factors.rows(self.traits.reference.take([0]))
        plan = eliminate(self.traits.n_players, [factor.players for factor in first])
        self.method = f"variable elimination of width {plan.width}"
        self._n_states = sum(2 ** len(clique) for clique in plan.cliques)

    def _keep_background(self, rows: Table) -> None:
        self.factors = self.factors.bound(rows)

    def _rows(self, X: Table) -> Iterator[tuple[list[Factor], float]]:
        return self.factors.rows(X)

    def _value(self, row: list[Factor]) -> Callable[[np.ndarray], np.ndarray]:
        return partial(self.mean_response, partial(self._scores, row))

    def _scores(self, factors: list[Factor], masks: np.ndarray) -> np.ndarray:
        return np.asarray(self.response.shift + self.response.slope * self.factors.scores(factors, masks)[:, 0].T)

    def _solutions(self, X: Table, semivalue: Semivalue, order: int) -> Iterator[Solution]:
        for factors, size in self._rows(X):
            yield self._solved(factors, size, semivalue, order)

    def _solved(self, factors: list[Factor], size: float, semivalue: Semivalue, order: int) -> Solution:
        """Solve one row; its own scores say how long its expansion is."""
        slope = self.response.slope
        tables = [(factor.players, slope * factor.table[:, 0]) for factor in factors]
        constant = slope * float(self.factors.intercept[0]) + self.response.shift
        expansion = expand(str(self.response.link), _limit(constant, tables))
        coefficients = expansion.coefficients * np.exp(expansion.rates * constant)
        part = solve_factors(self.traits.n_players, tables, expansion.rates, coefficients, self._weights, semivalue, order)
        steep = self.response.inverse.steepest
        # The steepest slope of g at the row and, on average, at the background: that of an exponential is its value
        ends = [abs(float(end) + expansion.constant) if steep is None else steep for end in (part.full[0, 0], part.empty[0, 0])]
        size = abs(slope) * float(np.dot(ends, [size, self.factors.largest]))
        bound = part.error_bound + 2.0**order * expansion.error
        part = replace(part, error_bound=bound, scale=part.scale + size, method=self.method)
        return self._finished(part, expansion.constant, semivalue, order)

    def memory(self, n_rows: int, order: int) -> float:
        # four tables of complex numbers for at least one background row and 200 waves
        tables = 64.0 * max(2.0**17, 200.0 * self._n_states)
        return super().memory(n_rows, order) + tables + 8.0 * self.traits.reference.n_rows * self.traits.n_players**2


def _limit(constant: float, tables: Sequence[tuple[tuple[int, ...], np.ndarray]]) -> float:
    """Return how far from 0 the score of a hybrid can be."""
    low = constant + sum(table.min(axis=1) for _, table in tables)
    high = constant + sum(table.max(axis=1) for _, table in tables)
    return float(np.max(np.maximum(np.abs(low), np.abs(high))))
