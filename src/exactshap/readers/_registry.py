"""Map dotted names of models to reader files, so that optional libraries are imported only with their models."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import inspect
from collections.abc import Callable
from contextlib import suppress
from os import PathLike

import numpy as np

from exactshap._runtime.process_settings import without_lost_threads
from exactshap._runtime.types import Model
from exactshap.errors import (
    ExactshapError,
    ExplanationWarning,
    InputTypeError,
    UnknownNameError,
    UnsupportedModelError,
    UnsupportedStructureError,
    message,
    warn,
)
from exactshap.readers._base import Reader, is_of_target
from exactshap.readers._identity import answering_method, is_regressor, library_class, replaced
from exactshap.readers._request import CONDITIONAL, REPLACING, NoConditionalMeans, Request
from exactshap.readers._ways_out import asks_loss, no_loss, refuse_missing_attribute, require_fitted_at_all

# class (in the model's MRO, by module and name; "module.*" is every class of a package) -> reader module[:function]
# LinearSVC and LinearSVR have entries besides the wildcard of their module: an exact name wins (see ``_find``).
_REGISTRY: dict[str, str] = {
    "botorch.models.gp_regression.SingleTaskGP": "exactshap.readers.kernel_machines.gpytorch_exact_gp",
    "catboost.core.CatBoost": "exactshap.readers.trees.boosters:read_catboost",
    "econml.dml.causal_forest.CausalForestDML": "exactshap.readers.additive.linear_packages:read_econml",
    "econml.dml.dml.LinearDML": "exactshap.readers.additive.linear_packages:read_econml",
    "econml.dml.dml.SparseLinearDML": "exactshap.readers.additive.linear_packages:read_econml",
    "exactshap.estimators.fanova_process.FanovaGaussianProcess": "exactshap.readers.wrappers.own_estimators:read_fanova",
    "exactshap.estimators.rkhs_weighting.*": "exactshap.readers.additive.rkhs_weighting",
    "exactshap.estimators.shapley_ridge.*": "exactshap.readers.wrappers.own_estimators:read_shapley_ridge",
    "exactshap._graphs._file.LinearCore": "exactshap.readers.additive.onnx",
    "exactshap._graphs._file.OnnxFile": "exactshap.readers.wrappers.onnx",
    "exactshap._graphs._file.SupportCore": "exactshap.readers.kernel_machines.onnx",
    "exactshap._graphs._file.TreeCore": "exactshap.readers.trees.boosters:read_onnx",
    "exactshap.readers.additive.additive_model.AdditiveModel": "exactshap.readers.additive.additive_model",
    "exactshap.readers.kernel_machines.kernel_machine.KernelMachine": "exactshap.readers.kernel_machines.kernel_machine",
    "exactshap.readers.networks.one_layer.OneLayerNetwork": "exactshap.readers.networks.one_layer",
    "exactshap.trees.ensemble._model.TreeModel": "exactshap.readers.trees.boosters:read_tree_model",
    "flaml.automl.automl.AutoML": "exactshap.readers.wrappers.flaml",
    "flaml.automl.model.*": "exactshap.readers.wrappers.flaml",
    "glum._glm.GeneralizedLinearRegressorBase": "exactshap.readers.additive.linear_packages:read_glum",
    "gpytorch.models.exact_gp.ExactGP": "exactshap.readers.kernel_machines.gpytorch_exact_gp",
    "imblearn.pipeline.Pipeline": "exactshap.readers.wrappers.sklearn_pipeline",
    "imodels.rule_list.greedy_rule_list.GreedyRuleListClassifier": "exactshap.readers.trees.packages:read_imodels",
    "imodels.rule_set.rule_fit.RuleFit": "exactshap.readers.trees.packages:read_imodels",
    "imodels.tree.figs.FIGS": "exactshap.readers.trees.packages:read_imodels",
    "imodels.tree.figs.FIGSCV": "exactshap.readers.trees.packages:read_imodels",
    "imodels.tree.hierarchical_shrinkage.HSTree": "exactshap.readers.trees.packages:read_imodels",
    "interpret.glassbox._ebm._ebm.EBMModel": "exactshap.readers.additive.interpret_ebm",
    "lifelines.fitters.RegressionFitter": "exactshap.readers.additive.linear_packages:read_lifelines",
    "lightgbm.basic.Booster": "exactshap.readers.trees.boosters:read_lightgbm",
    "lightgbm.sklearn.LGBMModel": "exactshap.readers.trees.boosters:read_lightgbm",
    "ngboost.ngboost.NGBoost": "exactshap.readers.trees.packages:read_ngboost",
    "onnx.onnx_ml_pb2.ModelProto": "exactshap.readers.wrappers.onnx",
    "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession": "exactshap.readers.wrappers.onnx",
    "optbinning.scorecard.scorecard.Scorecard": "exactshap.readers.additive.linear_packages:read_optbinning",
    "perpetual.booster.PerpetualBooster": "exactshap.readers.trees.packages:read_perpetual",
    "pygam.pygam.GAM": "exactshap.readers.additive.pygam_gam",
    "quantile_forest._quantile_forest.BaseForestQuantileRegressor": "exactshap.readers.trees.packages:read_quantile_forest",
    "skglm.estimators.*": "exactshap.readers.additive.linear_packages:read_skglm",
    "sklearn.calibration.CalibratedClassifierCV": "exactshap.readers.wrappers.sklearn_ensembles:read_calibrated",
    "sklearn.compose._target.TransformedTargetRegressor": "exactshap.readers.wrappers.sklearn_single:read_target",
    "sklearn.covariance._elliptic_envelope.EllipticEnvelope": "exactshap.readers.additive.sklearn_densities:read_quadratic",
    "sklearn.cross_decomposition._pls.CCA": "exactshap.readers.additive.sklearn_linear",
    "sklearn.cross_decomposition._pls.PLSCanonical": "exactshap.readers.additive.sklearn_linear",
    "sklearn.cross_decomposition._pls.PLSRegression": "exactshap.readers.additive.sklearn_linear",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": "exactshap.readers.additive.sklearn_linear",
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": "exactshap.readers.additive.sklearn_densities:read_quadratic",
    "sklearn.dummy.*": "exactshap.readers.additive.sklearn_linear:read_constant",
    "sklearn.ensemble._bagging.BaggingClassifier": "exactshap.readers.wrappers.sklearn_ensembles:read_probabilities",
    "sklearn.ensemble._bagging.BaggingRegressor": "exactshap.readers.wrappers.sklearn_ensembles:read_mean",
    "sklearn.ensemble._forest.*": "exactshap.readers.trees.packages:read_sklearn",
    "sklearn.ensemble._gb.*": "exactshap.readers.trees.packages:read_sklearn",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.*": "exactshap.readers.trees.packages:read_sklearn",
    "sklearn.ensemble._iforest.*": "exactshap.readers.trees.packages:read_sklearn",
    "sklearn.ensemble._stacking.StackingClassifier": "exactshap.readers.wrappers.sklearn_ensembles:read_stack",
    "sklearn.ensemble._stacking.StackingRegressor": "exactshap.readers.wrappers.sklearn_ensembles:read_stack",
    "sklearn.ensemble._voting.VotingClassifier": "exactshap.readers.wrappers.sklearn_ensembles:read_probabilities",
    "sklearn.ensemble._voting.VotingRegressor": "exactshap.readers.wrappers.sklearn_ensembles:read_mean",
    "sklearn.ensemble._weight_boosting.AdaBoostClassifier": "exactshap.readers.trees.packages:read_sklearn",
    "sklearn.feature_selection._rfe.RFE": "exactshap.readers.wrappers.sklearn_pipeline:read_selected",
    "sklearn.frozen._frozen.FrozenEstimator": "exactshap.readers.wrappers.sklearn_single:read_inside",
    "sklearn.gaussian_process._gpc.GaussianProcessClassifier": "exactshap.readers.kernel_machines.sklearn_gaussian_process",
    "sklearn.gaussian_process._gpr.GaussianProcessRegressor": "exactshap.readers.kernel_machines.sklearn_gaussian_process",
    "sklearn.isotonic.IsotonicRegression": "exactshap.readers.additive.sklearn_linear:read_isotonic",
    "sklearn.kernel_ridge.KernelRidge": "exactshap.readers.kernel_machines.all_rows:read_kernel_ridge",
    "sklearn.linear_model.*": "exactshap.readers.additive.sklearn_linear",
    "sklearn.model_selection._classification_threshold.BaseThresholdClassifier": "exactshap.readers.wrappers.sklearn_single:read_inside",
    "sklearn.model_selection._search.BaseSearchCV": "exactshap.readers.wrappers.sklearn_single:read_inside",
    "sklearn.multiclass.OneVsOneClassifier": "exactshap.readers.wrappers.sklearn_multiclass",
    "sklearn.multiclass.OneVsRestClassifier": "exactshap.readers.wrappers.sklearn_multiclass",
    "sklearn.multiclass.OutputCodeClassifier": "exactshap.readers.wrappers.sklearn_multiclass:read_codes",
    "sklearn.multioutput.ClassifierChain": "exactshap.readers.wrappers.sklearn_multiclass:read_chain",
    "sklearn.multioutput.MultiOutputClassifier": "exactshap.readers.wrappers.sklearn_ensembles:read_probabilities",
    "sklearn.multioutput.MultiOutputRegressor": "exactshap.readers.wrappers.sklearn_multiclass",
    "sklearn.multioutput.RegressorChain": "exactshap.readers.wrappers.sklearn_multiclass:read_chain",
    "sklearn.naive_bayes.*": "exactshap.readers.additive.sklearn_densities:read_naive_bayes",
    "sklearn.neighbors._kde.KernelDensity": "exactshap.readers.kernel_machines.all_rows:read_density",
    "sklearn.neighbors._nearest_centroid.NearestCentroid": "exactshap.readers.additive.sklearn_densities:read_quadratic",
    "sklearn.neural_network._multilayer_perceptron.*": "exactshap.readers.networks.one_layer:read_perceptron",
    "sklearn.pipeline.Pipeline": "exactshap.readers.wrappers.sklearn_pipeline",
    "sklearn.semi_supervised._self_training.SelfTrainingClassifier": "exactshap.readers.wrappers.sklearn_single:read_inside",
    "sklearn.svm._classes.*": "exactshap.readers.kernel_machines.sklearn_svm",
    "sklearn.svm._classes.LinearSVC": "exactshap.readers.additive.sklearn_linear",
    "sklearn.svm._classes.LinearSVR": "exactshap.readers.additive.sklearn_linear",
    "sklearn.tree._classes.*": "exactshap.readers.trees.packages:read_sklearn",
    "sksurv.ensemble.boosting.ComponentwiseGradientBoostingSurvivalAnalysis": "exactshap.readers.additive.linear_packages:read_sksurv",
    "sksurv.ensemble.boosting.GradientBoostingSurvivalAnalysis": "exactshap.readers.trees.packages:read_sksurv",
    "sksurv.ensemble.forest.*": "exactshap.readers.trees.packages:read_sksurv",
    "sksurv.linear_model.aft.IPCRidge": "exactshap.readers.additive.linear_packages:read_sksurv",
    "sksurv.linear_model.coxnet.CoxnetSurvivalAnalysis": "exactshap.readers.additive.linear_packages:read_sksurv",
    "sksurv.linear_model.coxph.CoxPHSurvivalAnalysis": "exactshap.readers.additive.linear_packages:read_sksurv",
    "sksurv.svm.minlip.MinlipSurvivalAnalysis": "exactshap.readers.kernel_machines.all_rows:read_survival",
    "sksurv.svm.naive_survival_svm.NaiveSurvivalSVM": "exactshap.readers.additive.linear_packages:read_sksurv",
    "sksurv.svm.survival_svm.FastKernelSurvivalSVM": "exactshap.readers.kernel_machines.all_rows:read_survival",
    "sksurv.svm.survival_svm.FastSurvivalSVM": "exactshap.readers.additive.linear_packages:read_sksurv",
    "sksurv.tree.tree.*": "exactshap.readers.trees.packages:read_sksurv",
    "statsmodels.base.elastic_net.RegularizedResultsWrapper": "exactshap.readers.additive.statsmodels",
    "statsmodels.discrete.discrete_model.BinaryResultsWrapper": "exactshap.readers.additive.statsmodels",
    "statsmodels.discrete.discrete_model.PoissonResultsWrapper": "exactshap.readers.additive.statsmodels",
    "statsmodels.duration.hazard_regression.PHRegResults": "exactshap.readers.additive.statsmodels",
    "statsmodels.genmod.generalized_estimating_equations.GEEResultsWrapper": "exactshap.readers.additive.statsmodels",
    "statsmodels.genmod.generalized_linear_model.GLMResultsWrapper": "exactshap.readers.additive.statsmodels",
    "statsmodels.regression.linear_model.RegressionResults": "exactshap.readers.additive.statsmodels",
    "statsmodels.regression.linear_model.RegressionResultsWrapper": "exactshap.readers.additive.statsmodels",
    "statsmodels.regression.mixed_linear_model.MixedLMResultsWrapper": "exactshap.readers.additive.statsmodels",
    "treelite.model.Model": "exactshap.readers.trees.packages:read_treelite",
    "xgboost.core.Booster": "exactshap.readers.trees.boosters:read_xgboost",
    "xgboost.sklearn.XGBModel": "exactshap.readers.trees.boosters:read_xgboost",
    "ydf.model.gradient_boosted_trees_model.gradient_boosted_trees_model.GradientBoostedTreesModel": (
        "exactshap.readers.trees.packages:read_ydf"
    ),
    "ydf.model.random_forest_model.random_forest_model.RandomForestModel": "exactshap.readers.trees.packages:read_ydf",
}
# Methods of which a message suggests the first that a model has.
_WAYS = ("predict_proba", "decision_function", "predict", "predict_expectation", "predict_median", "score_samples")
# Most methods in a message.
_METHODS_NAMED = 3
# Fixed here: classes that users register later are compared with themselves (see ``known_class``).
_BUILT_IN = frozenset(_REGISTRY)
# Classes that predict for objects of their library.
_NOT_ON_TABLES = (
    "xgboost.core.Booster",
    "treelite.model.Model",
    "onnx.onnx_ml_pb2.ModelProto",
    "gpytorch.models.exact_gp.ExactGP",
    "botorch.models.gp_regression.SingleTaskGP",
)

# Reasons why there is no reader: what a prediction is instead of a sum
_NO_STRUCTURE = {
    "sklearn.ensemble._weight_boosting.AdaBoostRegressor": "Its prediction is a weighted median of trees",
    "sklearn.semi_supervised._label_propagation.": "Its probabilities are ratios of sums over all training rows",
    "autogluon.": "AutoGluon documents no way to the models of its ensembles",
    "mlflow.pyfunc.": "It calls the model that was logged; model.get_raw_model() returns that one where MLflow has it, to be passed instead",
    "sklearn.neighbors.": "Neighbours are ranked by distances of all columns at once",
}
_KNOWN = (
    "kernel machines, Gaussian processes, linear models, trees, forests and boosting of scikit-learn; pipelines, searches and"
    " scaled targets of them; XGBoost, LightGBM, CatBoost, EBM, pyGAM, gpytorch, BoTorch, treelite,"
    " lifelines, scikit-survival, statsmodels, glum, skglm, NGBoost, quantile-forest, Perpetual, YDF, imodels, econml,"
    " FLAML"
)

# Margin by which probabilities may leave [0, 1], as those of Gaussian processes, which are sums of error functions
MOST_BEYOND = 0.01


def register(class_name: str, reader_module: str) -> None:
    """Register the module that reads models of a class.

    Parameters
    ----------
    class_name : str
        Dotted name of the class, "package.module.Class"; subclasses that predict as it does are read too. The class is not
        imported.
    reader_module : str
        Dotted name of a module with a function ``read(model, request) -> Reader``, imported when the first such model is seen;
        "module:function" names another function.

    Examples
    --------
    >>> register("mylab.models.Spline", "mylab.spline_reader")
    >>> registered()["mylab.models.Spline"]
    'mylab.spline_reader'
    """
    _REGISTRY[class_name] = reader_module


@functools.cache
def _register_installed() -> None:
    """Register the entry points ``exactshap.readers`` of installed packages, a search of some milliseconds."""
    for entry in importlib.metadata.entry_points(group="exactshap.readers"):
        # setdefault, as installing a package must not change how registered models are read.
        _REGISTRY.setdefault(entry.name, entry.value)


def registered() -> dict[str, str]:
    """Return a copy of the registry, from names of classes to names of modules.

    >>> registered()["sklearn.kernel_ridge.KernelRidge"]
    'exactshap.readers.kernel_machines.all_rows:read_kernel_ridge'
    """
    return dict(_REGISTRY)


def read(model: Model, request: Request) -> Reader:
    """Find the reader of a model and bind it to the request.

    Parameters
    ----------
    model : object
        Fitted, or a function on tables.
    request : Request

    Returns
    -------
    reader : Reader

    Raises
    ------
    InputTypeError
        If the model is None or a class.
    UnsupportedModelError
        If the model is unsupported; the message names the closest route.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from exactshap.readers import Request
    >>> read(SVR().fit([[0.0], [1.0]], [0.0, 1.0]), Request()).traits.value_function
    'functional'
    """
    without_lost_threads()
    try:
        return _read(model, request)
    except NoConditionalMeans:
        # Only the outermost model takes all columns, as they come: steps inside drop and encode some.
        if request.players is not None:
            raise
        return _function("exactshap.readers.conditional.conditional")(model, request)
    except (UnknownNameError, UnsupportedModelError, UnsupportedStructureError) as error:
        if _calls_probabilities(model, request):
            return _read_probabilities(model, request, error)
        is_response = isinstance(request.output, str) and request.output == "response"
        if not isinstance(error, UnknownNameError) or (not is_response and not asks_loss(request.output)):
            raise
        plain = read(model, dataclasses.replace(request, output="auto"))
        if is_response:
            # Models that predict their target add up responses already.
            if is_of_target(plain.traits.unit):
                return plain
            raise
        # A loss is a ``model_output`` of shap: the error suggests an alternative for this model.
        raise UnknownNameError(no_loss(model, plain, request.output)) from None


def _calls_probabilities(model: Model, request: Request) -> bool:
    """Say whether ``output=`` means probabilities that the whole model can be called for."""
    is_whole = request.players is None and request.background is not None and not request.background.is_sparse
    is_plain = request.value_function in ("auto", *REPLACING)
    has_probabilities = callable(getattr(model, "predict_proba", None)) and not is_regressor(model)
    return request.asks_response and is_whole and is_plain and has_probabilities


def _read_probabilities(model: Model, request: Request, error: ExactshapError) -> Reader:
    """Read ``predict_proba`` as a function, where nothing else is known of the probabilities."""
    if request.options and _is_read(model, dataclasses.replace(request, options={})):
        raise error  # of a setting, by its name
    of_two = len(getattr(model, "classes_", ())) == 2 and not isinstance(model.classes_, list)
    options = {**request.options, "exact_owner": False}
    own = dataclasses.replace(request, output=1 if of_two else "auto", options=options)
    try:
        reader = read(model.predict_proba, own)
    except ExactshapError as called:
        # A setting has another name, or nothing but the call is known: then what it says is the reason
        is_reason = isinstance(called, UnknownNameError) or isinstance(error, UnsupportedModelError)
        raise (called if is_reason else error) from None
    # Boosters with an objective of the user's own, or of margins, return these
    if np.abs(reader.predict(request.background) - 0.5).max() > 0.5 + MOST_BEYOND:  # type: ignore[arg-type]
        raise error
    return reader


def _is_read(model: Model, request: Request) -> bool:
    with suppress(ExactshapError):
        _read(model, request)
        return True
    return False


def _read(model: Model, request: Request) -> Reader:
    if model is None or inspect.isclass(model):
        got = "None" if model is None else f"the class {model.__name__}"
        do = f"Pass a fitted estimator, such as {'model' if model is None else model.__name__ + '()'}.fit(X, y)"
        raise InputTypeError("`model` must be a fitted model", f"Got {got}", do)
    if isinstance(model, (str, PathLike)) and str(model).lower().endswith(".onnx"):
        return _function("exactshap.readers.wrappers.onnx")(model, request)
    known = known_class(model)
    # Entry points are searched only for unknown models, as that takes milliseconds.
    if known is None and hasattr(model, "predict"):
        _register_installed()
        known = known_class(model)
    # Before the family, as conditional means of trees and others are estimated from predictions alone.
    if _is_conditional(model, known, request.value_function):
        raise NoConditionalMeans
    # A subclass with its own predict must not be read as its parent, which is another function.
    if known is not None and (changed := replaced(model, known)):
        return _read_method(model, known, changed, request)
    if known is not None:
        # The check fails for fitted models of other libraries (lifelines); of a pipeline the step that is not fitted is named.
        if known.__module__.startswith(("sklearn.", "exactshap.")) and not hasattr(model, "steps"):
            require_fitted_at_all(model)
        try:
            return _reader_of(model)(model, request)
        except AttributeError as error:
            refuse_missing_attribute(model, error)
            raise
    # Of the class, as some models answer every name with a function (LightGBM's CVBooster)
    if all(callable(getattr(type(model), name, None)) for name in ("partial", "get_all_unique_fs")):
        return _function("exactshap.readers.additive.additive_model:read_structured")(model, request)
    if callable(model):
        return _function("exactshap.readers.black_box.function")(model, request)
    # Which of its methods is meant is for the user to say, and a library's model is never sampled unasked
    raise UnsupportedModelError(_unknown(model))


def read_every_class(model: Model, request: Request) -> Reader:
    """Read the probabilities of all classes where they are exact, also of two."""
    return _function("exactshap.readers.wrappers.sklearn_ensembles:read_every_class")(model, request)


def _is_conditional(model: Model, known: type | None, value_function: str) -> bool:
    """Say whether v(S) needs conditional means from outside the model's family."""
    if value_function != "observational":
        return value_function in CONDITIONAL
    module = "exactshap.readers.black_box" if known is None else _module(model)
    kernels, wrappers = "exactshap.readers.kernel_machines.", "exactshap.readers.wrappers."
    return module.startswith("exactshap.readers.") and not module.startswith((kernels, wrappers))


def known_class(model: Model) -> type | None:
    """Return the library's class that a model's reader reproduces, the nearest to the model's.

    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVR
    >>> known_class(GridSearchCV(SVR(), {})).__name__, known_class("no model")
    ('GridSearchCV', None)
    """
    for cls in type(model).__mro__:
        key = _find(cls)
        if key is not None:
            return library_class(model, key.split(".")[0]) if key in _BUILT_IN else cls
    return None


def require_own_prediction(model: Model) -> None:
    """Refuse a model with prediction code of its own."""
    known = known_class(model)
    if known is not None and (changed := replaced(model, known)):
        raise UnsupportedModelError(_replacing(model, known, changed, "Pass a model that predicts as its library's class does"))


def _reader_of(model: Model) -> Callable[[Model, Request], Reader]:
    """Return the function that reads a model; another family may read some models of a class."""
    where = _module(model)
    module = importlib.import_module(where.partition(":")[0])
    elsewhere = getattr(module, "reader_elsewhere", lambda _: None)(model)
    return _function(elsewhere or where)


def _function(where: str) -> Callable[[Model, Request], Reader]:
    """Return a function of a module, "module:function" or "module" for its ``read``."""
    name, _, function = where.partition(":")
    return getattr(importlib.import_module(name), function or "read")  # type: ignore[no-any-return]


def _module(model: Model) -> str:
    return next(_REGISTRY[key] for key in map(_find, type(model).__mro__) if key is not None)


def _read_method(model: Model, known: type, changed: tuple[str, ...], request: Request) -> Reader:
    """Explain a model with its own prediction code as a function."""
    method = answering_method(model, changed)
    if method is None or f"{known.__module__}.{known.__qualname__}" in _NOT_ON_TABLES:
        do = "Explain a function of tables around it: explain(lambda rows: ..., X, background)"
        raise UnsupportedModelError(_replacing(model, known, changed, do))
    if request.background is None:
        do = f"Pass reference rows, explain(model, X, background), to call model.{method} on mixed rows"
        raise UnsupportedModelError(_replacing(model, known, changed, do))
    warn(
        _replacing(model, known, changed, f"Its {method} is explained as a black box"),
        ExplanationWarning,
    )
    # Otherwise the black box would read the method's owner by its library's class, and miss the change.
    options = {**request.options, "exact_owner": False}
    return read(getattr(model, method), dataclasses.replace(request, options=options))


def _replacing(model: Model, known: type, changed: tuple[str, ...], do: str) -> str:
    name = f"`{type(model).__module__}.{type(model).__qualname__}`"
    names = ", ".join(changed[:_METHODS_NAMED]) + (
        f" and {len(changed) - _METHODS_NAMED} more" if len(changed) > _METHODS_NAMED else ""
    )
    return message(
        f"{name} has its own {names}", f"The reader of {known.__name__} reproduces {known.__name__}.{changed[0]}", do
    )


def _unknown(model: Model) -> str:
    """Return the error for an unknown model, with an alternative."""
    name = f"`{type(model).__module__}.{type(model).__qualname__}`"
    ways = [way for way in dir(type(model)) if way.startswith("predict") or way in ("score_samples", "score_one", "effect")]
    if not hasattr(model, "predict") and not ways:
        do = "Pass the model before the rows: explain(model, X, background)"
        if hasattr(model, "fit") and hasattr(model, "transform"):
            do = "Explain its outputs as a function's: explain(model.transform, X, background)"
        if isinstance(model, (str, PathLike)):
            do = "Load the model first: exactshap.trees.load(path) reads booster files, skops.io.load(path) others"
        return message("`model` must be a fitted model or a function", f"Got {name}, which has no predict", do)
    here = [way for way in _WAYS if hasattr(model, way)]
    # Regressors of AutoGluon and of skorch have it too
    if "predict_proba" in here and (getattr(model, "can_predict_proba", True) is False or is_regressor(model)):
        here.remove("predict_proba")
    method = next(iter(here), ways[0] if ways else "predict")
    why = next((why for start, why in _NO_STRUCTURE.items() if name[1:].startswith(start)), f"Known: {_KNOWN}")
    return message(
        f"No exact reader for {name}",
        why,
        f"Pass its function: explain({_called_on_tables(method)}, X, background) calls it on mixed rows (sampled beyond 13 players,"
        " with standard errors); or register a reader (docs/extend.md)",
    )


def _called_on_tables(method: str) -> str:
    """Return the code of a method's call on tables; those of online learners take one row as a dictionary.

    >>> _called_on_tables("predict_proba_one")
    "lambda rows: [model.predict_proba_one(row)[label] for row in rows.to_dict('records')]"
    """
    if not method.endswith("_one"):
        return f"model.{method}"
    chosen = "[label]" if "proba" in method else ""
    return f"lambda rows: [model.{method}(row){chosen} for row in rows.to_dict('records')]"


def _find(cls: type) -> str | None:
    """Return the entry of the registry that a class belongs to."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if name in _REGISTRY:
        return name
    parts = name.split(".")
    # The longest package first: a wildcard of a module is nearer than one of the whole library.
    for n in range(len(parts) - 1, 0, -1):
        wildcard = ".".join(parts[:n]) + ".*"
        if wildcard in _REGISTRY:
            return wildcard
    return None
