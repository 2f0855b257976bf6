"""Kernel ridge regression of scikit-learn, single and multi-output."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.kernels import from_pairwise, takes_differences
from exactshap.readers import OwnCall, Reader, Request, fitted_names, outputs_of, select_outputs
from exactshap.readers.kernel_machines._kernel_machine import KernelReader
from exactshap.readers.kernel_machines.machine import expand


def read(model: Model, request: Request) -> Reader:
    """Read f(x) = sum_i dual_coef_i k(x, X_i), without intercept."""
    dual = np.asarray(model.dual_coef_, float)
    dual = dual[:, None] if dual.ndim == 1 else dual
    named = {"gamma": model.gamma, "coef0": model.coef0, "degree": model.degree}
    # As scikit-learn passes them on
    parameters = (model.kernel_params or {}) if callable(model.kernel) else named
    kernel = from_pairwise(model.kernel, model.n_features_in_, **parameters)
    names = ("target",) if model.dual_coef_.ndim == 1 else tuple(f"target {k}" for k in range(dual.shape[1]))
    chosen, single = select_outputs(names, request.output, owner="KernelRidge")
    single = single or model.dual_coef_.ndim == 1
    call = OwnCall("predict", finish=functools.partial(outputs_of, chosen, single))
    return KernelReader(
        model,
        request,
        expand(kernel, model.X_fit_, dual[:, chosen], cancels=not takes_differences(model.kernel)),
        functools.partial(call.of_table, model),
        own_call=call,
        feature_names=fitted_names(model),
        output_names=tuple(names[k] for k in chosen),
        unit="target",
        single_output=single,
        epsilon=float(np.finfo(np.float32 if model.X_fit_.dtype == np.float32 else float).eps),  # float32 rows meet in float32
    )
