"""Explain any model by conditional means that are estimated from a background."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.threads import n_threads
from exactshap._runtime.types import Model
from exactshap.errors import InputError
from exactshap.frames import Table
from exactshap.games import normalised_weights
from exactshap.readers import Coalitions, ConditionalGame, DelegatingReader, Reader, Request, averaged
from exactshap.readers import read as read_any
from exactshap.readers.conditional._estimates import (
    Coordinates,
    ForestRegression,
    GaussianCopula,
    RegressedMeans,
    RidgeRegression,
)
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, Solution

SAMPLED = ("budget", "random_state")
OPTIONS = {"observational": ("eta",), "observational-copula": ("n_samples",), "observational-forest": ("n_trees",)}
# Background rows for the model's own reader, of which only predictions are needed.
READING_ROWS = 16
# Draws for a coalition's mean under a copula; trees of a forest, as scikit-learn has them.
DRAWS, TREES = 256, 100


def read(model: Model, request: Request) -> Reader:
    """Read a model and explain it by conditional means. Its own reader gives predictions and names.

    Settings (keywords of ``Explainer``): ``eta`` (ridge of ``"observational"``, default "auto": chosen for each coalition),
    ``n_samples`` (draws a coalition of ``"observational-copula"``, default 256), ``n_trees`` (of ``"observational-forest"``,
    default 100), ``budget`` (coalitions that are sampled beyond 12 players, default 2048), ``random_state`` (default 0).
    """
    if request.background is None:
        raise InputError(
            f"value_function={request.value_function!r} needs rows to learn the conditional distribution from",
            "Got background=None",
            "Pass background=X_train",
        )
    own = (*SAMPLED, *OPTIONS[request.value_function])
    settings = {name: value for name, value in request.options.items() if name in own}
    others = {name: value for name, value in request.options.items() if name not in own}
    few = request.background.take(slice(0, READING_ROWS))
    inner = replace(request, value_function="interventional", background=few, weights=None, options=others)
    return ConditionalReader(read_any(model, inner), request, settings)


class ConditionalReader(DelegatingReader):
    """Explain ``inner``'s predictions by conditional means, each for all rows of a block; v(empty) and v(D) are exact."""

    def __init__(self, inner: Reader, request: Request, settings: dict[str, Any]) -> None:
        assert request.background is not None
        weights = normalised_weights(request.weights, request.background.n_rows)
        super().__init__(
            inner,
            value_function=request.value_function,
            background=request.background,
            weights=request.weights,
            block_rows=4096,
            uses_threads=True,
            calls=None,
            advice_on_memory="Raise memory_limit=, or pass fewer rows as background=",
        )
        if inner.traits.rounding.cancels:
            # v(D) and the certificate's prediction are two calls: each is rounded by the size of the terms that cancel in it.
            terms = inner.solve(inner.traits.reference, find("shapley"), 1).part.scale
            self.traits = self.traits.with_rounding(floor=self.traits.rounding.floor + float(np.max(terms)))
        self.coalitions = Coalitions.of(inner.traits.n_players, settings)
        rows, weights = request.background.take(np.flatnonzero(weights > 0)), weights[weights > 0]
        targets = np.asarray(inner.predict(rows), float).reshape(rows.n_rows, -1)
        self.empty = weights @ targets
        self.means = self._means(rows, targets, weights, settings)
        self.replicates = self.means.replicates

    def _means(self, rows: Table, targets: np.ndarray, weights: np.ndarray, settings: dict[str, Any]) -> Any:
        seed = self.coalitions.random_state
        if self.traits.value_function == "observational-copula":
            return GaussianCopula(self.inner, rows, weights, settings.get("n_samples", DRAWS), seed)
        if self.traits.value_function == "observational-forest":
            way: Any = ForestRegression(settings.get("n_trees", TREES), seed)
        else:
            way = RidgeRegression(settings.get("eta", "auto"))
        coordinates = Coordinates.of(rows, weights, self.traits.players)
        return RegressedMeans(way, rows, coordinates, targets, weights)

    def game(self, X: Table) -> ConditionalGame:
        full = np.asarray(self.inner.predict(X), float).reshape(X.n_rows, -1)
        return ConditionalGame(
            function=self.means.bound_to(X),
            empty=np.repeat(self.empty, self.replicates),
            full=np.repeat(full, self.replicates, axis=1),
            intercept=np.zeros(self.traits.n_outputs * self.replicates),
            n_players=self.traits.n_players,
            single_output=self.traits.single_output and self.replicates == 1,
            size=self.means.bytes(X.n_rows) / 48.0,
            replicates=self.replicates,
        )

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        game = self.game(X)
        found = self.coalitions.solve(game, semivalue, order)
        found = found.renamed(f"{found.method} of {game.function.describe()}")
        return found if self.replicates == 1 else averaged(found, self.replicates, self.traits.single_output)

    def memory(self, n_rows: int, order: int) -> float:
        table, each = self.coalitions.table_values() * self.traits.n_outputs * self.replicates, self.means.bytes(n_rows)
        return each * n_threads(each / 48.0) + 8.0 * n_rows * (table + 4.0 * self.traits.n_features)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        blocks = -(-n_rows // max(block_rows, 1))
        seconds, kind = self.coalitions.seconds(lambda k: self.game(few.take(slice(0, k))), few.n_rows, n_rows, blocks)
        kind = "all coalitions" if self.replicates > 1 and self.coalitions.enumerated else kind
        method = f"{kind} of {self.means.bound_to(few.take(slice(0, 1))).describe()}"
        exact = self.coalitions.enumerated and self.replicates == 1
        return Cost(seconds, bytes=self.memory(block_rows, order), exact=exact, method=method)

    def bind(self, row: Table) -> None:
        """Return None: no column is replaced by a reference row's."""

    def masked_predictions(self, X: Table, masks: np.ndarray) -> None:
        """Return None: no row can be masked by hand."""

    def stability(self, X: Table) -> None:
        """Return None: none is known."""
