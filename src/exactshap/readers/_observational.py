r"""Observational games of kernel machines: missing columns are filled by their conditional expectation (RKHS-SHAP).

.. math:: v_x(S) = E[f(x_S, X_{\bar S}) \mid X_S = x_S]
          \approx b + \sum_l c_l \prod_{j \in S} a_{lj}(x_j) \sum_z W^S_{zx} \prod_{j \notin S} a_{lj}(z_j)

with the weights W of a conditional mean embedding on the rows Z (the background, or the training rows). v(empty) is the mean
of f over Z and v(D) is f(x), by definition: the embedding itself would shrink the one and miss the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap.errors import BudgetError, InputError, InputTypeError, message
from exactshap.frames import Table
from exactshap.games import OracleGame
from exactshap.games._base import check_masks
from exactshap.kernels import Component
from exactshap.readers._base import Request
from exactshap.readers._coalition_threads import coalitions_in_threads, n_threads
from exactshap.readers._nystroem import NystroemEmbedding
from exactshap.readers._random_features import RandomFeatureEmbedding
from exactshap.semivalues import Semivalue
from exactshap.solvers import Solution, solve
from exactshap.solvers._embedding import check_eta, choose_eta, embedding_weights, subset_product

__all__ = ["ConditionalGame", "ConditionalGames", "bind"]

MAX_ENUMERATED = 12
DEFAULT_BUDGET = 2048
MEMORY = 4.0 * 2**30
PREDICTED_ROWS = 128
OPTIONS = ("eta", "n_landmarks", "n_random_features", "budget", "random_state")
TIMED_COALITIONS = 4


def bind(reader: Any, request: Request) -> ConditionalGames:
    """Bind a kernel machine to its conditional mean embeddings.

    Settings (keywords of ``Explainer``): ``eta`` (ridge, default 1e-3, or "auto" for leave-one-out cross-validation),
    ``n_landmarks`` (Nystroem form with so many random rows), ``n_random_features`` (random Fourier features; both None is
    exact), ``budget`` (coalitions that are sampled beyond 12 players, default 2048), ``random_state`` (landmarks, features
    and coalitions, default 0).
    """
    request.refuse_options(OPTIONS, owner=f"{reader.model_name} with value_function='observational'")
    settings = request.options
    rows, weights = _conditioning_rows(reader)
    n_landmarks, n_random_features = _low_rank(settings, len(rows))
    budget = settings.get("budget")
    if budget is not None and (not isinstance(budget, (int, np.integer)) or budget < 2):
        raise InputError(message("The 'budget' parameter must be an int >= 2", f"Got {budget!r}"))
    random_state = settings.get("random_state", 0)
    if not isinstance(random_state, (int, np.integer)):
        raise InputTypeError(message("The 'random_state' parameter must be an int", f"Got {random_state!r}"))
    eta = settings.get("eta", 1e-3)
    chosen = rows if eta != "auto" else rows[_some(len(rows), int(random_state))]
    eta = (
        choose_eta(conditioning(reader, chosen, chosen))
        if isinstance(eta, str) and eta == "auto"
        else check_eta(eta, "this game")
    )
    if n_landmarks is not None:
        embedding: Any = NystroemEmbedding(reader, rows, weights, eta, n_landmarks, int(random_state), conditioning)
    elif n_random_features is not None:
        components = _conditioning_components(reader)
        embedding = RandomFeatureEmbedding(reader, rows, weights, eta, n_random_features, int(random_state), components)
    else:
        _refuse_too_large(reader, len(rows))
        embedding = ExactEmbedding(reader, rows, weights, eta)
    budget = None if budget is None else int(budget)
    return ConditionalGames(reader, embedding, _mean_prediction(reader, rows, weights), budget, int(random_state))


def _low_rank(settings: Any, n: int) -> tuple[int | None, int | None]:
    """Return the checked sizes of the Nystroem and of the random-feature form; at most one of them is given."""
    n_landmarks, n_random_features = settings.get("n_landmarks"), settings.get("n_random_features")
    if n_landmarks is not None and not (isinstance(n_landmarks, (int, np.integer)) and 2 <= n_landmarks <= n):
        raise InputError(message(f"The 'n_landmarks' parameter must be an int in [2, {n}] or None", f"Got {n_landmarks!r}"))
    if n_random_features is None:
        return None if n_landmarks is None else int(n_landmarks), None
    even = isinstance(n_random_features, (int, np.integer)) and n_random_features >= 2 and n_random_features % 2 == 0
    if not even:
        raise InputError(
            message("The 'n_random_features' parameter must be an even int >= 2 or None", f"Got {n_random_features!r}")
        )
    if n_landmarks is not None:
        raise InputError(
            message(
                "Only one of 'n_landmarks' and 'n_random_features' can be given",
                f"Got {n_landmarks!r} and {n_random_features!r}",
            )
        )
    return None, int(n_random_features)


def _some(n: int, random_state: int) -> np.ndarray:
    return np.sort(np.random.default_rng(random_state).choice(n, min(n, 300), replace=False))


def _conditioning_rows(reader: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that the conditional distribution is learnt from, and their positive weights."""
    if reader.background is not None:
        keep = reader.weights > 0
        return reader.columns(reader.background, "background")[keep], reader.weights[keep]
    parts = reader.expansion.parts
    if not parts:
        raise InputError(
            message(
                "value_function='observational' needs rows to learn the conditional distribution from",
                f"The linear or polynomial kernel of {reader.model_name} keeps no training rows",
                "Pass background=X_train",
            )
        )
    rows = np.unique(np.concatenate([part.points.T for part in parts]), axis=0) if len(parts) > 1 else parts[0].points.T
    return rows, np.full(len(rows), 1.0 / len(rows))


def _mean_prediction(reader: Any, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return v(empty) (n_outputs,): the mean of the model's own predictions over the conditioning rows."""
    import warnings

    table, shares = (
        (Table(rows, None, *rows.shape), weights) if reader.background is None else (reader.background, reader.weights)
    )
    total = np.zeros(reader.n_outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the training rows come as an array, also where the model was fitted with names
        for start in range(0, table.n_rows, PREDICTED_ROWS):
            block = slice(start, start + PREDICTED_ROWS)
            predictions = np.asarray(reader.predict(table.take(block)), float)
            total += shares[block] @ predictions.reshape(len(predictions), -1)
    return total


def _refuse_too_large(reader: Any, n: int) -> None:
    width = max((part.coefficients.shape[1] for part in reader.expansion.parts), default=1)
    needed = 8.0 * (reader.n_players * n * (n + len(reader.expansion.parts) * width) + 3.0 * n * max(n, width))
    if needed > MEMORY:
        raise BudgetError(
            message(
                f"Conditional embeddings of {n} rows do not fit in memory",
                f"They would need {needed / 2**30:.3g} GiB; the limit is {MEMORY / 2**30:.3g} GiB",
                "Pass n_landmarks=100 for the Nystroem form, n_random_features=400, or fewer rows as background=",
            )
        )


def conditioning(reader: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the one-player factors (n_players, n, m) of the kernel that measures what is known.

    One component: its own factors, as in the paper. Several: their mean weighted by amplitude, so that every column that any
    component looks at is conditioned on. Only monomials: Gaussians of median bandwidth.
    """
    components = [part.component for part in reader.expansion.parts]
    columns = np.ascontiguousarray(second.T)
    if not components:
        return _players_first(reader, _gaussian(reader, first, columns))
    total = sum(abs(part.amplitude) for part in components)
    mean: Any = 0.0
    for part in components:
        mean = mean + abs(part.amplitude) / total * reader._grouped(part.factors(first, columns))
    return np.ascontiguousarray(np.moveaxis(mean, 1, 0))


def _gaussian(reader: Any, first: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return _median_gaussian(reader).factors(first, columns)


def _median_gaussian(reader: Any) -> Component:
    """Return the Gaussian whose bandwidths are the median distances of the conditioning rows."""
    rows, _ = _conditioning_rows(reader)
    some = rows[:: max(1, len(rows) // 500)]
    distances = np.abs(some[:, None, :] - some[None, :, :]).reshape(-1, rows.shape[1])
    bandwidth = np.array([np.median(d[d > 0]) if np.any(d > 0) else 1.0 for d in distances.T])
    return Component(squared=0.5 / bandwidth**2)


def _conditioning_components(reader: Any) -> list[Component]:
    """Return the components whose mean :func:`conditioning` evaluates."""
    return [part.component for part in reader.expansion.parts] or [_median_gaussian(reader)]


def _players_first(reader: Any, factors: np.ndarray) -> np.ndarray:
    """Lay (n, n_columns, m) out as (n_players, n, m)."""
    return np.ascontiguousarray(np.moveaxis(reader._grouped(factors), 1, 0))


class ExactEmbedding:
    """Embeddings on all rows: one Cholesky factorisation for each coalition."""

    name = "conditional mean embeddings"

    def __init__(self, reader: Any, rows: np.ndarray, weights: np.ndarray, eta: float) -> None:
        self.reader, self.rows, self.weights, self.eta = reader, rows, weights, eta
        self.known = conditioning(reader, rows, rows)
        self.unknown = [self._unknown(block) for block in reader.expansion.blocks]

    def _unknown(self, block: Any) -> np.ndarray:
        """Return the factors (n_players, n, n_terms) of the rows, shared with ``known`` where they are the same."""
        only = len(self.reader.expansion.parts) == 1 and getattr(block, "points", None) is not None
        if only and block.points.shape == self.rows.T.shape and np.array_equal(block.points, self.rows.T):
            return self.known
        return _players_first(self.reader, block.factors(self.rows))

    def bound_to(self, values: np.ndarray) -> Any:
        """Return ``v(mask) -> (n_rows, n_outputs)`` without the intercept, for proper coalitions of some rows."""
        blocks = self.reader.expansion.blocks
        inside = [_players_first(self.reader, block.factors(values)) for block in blocks]
        across = conditioning(self.reader, self.rows, values)

        def value(mask: np.ndarray) -> np.ndarray:
            within = subset_product(self.known, mask)
            weights = embedding_weights(within, subset_product(across, mask), self.eta, self.weights)
            total: Any = 0.0
            for block, factors, outside in zip(blocks, inside, self.unknown, strict=True):
                expected = weights.T @ subset_product(outside, ~mask)
                expected *= subset_product(factors, mask)
                total = total + expected @ block.coefficients.T
            return np.asarray(total)

        return value

    def operations(self) -> float:
        """Return about how many multiplications one coalition of one row costs."""
        n, terms = float(len(self.rows)), sum(block.coefficients.shape[1] for block in self.reader.expansion.blocks)
        return n**3 / 3.0 / 256.0 + n**2 + n * terms

    def coalition_bytes(self) -> float:
        """Return the memory of one coalition's matrices; the factors themselves are allocated when the model is read."""
        n = float(len(self.rows))
        width = max([n, *(float(block.coefficients.shape[1]) for block in self.reader.expansion.blocks)])
        return 8.0 * 4.0 * n * width

    def describe(self, values: np.ndarray) -> str:
        return f"{self.name}, eta = {self.eta:.3g}"


@dataclass(frozen=True, eq=False)
class ConditionalGame:
    """A batch of observational games, one for each row; v(empty) and v(D) are exact by definition."""

    function: Any
    empty: np.ndarray
    full: np.ndarray
    intercept: np.ndarray
    n_players: int
    single_output: bool
    size: float = 0.0  # values of a coalition's largest matrix

    @property
    def n_rows(self) -> int:
        return len(self.full)

    @property
    def n_outputs(self) -> int:
        return self.full.shape[1]

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S), of shape (n_rows, n_masks[, n_outputs])."""
        masks = check_masks(masks, self.n_players)
        values = np.stack(coalitions_in_threads(self._one, masks, self.size), axis=1)
        return values[..., 0] if self.single_output else values

    def _one(self, mask: np.ndarray) -> np.ndarray:
        if mask.all():
            return self.full
        return np.asarray(self.function(mask) + self.intercept) if mask.any() else np.broadcast_to(self.empty, self.full.shape)

    def as_oracle(self) -> OracleGame:
        """Return one game whose outputs are all outputs of all rows."""
        return OracleGame(self._flat, self.n_players)

    def _flat(self, masks: np.ndarray) -> np.ndarray:
        return np.moveaxis(self.value(masks).reshape(self.n_rows, len(masks), -1), 1, 0).reshape(len(masks), -1)


@dataclass(frozen=True, eq=False)
class ConditionalGames:
    """What a :class:`KernelReader` asks for ``value_function="observational"``."""

    reader: Any
    embedding: Any
    empty: np.ndarray
    budget: int | None
    random_state: int

    def game(self, X: Table) -> ConditionalGame:
        reader = self.reader
        values = reader.columns(X)
        return ConditionalGame(
            function=self.embedding.bound_to(values),
            empty=self.empty,
            full=reader.expansion(values),
            intercept=reader.expansion.intercept,
            n_players=reader.n_players,
            single_output=reader.single_output,
            size=self._size(),
        )

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Enumerate up to 12 players (or where 2^d fits the budget), sample coalitions above."""
        game = self.game(X)
        values = self.reader.columns(X)
        found = (
            solve(game, semivalue, order, method="enumeration") if self._enumerates() else self._sampled(game, semivalue, order)
        )
        magnitude = sum(
            np.abs(block.factors(values)).prod(axis=1) @ np.abs(block.coefficients.T) for block in self.reader.expansion.blocks
        )
        scale = np.asarray(found.scale) + np.max(magnitude, axis=1, initial=0.0) + np.abs(self.reader.expansion.intercept).max()
        return _renamed(found, f"{found.method} of {self.embedding.describe(values)}", scale)

    def _sampled(self, game: ConditionalGame, semivalue: Semivalue, order: int) -> Solution:
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        found = solve(game.as_oracle(), semivalue, order, budget=budget, random_state=self.random_state)
        return _unflattened(found, game)

    def row_bytes(self, order: int) -> float:
        reader = self.reader
        width = sum(block.coefficients.shape[1] for block in reader.expansion.blocks) + len(self.embedding.rows)
        table = 2.0 ** min(reader.n_players, MAX_ENUMERATED) * reader.n_outputs * 3.0
        return 8.0 * (width * (reader.n_players + 4.0) + table)

    def fixed_bytes(self) -> float:
        return float(self.embedding.coalition_bytes()) * n_threads(self._size())

    def _size(self) -> float:
        return float(self.embedding.coalition_bytes()) / 32.0  # four matrices of eight bytes

    def row_operations(self, order: int) -> float:
        return float(self._n_coalitions() * self.embedding.operations())

    def _n_coalitions(self) -> float:
        """Return how many coalitions one block of rows evaluates."""
        limit = DEFAULT_BUDGET if self.budget is None else self.budget
        return float(2**self.reader.n_players) if self._enumerates() else float(limit)

    def _enumerates(self) -> bool:
        d = self.reader.n_players
        return d <= MAX_ENUMERATED if self.budget is None else 2**d <= self.budget

    def forecast(self, X: Table, block_rows: int) -> tuple[str, bool, float]:
        """Return method, exactness and seconds for all rows: a few random coalitions of one block are timed."""
        block = X.take(slice(0, block_rows))
        game, exact = self.game(block), self._enumerates()
        masks = np.random.default_rng(0).random((TIMED_COALITIONS + 1, self.reader.n_players)) < 0.5
        masks[:, 0], masks[:, -1] = True, False  # proper ones
        game.value(masks[:1])  # compiles
        started = time.perf_counter()
        game.value(masks[1:])
        seconds = (time.perf_counter() - started) / TIMED_COALITIONS * self._n_coalitions() * X.n_rows / max(1, block.n_rows)
        kind = "enumeration" if exact else "sampled coalitions"
        return f"{kind} of {self.embedding.describe(self.reader.columns(block))}", exact, seconds


def _renamed(found: Solution, method: str, scale: np.ndarray) -> Solution:
    from dataclasses import replace

    return replace(found, method=method, scale=scale)


def _unflattened(found: Solution, game: ConditionalGame) -> Solution:
    """Turn one solution with n_rows x n_outputs outputs into one solution for each row."""
    from dataclasses import replace

    def rows(array: Any) -> Any:
        if array is None:
            return None
        shaped = np.asarray(array).reshape(*np.shape(array)[:-1], game.n_rows, game.n_outputs)
        shaped = np.moveaxis(shaped, -2, 0)
        return shaped[..., 0] if game.single_output else shaped

    return replace(
        found,
        values=rows(found.values),
        std_error=rows(found.std_error),
        empty=rows(found.empty),
        full=rows(found.full),
        residual=rows(found.residual),
        scale=np.broadcast_to(np.max(found.scale), (game.n_rows,)),
        error_bound=np.broadcast_to(np.max(found.error_bound), (game.n_rows,)),
    )
