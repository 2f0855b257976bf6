"""Solutions of games that people bring themselves, as explanations with names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exactshap.errors import InputError, InputTypeError, message

__all__ = ["of_solution"]

ROUNDINGS = 16.0  # of each value and term: a solver's own arithmetic and ours


def of_solution(
    kind: type[Any],
    solution: Any,
    player_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    unit: str,
    name: str,
) -> Any:
    """Return a solution of one game or of several as an explanation: see ``Explanation.from_solution``."""
    if not hasattr(solution, "sets") or not hasattr(solution, "empty"):
        do = "Pass what exactshap.solve(game) returns"
        raise InputTypeError(message("`solution` must be a Solution", f"Got {type(solution).__name__}", do))
    n_players = sum(len(players) == 1 for players in solution.sets)
    rows = solution if _is_batch(solution) else solution.as_batch()
    many, order = rows.values.ndim == 3, max(map(len, solution.sets), default=1)
    n_rows, n_outputs = len(rows.values), rows.values.shape[-1]
    residual = np.zeros_like(rows.full) if rows.residual is None else rows.residual
    return kind(
        values=rows.values[:, :n_players],
        baseline=rows.empty,
        prediction=rows.full,
        residual=residual,
        tolerance=_tolerance(rows, n_players),
        feature_names=_names("player_names", player_names, n_players, "player"),
        output_names=_names("output_names", output_names, n_outputs, "output") if many else None,
        value_function="game",
        unit=unit,
        model_name=name,
        index=solution.index or "shapley",
        order=order,
        sets=solution.sets,
        set_values=rows.values if order > 1 else None,
        std_error=None if rows.std_error is None else rows.std_error[:, :n_players],
        set_std_error=rows.std_error if order > 1 else None,
        method=solution.method,
        error_bound=np.array(np.broadcast_to(rows.error_bound, (n_rows,))),
        n_evaluations=solution.n_evaluations,
        approximation_error=rows.approximation_error,
        mask_reason="the values are of a game, which has no model to ask",
    )


def _is_batch(solution: Any) -> bool:
    """Say whether the first axis of the values is one of games: both may be as long as the number of sets."""
    shape, n_sets = solution.values.shape, len(solution.sets)
    if len(shape) == 2 and shape == (n_sets, n_sets):
        return bool(np.ndim(solution.scale))
    return len(shape) == 3 or (len(shape) == 2 and shape[0] != n_sets)


def _tolerance(rows: Any, n_players: int) -> np.ndarray:
    """Return what rounding explains of the residual of each game."""
    ends = np.abs(rows.full) + np.abs(rows.empty)
    size = ends if ends.ndim == 1 else ends.max(axis=1, initial=0.0)
    eps = float(np.finfo(float).eps)
    return np.asarray(ROUNDINGS * eps * (n_players + 1) * (np.asarray(rows.scale) + size) + rows.error_bound)


def _names(what: str, names: Sequence[str] | None, n: int, noun: str) -> tuple[str, ...]:
    if names is None:
        return tuple(f"{noun} {j}" for j in range(n))
    if isinstance(names, str) or len(texts := tuple(map(str, names))) != n or len(set(texts)) != n:
        raise InputError(message(f"`{what}` must hold {n} different names", f"Got {names!r:.200}"))
    return texts
