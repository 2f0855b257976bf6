r"""Additive models in the unit that people read: a probability or a rate is an inverse link of a sum.

.. math:: v_x(S) = \sum_z w_z\, g\Bigl(\beta + \sum_{j \in S} s_j(x) + \sum_{j \notin S} s_j(z)\Bigr)

A sum of exponentials in place of g makes this a product game with as many terms (:mod:`exactshap.expansions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, UnsupportedStructureError, message, no_output
from exactshap.expansions import Expansion, expand
from exactshap.frames import Table
from exactshap.games import ProductGame
from exactshap.readers import RESPONSES, OwnCall, Reader, Request, outputs_of
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.terms import players_of_term
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution
from exactshap.solvers.product import solve_terms

__all__ = ["Response", "ResponseReader", "no_response", "probability", "with_response"]

_Read = Callable[[Any, Request], AdditiveReader]
_SLOPES = {"logistic": 0.25, "normal": 0.4}  # the steepest place of the inverse link: what rounding of the score comes to
_BLOCK_BYTES = 2.0**25  # of factors at a time: those of a few rows and of a hundred background rows stay in a core's caches


@dataclass(frozen=True, eq=False)
class Response:
    """What a model answers in the unit that people read.

    Attributes
    ----------
    link : str or None
        Of :func:`exactshap.expansions.links`; None where the score is the response.
    call : OwnCall
        The documented call that gives it.
    unit : str
    """

    link: str | None
    call: OwnCall
    unit: str


def probability(name: str) -> Response:
    """Return the response of a classifier of two classes whose score is the log-odds of the second, called ``name``."""
    return Response("logistic", OwnCall("predict_proba", finish=partial(outputs_of, [1], True)), f"probability of class {name}")


def no_response(model: Model, why: str) -> UnsupportedStructureError:
    """Return the error for a model whose response is no function of one sum."""
    way = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    return UnsupportedStructureError(
        message(
            f"The response of {type(model).__name__} is no function of one sum of single columns",
            why,
            f"Call the model: explain(model.{way}, X, background), sampled beyond 12 players",
        )
    )


def with_response(describe: Callable[[Any], Response]) -> Callable[[_Read], Callable[[Any, Request], Reader]]:
    """Let the reader of a score answer ``output="probability"`` and ``"response"`` too, as ``describe(model)`` says."""

    def decorate(read: _Read) -> Callable[[Any, Request], Reader]:
        @wraps(read)
        def read_either(model: Model, request: Request) -> Reader:
            if not isinstance(request.output, str) or request.output not in RESPONSES:
                return read(model, request)
            score = read(model, replace(request, output="auto"))
            response = describe(model)
            if request.output == "probability" and not response.unit.startswith("probability"):
                raise UnknownNameError(no_output(score.model_name, request.output, score.output_names))
            return score if response.link is None else ResponseReader(score, response.link, response.call, response.unit)

        return read_either

    return decorate


class ResponseReader(Reader):
    """An inverse link of a single-output additive model bound to a background.

    Parameters
    ----------
    inner : AdditiveReader
        The score, each of whose terms belongs to one player.
    link : str
        Of :func:`exactshap.expansions.links`.
    call : OwnCall
        The documented call that gives the response.
    unit : str

    Raises
    ------
    UnsupportedStructureError
        If a term joins several players.
    """

    value_functions = ("interventional", "baseline")

    def __init__(self, inner: AdditiveReader, link: str, call: OwnCall, unit: str) -> None:
        for name in Reader.__annotations__:
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))
        self.inner, self.link, self.own_call, self.unit = inner, link, call, unit
        self.offset = None  # it would change the slope of the link
        self.n_terms, self.rounding, self.floor = 100.0, None, 0.0  # waves of scores up to 16; rounding grows with their root
        if inner.background is None:
            raise UnsupportedStructureError(
                message(
                    f"A {unit} needs reference rows: the training histograms of single terms do not say which cells occur together",
                    "Got background=None",
                    "Pass background=X_reference",
                )
            )
        self._player_of_term = self._owners()
        self._intercept = float(inner.form.intercept[0])
        self._absent = self._scores(inner.background, "background")  # s_j(z), of shape (n_background, n_players)

    def _owners(self) -> list[int]:
        """Return the player of each term."""
        owner = {column: p for p, columns in enumerate(self.players) for column in columns}
        members = [
            players_of_term(columns, [owner[j] for j in range(self.n_features)])
            for block in self.inner.form.blocks
            for columns in block.columns
        ]
        joint = next((players for players in members if len(players) > 1), None)
        if joint is not None:
            names = " and ".join(repr(self.player_names[p]) for p in joint)
            raise UnsupportedStructureError(
                message(
                    f"The {self.unit} of {self.model_name} is no function of a sum over single players",
                    f"A term joins {names}",
                    "Put them into one group with groups=, explain the score with output='auto', or call the model:"
                    f" explain(model.{self.own_call.method}, X, background)",  # type: ignore[union-attr]
                )
            )
        return [players[0] if players else 0 for players in members]

    def _scores(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players), the terms of each player added up."""
        rows = self.inner.form.encode(X, what)
        scores, place = np.zeros((X.n_rows, self.n_players)), 0
        for block in self.inner.form.blocks:
            if len(block.columns):
                terms = block.evaluate(rows)[:, :, 0]
                for k in range(terms.shape[1]):  # one by one: a row has the same bits in every batch
                    scores[:, self._player_of_term[place + k]] += terms[:, k]
                place += terms.shape[1]
        return scores

    def predict(self, X: Table) -> np.ndarray:
        """Return the model's own response."""
        assert self.own_call is not None
        return self.own_call(self.model, X.native)

    def game(self, X: Table) -> ProductGame:
        """Return the product games of the rows, whose expansion holds for all of them."""
        scores = self._scores(X)
        expansion = expand(self.link, float(self._limits(scores).max(initial=0.0)))
        inside, absent = (_waves(expansion.rates, one).transpose(0, 2, 1) for one in (scores, self._absent))
        return ProductGame(self._coefficients(expansion), inside, absent, self.weights, expansion.constant)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Solve the rows of each expansion; a row's own scores say which one is its."""
        scores, sizes = self._scores(X), self._sizes(X)
        limits = np.array([expand(self.link, limit).limit for limit in self._limits(scores).tolist()])
        parts = [Solution.zeros(0, 0)] * X.n_rows
        for limit in np.unique(limits):
            chosen = np.flatnonzero(limits == limit)
            part = self._solved(expand(self.link, float(limit)), scores[chosen], sizes[chosen], semivalue, order)
            for place, row in enumerate(chosen.tolist()):
                parts[row] = part.rows(slice(place, place + 1))
        return (
            Solution.join(parts, X.n_rows) if parts else self._solved(expand(self.link, 1.0), scores, sizes, semivalue, order)
        )

    def _solved(
        self, expansion: Expansion, scores: np.ndarray, sizes: np.ndarray, semivalue: Semivalue, order: int
    ) -> Solution:
        """Add up blocks of terms, each over blocks of rows."""
        coefficients, weights = self._coefficients(expansion), np.array(self.weights)
        n_terms, (n_background, d) = len(expansion.rates), self._absent.shape
        width = int(np.clip(_BLOCK_BYTES / (16.0 * d * n_background), 1, n_terms))
        step = int(np.clip(_BLOCK_BYTES / (16.0 * d * width), 1, max(len(scores), 1)))
        total = None
        for start in range(0, n_terms, width):
            terms = slice(start, start + width)
            absent = _waves(expansion.rates[terms], self._absent)
            c = np.ascontiguousarray(coefficients[None, terms])
            rows = (
                solve_terms(_waves(expansion.rates[terms], scores[i : i + step]), absent, c, weights, semivalue, order)
                for i in range(0, max(len(scores), 1), step)
            )
            part = Solution.join(rows, len(scores))
            total = part if total is None else total + part
        assert total is not None
        bound = np.asarray(total.error_bound) + 2.0**order * expansion.error
        total = replace(total, error_bound=bound, scale=total.scale + sizes)
        return total.finish(
            d, semivalue, order, constant=np.array([expansion.constant]), single_output=True, with_residual=False
        )

    def _sizes(self, X: Table) -> np.ndarray:
        """Return what is added up in the score (n_rows,), times the steepest place of g: rounding of the score, in the response."""
        rows = self.inner.form.encode(X, "X")
        slope = _SLOPES.get(self.link)
        steep = np.exp(self.inner.form.evaluate(rows)[:, 0]) if slope is None else slope
        return np.asarray(self.inner.form.scale(rows) * steep)

    def _coefficients(self, expansion: Expansion) -> np.ndarray:
        """Return c_l exp(r_l beta)."""
        return np.asarray(expansion.coefficients * np.exp(expansion.rates * self._intercept))

    def _limits(self, scores: np.ndarray) -> np.ndarray:
        """Return how far from 0 the score of a hybrid can be, for each row."""
        limits = np.zeros(len(scores))
        for z in self._absent:
            low, high = (self._intercept + choose(scores, z).sum(axis=1) for choose in (np.minimum, np.maximum))
            limits = np.maximum(limits, np.maximum(np.abs(low), np.abs(high)))
        return limits

    def bind(self, row: Table) -> ResponseReader:
        bound = self._rebound(row)
        bound.weights = np.ones(1)
        bound._absent = self._scores(row, "background")
        return bound

    def memory(self, n_rows: int, order: int) -> float:
        return super().memory(n_rows, order) + 4.0 * _BLOCK_BYTES


def _waves(rates: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return exp(r_l s_j) of shape (n_rows, n_players, n_terms)."""
    return np.exp(scores[:, :, None] * rates)
