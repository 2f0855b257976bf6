"""Read the responses of additive models, such as probabilities, from scores as sums over players."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, no_output
from exactshap.frames import Table
from exactshap.readers import Reader, Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.terms import players_of_term

if TYPE_CHECKING:
    from exactshap.readers.responses import Response

_Read = Callable[[Any, Request], AdditiveReader]


def with_response(describe: Callable[[Any], Response]) -> Callable[[_Read], Callable[[Any, Request], Reader]]:
    """Extend the reader of a score by ``output="probability"`` and ``"response"``, as ``describe(model)`` defines them."""

    def decorate(read: _Read) -> Callable[[Any, Request], Reader]:
        @wraps(read)
        def read_either(model: Model, request: Request) -> Reader:
            outer: Response | None = request.outer_response
            if outer is not None and not hasattr(model, outer.call.method):
                outer = None
            if outer is None and not request.asks_response:
                return read(model, request)
            from exactshap.readers.responses import of_score

            score = read(model, of_score(request))
            response = describe(model) if outer is None else outer
            if request.output == "probability" and not response.unit.startswith("probability"):
                raise UnknownNameError(no_output(score.traits.model_name, request.output, score.traits.output_names))
            return score if response.link is None else _response_of(score, response, request)

        return read_either

    return decorate


def _response_of(score: AdditiveReader, response: Response, request: Request) -> Reader:
    """Return the reader of a response, exact if its terms are small."""
    from exactshap.expansions import links
    from exactshap.readers.additive._factors import TermFactors
    from exactshap.readers.responses import (
        ALL_COALITIONS,
        MAX_WIDTH,
        SAMPLING_OPTIONS,
        FactorReader,
        HybridScores,
        PiecewiseReader,
        ResponseReader,
        SampledResponse,
        needs_rows,
        no_response,
    )
    from exactshap.solvers.product import eliminate

    if score.traits.background is None:
        raise needs_rows(response.unit)
    members = _members(score)
    if response.pieces is not None:
        if not score.traits.single_output or max(map(len, members), default=0) > 1:
            raise no_response(
                score.traits.model, "Its terms join players, and a piecewise linear function of them has no exact form"
            )
        return PiecewiseReader(score, _PlayerScores(score, members), response)
    expands = score.traits.single_output and response.link in links()
    if expands and max(map(len, members), default=0) <= 1:
        request.refuse_options(owner=f"The {response.unit} of {score.traits.model_name}")
        return ResponseReader(score, _PlayerScores(score, members), response)
    factors, why = TermFactors(score, score.traits.background), f"the {response.link} joins the scores of all classes"
    if score.traits.single_output:
        why = f"the {response.link} has no short sum of exponentials"
    if expands:
        width, why = eliminate(score.traits.n_players, members).width, "terms join players"
        if width > MAX_WIDTH:
            why = f"terms join players in a graph of width {width}, above {MAX_WIDTH}"
        elif score.traits.n_players > ALL_COALITIONS and not any(name in request.options for name in SAMPLING_OPTIONS):
            return FactorReader(score, factors, response)
    return SampledResponse(score, HybridScores(factors.hybrids), response, request, why)


class _PlayerScores:
    """Evaluate an additive model with one player per term."""

    def __init__(self, inner: AdditiveReader, members: list[tuple[int, ...]]) -> None:
        self._form, self._n_players = inner.form, inner.traits.n_players
        self._player_of_term = [players[0] if players else 0 for players in members]
        self.intercept = float(inner.form.intercept[0])

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players), the terms of each player added up."""
        rows = self._form.encode(X, what)
        scores, place = np.zeros((X.n_rows, self._n_players)), 0
        for block in self._form.blocks:
            if len(block.columns):
                terms = block.evaluate(rows)[:, :, 0]
                for k in range(terms.shape[1]):  # one by one, so that a row has the same bits in every batch
                    scores[:, self._player_of_term[place + k]] += terms[:, k]
                place += terms.shape[1]
        return scores

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""
        return self._form.scale(self._form.encode(X, "X"))


def _members(inner: AdditiveReader) -> list[tuple[int, ...]]:
    """Return the players of each term."""
    owners = inner.owners()
    return [players_of_term(columns, owners) for block in inner.form.blocks for columns in block.columns]
