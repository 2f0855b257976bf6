"""Additive models in the unit that people read: which response a score has, and the score as a sum over players."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, UnsupportedStructureError, message, no_output
from exactshap.frames import Table
from exactshap.readers import RESPONSES, Reader, Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive.terms import players_of_term
from exactshap.readers.responses import Response, ResponseReader

__all__ = ["with_response"]

_Read = Callable[[Any, Request], AdditiveReader]


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
            return score if response.link is None else _response_of(score, response)

        return read_either

    return decorate


def _response_of(score: AdditiveReader, response: Response) -> Reader:
    return ResponseReader(score, _PlayerScores(score, response), response)


class _PlayerScores:
    """The terms of an additive model, each of which belongs to one player."""

    def __init__(self, inner: AdditiveReader, response: Response) -> None:
        self._form, self._n_players = inner.form, inner.n_players
        self._player_of_term = _owners(inner, response)
        self.intercept = float(inner.form.intercept[0])

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players), the terms of each player added up."""
        rows = self._form.encode(X, what)
        scores, place = np.zeros((X.n_rows, self._n_players)), 0
        for block in self._form.blocks:
            if len(block.columns):
                terms = block.evaluate(rows)[:, :, 0]
                for k in range(terms.shape[1]):  # one by one: a row has the same bits in every batch
                    scores[:, self._player_of_term[place + k]] += terms[:, k]
                place += terms.shape[1]
        return scores

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""
        return self._form.scale(self._form.encode(X, "X"))


def _owners(inner: AdditiveReader, response: Response) -> list[int]:
    """Return the player of each term."""
    owner = {column: p for p, columns in enumerate(inner.players) for column in columns}
    members = [
        players_of_term(columns, [owner[j] for j in range(inner.n_features)])
        for block in inner.form.blocks
        for columns in block.columns
    ]
    joint = next((players for players in members if len(players) > 1), None)
    if joint is not None:
        names = " and ".join(repr(inner.player_names[p]) for p in joint)
        raise UnsupportedStructureError(
            message(
                f"The {response.unit} of {inner.model_name} is no function of a sum over single players",
                f"A term joins {names}",
                "Put them into one group with groups=, explain the score with output='auto', or call the model:"
                f" explain(model.{response.call.method}, X, background)",
            )
        )
    return [players[0] if players else 0 for players in members]
