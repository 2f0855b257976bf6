r"""Observational games of kernel machines: missing columns are filled by their conditional expectation (RKHS-SHAP).

.. math:: v_x(S) = E[f(x_S, X_{\bar S}) \mid X_S = x_S]
          \approx b + \sum_l c_l \prod_{j \in S} a_{lj}(x_j) \sum_z W^S_{zx} \prod_{j \notin S} a_{lj}(z_j)

with the weights W of a conditional mean embedding on the rows Z (the background, or the training rows). v(empty) is the mean
of f over Z and v(D) is f(x), by definition: the embedding itself would shrink the one and miss the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap._runtime.threads import coalitions_in_threads, n_threads
from exactshap.errors import InputError, InputTypeError, message
from exactshap.frames import Table
from exactshap.games import OracleGame, check_masks
from exactshap.readers import Request
from exactshap.readers.kernel_machines.observational._conditioning import (
    conditioning,
    conditioning_components,
    conditioning_rows,
)
from exactshap.readers.kernel_machines.observational._embedding_choice import Routes, forms
from exactshap.readers.kernel_machines.observational._exact_embedding import ExactEmbedding
from exactshap.readers.kernel_machines.observational._nystroem import NystroemEmbedding, landmarks_of
from exactshap.readers.kernel_machines.observational._random_features import RandomFeatureEmbedding
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution, solve
from exactshap.solvers.rkhs import Stability, check_eta, choose_eta, conditional_stability

__all__ = ["ConditionalGame", "ConditionalGames", "bind"]

MAX_ENUMERATED = 12
DEFAULT_BUDGET = 2048
PREDICTED_ROWS = 128
OPTIONS = ("eta", "n_landmarks", "n_random_features", "budget", "random_state")
TIMED_COALITIONS = 2
COMPARED_COALITIONS = 8


def bind(reader: Any, request: Request) -> ConditionalGames:
    """Bind a kernel machine to its conditional mean embeddings.

    Settings (keywords of ``Explainer``): ``eta`` (ridge, default 1e-3, or "auto" for leave-one-out cross-validation),
    ``n_landmarks`` (Nystroem form with so many rows; None is exact, "auto", the default, is exact where
    ``_embedding_choice`` finds it affordable), ``n_random_features`` (random Fourier features), ``budget`` (coalitions that are
    sampled beyond 12 players, default 2048), ``random_state`` (landmarks, features and coalitions, default 0).
    """
    request.refuse_options(OPTIONS, owner=f"{reader.model_name} with value_function='observational'")
    if reader.posterior is not None:
        reader.posterior.refuse_unless_linear(reader)
    settings = request.options
    rows, weights = conditioning_rows(reader)
    budget, random_state = settings.get("budget"), settings.get("random_state", 0)
    if budget is not None and (not isinstance(budget, (int, np.integer)) or budget < 2):
        raise InputError(message("The 'budget' parameter must be an int >= 2", f"Got {budget!r}"))
    if not isinstance(random_state, (int, np.integer)) or isinstance(random_state, bool):
        raise InputTypeError(message("The 'random_state' parameter must be an int", f"Got {random_state!r}"))
    budget = None if budget is None else int(budget)
    routes = _routes(reader, len(rows), budget, request.memory_limit)
    n_landmarks, n_random_features = forms(settings, routes)
    eta = _eta(reader, settings.get("eta", 1e-3), rows, int(random_state))
    rng = np.random.default_rng(int(random_state))
    if n_landmarks is not None:
        landmarks = landmarks_of(reader, rows, weights, n_landmarks, rng)
        embedding: Any = NystroemEmbedding(reader, rows, weights, eta, landmarks)
    elif n_random_features is not None:
        components = conditioning_components(reader)
        embedding = RandomFeatureEmbedding(reader, rows, weights, eta, n_random_features, int(random_state), components)
    else:
        embedding = ExactEmbedding(reader, rows, weights, eta)
    empty = _mean_prediction(reader, rows, weights)
    return ConditionalGames(reader, embedding, empty, budget, int(random_state), routes)


def _routes(reader: Any, n_rows: int, budget: int | None, memory_limit: float) -> Routes:
    n_terms = sum(block.coefficients.shape[1] for block in reader.expansion.blocks)
    coalitions = _n_coalitions(reader.n_players, budget)
    return Routes(n_rows, n_terms, reader.n_players, len(reader.expansion.parts), coalitions, memory_limit)


def _eta(reader: Any, eta: Any, rows: np.ndarray, random_state: int) -> float:
    """Return the ridge, checked or chosen on at most 300 rows."""
    if not (isinstance(eta, str) and eta == "auto"):
        return check_eta(eta, "this game")
    some = rows[np.sort(np.random.default_rng(random_state).choice(len(rows), min(len(rows), 300), replace=False))]
    return choose_eta(conditioning(reader, some, some))


def _enumerates(n_players: int, budget: int | None) -> bool:
    return n_players <= MAX_ENUMERATED if budget is None else 2**n_players <= budget


def _n_coalitions(n_players: int, budget: int | None) -> float:
    """Return how many coalitions one block of rows evaluates."""
    return 2.0**n_players if _enumerates(n_players, budget) else float(DEFAULT_BUDGET if budget is None else budget)


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
    routes: Routes | None = None  # what each form would cost, for ``choose``
    approximate: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.full)

    @property
    def n_outputs(self) -> int:
        return self.full.shape[1]

    def value(self, masks: np.ndarray) -> np.ndarray:
        """Return v(S), of shape (n_rows, n_masks[, n_outputs])."""
        masks = check_masks(masks, self.n_players)
        groups = _with_complements(masks) if hasattr(self.function, "pair") else [(i,) for i in range(len(masks))]
        values = np.empty((self.n_rows, len(masks), self.n_outputs))
        for group, found in zip(
            groups, coalitions_in_threads(lambda group: self._some(masks, group), groups, self.size), strict=True
        ):
            for column, value in zip(group, found, strict=True):
                values[:, column] = value
        return values[..., 0] if self.single_output else values

    def _some(self, masks: np.ndarray, group: tuple[int, ...]) -> list[np.ndarray]:
        """Return v of one coalition, or of one and its complement."""
        if len(group) == 2 and not masks[group[0]].all() and masks[group[0]].any():
            return [part + self.intercept for part in self.function.pair(masks[group[0]])]
        return [self._one(masks[column]) for column in group]

    def _one(self, mask: np.ndarray) -> np.ndarray:
        if mask.all():
            return self.full
        return np.asarray(self.function(mask) + self.intercept) if mask.any() else np.broadcast_to(self.empty, self.full.shape)

    def as_oracle(self) -> OracleGame:
        """Return one game whose outputs are all outputs of all rows."""
        return OracleGame(self._flat, self.n_players)

    def _flat(self, masks: np.ndarray) -> np.ndarray:
        return np.moveaxis(self.value(masks).reshape(self.n_rows, len(masks), -1), 1, 0).reshape(len(masks), -1)


def _with_complements(masks: np.ndarray) -> list[tuple[int, ...]]:
    """Return the numbers of the masks, each with that of its complement where both are there."""
    waiting: dict[bytes, list[int]] = {}
    groups: list[tuple[int, ...]] = []
    for i, mask in enumerate(masks):
        others = waiting.get(np.packbits(~mask).tobytes())
        if others:
            groups.append((others.pop(), i))
        else:
            waiting.setdefault(np.packbits(mask).tobytes(), []).append(i)
    return groups + [(i,) for left in waiting.values() for i in left]


@dataclass(frozen=True, eq=False)
class ConditionalGames:
    """What a :class:`KernelReader` asks for ``value_function="observational"``."""

    reader: Any
    embedding: Any
    empty: np.ndarray
    budget: int | None
    random_state: int
    routes: Routes

    def game(self, X: Table) -> ConditionalGame:
        return self._game(self.embedding, self.reader.columns(X))

    def _game(self, embedding: Any, values: np.ndarray) -> ConditionalGame:
        reader = self.reader
        return ConditionalGame(
            function=embedding.bound_to(values),
            empty=self.empty,
            full=reader.expansion(values),
            intercept=reader.expansion.intercept,
            n_players=reader.n_players,
            single_output=reader.single_output,
            size=self._size(),
            routes=self.routes,
            approximate=embedding.name != ExactEmbedding.name,
        )

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        """Enumerate up to 12 players (or where 2^d fits the budget), sample coalitions above."""
        values = self.reader.columns(X)
        game = self._game(self.embedding, values)
        found = (
            solve(game, semivalue, order, method="enumeration") if self._enumerates() else self._sampled(game, semivalue, order)
        )
        magnitude = sum(
            np.abs(block.factors(values)).prod(axis=1) @ np.abs(block.coefficients.T) for block in self.reader.expansion.blocks
        )
        scale = np.asarray(found.scale) + np.max(magnitude, axis=1, initial=0.0) + np.abs(self.reader.expansion.intercept).max()
        return replace(
            found,
            method=f"{found.method} of {self.embedding.describe()}",
            scale=scale,
            approximation_error=self._approximation_error(game, values),
        )

    def _sampled(self, game: ConditionalGame, semivalue: Semivalue, order: int) -> Solution:
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        found = solve(game.as_oracle(), semivalue, order, budget=budget, random_state=self.random_state)
        return _unflattened(found, game)

    def _approximation_error(self, game: ConditionalGame, values: np.ndarray) -> np.ndarray | None:
        """Estimate how far v(S) of a low-rank form is off, (n_rows,); None for the exact form.

        The larger of two: how far it misses f itself (the coalition of all, where the truth is known), and the largest change
        over a few random coalitions when only half of the landmarks or features are used.
        """
        missed = self.embedding.error(values)
        if missed is None:
            return None
        masks = _some_coalitions(self.reader.n_players, np.random.default_rng(self.random_state))
        half = self._game(self.embedding.halved(), values)
        change = np.abs(game.value(masks) - half.value(masks)).reshape(len(values), -1)
        return np.asarray(np.maximum(missed, change.max(axis=1, initial=0.0)))

    def stability(self, delta: Any) -> Stability:
        """Return the bound on how far values move; see :func:`conditional_stability`."""
        reader = self.reader
        parts = [(part.component, part.coefficients, part.points) for part in reader.expansion.parts]
        return conditional_stability(parts, delta, self.embedding.eta, reader.players)

    def has_stability(self) -> bool:
        """Whether the bound holds: not for sampled values, nor for features that are not functions of the kernel's space."""
        return self._enumerates() and self.reader.expansion.monomials is None and self.embedding.in_kernel_space

    def memory(self, n_rows: int, order: int) -> float:
        reader = self.reader
        width = sum(block.coefficients.shape[1] for block in reader.expansion.blocks) + len(self.embedding.rows)
        table = 2.0 ** min(reader.n_players, MAX_ENUMERATED) * reader.n_outputs * 3.0
        coalitions = float(self.embedding.coalition_bytes()) * n_threads(self._size())
        held = 0.5 if self.embedding.name == ExactEmbedding.name else 1.0  # low-rank forms keep features of the rows as well
        return coalitions + 8.0 * n_rows * (held * width * (reader.n_players + 4.0) + table)

    def memory_advice(self) -> str:
        """Say what to do where ``memory_limit`` is too small."""
        b = self.routes.landmarks()
        return f"Raise memory_limit=, pass n_landmarks={max(2, b)} for the Nystroem form, or fewer rows as background="

    def _size(self) -> float:
        return float(self.embedding.coalition_bytes()) / 48.0  # six matrices of eight bytes

    def _enumerates(self) -> bool:
        return _enumerates(self.reader.n_players, self.budget)

    def cost(self, few: Table, n_rows: int, n_blocks: int) -> Cost:
        """Time a few random coalitions for one row and for a few: the rows of a block share the factorisations."""
        masks = _some_coalitions(self.reader.n_players, np.random.default_rng(0), TIMED_COALITIONS)
        masks = np.concatenate([masks, ~masks])  # a coalition and its complement share work
        one, some = (self.game(few.take(slice(0, k))) for k in (1, few.n_rows))
        one.value(masks[:1])  # loads the kernels
        seconds = [
            min(clocked(lambda game=game: game.value(masks)) for _ in range(2)) / max(1, len(masks))  # type: ignore[misc]
            for game in (one, some)
        ]
        each = max(0.0, seconds[1] - seconds[0]) / max(1, few.n_rows - 1)
        block = seconds[0] * self.routes.n_coalitions
        total = n_blocks * block + n_rows * each * self.routes.n_coalitions
        enumerates = self._enumerates()
        kind = "enumeration" if enumerates else "sampled coalitions"
        method = f"{kind} of {self.embedding.describe()} [{self.routes}]"
        return Cost(total, exact=enumerates and self.embedding.name == ExactEmbedding.name, method=method)


def _some_coalitions(n_players: int, rng: np.random.Generator, n_masks: int = COMPARED_COALITIONS) -> np.ndarray:
    """Return random proper coalitions (at most n_masks, n_players), all different, of sizes as in a Shapley value."""
    found: dict[bytes, np.ndarray] = {}
    for _ in range(4 * n_masks if n_players > 1 else 0):
        mask = np.zeros(n_players, bool)
        mask[rng.choice(n_players, rng.integers(1, n_players), replace=False)] = True
        found.setdefault(mask.tobytes(), mask)
    return np.array(list(found.values())[:n_masks], bool).reshape(-1, n_players)


def _unflattened(found: Solution, game: ConditionalGame) -> Solution:
    """Turn one solution with n_rows x n_outputs outputs into one solution for each row."""

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
