r"""Choose the form of the conditional mean embedding: exact where affordable, else Nystroem.

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

from dataclasses import dataclass
from typing import Any

from exactshap._runtime.checks import is_number
from exactshap.errors import BudgetError, ExplanationWarning, InputError, memory_needed, warn

# Multiplications for all coalitions and 256 rows: some minutes on one core.
MAX_OPERATIONS = 1e13
MIN_LANDMARKS = 16
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
            b = _checked_landmarks(n_landmarks, self.n_rows)
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


def _checked_landmarks(n_landmarks: Any, n: int) -> int:
    if not is_number(n_landmarks, 2, whole=True) or n_landmarks > n:
        raise InputError(f"The 'n_landmarks' parameter must be 'auto', an int in [2, {n}] or None", f"Got {n_landmarks!r}")
    return int(n_landmarks)


def _cost(memory: float, operations: float) -> str:
    return f"need {memory / GIB:.2g} GiB and {operations:.2g} operations"
