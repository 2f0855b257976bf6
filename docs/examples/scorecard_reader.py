"""A fast reader: a scorecard, points for the bin of each column. The slow way defines the numbers, the fast one streams them."""

import copy
from dataclasses import replace

import numpy as np

from exactshap.frames import Table
from exactshap.games import AdditiveGame
from exactshap.readers import Reader, Request, Rounding, Traits, register
from exactshap.semivalues import Semivalue
from exactshap.solvers import Part, Solution


class Scorecard:
    """Somebody's model: ``points[j][k]`` for a cell of column j between ``edges[j][k - 1]`` and ``edges[j][k]``."""

    def __init__(self, base, edges, points):
        self.base, self.edges, self.points = (
            float(base),
            [np.asarray(e, float) for e in edges],
            [np.asarray(p, float) for p in points],
        )

    def predict(self, X):
        return self.base + sum(p[np.searchsorted(e, x)] for p, e, x in zip(self.points, self.edges, np.asarray(X, float).T))


class ScorecardReader(Reader):
    """The base plus one term for each column: players outside a coalition take the mean points of the background."""

    def __init__(self, model: Scorecard, request: Request) -> None:
        self.model = model
        self.traits = Traits.of(
            model,
            request,
            n_columns=len(model.points),
            value_functions=("interventional", "baseline"),
            output_names=("points",),
            unit="points",
            rounding=Rounding(n_terms=len(model.points)),  # numbers added up for a prediction: the tolerance follows
            block_rows=2**14,  # a step of progress: a row takes microseconds
        )
        self._take_background(request.background, request.weights)

    def _take_background(self, background: Table, weights: np.ndarray | None) -> None:
        self.traits = replace(self.traits, background=background, weights=weights)
        self._absent = np.average(self._points(background), axis=0, weights=weights)  # once, not for each row

    def _points(self, X: Table) -> np.ndarray:
        """Return the points (n_rows, n_players) of each player: its columns' together."""
        cells = X.numeric()
        of_column = [p[np.searchsorted(e, x)] for p, e, x in zip(self.model.points, self.model.edges, cells.T, strict=True)]
        return np.stack([sum(of_column[c] for c in columns) for columns in self.traits.players], axis=1)

    def predict(self, X: Table) -> np.ndarray:
        return self.model.predict(X.numeric())  # the model's documented call: the certificate compares with it

    def game(self, X: Table) -> AdditiveGame:
        """The definition, for any index and order; `solve` is compared with it."""
        inside = self._points(X)
        tables = [np.stack([np.full(len(inside), z), x], axis=1) for x, z in zip(inside.T, self._absent, strict=True)]
        return AdditiveGame(len(tables), [(j,) for j in range(len(tables))], tables, constant=self.model.base)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Single players get what their points exceed the background's by, times the mass of the index: 1 for Shapley."""
        if order > 1 or not isinstance(semivalue, Semivalue):
            return super().solve(X, semivalue, order)  # rare questions go by the definition
        inside = self._points(X)
        mass = float(semivalue.rule(1, 1, degree=0)[1].sum())
        part = Part(
            values=mass * (inside - self._absent)[:, :, None],  # (n_rows, n_players, n_outputs)
            empty=np.full((len(inside), 1), self._absent.sum()),
            full=inside.sum(axis=1, keepdims=True),
            method="points of each column",
            scale=np.abs(inside).sum(axis=1) + np.abs(self._absent).sum() + abs(self.model.base),  # rounding is relative to it
        )
        return part.finish(self.traits.n_players, semivalue, 1, constant=self.model.base, single_output=True)

    def memory(self, n_rows: int, order: int) -> float:
        """Bytes of a block: they decide how many rows it has. The definition's tables are larger than what `solve` holds."""
        n_players = self.traits.n_players
        return 8.0 * n_rows * n_players * (4 if order == 1 else 4 * n_players)

    def bind(self, row: Table) -> "ScorecardReader":
        """The same reading with one reference row: the certificate solves hybrids of it."""
        bound = copy.copy(self)
        bound._take_background(row, None)
        return bound


def read(model: Scorecard, request: Request) -> ScorecardReader:
    request.refuse_options(owner="Scorecard")  # settings that would be ignored
    request.refuse_outputs(("points",), owner="Scorecard")
    return ScorecardReader(model, request)


register(f"{__name__}.Scorecard", __name__)
