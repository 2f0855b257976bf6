r"""Fill missing columns of kernel machines by their conditional expectation (RKHS-SHAP).

.. math:: v_x(S) = E[f(x_S, X_{\bar S}) \mid X_S = x_S]
          \approx b + \sum_l c_l \prod_{j \in S} a_{lj}(x_j) \sum_z W^S_{zx} \prod_{j \notin S} a_{lj}(z_j)

with the weights W of a conditional mean embedding on the rows Z (the background, or the training rows). v(empty) is the mean
of f over Z and v(D) is f(x), by definition: the embedding itself would shrink the one and miss the other.

The embedding is exact where that is affordable, else in Nystroem's form:

=============== ================================= ===================================== =============================
form            memory                            operations for each coalition         when
=============== ================================= ===================================== =============================
exact           d n (n + terms)                   n^3 / 3 + m n (n + terms)             it fits ``memory_limit``, and all
                                                                                        coalitions fit 1e13 operations
Nystroem        1.5 d n b (more where the rows    5 n b^2 + 30 b^3 + 2 d n b            otherwise, with the largest b that
                are not the training rows)                                              fits both; or ``n_landmarks=b``
=============== ================================= ===================================== =============================

with n conditioning rows, b landmarks, d players and blocks of m = 256 explained rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.checks import checked_generator, is_number
from exactshap._runtime.threads import n_threads
from exactshap.errors import BudgetError, ExplanationWarning, InputError, memory_needed, warn
from exactshap.readers import Coalitions, ConditionalGame, Request, some_coalitions
from exactshap.readers.kernel_machines._bound import BoundMachine, Strategy
from exactshap.readers.kernel_machines._embeddings import (
    ExactEmbedding,
    NystroemEmbedding,
    conditioning,
    conditioning_rows,
    landmarks_of,
)
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution
from exactshap.solvers.rkhs import check_eta, choose_eta, conditional_stability

# Settings of this value function.
OPTIONS = ("eta", "n_landmarks", "budget", "random_state")

# Multiplications for all coalitions and 256 rows: some minutes on one core.
MAX_OPERATIONS = 1e13
# Least number of landmarks of an estimate.
MIN_LANDMARKS = 16
# Rows that share the work of a coalition.
ROWS = 256.0
GIB = 2.0**30


@dataclass(frozen=True)
class Routes:
    """Hold the sizes that determine the forecasts of all forms."""

    n_rows: int  # conditioning rows
    n_terms: int  # training rows, over all components of the kernel
    n_players: int
    n_parts: int
    n_coalitions: float
    memory_limit: float

    def exact_bytes(self) -> float:
        n, d = float(self.n_rows), float(self.n_players)
        return 8.0 * (d * n * n + d * n * self.n_terms * (self.n_terms != self.n_rows) + 4.0 * n * max(n, self.n_terms))

    def exact_operations(self) -> float:
        n = float(self.n_rows)
        return self.n_coalitions * (n**3 / 3.0 + ROWS * n * (n + self.n_terms))

    def landmark_bytes(self, b: float) -> float:
        n, terms = float(self.n_rows), float(self.n_terms)
        shared = self.n_parts == 1 and self.n_terms == self.n_rows
        factors = self.n_players * (n if shared else 2.0 * n + terms)
        # Half as many landmarks again for the estimate of the error
        return 8.0 * b * (1.5 * factors + 4.0 * n)

    def landmark_operations(self, b: float) -> float:
        n = float(max(self.n_rows, self.n_terms))
        return self.n_coalitions * (5.0 * n * b**2 + 30.0 * b**3 + 2.0 * self.n_players * n * b + 3.0 * ROWS * b**2)

    def landmarks(self) -> int:
        """Return the most landmarks that fit and beat the exact form, at most half the rows."""
        low, high = 1, self.n_rows // 2
        most = min(MAX_OPERATIONS, self.exact_operations())
        while low < high:
            b = (low + high + 1) // 2
            fits = self.landmark_bytes(b) <= self.memory_limit and self.landmark_operations(b) <= most
            low, high = (b, high) if fits else (low, b - 1)
        return low

    def __str__(self) -> str:
        b = self.landmarks()
        exact = f"exact embeddings of {self.n_rows} rows {_cost(self.exact_bytes(), self.exact_operations())}"
        if b < MIN_LANDMARKS:
            return exact
        return f"{exact}, Nystroem with {b} landmarks {_cost(self.landmark_bytes(b), self.landmark_operations(b))}"

    def chosen(self, n_landmarks: Any) -> int | None:
        """Return the number of landmarks, or None for the exact form."""
        everything = f"Conditional embeddings of {self.n_rows} rows do"
        if n_landmarks is None:
            self._refuse_too_large(everything, self.exact_bytes())
            return None
        if not isinstance(n_landmarks, str) or n_landmarks != "auto":
            if not is_number(n_landmarks, 2, whole=True) or n_landmarks > self.n_rows:
                what = f"The 'n_landmarks' parameter must be 'auto', an int in [2, {self.n_rows}] or None"
                raise InputError(what, f"Got {n_landmarks!r}")
            b = int(n_landmarks)
            self._refuse_too_large(f"{b} landmarks of {self.n_rows} rows do", self.landmark_bytes(b))
            return b
        if self.exact_bytes() <= self.memory_limit and self.exact_operations() <= MAX_OPERATIONS:
            return None
        b = self.landmarks()
        if b < MIN_LANDMARKS:
            self._refuse_too_large(everything, self.exact_bytes())
            return None  # few rows and many coalitions: landmarks would save nothing
        warn(
            f"{str(self)[0].upper()}{str(self)[1:]}; the limits are {self.memory_limit / GIB:.3g} GiB and {MAX_OPERATIONS:.0e} "
            f"operations. The Nystroem form with {b} landmarks is used, with its error estimated in the explanation; n_landmarks= "
            "decides otherwise (None is exact)",
            ExplanationWarning,
        )
        return b

    def _refuse_too_large(self, what: str, needed: float) -> None:
        if needed <= self.memory_limit:
            return
        b = self.landmarks()
        route = f"n_landmarks={b} for the Nystroem form, " if b >= MIN_LANDMARKS else ""
        raise BudgetError(
            f"{what} not fit in memory_limit",
            f"They would need {memory_needed(needed, self.memory_limit)}",
            f"Pass {route}fewer rows as background=, or raise memory_limit=",
        )


def _cost(memory: float, operations: float) -> str:
    return f"need {memory / GIB:.2g} GiB and {operations:.2g} operations"


def bind(
    machine: BoundMachine, request: Request, mean_prediction: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> ConditionalGames:
    """Bind a kernel machine to its conditional mean embeddings; ``mean_prediction(rows, weights)`` is the model's own.

    Settings (keywords of ``Explainer``): ``eta`` (ridge, default 1e-3, or "auto" for leave-one-out cross-validation),
    ``n_landmarks`` (Nystroem form with so many rows; None is exact, "auto", the default, is exact where
    :class:`Routes` finds it affordable), ``budget`` (coalitions that are sampled beyond 12 players, default 2048),
    ``random_state`` (landmarks and coalitions, default 0).
    """
    request.refuse_options(OPTIONS, owner=f"{machine.name} with value_function='observational'")
    settings = request.options
    rows, weights = conditioning_rows(machine)
    coalitions = Coalitions.of(machine.n_players, settings)
    parts = len(machine.expansion.parts)
    routes = Routes(len(rows), machine.n_terms, machine.n_players, parts, coalitions.count, request.memory_limit)
    n_landmarks = routes.chosen(settings.get("n_landmarks", "auto"))
    eta = _eta(machine, settings.get("eta", 1e-3), rows, coalitions.random_state)
    rng = checked_generator(coalitions.random_state)
    if n_landmarks is not None:
        landmarks = landmarks_of(machine, rows, weights, n_landmarks, rng)
        embedding: Any = NystroemEmbedding(machine, rows, weights, eta, landmarks)
    else:
        embedding = ExactEmbedding(machine, rows, weights, eta)
    empty = mean_prediction(rows, weights)
    return ConditionalGames(machine, embedding, empty, coalitions, routes)


def _eta(machine: BoundMachine, eta: float | str | None, rows: np.ndarray, random_state: int) -> float:
    """Return the ridge, checked or chosen on at most 300 rows."""
    if not (isinstance(eta, str) and eta == "auto"):
        return check_eta(eta, "this game")
    some = rows[np.sort(checked_generator(random_state).choice(len(rows), min(len(rows), 300), replace=False))]
    return choose_eta(conditioning(machine, some, some))


@dataclass(frozen=True, eq=False)
class ConditionalGames(Strategy):
    """Solve the games of ``value_function="observational"``: enumerated, or sampled for many players."""

    block_rows = 4096  # all rows of a block share the factorisations of a coalition
    uses_threads = True

    machine: BoundMachine
    embedding: Any
    empty: np.ndarray
    coalitions: Coalitions
    routes: Routes

    def game(self, values: np.ndarray) -> ConditionalGame:
        return self._game(self.embedding, values)

    def _game(self, embedding: Any, values: np.ndarray) -> ConditionalGame:
        machine = self.machine
        return ConditionalGame(
            function=embedding.bound_to(values),
            empty=self.empty,
            full=machine.expansion(values),
            intercept=machine.expansion.intercept,
            n_players=machine.n_players,
            single_output=machine.single_output,
            size=self._size(),
            routes=self.routes,
            approximate=embedding.name != ExactEmbedding.name,
        )

    def solve(self, values: np.ndarray, semivalue: Semivalue, order: int) -> Solution:
        game = self.game(values)
        found = self.coalitions.solve(game, semivalue, order)
        part = replace(
            found.part,
            method=f"{found.method} of {self.embedding.describe()}",
            scale=np.asarray(found.scale) + self.machine.peak(values),  # v(D) is rounded as the model's own prediction
            error_bound=np.asarray(found.error_bound) + 2.0**order * self._mixture_error(values),
        )
        return replace(found, part=part, approximation_error=self._approximation_error(game, values))

    def _mixture_error(self, values: np.ndarray) -> np.ndarray:
        r"""Return the error (n_rows,) of any v(S) from mixtures of Gaussians.

        An embedding's weights :math:`(K + \Lambda)^{-1} k` of n rows add up in magnitude to at most
        :math:`\sqrt{n / \min \Lambda}`, for a kernel that is 1 at x = x'.
        """
        if not self.machine.expansion.is_mixture:
            return np.zeros(len(values))
        embedding = self.embedding
        total = np.sqrt(len(embedding.rows) * np.max(embedding.weights) / embedding.eta)
        return max(1.0, float(total)) * self.machine.mixture_error(values, embedding.rows)

    def _approximation_error(self, game: ConditionalGame, values: np.ndarray) -> np.ndarray | None:
        """Estimate how far v(S) of a low-rank form is off, (n_rows,); None for the exact form.

        The larger of two: how far it misses f itself (the coalition of all, where the truth is known), and the largest change
        over a few random coalitions when only half of the landmarks are used.
        """
        missed = self.embedding.error(values)
        if missed is None:
            return None
        masks = some_coalitions(self.machine.n_players, checked_generator(self.coalitions.random_state))
        half = self._game(self.embedding.halved(), values)
        change = np.abs(game.value(masks) - half.value(masks)).reshape(len(values), -1)
        return np.asarray(np.maximum(missed, change.max(axis=1, initial=0.0)))

    def stability(self, rows: Callable[[], np.ndarray]) -> Callable[[Any], Any] | None:
        """Return the bound for enumerated values, else None."""
        machine = self.machine
        if not self.coalitions.enumerated or machine.expansion.monomials is not None:
            return None
        parts = [(part.component, part.coefficients, part.points) for part in machine.expansion.parts]
        return functools.partial(conditional_stability, parts, eta=self.embedding.eta, players=machine.players)

    def memory(self, n_rows: int, order: int) -> float:
        machine = self.machine
        width = machine.n_terms + len(self.embedding.rows)
        table = self.coalitions.table_values() * machine.n_outputs
        coalitions = float(self.embedding.coalition_bytes()) * n_threads(self._size())
        # low-rank forms keep features of the rows as well
        held = 0.5 if self.embedding.name == ExactEmbedding.name else 1.0
        return coalitions + 8.0 * n_rows * (held * width * (machine.n_players + 4.0) + table)

    def advice_on_memory(self) -> str:
        """Say what to do if ``memory_limit`` is too small."""
        b = self.routes.landmarks()
        return f"Raise memory_limit=, pass n_landmarks={max(2, b)} for the Nystroem form, or fewer rows as background="

    def _size(self) -> float:
        return float(self.embedding.coalition_bytes()) / 48.0  # six matrices of eight bytes

    def cost(self, few: np.ndarray, n_rows: int, semivalue: Semivalue, order: int, n_blocks: int) -> Cost:
        seconds, kind = self.coalitions.seconds(lambda k: self.game(few[:k]), len(few), n_rows, n_blocks)
        exact = self.coalitions.enumerated and self.embedding.name == ExactEmbedding.name
        return Cost(seconds, exact=exact, method=f"{kind} of {self.embedding.describe()} [{self.routes}]")
