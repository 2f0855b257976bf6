r"""Kernel density estimates of scikit-learn: one product of columns for each training row.

.. math:: p(x) = \sum_i \frac{w_i}{\sum_l w_l}\, (2 \pi h^2)^{-d/2} \exp\left(-\frac{\lVert x - x_i \rVert^2}{2 h^2}\right)
"""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError, message
from exactshap.kernels import RBF
from exactshap.readers import OwnCall, Reader, Request, fitted_names, select_outputs
from exactshap.readers.kernel_machines._kernel_machine import KernelReader
from exactshap.readers.kernel_machines.machine import expand


def read(model: Model, request: Request) -> Reader:
    """Read the density; the model returns its logarithm."""
    settings = {name: getattr(model, name) for name in _READ}
    if settings != _READ:
        name = next(name for name in _READ if settings[name] != _READ[name])
        do = "Explain its logarithm as a function: explain(model.score_samples, X, background), exact up to 13 players"
        what = "KernelDensity can be read only where its kernel is a product and nothing is cut off"
        raise UnsupportedStructureError(message(what, f"Got {name}={settings[name]!r}", do))
    select_outputs(("density",), request.output, owner="KernelDensity")
    rows, bandwidth = np.asarray(model.tree_.data, float), float(model.bandwidth_)
    weights = np.ones(len(rows)) if model.tree_.sample_weight is None else np.asarray(model.tree_.sample_weight, float)
    height = (2.0 * np.pi * bandwidth**2) ** (-0.5 * rows.shape[1])
    call = OwnCall("score_samples", finish=np.exp)
    return KernelReader(
        model,
        request,
        expand(RBF(bandwidth=bandwidth), rows, (weights / weights.sum() * height)[:, None]),
        functools.partial(call.of_table, model),
        own_call=call,
        feature_names=fitted_names(model),
        output_names=("density",),
        unit="density",
    )


_READ = {"kernel": "gaussian", "metric": "euclidean", "atol": 0, "rtol": 0}
