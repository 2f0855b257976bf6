"""Wrap readers in others that change a few things only: pipelines, scaled targets, players without columns or in a tree."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.machine import clocked
from exactshap.frames import Table
from exactshap.games import Game, LiveGame, ProductGame, affine, with_equal_shares
from exactshap.readers._base import Reader, among_all
from exactshap.readers._request import Columns, NoConditionalMeans, Request
from exactshap.semivalues import Hierarchy, Question, Semivalue, find
from exactshap.solvers import Cost, Solution, solve

# Bytes of the arrays of one block of the solver's sweep over all levels.
WORK_BYTES = 2.0**27
# Players that are kept where there are as many: interactions of higher orders are refused for fewer.
MIN_PLAYERS = 4
# Coalitions for each row of a function, without a budget.
DEFAULT_CALLS = 2**12


class DelegatingReader(Reader):
    """Delegate to ``inner``; wrappers override what they change.

    Parameters
    ----------
    inner : Reader
    **own
        Fields of :class:`Traits` that are the wrapper's own (``model``, ``model_name``, ``unit`` ...); the others are inner's.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from exactshap.readers import DelegatingReader, Request, read
    >>> inner = read(SVR().fit([[0.0], [1.0]], [0.0, 1.0]), Request())
    >>> DelegatingReader(inner, unit="degrees").traits.unit
    'degrees'
    """

    def __init__(self, inner: Reader, **own: Any) -> None:
        self.inner, traits = inner, inner.traits
        # Fixed, as it would be derived from the wrapper's columns, which may be others.
        self.traits = replace(traits.with_rounding(relative=traits.relative_rounding), **own)

    def rows(self, X: Table) -> Table:
        """Return the rows for the inner reader."""
        return X

    def predict(self, X: Table) -> np.ndarray:
        return self.inner.predict(self.rows(X))

    def game(self, X: Table) -> Game:
        return self.inner.game(self.rows(X))

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        return self.inner.solve(self.rows(X), semivalue, order)

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        return self.inner.stability(self.rows(X))

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        return self.inner.masked_predictions(self.rows(X), masks)

    def memory(self, n_rows: int, order: int) -> float:
        return self.inner.memory(n_rows, order)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        return self.inner.cost(self.rows(few), n_rows, semivalue, order, block_rows)

    def bind(self, row: Table) -> DelegatingReader | None:
        inner = self.inner.bind(self.rows(row))
        if inner is None:
            return None
        # Binding changes the number of terms, and with it the tolerance.
        bound, traits = self._rebound(row), inner.traits
        bound.inner = inner
        bound.traits = bound.traits.with_rounding(n_terms=traits.rounding.n_terms, relative=traits.relative_rounding)
        return bound


class AffineReader(DelegatingReader):
    """Explain factor * f(x) + shift of another reader's model."""

    def __init__(self, inner: Reader, *, factor: float = 1.0, shift: float = 0.0, **own: Any) -> None:
        super().__init__(inner, **own)
        self.factor, self.shift = factor, shift
        # Of prediction, baseline and the sum of the values
        floor = abs(factor) * self.traits.rounding.floor + (self.traits.n_players + 2.0) * abs(shift)
        self.traits = self.traits.with_rounding(floor=floor)

    predict = Reader.predict

    def game(self, X: Table) -> Game:
        """Return factor * v(S) + shift. If v(empty) is 0 by definition, each player gets an equal share of the shift."""
        game = self.inner.game(X)
        if self.traits.value_function != "normalized":
            return affine(game, self.factor, self.shift)
        game = affine(game, self.factor, 0.0)
        assert isinstance(game, ProductGame)
        return with_equal_shares(game, np.full(game.n_outputs, self.shift), constant=game.constant)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        solution = self.inner.solve(X, semivalue, order) * self.factor
        part = solution.part.shifted(self.shift)
        if self.traits.value_function == "normalized":
            part = part.with_shared_baseline(self.traits.n_players, semivalue.mass)
        return replace(solution, part=replace(part, scale=part.scale + abs(self.shift)))

    def stability(self, X: Table) -> Callable[[Any], Any] | None:
        """Return the inner bound in units of the outer prediction."""
        bound = self.inner.stability(X)
        return None if bound is None else functools.partial(_scaled_bound, bound, abs(self.factor))

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        values = self.inner.masked_predictions(X, masks)
        return None if values is None else values * self.factor + self.shift


def _scaled_bound(bound: Callable[[Any], Any], factor: float, delta: Any) -> Any:
    found = bound(delta)
    return replace(found, bound=found.bound * factor, rkhs_norm=found.rkhs_norm * factor)


class TransformedReader(DelegatingReader):
    """Explain by a reader of transformed rows, with their columns grouped by input column.

    ``read(request)`` reads the model that takes what ``rows`` returns; ``owners`` are the input columns of its columns.
    """

    def __init__(
        self,
        read: Callable[[Request], Reader],
        request: Request,
        columns: Columns,
        owners: np.ndarray,
        background: Table | None,
        **own: Any,
    ) -> None:
        rows = None if background is None else self.rows(background)
        super().__init__(
            read_live(read, _of_transformed(request, rows, columns, owners)),
            feature_names=columns.names,
            players=columns.players,
            player_names=columns.player_names,
            background=background,
            weights=request.weights,
            **own,
        )

    def memory(self, n_rows: int, order: int) -> float:
        # What is made of the rows, with room for a few tables on the way.
        return super().memory(n_rows, order) + 8.0 * 4 * n_rows * self.inner.traits.n_features

    def stability(self, X: Table) -> None:
        """Return None: the inner bound is for moves of transformed columns."""

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Mask input columns by hand where they are replaced; other value functions are the inner reader's to mask."""
        by_hand = Reader.masked_predictions(self, X, masks)
        return super().masked_predictions(X, masks) if by_hand is None else by_hand


def require_all_columns(request: Request, columns: Sequence[int], n_columns: int) -> None:
    """Refuse to condition on some of the columns: the others may inform about them."""
    if request.value_function == "observational" and len(set(columns)) < n_columns:
        raise NoConditionalMeans


def _of_transformed(request: Request, background: Table | None, columns: Columns, owners: np.ndarray) -> Request:
    """Return the request to the reader of transformed rows."""
    require_all_columns(request, owners.tolist(), len(columns.names))
    # A player is a set of input columns; the model behind sees the transformed columns that these are made into.
    transformed = tuple(
        (name, tuple(int(place) for place in np.flatnonzero(np.isin(owners, members))))
        for name, members in zip(columns.player_names, columns.players, strict=True)
    )
    # A column that becomes several (one-hot, splines) gives each of them its name and a number.
    one_to_one = len(set(owners.tolist())) == len(owners)
    inner = tuple(columns.names[owner] + ("" if one_to_one else f" [{place}]") for place, owner in enumerate(owners))
    # ``groups`` name input columns: players, which replace them, are made of transformed ones.
    return replace(request, background=background, groups=None, players=transformed, feature_names=inner)


def read_live(read: Callable[[Request], Reader], request: Request) -> Reader:
    """Read a model with the players that have columns: semivalues give nothing to the others, at no cost.

    Only "normalized" games know them, as their baseline is shared by all players.
    """
    assert request.players is not None
    empty = [place for place, (_, columns) in enumerate(request.players) if not columns]
    kept = max(len(request.players) - len(empty), min(MIN_PLAYERS, len(request.players)))
    # The last of those without columns leave; the first stay where there would be fewer players than MIN_PLAYERS.
    dead = set(empty[len(empty) - (len(request.players) - kept) :])
    if not dead or request.value_function == "normalized":
        return read(request)
    live = tuple(place for place in range(len(request.players)) if place not in dead)
    return LivePlayers(read(replace(request, players=tuple(request.players[place] for place in live))), request.players, live)


class LivePlayers(DelegatingReader):
    """Show what ``inner`` says of ``live`` players; the others have no columns."""

    def __init__(self, inner: Reader, players: tuple[tuple[str, tuple[int, ...]], ...], live: tuple[int, ...]) -> None:
        columns, names = tuple(columns for _, columns in players), tuple(name for name, _ in players)
        super().__init__(inner, players=columns, player_names=names)
        self.live = live

    def game(self, X: Table) -> Game:
        return LiveGame(super().game(X), self.traits.n_players, self.live)

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        return among_all(super().solve(X, semivalue, order), self.live, self.traits.n_players, order)

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        # Dead players mask nothing, as no column of the rows is theirs.
        return super().masked_predictions(X, np.asarray(masks)[:, list(self.live)])


class HierarchicalReader(DelegatingReader):
    """Solve ``inner``'s games for players in a hierarchy, by the names of ``inner``."""

    def __init__(self, inner: Reader) -> None:
        super().__init__(inner, block_rows=16)
        self.options = getattr(inner, "options", {})

    def solve(self, X: Table, semivalue: Any, order: int) -> Solution:
        # The certificate needs Shapley values of its own rows
        if isinstance(semivalue, Semivalue):
            return self.inner.solve(X, semivalue, order)
        # Only functions that are called have a budget.
        budget = self.options.get("budget") or DEFAULT_CALLS if self.traits.calls is not None else None
        game = self.inner.game(X)
        found = solve(game, semivalue, order, budget=budget)
        if (replicates := getattr(game, "replicates", 1)) > 1:  # of a sampled conditional mean
            from exactshap.readers._row_games import averaged

            found = averaged(found, replicates, self.traits.single_output)
        scale = (
            self.inner.solve(X, find("shapley"), 1).scale if self.traits.calls is None else found.scale
        )  # the sum of magnitudes in its own arithmetic
        return replace(found, part=replace(found.part, scale=np.maximum(found.scale, scale)))

    def memory(self, n_rows: int, order: int) -> float:
        background = 1 if self.traits.background is None else self.traits.background.n_rows
        return WORK_BYTES + 16.0 * (n_rows + background) * self.traits.rounding.n_terms * self.traits.n_players

    def cost(self, few: Table, n_rows: int, semivalue: Any, order: int, block_rows: int) -> Cost:
        row, found = few.take(slice(0, 1)), []
        seconds = clocked(lambda: found.append(self.solve(row, semivalue, order)))
        cost = Cost(seconds, method=found[0].method, exact=found[0].exact)
        return replace(n_rows * cost, bytes=self.memory(block_rows, order))

    def stability(self, X: Table) -> None:
        return None


def reader_for(reader: Reader, index: str | Question, order: int = 1) -> tuple[Reader, Any, int]:
    """Return a question's reader, its index by numbers of players, and its order."""
    question, order = find(index), check_count("order", order)
    if isinstance(question, Hierarchy):
        return HierarchicalReader(reader), question.among(reader.traits.player_names), order
    return reader, question, order
