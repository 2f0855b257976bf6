r"""Read calibrated classifiers of scikit-learn, means of functions of additive decision functions.

.. math:: p(x) = \frac1K \sum_k g_k(f_k(x)), \qquad g_k(t) = \frac{1}{1 + \exp(a_k t + b_k)} \text{ or piecewise linear}
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import OwnCall, Reader, Request, fitted_names, outputs_of, select_outputs
from exactshap.readers.responses import Isotonic, Sigmoid
from exactshap.readers.wrappers._sum import Member, SumReader, read_member
from exactshap.readers.wrappers.sklearn_sums import request_of_sum


def read(model: Model, request: Request) -> Reader:
    """Read the mean of sigmoid or isotonic calibrations of two classes.

    Each is of a decision function that is a sum over columns.
    """
    if model.method not in ("sigmoid", "isotonic"):
        raise _refused(model, f"Got method={model.method!r}")
    if len(model.classes_) != 2:
        raise _refused(model, f"Got {len(model.classes_)} classes, which are normalised")
    name = str(model.classes_[1])
    if not request.asks_response:
        select_outputs((name,), request.output, owner=type(model).__name__)
    request, unit = request_of_sum(model, request), f"probability of class {name}"
    readers = [_calibrated(one, request, model, unit) for one in model.calibrated_classifiers_]
    share = np.full((1, 1), 1.0 / len(readers))
    return SumReader(
        model,
        request,
        [Member(reader, share) for reader in readers],
        functools.partial(_predict, model),
        constant=np.zeros(1),
        output_names=(name,),
        unit=unit,
        fitted_names=fitted_names(model),
        n_columns=int(model.n_features_in_),
        single_output=True,
    )


def _calibrated(one: Model, request: Request, model: Model, unit: str) -> Reader:
    (calibrator,) = one.calibrators
    output: Isotonic | Sigmoid
    if model.method == "isotonic":
        output = Isotonic(np.asarray(calibrator.X_thresholds_, float), np.asarray(calibrator.y_thresholds_, float), unit)
    else:
        output = Sigmoid(float(calibrator.a_), float(calibrator.b_), unit)
    try:
        return read_member(one.estimator, replace(request, output=output), type(model).__name__)
    except (UnknownNameError, UnsupportedStructureError) as error:
        if request.background is None:
            raise
        raise _refused(model, f"Got {type(one.estimator).__name__}") from error


def _refused(model: Model, got: str) -> UnsupportedStructureError:
    what = f"{type(model).__name__} can be read only where its calibration is a sigmoid or isotonic, of two classes, and its decision function a sum of terms"
    do = "Call the model: explain(model.predict_proba, X, background), exact up to 13 players and sampled beyond"
    return UnsupportedStructureError(what, got, do)


def _predict(model: Model, X: Table) -> np.ndarray:
    """Return the model's own probability of the second class."""
    return OwnCall("predict_proba", finish=functools.partial(outputs_of, [1], True)).of_table(model, X)
