"""Read linear models of packages: econml, glum, lifelines, scikit-survival, skglm, optbinning, and XGBoost's ``gblinear``."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import (
    Outputs,
    OwnCall,
    Request,
    fitted_names,
    raise_not_fitted,
    require_fitted,
    score_names,
    target_names,
)
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._terms import ColumnTerms, LinearTerms, TermBlock
from exactshap.readers.additive.response import response_of_link, unit_of_link, with_response
from exactshap.readers.additive.sklearn_linear import LinearParts, linear_parts, read_parts
from exactshap.readers.additive.statsmodels import FrameCall, is_of_terms, read_formula
from exactshap.readers.responses import Response, no_response, probabilities

# -- econml --------------------------------------------------------------------------------------------------------------


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
    names = _effects(model, len(coefficients))
    call = Outputs.of(names, request.output, owner=type(model).__name__).call("const_marginal_effect")
    columns = model.cate_feature_names()
    numbered = list(columns) == [f"X{j}" for j in range(len(columns))]  # of an array
    parts = LinearParts(coefficients.T, np.asarray(intercept, float), names, "treatment effect")
    return read_parts(model, request, parts, None if numbered else tuple(map(str, columns)), call)


def _effects(model: Model, n: int) -> tuple[str, ...]:
    """Return the names of the treatments, or of several outcomes."""
    for names in (model.cate_treatment_names(), model.cate_output_names()):
        if n > 1 and len(names) == n:
            return tuple(map(str, names))
    return ("effect",) if n == 1 else tuple(f"effect {k}" for k in range(n))


def _refuse_effect(model: Model, what: str) -> NoReturn:
    do = "Call it: explain(model.effect, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"The effect of {type(model).__name__} {what}", do=do)


# -- glum ----------------------------------------------------------------------------------------------------------------

_GLUM_LINKS = {"IdentityLink": "identity", "LogLink": "log", "LogitLink": "logit"}


def _glum_response(model: Model) -> Response:
    """Return the mean."""
    require_fitted(model, "coef_")
    return response_of_link(model, _glum_link(model), OwnCall("predict"), f"Got a {_glum_link(model)}")


def _glum_link(model: Model) -> str:
    name = type(model.link_instance).__name__
    return _GLUM_LINKS.get(name, name)


@with_response(_glum_response)
def read_glum(model: Model, request: Request) -> AdditiveReader:
    r"""Read the linear predictor without the offsets of the fit, categories included.

    .. math:: g(\mu(x)) = b + \sum_j \beta_j x_j + \sum_j \gamma_j[x_j]
    """
    require_fitted(model, "coef_", "intercept_")
    if getattr(model, "formula", None) is not None:
        do = "Call it on frames: explain(model.linear_predictor, X, background), exact up to 13 players"
        raise UnsupportedStructureError("Terms of a formula are not columns of the rows", f"Got {model.formula!r}", do)
    columns = _glum_columns(model)
    block: TermBlock = ColumnTerms(tuple((j,) for j in range(len(columns))), functools.partial(_glum_terms, columns))
    if not any(column.levels for column in columns):
        block = LinearTerms(np.array([column.coefficients for column in columns]))
    form = AdditiveForm(
        blocks=(block,),
        intercept=np.array([float(model.intercept_)]),
        encode=functools.partial(_glum_cells, columns),
        own_call=OwnCall("linear_predictor"),
        in_double=False,
        n_columns=len(columns),
        fitted_names=tuple(column.name for column in columns) if hasattr(model, "categorical_levels_") else None,
        outputs=Outputs.of(("output",), request.output, owner=type(model).__name__),
        unit=unit_of_link(_glum_link(model)),
    )
    return AdditiveReader(model, request, form)


@dataclass(frozen=True, eq=False)
class _Column:
    """Hold the coefficient of a numeric column, or those of categories and missing cells."""

    name: str
    coefficients: np.ndarray
    levels: tuple[object, ...] = ()

    def encode(self, X: Table, j: int, what: str) -> np.ndarray:
        """Return numbers, or positions of categories among the coefficients."""
        if self.levels:
            places = {level: place for place, level in enumerate(self.levels)}
            missing = len(places) if len(self.coefficients) > len(places) else np.nan
            cells = [missing if cell != cell or cell is None else places.get(cell, np.nan) for cell in X.column(j)]
            values, known = np.array(cells, float), f"It knows {', '.join(map(repr, self.levels[:5]))}"
        else:
            values, known = X.select([j]).numeric(what=what)[:, 0], "It knows finite numbers"
        if np.isfinite(values).all():
            return values
        row = int(np.argmin(np.isfinite(values)))
        what = f"Input {what} holds a value that the model does not know (first at row {row}, column {self.name!r})"
        raise InputError(what, f"Got {X.column(j)[row]!r}", known, row=row)


def _glum_columns(model: Model) -> tuple[_Column, ...]:
    """Return the columns in the order of the fit, with their coefficients."""
    coefficients, terms, columns = np.asarray(model.coef_, float), np.array(model.term_names_, object), []
    for name in dict.fromkeys(terms):
        own = coefficients[terms == name]
        known = tuple(getattr(model, "categorical_levels_", {}).get(name, ()))
        if known and len(own) - bool(model.has_missing_category_[name]) < len(known):
            own = np.concatenate([np.zeros(1), own])  # drop_first: the first category is the reference
        columns.append(_Column(str(name), own, known))
    return tuple(columns)


def _glum_cells(columns: tuple[_Column, ...], X: Table, what: str) -> np.ndarray:
    return np.stack([column.encode(X, j, what) for j, column in enumerate(columns)], axis=1)


def _glum_terms(columns: tuple[_Column, ...], rows: np.ndarray) -> np.ndarray:
    """Return the terms (n_rows, n_columns, 1)."""
    terms = np.empty((*rows.shape, 1))
    for j, column in enumerate(columns):
        own = column.coefficients
        terms[:, j, 0] = own[rows[:, j].astype(int)] if column.levels else own[0] * rows[:, j]
    return terms


# -- lifelines -----------------------------------------------------------------------------------------------------------


def _lifelines_response(model: Model) -> Response:
    """Return the hazard relative to the baseline's, or the median time."""
    names = () if _has_formula(model) else _lifelines_names(model)
    if _is_cox(model):
        return Response("exponential", FrameCall("predict_partial_hazard", names=names), "partial hazard")
    return Response("exponential", FrameCall("predict_median", names=names), "median survival time")


@with_response(_lifelines_response)
def read_lifelines(model: Model, request: Request) -> AdditiveReader:
    r"""Read a linear predictor, from which lifelines subtracts its mean over the training rows.

    .. math:: \log h(t \mid x) - \log h_0(t) = (x - \bar x) \cdot \beta, \qquad \log t_{1/2}(x) = b + x \cdot \beta
    """
    names = _lifelines_names(model)
    link: Callable[[np.ndarray], np.ndarray] | None = None if _is_cox(model) else np.log
    call, unit = FrameCall("predict_median", finish=_raveled_log), "log of the median survival time"
    if link is None:
        call, unit = FrameCall("predict_log_partial_hazard", finish=np.ravel), "log partial hazard: high is early"
    if _has_formula(model):
        return read_formula(model, request, names, call, unit=unit, floor=0.0 if link is None else 1.0)
    call = replace(call, names=names)
    at_zero = call(model, np.zeros((1, len(names))))
    coefficients = np.asarray(_lifelines_coefficients(model), float)[:, None]
    return read_parts(model, request, LinearParts(coefficients, at_zero, ("output",), unit, call.method, link), names, call)


def _raveled_log(values: np.ndarray) -> np.ndarray:
    return np.log(np.ravel(values))


def _is_cox(model: Model) -> bool:
    """Say whether it is Cox's original model, with a baseline hazard of any form."""
    return hasattr(model, "predict_log_partial_hazard") and hasattr(model, "params_")


def _lifelines_coefficients(model: Model) -> Any:
    """Return the coefficients of the columns as a Series; refuse models that are not linear in them."""
    if not hasattr(model, "durations") and not hasattr(model, "params_"):
        raise_not_fitted(model)
    if _is_cox(model):
        return model.params_
    why = "Got a model with hazards of another form"
    if any(kind.__name__ == "ParametericAFTRegressionFitter" for kind in type(model).__mro__):
        params = model.params_
        of_columns = params[params.index.get_level_values(1) != "Intercept"]
        parameters = of_columns.index.get_level_values(0).unique()
        if len(parameters) == 1:
            return of_columns.droplevel(0)
        why = f"Columns act on {', '.join(parameters)}"
    way = "explain(lambda rows: model.predict_survival_function(rows, times=[t]).T, X, background)"
    do = f"Explain its survival probability at a time t: {way}, exact up to 13 players"
    what = f"{type(model).__name__} can be read only where its prediction is linear in the columns"
    raise UnsupportedStructureError(what, why, do)


def _lifelines_names(model: Model) -> tuple[str, ...]:
    """Return the columns, or the terms of a formula."""
    return tuple(str(name) for name in _lifelines_coefficients(model).index if name != "Intercept")


def _has_formula(model: Model) -> bool:
    """Say whether parameters are those of a formula's terms, and not of columns."""
    return "Intercept" in _lifelines_coefficients(model).index or is_of_terms(_lifelines_names(model))


# -- scikit-survival -------------------------------------------------------------------------------------------------------

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


# -- skglm ---------------------------------------------------------------------------------------------------------------

_REGRESSIONS = ("Lasso", "WeightedLasso", "ElasticNet", "MCPRegression", "GroupLasso", "MultiTaskLasso")
_CLASSIFIERS = {"SparseLogisticRegression": "log-odds", "LinearSVC": "decision function"}
_SCORES = ("Quadratic", "WeightedQuadratic", "Huber", "QuadraticSVC")  # data fits of a general estimator


def _skglm_response(model: Model) -> Response:
    if _kind(model) == "SparseLogisticRegression":
        raise no_response(model, "Its predict_proba is not the logistic function of its log-odds in release 0.5")
    if _kind(model) == "LinearSVC":
        raise no_response(model, "Its score is a decision function")
    return Response(None, OwnCall("predict"), "target")


@with_response(_skglm_response)
def read_skglm(model: Model, request: Request) -> AdditiveReader:
    """Read a linear function: what the model predicts, or its decision function."""
    require_fitted(model, "coef_", "intercept_")
    kind = _kind(model)
    if kind in _CLASSIFIERS and len(model.classes_) != 2:
        _refuse_skglm(model, f"Got {len(model.classes_)} classes")
    datafit, parts = type(getattr(model, "datafit", None)).__name__, linear_parts(model)
    if kind in _CLASSIFIERS:
        parts = replace(parts, unit=f"{_CLASSIFIERS[kind]} of class {parts.output_names[0]}")
    elif kind == "CoxEstimator":
        parts = replace(parts, output_names=("output",), unit="log hazard: high is early")
    elif kind not in _REGRESSIONS and datafit not in _SCORES:
        _refuse_skglm(model, f"Got datafit={datafit}")
    return read_parts(model, request, parts, fitted_names(model))


def _kind(model: Model) -> str:
    return next(cls.__name__ for cls in type(model).__mro__ if cls.__module__.startswith("skglm."))


def _refuse_skglm(model: Model, got: str) -> NoReturn:
    do = "Call it: explain(model.predict, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"{type(model).__name__} can be read only where its prediction is linear", got, do)


# -- optbinning ----------------------------------------------------------------------------------------------------------


def read_optbinning(model: Model, request: Request) -> AdditiveReader:
    """Read a score, a sum of the points of each column's bin; columns that the scorecard left out have no points."""
    if getattr(model, "binning_process_", None) is None:  # None before the fit
        raise_not_fitted(model)
    names = tuple(map(str, model.binning_process_.variable_names))
    parts = LinearParts(np.ones((len(names), 1)), np.array([float(model.intercept_)]), ("score",), "points of the score")
    encode = functools.partial(_points, model, FrameCall("transform", names=names))
    return read_parts(model, request, parts, names, FrameCall("score", names=names), encode=encode, in_double=False)


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


# -- linear boosters of XGBoost: margins without the terms of missing cells ----------------------------------------------------

# Names were compared here; XGBoost refuses any if it was fitted without
_UNCHECKED = {"validate_features": False}
_LOGARITHMS = {
    **dict.fromkeys(("count:poisson", "reg:gamma", "reg:tweedie"), "log of the target"),
    "survival:cox": "log hazard",
}


def _xgboost_response(model: Model) -> Response:
    """Return the mean, or the probabilities."""
    unit = _xgboost_unit(model)
    if unit == "target":
        return Response(None, OwnCall("predict", _UNCHECKED), "target")
    if unit == "log of the target":
        return Response("exponential", OwnCall("predict", _UNCHECKED), "target")
    if not hasattr(model, "predict_proba"):
        raise no_response(model, f"Its margin is a {unit}")
    return probabilities(model.classes_)


@with_response(_xgboost_response)
def read_xgboost(model: Model, request: Request) -> AdditiveReader:
    """Read the margins by the weights of the saved model; the constant is its prediction of a row of zeros."""
    if not hasattr(model, "get_booster"):
        do = "Load it into an XGBRegressor or XGBClassifier: estimator.load_model(path)"
        raise UnsupportedStructureError("A booster of gblinear predicts for a DMatrix only", "Got a Booster", do)
    booster = model.get_booster()
    saved = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]["model"]
    weights = np.asarray(saved["weights"], np.float32).reshape(booster.num_features() + 1, -1)
    names = score_names(model.classes_) if hasattr(model, "classes_") else target_names(weights.shape[1])
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    call = OwnCall("predict", {"output_margin": True, **_UNCHECKED})
    constant = np.ravel(call(model, np.zeros((1, booster.num_features()), np.float32)))
    fitted = None if booster.feature_names is None else tuple(booster.feature_names)
    return read_parts(
        model,
        request,
        LinearParts(weights[:-1], constant, names, _xgboost_unit(model)),
        fitted,
        replace(call, finish=outputs.pick),
        encode=functools.partial(_xgboost_rows, model.missing, type(model).__name__, request.feature_names),
    )


def _xgboost_rows(missing: float, owner: str, names: tuple[str, ...] | None, X: Table, what: str) -> np.ndarray:
    """Return rows with 0 in missing cells, of which XGBoost adds nothing."""
    rows = X.numeric(what=what)
    with np.errstate(over="ignore"):
        # In the library's precision, in which cells and the missing value may agree
        is_missing = np.isnan(rows) | (rows.astype(np.float32) == np.float32(missing))
    return Table(np.where(is_missing, 0.0, rows), None, *rows.shape).finite(what, owner, names=X.names or names)


def _xgboost_unit(model: Model) -> str:
    if hasattr(model, "classes_"):
        names = score_names(model.classes_)
        return f"log-odds of class {names[0]}" if len(names) == 1 else "score before the softmax"
    objective = str(json.loads(model.get_booster().save_config())["learner"]["objective"]["name"])
    return _LOGARITHMS.get(objective, "log-odds" if objective.endswith(":logistic") else "target")
