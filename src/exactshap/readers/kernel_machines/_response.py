"""Read what a wrapper makes of a kernel machine's score: a calibrated probability, the exponential of a logarithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING

import numpy as np

from exactshap._runtime.slices import slices
from exactshap._runtime.types import Model
from exactshap.frames import Table
from exactshap.readers import Reader, Request, choose_value_function
from exactshap.readers.kernel_machines._kernel_machine import KernelReader

if TYPE_CHECKING:
    from exactshap.readers.responses import HybridScores, RowScores


def with_outer_response(read: Callable[..., Reader]) -> Callable[..., Reader]:
    """Extend the reader of a score by the response that a wrapper makes of it."""

    @wraps(read)
    def read_either(model: Model, request: Request, *names: object) -> Reader:
        outer = request.outer_response
        if outer is None or not hasattr(model, outer.call.method):
            return read(model, request, *names)
        from exactshap.readers.responses import HybridScores, of_score

        choose_value_function(
            request, ("interventional", "baseline"), None, owner=f"The {outer.unit} of {type(model).__name__}"
        )
        score = read(model, of_score(request), *names)
        assert isinstance(score, KernelReader)
        machine = score.strategy.machine
        background, _ = machine.rows_and_weights()
        hybrids = HybridScores(
            partial(_scores, score),
            has_orders=True,
            magnitude=float(machine.peak(background).max()),
            bytes=24.0 * min(machine.tile_values, machine.n_terms * machine.n_columns * len(background)),
        )
        return sampled(model, score, hybrids, request)

    return read_either


def sampled(model: Model, score: Reader, hybrids: HybridScores, request: Request) -> Reader:
    """Return the reading of the response that ``model`` makes of a score: of a feature map a pipeline."""
    from exactshap.readers.responses import SampledResponse

    score.traits = replace(score.traits, model=model)
    return SampledResponse(score, hybrids, request.outer_response, request, "terms join players")


def _scores(score: KernelReader, X: Table) -> RowScores:
    """Return the scores of one row's hybrids."""
    from exactshap.readers.responses import ProductScores

    machine = score.strategy.machine
    present, step = machine.present(score.float_rows(X))[0], machine.tile_values // max(1, machine.n_terms * machine.n_columns)

    def absent() -> Iterator[tuple[slice, np.ndarray]]:
        return ((rows, machine.absent_of_all(rows)) for rows in slices(len(machine.mixture), step))

    constant = np.broadcast_to(machine.expansion.intercept, machine.n_outputs)
    return ProductScores.of_row(machine.coefficients, present, absent, constant)
