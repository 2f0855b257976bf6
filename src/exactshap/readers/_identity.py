"""Check whether a model predicts as its library's own class does, and get the names of its fit.

A subclass or an instance that replaces a method may predict otherwise.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Iterator
from types import CodeType, MethodType
from typing import Any, NoReturn

import numpy as np

from exactshap._runtime.types import Foreign, Model

# Methods that predict rows, probabilities first.
_METHODS = ("predict_proba", "decision_function", "predict")
# The special methods that a prediction may go through.
_CALLED_BY_PYTHON = ("__call__", "__getattr__", "__getattribute__")
_NEVER_PREDICTING = (  # public methods that no prediction calls
    "fit",
    "partial_fit",
    "fit_predict",
    "fit_transform",
    "score",
    "get_params",
    "set_params",
    "get_metadata_routing",
    "set_output",
    "save_model",
    "load_model",
    "path",  # of coefficients, which fits call
    "evals_result",
    "feature_importances_",
    "n_features_in_",
    "feature_names_in_",
)
_NEVER_PREDICTING_PREFIXES = ("_fit", "_repr", "_more_tags", "_get_tags", "_get_param_names", "_validate_params")
# Libraries with readers that explain scores of classifiers, never the labels of ``predict``.
_SCORED_LIBRARIES = ("sklearn", "exactshap", "interpret")
# Methods that every model of a class defines itself, from modules that are read.
_DEFINED_BY_THE_USER = {"gpytorch.models.exact_gp.ExactGP": ("forward",)}
_MISSING = object()


def library_class(model: Model, package: str) -> type | None:
    """Return the first class of a package that a model inherits from.

    >>> library_class(True, "builtins")
    <class 'bool'>
    """
    return next((cls for cls in type(model).__mro__ if cls.__module__.split(".")[0] == package), None)


def replaced(model: Model, known: type) -> tuple[str, ...]:
    """Return names used by predictions that a model defines otherwise than ``known``.

    Methods, properties and special methods count, of subclasses, mixins and the instance itself; methods of fitting, scoring and
    printing do not, nor do a classifier's labels where its scores are explained.

    >>> class Loud(list):
    ...     def __call__(self):
    ...         return "!"
    >>> replaced(Loud(), list), replaced([], list)
    (('__call__',), ())
    """
    reached = _reached_by_predictions(known)
    by_class = [name for name in _replaced_by_class(type(model), known) if name in reached]
    names = [*by_class, *_replaced_by_instance(model, known)]
    allowed = _DEFINED_BY_THE_USER.get(f"{known.__module__}.{known.__qualname__}", ())
    # A subclass may change the threshold in ``predict``, which does not affect the explained scores.
    labels = ("predict",) if known.__module__.split(".")[0] in _SCORED_LIBRARIES and gives_labels(model) else ()
    return tuple(dict.fromkeys(name for name in names if name not in (*allowed, *labels)))


@functools.cache
def _reached_by_predictions(known: type) -> frozenset[str]:
    """Return the names that predictions of a class may use: its public methods, names in their code, and so on.

    Methods of fitting, scoring and printing are left out. As only names are compared, the result includes some too many.
    """
    names = {name for cls in known.__mro__ for name in vars(cls)}
    reached = {*_CALLED_BY_PYTHON, *(name for name in names if not name.startswith("_") and _may_predict(name))}
    waiting = list(reached)
    while waiting:
        name = waiting.pop()
        for code in (code for cls in known.__mro__ for code in _codes_of(vars(cls).get(name))):
            new = (_names_in(code) & names) - reached
            reached |= new
            waiting += new
    return frozenset(reached)


def _codes_of(attribute: Foreign) -> list[CodeType]:
    """Return the code of a method or property, decorated or conditional ones too."""
    # Properties, partials, class methods, decorated functions, and scikit-learn's ``available_if`` with its check.
    inside = [getattr(attribute, name, None) for name in ("fget", "fn", "func", "__func__", "__wrapped__", "check")]
    codes = [code for part in inside if part is not None for code in _codes_of(part)]
    own = getattr(attribute, "__code__", None)
    return [*codes, own] if isinstance(own, CodeType) else codes


def _names_in(code: CodeType) -> set[str]:
    nested = [_names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    # co_names also includes globals and modules: too many names may refuse a model, but never misread one.
    return set(code.co_names).union(*nested)


def gives_labels(model: Model) -> bool:
    """Say whether ``predict`` returns labels, as for classifiers and outlier detectors."""
    classes = getattr(model, "classes_", None)
    # A regressor of Perpetual: its predict_proba returns ones.
    if isinstance(classes, np.ndarray) and not classes.size:
        return False
    # Regressors of imodels have a predict_proba, too.
    if is_regressor(model):
        return False
    return any(hasattr(model, score) for score in ("predict_proba", "decision_function", "score_samples"))


def is_regressor(model: Model) -> bool:
    """Say whether a model is one of scikit-learn's regressors, or made like them."""
    return any(cls.__name__ == "RegressorMixin" for cls in type(model).__mro__)


def _replaced_by_class(cls: type, known: type) -> Iterator[str]:
    # In the order of inheritance, with mixins on either side of the library's class.
    own = [part for part in cls.__mro__ if part not in known.__mro__]
    for name in dict.fromkeys(name for part in own for name in vars(part) if _may_predict(name)):
        # Static, as a property would otherwise run the user's code.
        here, there = (inspect.getattr_static(owner, name, _MISSING) for owner in (cls, known))
        if there is _MISSING:
            if name in (*_METHODS, *_CALLED_BY_PYTHON):  # readers look these up by name
                yield name
        elif here is not there and (_is_code(here) or _is_code(there)) and not getattr(there, "__isabstractmethod__", False):
            yield name


def _replaced_by_instance(model: Model, known: type) -> Iterator[str]:
    for name, value in getattr(model, "__dict__", {}).items():
        # model.predict = something: an instance's attribute hides the method of its class.
        if callable(value) and _may_predict(name) and callable(getattr(known, name, None)):
            yield name


def _may_predict(name: str) -> bool:
    """Say whether a prediction may use an attribute."""
    if name.startswith("__"):
        return name in _CALLED_BY_PYTHON
    # scikit-learn generates these for every subclass
    requests = name.startswith("set_") and name.endswith("_request")
    return not (name in _NEVER_PREDICTING or name.startswith(_NEVER_PREDICTING_PREFIXES) or requests)


def _is_code(attribute: Foreign) -> bool:
    return callable(attribute) or hasattr(type(attribute), "__get__")


def sklearn_name(model: Model) -> str:
    """Return the name of the scikit-learn class that an object behaves as, or "".

    >>> from sklearn.svm import SVR
    >>> class Mine(SVR):
    ...     pass
    >>> class Clipped(SVR):
    ...     def predict(self, X):
    ...         return super().predict(X).clip(0.0)
    >>> sklearn_name(SVR()), sklearn_name(Mine()), sklearn_name(Clipped())
    ('SVR', 'SVR', '')
    """
    known = library_class(model, "sklearn")
    return "" if known is None or replaced(model, known) else known.__name__


def answering_method(model: Model, changed: tuple[str, ...]) -> str | None:
    """Return the method to explain of a model with its own methods: one of these, else the first with numbers."""
    there = [name for name in _METHODS if hasattr(model, name)]
    if "predict" in there and gives_labels(model):
        there.remove("predict")
    own = [name for name in there if name in changed]
    return next(iter([*own, *there]), None)


def is_own_method(method: Foreign, known: type, *, has_settings: bool = False) -> bool:
    """Say whether a bound method is that of ``known`` and predicts numbers; those of labels need settings for that."""
    name, owner = getattr(method, "__name__", ""), method.__self__
    if not _may_predict(name) or (name == "predict" and not has_settings and gives_labels(owner)):
        return False
    descriptor = inspect.getattr_static(known, name, None)
    # Bound first, as ``available_if`` wraps the function of the class.
    bound = descriptor.__get__(owner, known) if hasattr(type(descriptor), "__get__") else None
    return isinstance(bound, MethodType) and isinstance(method, MethodType) and bound.__func__ is method.__func__


def require_fitted(model: Model, *attributes: str) -> None:
    """Raise scikit-learn's NotFittedError for a model that was not fitted."""
    if not all(hasattr(model, attribute) for attribute in attributes):
        raise_not_fitted(model)


def raise_not_fitted(model: Model) -> NoReturn:
    """Raise NotFittedError with scikit-learn's message."""
    from sklearn.exceptions import NotFittedError

    raise NotFittedError(
        f"This {type(model).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before explaining this estimator."
    )


def fitted_names(model: Model) -> tuple[str, ...] | None:
    """Return the column names that the model was fitted with, or None."""
    known = getattr(model, "feature_names_in_", None)
    names = () if known is None else tuple(map(str, known))
    # For arrays interpret makes some up: feature_0000, ...
    made_up = library_class(model, "interpret") and names == tuple(f"feature_{j:04}" for j in range(len(names)))
    return None if made_up else names or None


def nameless(estimator: Model) -> Any:
    """Return a copy that takes arrays without a warning about names."""
    # A shallow copy: fitted arrays are shared, and the user's own estimator keeps its names.
    twin = copy.copy(estimator)
    twin.__dict__.pop("feature_names_in_", None)
    return twin


def writes_to_rows(estimator: Model) -> bool:
    """Say whether an estimator or one inside it writes to its input (``copy=False``)."""
    return any(not value for name, value in estimator.get_params().items() if name.rpartition("__")[2] == "copy")
