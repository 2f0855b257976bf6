r"""Read chains of linear models, which are linear in the rows and in the predictions of earlier models.

.. math:: y_k = b_k + x \cdot \beta_k + \sum_{m < k} \gamma_{km}\, y_m
"""

from __future__ import annotations

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.readers import Reader, Request, fitted_names, sklearn_name
from exactshap.readers.additive import LinearParts, linear_step, read_parts


def read(model: Model, request: Request) -> Reader:
    """Read all targets of a chain as linear functions of the rows."""
    method = "predict" if sklearn_name(model) == "RegressorChain" else "decision_function"
    if method == "decision_function" and model.chain_method_ != method:
        do = "Fit it with chain_method='decision_function', or call it: explain(model.predict_proba, X, background)"
        raise _refused(model, f"Got chain_method={model.chain_method!r}, which passes on no sum of terms", do)
    n_columns, n_targets = int(model.n_features_in_), len(model.estimators_)
    coefficients, intercept = np.zeros((n_columns, n_targets)), np.zeros(n_targets)
    for place, step in enumerate(model.estimators_):
        parts = linear_step(step)
        if parts is None or parts.method != method or parts.coefficients.shape[1] != 1:
            do = "Call it: explain(model.predict, X, background), exact up to 13 players"
            raise _refused(model, f"Got {type(step).__name__}", do)
        of_rows, of_chain = np.split(np.asarray(parts.coefficients[:, 0], float), [n_columns])
        before = list(model.order_[:place])
        coefficients[:, model.order_[place]] = of_rows + coefficients[:, before] @ of_chain
        intercept[model.order_[place]] = float(parts.intercept[0]) + intercept[before] @ of_chain
    unit = "target" if method == "predict" else "decision function"
    names = tuple(f"target {k}" for k in range(n_targets))
    return read_parts(model, request, LinearParts(coefficients, intercept, names, unit, method), fitted_names(model))


def _refused(model: Model, got: str, do: str) -> UnsupportedStructureError:
    return UnsupportedStructureError(f"{type(model).__name__} can be read only where all of its models are linear", got, do)
