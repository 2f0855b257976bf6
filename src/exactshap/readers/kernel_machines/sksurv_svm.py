"""Kernel survival machines of scikit-survival: ``FastKernelSurvivalSVM``, ``HingeLossSurvivalSVM``, ``MinlipSurvivalAnalysis``."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.kernels import from_pairwise, takes_differences
from exactshap.readers import OwnCall, Reader, Request, fitted_names, require_fitted, select_outputs
from exactshap.readers.kernel_machines._kernel_machine import KernelReader
from exactshap.readers.kernel_machines.machine import expand


def read(model: Model, request: Request) -> Reader:
    """Read a score of ranks, or the log of a time. Ranks have -sum_i coef_i k(x, X_i)."""
    require_fitted(model, "coef_", "n_features_in_")
    select_outputs(("output",), request.output, owner=type(model).__name__)
    timed = getattr(model, "rank_ratio", 1) < 1
    sign = 1.0 if timed else -1.0
    points = np.asarray(model.fit_X_ if hasattr(model, "fit_X_") else model.X_fit_, float)
    named = {"gamma": model.gamma, "coef0": model.coef0, "degree": model.degree}
    parameters = (model.kernel_params or {}) if callable(model.kernel) else named
    kernel = from_pairwise(model.kernel, points.shape[1], **parameters)
    intercept = sign * np.ravel(np.asarray(getattr(model, "intercept_", 0.0), float))
    call = OwnCall("predict", finish=np.log if timed else np.ravel)
    return KernelReader(
        model,
        request,
        expand(kernel, points, sign * np.ravel(model.coef_)[:, None], intercept, cancels=not takes_differences(model.kernel)),
        functools.partial(call.of_table, model),
        own_call=call,
        feature_names=fitted_names(model),
        output_names=("output",),
        unit="log of the survival time" if timed else "risk score: high is early",
    )
