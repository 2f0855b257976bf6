"""Read survival trees, forests and gradient boosting of scikit-survival.

Risks by default; ``output="survival"`` and ``"cumulative hazard"`` are whole curves, with an output for each time of ``times=``.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.readers import OwnCall, Request, require_fitted
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert
from exactshap.trees.formats import CURVES, curve_columns, of_curve


def read(model: Model, request: Request) -> TreeReader:
    r"""Read f(x) as a mean of trees, or the sum of boosted ones.

    .. math:: \hat H(t \mid x) = \tfrac1T \sum_k H_k(t \mid x), \qquad \mathrm{risk}(x) = \sum_{\text{events } t} \hat H(t \mid x)
    """
    require_fitted(model, "n_features_in_")
    if isinstance(request.output, str) and request.output in CURVES:
        return _read_curve(model, request)
    if "times" in request.options:
        do = f"Pass output={' or '.join(map(repr, CURVES))} with it"
        raise InputError("`times` needs a survival curve as output", f"Got output={request.output!r}", do)
    ensemble = convert(model)
    timed = ensemble.unit == "log of the survival time"
    return TreeReader(model, request, ensemble, OwnCall("predict", finish=np.log) if timed else OwnCall("predict"))


def _read_curve(model: Model, request: Request) -> TreeReader:
    curve = request.output
    method = f"predict_{curve.replace(' ', '_')}_function"
    if hasattr(model, "init_"):
        do = f"Sample it: explain(lambda rows: model.{method}(rows, return_array=True), X, background)"
        raise UnsupportedStructureError("The curves of boosted models are not sums of trees", do=do)
    columns = curve_columns(model, request.options.get("times"))
    call = OwnCall(method, {"return_array": True}, functools.partial(_at_times, columns))
    options = {name: value for name, value in request.options.items() if name != "times"}
    return TreeReader(model, replace(request, output="auto", options=options), of_curve(model, curve, columns), call)


def _at_times(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    values = values[:, columns]
    return values[:, 0] if len(columns) == 1 else values
