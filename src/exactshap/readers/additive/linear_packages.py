"""Read linear models of smaller packages: econml, scikit-survival, skglm, and scorecards of optbinning."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, OwnCall, Request, fitted_names, raise_not_fitted, require_fitted, target_names
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._formula import FrameCall
from exactshap.readers.additive._terms import LinearTerms
from exactshap.readers.additive.response import with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, read_parts
from exactshap.readers.responses import Response, no_response


def read_econml(model: Model, request: Request) -> AdditiveReader:
    r"""Read the effect of each treatment, which is linear in the columns of ``X``.

    .. math:: \theta_k(x) = b_k + \sum_j x_j \beta_{jk}
    """
    if not hasattr(model, "models_nuisance_"):
        raise_not_fitted(model)
    if not hasattr(model, "fit_cate_intercept"):
        _refuse_effect(model, "solves equations that its trees weight, and is no sum of trees")
    if model.featurizer is not None:
        _refuse_effect(model, f"is linear in columns that {type(model.featurizer).__name__} makes of X")
    coefficients = np.asarray(model.coef_, float)
    if coefficients.ndim > 2:
        _refuse_effect(model, "has several outcomes and treatments")
    coefficients = np.atleast_2d(coefficients)
    intercept = np.atleast_1d(model.intercept_) if model.fit_cate_intercept else np.zeros(len(coefficients))
    names = _names(model, len(coefficients))
    call = Outputs.of(names, request.output, owner=type(model).__name__).call("const_marginal_effect")
    columns = model.cate_feature_names()
    numbered = list(columns) == [f"X{j}" for j in range(len(columns))]  # of an array
    parts = LinearParts(coefficients.T, np.asarray(intercept, float), names, "treatment effect")
    return read_parts(model, request, parts, None if numbered else tuple(map(str, columns)), call)


def _names(model: Model, n: int) -> tuple[str, ...]:
    """Return the names of the treatments, or of several outcomes."""
    for names in (model.cate_treatment_names(), model.cate_output_names()):
        if n > 1 and len(names) == n:
            return tuple(map(str, names))
    return ("effect",) if n == 1 else tuple(f"effect {k}" for k in range(n))


def _refuse_effect(model: Model, what: str) -> NoReturn:
    do = "Call it: explain(model.effect, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"The effect of {type(model).__name__} {what}", do=do)


HAZARD, TIME, RANK = "log hazard: high is early", "log of the survival time", "risk score: high is early"


def read_sksurv(model: Model, request: Request) -> AdditiveReader:
    """Read a risk score, or the log of a predicted time."""
    require_fitted(model, "coef_", "n_features_in_")
    kind = next(cls.__name__ for cls in type(model).__mro__ if cls.__name__ in _PARTS)
    coefficients, intercept, unit = _PARTS[kind](model)
    link = np.log if unit == TIME else None
    parts = LinearParts(
        np.asarray(coefficients, float)[:, None], np.array([float(intercept)]), ("output",), unit, "predict", link
    )
    return read_parts(model, request, parts, fitted_names(model))


def _fast_svm(model: Model) -> tuple[Any, Any, str]:
    """Return scores of ranks, or of times if fitted to them."""
    intercept = getattr(model, "intercept_", 0.0)
    if model.rank_ratio == 1:
        return -model.coef_, -intercept, RANK
    return model.coef_, intercept, TIME


_PARTS: dict[str, Callable[[Any], tuple[Any, Any, str]]] = {
    "CoxPHSurvivalAnalysis": lambda model: (model.coef_, 0.0, HAZARD),
    # The smallest penalty, as ``predict`` does
    "CoxnetSurvivalAnalysis": lambda model: (model.coef_[:, -1], -np.ravel(model.offset_)[-1], HAZARD),
    "ComponentwiseGradientBoostingSurvivalAnalysis": lambda model: (
        model.coef_[1:],
        model.coef_[0],
        HAZARD if model.loss == "coxph" else TIME,
    ),
    "IPCRidge": lambda model: (model.coef_, model.intercept_, TIME),
    "FastSurvivalSVM": _fast_svm,
    "NaiveSurvivalSVM": lambda model: (-model.coef_[0], -np.ravel(model.intercept_)[0], RANK),
}


_REGRESSIONS = ("Lasso", "WeightedLasso", "ElasticNet", "MCPRegression", "GroupLasso", "MultiTaskLasso")
_CLASSIFIERS = {"SparseLogisticRegression": "log-odds", "LinearSVC": "decision function"}
_SCORES = ("Quadratic", "WeightedQuadratic", "Huber", "QuadraticSVC")  # data fits of a general estimator


def _response(model: Model) -> Response:
    if _kind(model) == "SparseLogisticRegression":
        raise no_response(model, "Its predict_proba is not the logistic function of its log-odds in release 0.5")
    if _kind(model) == "LinearSVC":
        raise no_response(model, "Its score is a decision function")
    return Response(None, OwnCall("predict"), "target")


@with_response(_response)
def read_skglm(model: Model, request: Request) -> AdditiveReader:
    """Read a linear function: what the model predicts, or its decision function."""
    require_fitted(model, "coef_", "intercept_")
    kind = _kind(model)
    coefficients = np.atleast_2d(np.asarray(model.coef_, float)).T
    intercept = np.broadcast_to(np.atleast_1d(np.asarray(model.intercept_, float)), (coefficients.shape[1],))
    if kind in _CLASSIFIERS:
        if len(model.classes_) != 2:
            _refuse_skglm(model, f"Got {len(model.classes_)} classes")
        name = str(model.classes_[1])
        parts = LinearParts(coefficients, intercept, (name,), f"{_CLASSIFIERS[kind]} of class {name}", "decision_function")
    elif kind == "CoxEstimator":
        parts = LinearParts(coefficients, intercept, ("output",), "log hazard: high is early")
    elif kind in _REGRESSIONS or type(getattr(model, "datafit", None)).__name__ in _SCORES:
        parts = LinearParts(coefficients, intercept, target_names(coefficients.shape[1]), "target")
    else:
        _refuse_skglm(model, f"Got datafit={type(getattr(model, 'datafit', None)).__name__}")
    return read_parts(model, request, parts, fitted_names(model))


def _kind(model: Model) -> str:
    return next(cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("skglm."))


def _refuse_skglm(model: Model, got: str) -> NoReturn:
    do = "Call it: explain(model.predict, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"{type(model).__name__} can be read only where its prediction is linear", got, do)


def read_optbinning(model: Model, request: Request) -> AdditiveReader:
    """Read a score, a sum of the points of each column's bin; columns that the scorecard left out have no points."""
    if getattr(model, "binning_process_", None) is None:  # None before the fit
        raise_not_fitted(model)
    names = tuple(map(str, model.binning_process_.variable_names))
    call = FrameCall("score", names=names)
    form = AdditiveForm(
        blocks=(LinearTerms(np.ones((len(names), 1))),),
        intercept=np.array([float(model.intercept_)]),
        encode=functools.partial(_points, model, FrameCall("transform", names=names)),
        predict=functools.partial(call.of_table, model),
        own_call=call,
        n_columns=len(names),
        fitted_names=names,
        outputs=Outputs.of(("score",), request.output, owner="Scorecard"),
        unit="points of the score",
    )
    return AdditiveReader(model, request, form)


def _points(model: Model, call: FrameCall, X: Table, what: str) -> np.ndarray:
    """Return the points (n_rows, n_columns) of each cell."""
    used = [call.names.index(str(name)) for name in model.binning_process_.get_support(names=True)]
    points = np.zeros((X.n_rows, len(call.names)))
    try:
        points[:, used] = call.of_table(model, X)
    except (TypeError, ValueError, IndexError) as error:
        do = "Pass rows like those of the fit"
        raise InputError(f"The scorecard refuses the rows of {what}", f"{error}", do) from error
    return points
