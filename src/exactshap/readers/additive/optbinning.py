"""Read scorecards of optbinning, sums of the points of each column's bin."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError
from exactshap.frames import Table
from exactshap.readers import Request, raise_not_fitted, select_outputs
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._formula import FrameCall
from exactshap.readers.additive.terms import LinearTerms


def read(model: Model, request: Request) -> AdditiveReader:
    """Read the score, in which columns that the scorecard left out have no points."""
    if getattr(model, "binning_process_", None) is None:  # None before the fit
        raise_not_fitted(model)
    select_outputs(("score",), request.output, owner="Scorecard")
    names = tuple(map(str, model.binning_process_.variable_names))
    call = FrameCall("score", names=names)
    form = AdditiveForm(
        blocks=(LinearTerms(np.ones((len(names), 1))),),
        intercept=np.array([float(model.intercept_)]),
        encode=functools.partial(_points, model, FrameCall("transform", names=names), names),
        predict=functools.partial(call.of_table, model),
        own_call=call,
        n_columns=len(names),
        fitted_names=names,
        output_names=("score",),
        unit="points of the score",
        single_output=True,
    )
    return AdditiveReader(model, request, form)


def _points(model: Model, call: FrameCall, names: tuple[str, ...], X: Table, what: str) -> np.ndarray:
    """Return the points (n_rows, n_columns) of each cell."""
    used = [names.index(str(name)) for name in model.binning_process_.get_support(names=True)]
    points = np.zeros((X.n_rows, len(names)))
    try:
        points[:, used] = call.of_table(model, X)
    except (TypeError, ValueError, IndexError) as error:
        do = "Pass rows like those of the fit"
        raise InputError(f"The scorecard refuses the rows of {what}", f"{error}", do) from error
    return points
