"""Read responses of additive models: by scores of players, factors of few players, or sampled from hybrids."""

from __future__ import annotations

from functools import partial

import numpy as np

from exactshap.expansions import links
from exactshap.frames import Table
from exactshap.readers import Reader, Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._binned import BinnedTerms
from exactshap.readers.additive._terms import TermBlock, coalitions, players_of_term
from exactshap.readers.responses import (
    ALL_COALITIONS,
    MAX_WIDTH,
    SAMPLING_OPTIONS,
    Factor,
    FactorReader,
    HybridScores,
    Isotonic,
    PiecewiseReader,
    Response,
    ResponseReader,
    RowScores,
    SampledResponse,
    needs_rows,
)
from exactshap.solvers.product import eliminate

HINGE_ROUNDING = 1e-6  # of a probability: of the rounding of the score, times the steepest slope


def response_of_score(score: AdditiveReader, response: Response, request: Request) -> Reader:
    """Return the reader of a response, exact if its terms are small."""
    if score.traits.background is None:
        raise needs_rows(response.unit)
    members, several = _members(score), not score.traits.single_output
    joins, samples = max(map(len, members), default=0) > 1, any(name in request.options for name in SAMPLING_OPTIONS)
    if isinstance(response.function, Isotonic) and not (several or joins or samples or _cancel(response.function, score)):
        return PiecewiseReader(score, _PlayerScores(score, members), response)
    expands = not several and response.link in links()
    if expands and not joins:
        request.refuse_options(owner=f"The {response.unit} of {score.traits.model_name}")
        return ResponseReader(score, _PlayerScores(score, members), response)
    factors, why = TermFactors(score, score.traits.background), "terms join players"
    if several:
        why = f"the {response.link} joins the scores of all classes"
    elif not joins:
        why = f"the {response.link} has no short sum of exponentials"
    elif expands and (width := eliminate(score.traits.n_players, members).width) > MAX_WIDTH:
        why = f"terms join players in a graph of width {width}, above {MAX_WIDTH}"
    elif expands and score.traits.n_players > ALL_COALITIONS and not samples:
        return FactorReader(score, factors, response)
    hybrids = HybridScores(factors.hybrids, magnitude=_largest(score))
    return SampledResponse(score, hybrids, response, request, why)


def _largest(score: AdditiveReader) -> float:
    """Return the largest magnitude that is added up for a background row."""
    return float(score.form.scale(score.encode(score.traits.reference, "background")).max())


def _cancel(pieces: Isotonic, score: AdditiveReader) -> bool:
    """Say whether hinges of close knots, which cancel beyond them, lose too many digits."""
    return pieces.steepest * _largest(score) * float(np.finfo(float).eps) > HINGE_ROUNDING


class _PlayerScores:
    """Evaluate an additive model with one player per term."""

    def __init__(self, inner: AdditiveReader, members: list[tuple[int, ...]]) -> None:
        self._inner, self._form, self._n_players = inner, inner.form, inner.traits.n_players
        self._player_of_term = [players[0] if players else 0 for players in members]
        self.intercept = float(inner.form.intercept[0])

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return s_j(x) of shape (n_rows, n_players), the terms of each player added up."""
        rows = self._inner.encode(X, what)
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
        return self._form.scale(self._inner.encode(X))


def _members(inner: AdditiveReader) -> list[tuple[int, ...]]:
    """Return the players of each term."""
    owners = inner.owners()
    return [players_of_term(columns, owners) for block in inner.form.blocks for columns in block.columns]


class TermFactors:
    """Evaluate an additive model as factors on its players, bound to background rows."""

    def __init__(self, inner: AdditiveReader, background: Table) -> None:
        self._inner, self._form, self._owner = inner, inner.form, inner.owners()
        self._blocks = [block for block in inner.form.blocks if len(block.columns)]
        self._rows = inner.encode(background, "background")
        self._absent = [block.evaluate(self._rows) for block in self._blocks]
        self.intercept = inner.form.intercept

    def row(self, X: Table) -> list[Factor]:
        """Return the factors of one row, added up for the same players, single players first."""
        row = self._inner.encode(X)
        factors: dict[tuple[int, ...], np.ndarray] = {}
        for block, absent in zip(self._blocks, self._absent, strict=True):
            mixed: dict[bytes, np.ndarray] = {}  # values of all terms, by which columns come from the row
            for l, columns in enumerate(block.columns):
                own = coalitions(columns, self._owner)
                tables = [self._term(block, row, absent, l, columns, inside, mixed) for inside in own.inside]
                table = np.stack(tables, axis=2)  # (n_background, n_outputs, 2^k)
                players, table = _sorted(own.players, table)
                factors[players] = factors[players] + table if players in factors else table
        return [Factor(players, factors[players]) for players in sorted(factors, key=lambda players: (len(players), players))]

    def bound(self, background: Table) -> TermFactors:
        """Return the same with other background rows."""
        return TermFactors(self._inner, background)

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up in the score."""
        return self._form.scale(self._inner.encode(X))

    def _term(
        self,
        block: TermBlock,
        row: np.ndarray,
        absent: np.ndarray,
        l: int,
        columns: tuple[int, ...],
        inside: np.ndarray,
        mixed: dict[bytes, np.ndarray],
    ) -> np.ndarray:
        """Return one term (n_background, n_outputs) with some of its columns from the row."""
        if not inside.any():
            return absent[:, l]
        chosen = np.zeros(len(self._owner), bool)
        chosen[:] = inside.all()
        if not inside.all():  # whole players: their terms share hybrids
            players = {self._owner[j] for j, is_inside in zip(columns, inside, strict=True) if is_inside}
            chosen[:] = [owner in players for owner in self._owner]
        key = chosen.tobytes()
        if key not in mixed:
            mixed[key] = block.evaluate(row if chosen.all() else _hybrid(block, row, self._rows, chosen))
        values = mixed[key][:, l]
        return values if len(values) == len(absent) else np.repeat(values, len(absent), axis=0)

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
        factors = self.row(X)
        moving = {p for factor in factors for k, p in enumerate(factor.players) if _moves(factor.table, k)}
        return RowScores(partial(self.scores, factors), sorted(moving))


def _moves(table: np.ndarray, k: int) -> bool:
    """Say whether the k-th player of a factor changes it."""
    with_player = (np.arange(table.shape[2]) >> k) & 1 == 1
    return bool((table[:, :, with_player] != table[:, :, ~with_player]).any())


def _sorted(players: tuple[int, ...], table: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
    """Return a factor with its players in ascending order."""
    order = sorted(range(len(players)), key=players.__getitem__)
    codes = np.arange(2 ** len(players))
    old = sum((((codes >> new) & 1) << place for new, place in enumerate(order)), np.zeros_like(codes))
    return tuple(players[place] for place in order), table[:, :, old]


def _hybrid(block: TermBlock, row: np.ndarray, rows: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return encoded rows with some columns from another one."""
    if isinstance(block, BinnedTerms):
        return block.hybrid(row, rows, chosen)
    return np.where(chosen, row, rows)
