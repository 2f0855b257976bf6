"""What a function that can only be called costs: coalitions times background rows, each of them a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from exactshap._runtime.calibration import clocked
from exactshap._runtime.progress import Asks, fewer_coalitions
from exactshap.games import OracleGame
from exactshap.solvers import Cost, bytes_besides_calls, choose, n_calls, seconds_besides_calls

if TYPE_CHECKING:
    from exactshap.readers import Reader

__all__ = ["calls_cost", "calls_forecast", "calls_memory"]

SAMPLED = ("estimator", "surrogate", "polynomial_order", "frontier", "pairing", "sampling")
TIMED_COALITIONS = 16  # of a second timing: what one more coalition costs in a batch
# The second timing is made where one coalition takes less than so many seconds, or there are so many rows that it is a small share.
MAX_SECONDS_TIMED, MIN_ROWS_TIMED = 0.05, 100


def calls_cost(reader: Reader, row: OracleGame, n_rows: int, order: int) -> Cost:
    """Return the cost of ``n_rows`` rows: the function is timed on one coalition, and on several if that is a small share."""
    coalitions, method = _coalitions(reader)
    masks = np.zeros((TIMED_COALITIONS, reader.n_players), bool)
    masks[:, ::2] = True
    one = each = clocked(lambda: row.value(masks[:1]))
    if one < MAX_SECONDS_TIMED or n_rows >= MIN_ROWS_TIMED:
        one, some = (min(clocked(lambda k=k: row.value(masks[:k])) for _ in range(2)) for k in (1, TIMED_COALITIONS))  # type: ignore[misc]
        each = max(0.0, some - one) / (TIMED_COALITIONS - 1)
    seconds = one + (coalitions - 1) * each + seconds_besides_calls(coalitions, method, reader.n_players, order)
    return Cost(n_rows * seconds, exact=method == "enumeration", method=method)


def calls_forecast(reader: Reader) -> Asks:
    """Return the coalitions that a row takes, and how to take fewer. The latter only where nobody chose how many."""
    assert reader.background is not None
    coalitions, method = _coalitions(reader)
    options, fewer = reader.options, fewer_coalitions(reader.n_players)  # type: ignore[attr-defined]
    if options.get("tol") is not None:
        return Asks(f"{reader.model_name} is called until standard errors are below tol={options['tol']:g}", None)
    sentence = (
        f"{method}: {coalitions:,.0f} coalitions for each row, {reader.background.n_rows:,} background rows for each of them"
    )
    chosen = options.get("budget") is not None or fewer >= coalitions or method == "enumeration"
    return Asks(sentence, coalitions, "" if chosen else f"budget={fewer} asks for fewer, tol= for as few as an error allows")


def calls_memory(reader: Reader, cells: int, order: int) -> float:
    """Return the bytes of one batch, all coalitions and the solver.

    The batch has mixed rows of ``cells`` cells, which the function copies.

    Where a tolerance decides, the solver's are those of the usual number of calls.
    """
    assert reader.background is not None
    (coalitions, method), each = _coalitions(reader), float(reader.background.n_rows) * reader.n_features
    batch = min(max(cells, each), coalitions * each)
    held = 8.0 * (2.5 * batch + 3.0 * coalitions * (reader.n_players + reader.n_outputs))
    by_process = reader.options.get("estimator") in (None, "auto", "process")  # type: ignore[attr-defined]
    usual = n_calls(reader.n_players, reader.options.get("budget"), method)  # type: ignore[attr-defined]
    return held + (bytes_besides_calls(usual, method, reader.n_players, order) if by_process else 0.0)


def _coalitions(reader: Reader) -> tuple[float, str]:
    """Return the largest number of coalitions for each row, and the method."""
    options = reader.options  # type: ignore[attr-defined]
    budget, method = options.get("budget"), options.get("method", "auto")
    if method == "auto" and any(options.get(name) is not None for name in SAMPLED):
        method = "regression"
    method = choose(OracleGame(len, reader.n_players), budget=budget, method=method).method
    return n_calls(reader.n_players, budget, method, options.get("tol")), method
