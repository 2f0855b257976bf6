"""Gaussian naive Bayes of scikit-learn: log densities of single columns, added up."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from exactshap.readers import OwnCall, Request, finite_numbers, fitted_names, require_fitted, select_outputs
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._form import AdditiveForm
from exactshap.readers.additive.response import Response, no_response, probability, with_response
from exactshap.readers.additive.sklearn_linear import predict_in_double
from exactshap.readers.additive.terms import ColumnTerms

__all__ = ["read"]

Densities = Callable[[np.ndarray], np.ndarray]  # of rows: (n_classes, n_rows, n_columns)


def _response(model: Any) -> Response:
    if len(model.classes_) != 2:
        raise no_response(model, f"It has {len(model.classes_)} classes")
    return probability(str(model.classes_[1]))


@with_response(_response)
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
    prior, densities = np.log(model.class_prior_), functools.partial(_log_densities, model.theta_, model.var_)
    n_columns = model.theta_.shape[1]
    call = OwnCall("predict_joint_log_proba", finish=functools.partial(_in_unit, is_margin, chosen, single))
    form = AdditiveForm(
        blocks=(ColumnTerms(tuple((j,) for j in range(n_columns)), functools.partial(_terms, densities, is_margin, chosen)),),
        intercept=_of_outputs(prior, is_margin, chosen),
        encode=functools.partial(finite_numbers, owner="GaussianNB", names=request.feature_names),
        predict=functools.partial(predict_in_double, model, call),
        own_call=call,
        n_columns=n_columns,
        fitted_names=fitted_names(model),
        output_names=tuple(names[k] for k in chosen),
        unit=unit,
        single_output=single,
        magnitude=functools.partial(_likelihood_size, densities, float(np.abs(prior).max())),
    )
    return AdditiveReader(model, request, form)


def _log_densities(mean: np.ndarray, variance: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the log densities (n_classes, n_rows, n_columns) of normal distributions."""
    densities = np.empty((len(mean), *rows.shape))
    for own, centre, spread in zip(densities, mean, variance, strict=True):
        np.subtract(rows, centre, out=own)
        own *= own
        own /= spread
        own += np.log(2.0 * np.pi * spread)
        own *= -0.5
    return densities


def _of_outputs(values: np.ndarray, is_margin: bool, chosen: list[int]) -> np.ndarray:
    """Return the chosen classes of the first axis, or the second less the first for two."""
    return (np.diff(values, axis=0) if is_margin else values)[chosen]


def _terms(densities: Densities, is_margin: bool, chosen: list[int], rows: np.ndarray) -> np.ndarray:
    return np.moveaxis(_of_outputs(densities(rows), is_margin, chosen), 0, 2)


def _likelihood_size(densities: Densities, prior: float, rows: np.ndarray) -> np.ndarray:
    """Return the largest size (n_rows,) of a joint log-likelihood: they cancel in the log-odds."""
    return np.asarray(prior + np.abs(densities(rows)).sum(axis=2).max(axis=0))


def _in_unit(is_margin: bool, chosen: list[int], single: bool, likelihoods: np.ndarray) -> np.ndarray:
    values = _of_outputs(likelihoods.T, is_margin, chosen).T
    return values[:, 0] if single else values
