"""The margins of scikit-learn's GaussianNB."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap._native import Handle
from exactshap.frames import Table
from exactshap.readers import (
    InPieces,
    OwnPrediction,
    Request,
    Stages,
    are_sklearns_own,
    assuming_finite,
    finite_numbers,
    fitted_names,
    many_cells,
    nameless,
    require_fitted,
    select_outputs,
    trial_rows,
)
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._form import AdditiveForm
from exactshap.readers.additive.sklearn_linear import as_given, in_double
from exactshap.readers.additive.terms import ColumnTerms
from exactshap.solvers.additive import Normals, add_sizes, fill_densities

__all__ = ["read"]

InUnit = Callable[[np.ndarray], np.ndarray]
METHOD, THROUGH = "predict_joint_log_proba", ("_joint_log_likelihood", "_check_X")
ARRAYS = 4  # of a piece of rows, which the model holds at a time


def read(model: Any, request: Request) -> AdditiveReader:
    r"""Read the joint log-likelihood of each class, or its difference for two classes (the log-odds).

    .. math:: \log P(y_k) - \tfrac{1}{2} \sum_j \left( \log 2 \pi \sigma_{kj}^2 + (x_j - \theta_{kj})^2 / \sigma_{kj}^2 \right)
    """
    require_fitted(model, "theta_", "var_", "class_prior_")
    classes = tuple(str(c) for c in model.classes_)
    is_margin = len(classes) == 2
    names, unit = ((classes[1],), f"log-odds (> 0: {classes[1]})") if is_margin else (classes, "joint log-likelihood")
    chosen, picked = select_outputs(names, request.output, owner="GaussianNB")
    single = picked or len(names) == 1
    prior = np.log(model.class_prior_)
    normals, used = _normals(model, slice(None)), _normals(model, slice(None) if is_margin else chosen)
    n_columns = model.theta_.shape[1]
    own, in_unit = _own(model), functools.partial(_in_unit, is_margin, chosen, single)
    form = AdditiveForm(
        blocks=(ColumnTerms(tuple((j,) for j in range(n_columns)), functools.partial(_densities, used, is_margin)),),
        intercept=(np.diff(prior) if is_margin else prior)[chosen],
        encode=functools.partial(finite_numbers, owner="GaussianNB", names=request.feature_names),
        predict=functools.partial(_predict, model, in_unit),
        predict_again=functools.partial(_predict_again, own, in_unit),
        stages=functools.partial(_stages, own, in_unit),
        n_columns=n_columns,
        fitted_names=fitted_names(model),
        output_names=tuple(names[k] for k in chosen),
        unit=unit,
        single_output=single,
        magnitude=functools.partial(_likelihood_size, normals, float(np.abs(prior).max())),
    )
    return AdditiveReader(model, request, form)


def _normals(model: Any, classes: Any) -> Handle:
    mean, variance = (np.ascontiguousarray(np.asarray(values, float)[classes]) for values in (model.theta_, model.var_))
    return Handle(Normals(mean, variance, np.log(2.0 * np.pi * variance)))


def _densities(normals: Handle, is_margin: bool, rows: np.ndarray) -> np.ndarray:
    """Return the log densities (n_rows, n_columns, n_outputs) of classes, or their difference for two of them."""
    values = np.empty((*rows.shape, 1 if is_margin else len(normals.value[0])))
    fill_densities(np.ascontiguousarray(rows, float), normals, is_margin, values)
    return values


def _likelihood_size(normals: Handle, prior: float, rows: np.ndarray) -> np.ndarray:
    """Return the size (n_rows,) of the joint log-likelihoods, which cancel in the log-odds."""
    size = np.full(len(rows), prior)
    add_sizes(np.ascontiguousarray(rows, float), normals, size)
    return size


# -- the model's own prediction ------------------------------------------------------------------------------------------


def _own(model: Any) -> OwnPrediction:
    """Return the joint log-likelihoods by the model's own method, of many rows a piece at a time, where nothing of it was replaced."""
    n_classes, n_columns = model.theta_.shape
    pieces = InPieces(_of_piece, ARRAYS * n_columns) if are_sklearns_own(type(model), (METHOD, *THROUGH)) else None
    return OwnPrediction(
        model,
        METHOD,
        _joint,
        pieces,
        trial=functools.partial(trial_rows, n_columns),
        readable=in_double,
        through=THROUGH,
        cells=functools.partial(many_cells, as_given),
        most=np.inf,
        kind=(n_classes, n_columns),
    )


def _joint(model: Any, rows: Any) -> np.ndarray:
    return np.asarray(model.predict_joint_log_proba(rows), float)


def _of_piece(model: Any, rows: np.ndarray) -> np.ndarray:
    """Return the same of numbers that are finite, whatever the names of their columns."""
    with assuming_finite():
        return _joint(nameless(model), rows)


def _predict(model: Any, in_unit: InUnit, X: Table) -> np.ndarray:
    return in_unit(_joint(model, in_double(X).native))


def _predict_again(own: OwnPrediction, in_unit: InUnit, X: Table) -> np.ndarray:
    return in_unit(own(X))


def _stages(own: OwnPrediction, in_unit: InUnit, X: Table) -> Stages | None:
    stages = own.stages(X)
    return None if stages is None else stages._replace(finish=lambda: in_unit(stages.finish()))


def _in_unit(is_margin: bool, chosen: list[int], single: bool, values: np.ndarray) -> np.ndarray:
    values = (np.diff(values, axis=1) if is_margin else values)[:, chosen]
    return values[:, 0] if single else values
