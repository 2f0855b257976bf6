r"""Find a polynomial of few terms for the odd half of a game, by the pairs that it predicts and was not fitted to.

The odd half of a game is a sum of characters, :math:`g(x) = \sum_{|T|\ \text{odd}} c_T \prod_{j \in T} x_j` with x of -1 and 1. Those that
correlate most with what is left of g join the support, all coefficients are fitted anew, and so on (orthogonal matching pursuit: Pati,
Rezaiifar & Krishnaprasad 1993). One fast Walsh-Hadamard transform has the correlations of every order, among twenty players. Among more, all sets
of three are tried, and unions of sets that have joined: an interaction of several players shows in most of its parts.

One of five pairs takes no part in that, and decides how many terms are enough. Where the support predicts all of these m to rounding, it is taken for
the game: one that errs on a share p of all pairs passes with probability :math:`(1 - p)^m`, and some twenty are tried. Errors state what that
leaves open (``by_best``). Other supports are corrected by pairs that no part of the search has seen (``_correction``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap._runtime.linear_algebra import solve_definite
from exactshap.games import ProductGame
from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled._frontier import Sets, set_products
from exactshap.solvers.sampled._polynomial import TINIEST
from exactshap.solvers.sampled._surrogate import game_values

# Players that may interact, the most relevant ones: a transform of 2^19 values takes 1.5 ms, all triples of forty 20 ms
MAX_TRANSFORMED, MAX_JOINED = 20, 40
MOST_UNIONS = 500  # unions that are tried at once, those of most pairs of sets
LEFT_OUT = 5  # one of so many pairs
AXES = 2**4  # values that one product of a transform mixes: with 2^7 it takes three times as long
RUN = 512  # strengths of which the largest one is compared first, where few of many are wanted
# Characters that join at once, for each one known: fewer are more exact and slower
STEP, MIN_STEP = 0.2, 4
# Characters for each pair, beyond which many supports fit; supports in a row that are no better, after which a search ends:
# an exact one may come late, and the last ones take most of the time
MOST_CHARACTERS, PATIENCE, FOLD_PATIENCE = 0.35, 5, 2
# Sums of fewer than 2^24 characters, which are -1 or 1, are exact in single precision, in half the time and memory
SIGNS = np.float32


@dataclass(frozen=True, eq=False)
class Polynomial:
    """Hold sets of players and the coefficients (n_sets, n_outputs) of their characters."""

    sets: Sets
    coefficients: np.ndarray

    @classmethod
    def fitted(cls, sets: Sets, points: np.ndarray, target: np.ndarray) -> Polynomial | None:
        """Return the least-squares fit to ``target`` (n_points, n_outputs), or None if it is undetermined."""
        columns = set_products(points.astype(SIGNS), sets)
        solved = solve_definite((columns.T @ columns).astype(float), (target.T @ columns).T)
        return None if solved is None else cls(sets, solved[1])

    def predict(self, points: np.ndarray) -> np.ndarray:
        """Return the odd half (n_points, n_outputs)."""
        return np.asarray(set_products(points, self.sets) @ self.coefficients)

    def values(self, semivalue: Semivalue) -> np.ndarray:
        """Return exact values (n_players, n_outputs): a character is a product."""
        n_players = sum(len(players) == 1 for players in self.sets)
        outside = np.ones((len(self.sets), n_players))
        for row, players in zip(outside, self.sets, strict=True):
            row[list(players)] = -1.0
        return game_values(ProductGame(self.coefficients, np.ones_like(outside), outside), semivalue, 1)


@dataclass(frozen=True, eq=False)
class Support:
    """Hold the polynomial that predicts left-out pairs best, and what it misses.

    ``missed`` (n_outputs,) are mean squares, ``largest`` is the largest residual in units of the largest value.
    """

    n_left_out: int
    polynomial: Polynomial
    missed: np.ndarray
    largest: float


def find_support(
    points: np.ndarray, target: np.ndarray, relevances: np.ndarray, tolerance: float, patience: int = PATIENCE
) -> Support | None:
    """Return the support of an odd half, or None where pairs are too few.

    ``points`` (n_pairs, n_players), ``target`` (n_pairs, n_outputs). Single players come first. The search ends at residuals of
    ``tolerance``, in units of the largest value: they count as rounding.
    """
    is_left_out = np.arange(len(points)) % LEFT_OUT == 0
    order, n = np.argsort(is_left_out, kind="stable"), int(np.count_nonzero(~is_left_out))
    units = np.maximum(np.abs(target).max(axis=0, initial=0.0), TINIEST)
    points, target = points[order], target[order] / units
    # A mixture of the outputs has the characters of all of them
    mixture = np.random.default_rng(0).normal(size=target.shape[1])
    candidates = Candidates.of(points[:n], relevances)
    sets: Sets = tuple((j,) for j in range(points.shape[1]))
    best, least, n_worse = None, np.inf, 0
    signs, blocks = points.astype(SIGNS), []
    gram, moments = np.empty((0, 0)), np.empty((0, target.shape[1]))
    while len(sets) <= MOST_CHARACTERS * len(points):
        # Columns that join are a block of their own: those that are known are not copied
        blocks.append(joined := set_products(signs, sets[len(gram) :]))
        edge = np.concatenate([block[:n].T @ joined[:n] for block in blocks])
        gram = np.block([[gram, edge[: len(gram)]], [edge.T]])
        moments = np.concatenate([moments, (target[:n].T @ joined[:n]).T])
        solved = solve_definite(gram.copy(), moments)
        if solved is None:
            break
        coefficients = solved[1]
        parts = np.split(coefficients, np.cumsum([block.shape[1] for block in blocks[:-1]]))
        residuals = sum(block @ part for block, part in zip(blocks, parts, strict=True)) - target
        checked, expected = residuals[n:], target[n:]
        missed = (checked**2).mean(axis=0)
        if best is None or missed.sum() < least:
            largest = float(np.abs(checked @ mixture).max(initial=0.0) / np.abs(expected @ mixture).max(initial=TINIEST))
            best = Support(len(points) - n, Polynomial(sets, coefficients * units), missed * units**2, largest)
            least, n_worse = missed.sum(), 0
        else:
            n_worse += 1
        if best.largest <= tolerance or n_worse == patience:
            break
        sets += candidates.strongest(residuals[:n] @ mixture, sets)
    return best


@dataclass(frozen=True, eq=False)
class Candidates:
    """Hold the pairs of a search: of ``points`` (n_pairs, n_joined) the most relevant ``players``, named by bits of integers."""

    players: np.ndarray
    points: np.ndarray
    side: np.ndarray  # (n_pairs,), of the first player
    names: np.ndarray  # (n_pairs,), of the half with the first player, so that characters of the others tell all odd ones apart

    @classmethod
    def of(cls, points: np.ndarray, relevances: np.ndarray) -> Candidates:
        players = np.argsort(-relevances, kind="stable")[:MAX_JOINED]
        points = points[:, players].astype(np.float32)
        others = points[:, 1:MAX_TRANSFORMED] != points[:, :1]
        return cls(players, points, points[:, 0], others @ (1 << np.arange(others.shape[1])))

    def strongest(self, residual: np.ndarray, sets: Sets) -> Sets:
        """Return the sets that correlate most with the residual (n_pairs,), none of those known."""
        n_more = max(round(STEP * len(sets)), MIN_STEP)
        found = [self._of_every_order(residual, n_more)]
        if len(self.players) > MAX_TRANSFORMED:
            found += [self._of_three(residual, n_more), self._of_unions(residual, sets, n_more)]
        codes, strengths = (np.concatenate(part) for part in zip(*found, strict=True))
        codes, first = np.unique(codes, return_index=True)
        members = _bits(codes[_largest(strengths[first], n_more)], len(self.players))
        # Residuals do not correlate with known sets, but where all is rounding these may come first
        more = {tuple(np.sort(self.players[row]).tolist()) for row in members}.difference(sets)
        return tuple(sorted(more, key=lambda players: (len(players), players)))

    def _of_every_order(self, residual: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        n_others = min(len(self.players), MAX_TRANSFORMED) - 1
        strengths = np.abs(_transformed(np.bincount(self.names, self.side * residual, 2**n_others)))
        chosen = _largest(strengths, most)
        codes = chosen.astype(np.uint64)
        # The first player makes the number of players odd
        return codes << np.uint64(1) | np.uint64(1) - np.bitwise_count(codes) % np.uint64(2), strengths[chosen]

    def _of_three(self, residual: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        codes, strengths, bit = [], [], np.uint64(1) << np.arange(len(self.players), dtype=np.uint64)
        for i in range(len(self.players) - 2):
            after = self.points[:, i + 1 :]
            j, k = np.triu_indices(after.shape[1], 1)
            moments = np.abs(after.T @ ((residual.astype(np.float32) * self.points[:, i])[:, None] * after))[j, k]
            chosen = _largest(moments, most)
            codes.append(bit[i] | bit[i + 1 + j[chosen]] | bit[i + 1 + k[chosen]])
            strengths.append(moments[chosen])
        return np.concatenate(codes), np.concatenate(strengths)

    def _of_unions(self, residual: np.ndarray, sets: Sets, most: int) -> tuple[np.ndarray, np.ndarray]:
        place = np.empty(self.players.max() + 1, np.uint64)
        place[self.players] = np.arange(len(self.players))
        joined = [players for players in sets if len(players) > 1]
        codes = np.array([np.bitwise_or.reduce(np.uint64(1) << place[list(players)]) for players in joined], np.uint64)
        one, other = np.triu_indices(len(codes), 1)
        unions = codes[one] | codes[other]
        unions = unions[(codes[one] & codes[other] > 0) & (np.bitwise_count(unions) % 2 == 1)]
        codes, times = np.unique(unions, return_counts=True)
        codes = codes[_largest(times, MOST_UNIONS)]
        # A product of signs is -1 if an odd number of them is
        n_negative = (self.points < 0).astype(np.float32) @ _bits(codes, len(self.players)).T
        is_odd = (n_negative.astype(np.uint8) & 1).astype(np.float32)
        strengths = np.abs(residual.sum() - 2.0 * (residual.astype(np.float32) @ is_odd))
        chosen = _largest(strengths, most)
        return codes[chosen], strengths[chosen]


def _largest(strengths: np.ndarray, most: int) -> np.ndarray:
    """Return where the largest strengths are."""
    n = len(strengths)
    if n <= most:
        return np.arange(n)
    if n > RUN * most and n % RUN == 0:
        # They are in the runs of the largest maxima: sorting all of 2^19 takes 30 times as long
        runs = _largest(strengths.reshape(-1, RUN).max(axis=1), most)
        places = (RUN * runs[:, None] + np.arange(RUN)).ravel()
        return np.asarray(places[_largest(strengths[places], most)])
    return np.argpartition(strengths, n - most)[n - most :]


def _bits(codes: np.ndarray, n: int) -> np.ndarray:
    """Return the members (n_codes, n) that integers name."""
    return (codes[:, None] >> np.arange(n, dtype=np.uint64) & np.uint64(1)).astype(bool)


def _transformed(values: np.ndarray) -> np.ndarray:
    """Return the Walsh-Hadamard transform of 2^k values, in single precision.

    It is a product with a small matrix for each few of the k axes.
    """
    from scipy.linalg import hadamard

    values, done, signs = values.astype(np.float32), 1, hadamard(AXES, np.float32)
    while done < len(values):
        size = min(AXES, len(values) // done)
        matrix = np.ascontiguousarray(signs[:size, :size])  # a corner of Sylvester's matrix is the smaller one
        rows = values.reshape(-1, size, done)
        values = (rows[:, :, 0] @ matrix if done == 1 else matrix @ rows).ravel()
        done *= size
    return values
