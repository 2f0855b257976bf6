"""Write messages for known models that cannot be explained: not fitted, of another version, or for a loss."""

from __future__ import annotations

import importlib.metadata

from exactshap._runtime.types import Foreign, Model
from exactshap.errors import UnsupportedModelError, message
from exactshap.readers._base import Reader
from exactshap.readers._identity import gives_labels, raise_not_fitted

# What ``output=`` is called where a row's loss is meant, and that loss: of the probability p of the row's class, else of the target.
_OF_CLASS = {
    **dict.fromkeys(("log_loss", "logloss", "cross_entropy", "loss"), "-np.log({}.clip(1e-15))"),
    **dict.fromkeys(("brier", "squared_error", "mse"), "(1 - {}) ** 2"),
    **dict.fromkeys(("absolute_error", "mae", "error"), "1 - {}"),
}
_ABSOLUTE = ("absolute_error", "mae", "error")
_CLASS_UNITS = ("log-odds", "probability", "score before the softmax")


def asks_loss(output: object) -> bool:
    """Say whether ``output=`` is the loss of a row.

    >>> asks_loss("brier"), asks_loss(0)
    (True, False)
    """
    return isinstance(output, str) and output in _OF_CLASS


def no_loss(model: Model, reader: Reader, output: str) -> str:
    """Return the message for a loss: it needs the row's own target. ``reader`` is the model's, for its own outputs."""
    explained = f"explain(lambda rows: {_loss_of_row(model, reader, output)}, X[i:i + 1], background)"
    return message(
        f"The loss of a row needs its own target, which output={output!r} does not name",
        f"Outputs of {reader.traits.model_name}: {list(reader.traits.output_names)}",
        f"Explain one row's loss: {explained}; or, of boosted trees, split the score of all rows: exactshap.decompose.decompose_loss(model, X, y)",
    )


def _loss_of_row(model: Model, reader: Reader, output: str) -> str:
    """Return the code of the loss of row i."""
    probability = _probability_of_class(model, reader)
    if probability:
        return _OF_CLASS[output].format(probability)
    if gives_labels(model):
        return "model.predict(rows) != y[i]"
    predicted = f"model{_called(model)}(rows)"
    return f"np.abs(y[i] - {predicted})" if output in _ABSOLUTE else f"(y[i] - {predicted}) ** 2"


def _probability_of_class(model: Model, reader: Reader) -> str:
    """Return the code of the predicted probability of the class of row i; "" where the model has none."""
    if gives_labels(model):
        if not hasattr(model, "predict_proba"):
            return ""
        of_one = not isinstance(model.classes_, list)  # of several targets, the first
        column = "list(model.classes_).index(y[i])" if of_one else "list(model.classes_[0]).index(y[i][0])"
        return f"model.predict_proba(rows){'' if of_one else '[0]'}[:, {column}]"
    if not reader.traits.unit.startswith(_CLASS_UNITS):
        return ""
    if type(model).__module__.startswith("catboost"):
        return "model.predict(rows, prediction_type='Probability')[:, int(y[i])]"
    predicted = f"model{_called(model)}(rows)"
    if reader.traits.n_outputs == 1:
        return f"np.abs(1 - y[i] - {predicted})"
    owner = getattr(model, "__self__", None)  # of a method such as model.predict_proba
    return f"{predicted}[:, {'int(y[i])' if owner is None else 'list(model.__self__.classes_).index(y[i])'}]"


def _called(model: Model) -> str:
    """Return how a model is called; XGBoost's boosters predict their own matrices except in one method."""
    return next((f".{name}" for name in ("inplace_predict", "predict") if hasattr(model, name)), "")


def refuse_missing_attribute(model: Model, error: AttributeError) -> None:
    """Refuse a model that lacks an attribute: it is not fitted, or of another version of its library."""
    from sklearn.exceptions import NotFittedError

    lacking, library = error.obj, _library(model)
    if isinstance(error, NotFittedError) or library == "builtins" or (lacking is not model and _library(lacking) != library):
        return  # of the user's code, such as the function of a step
    require_fitted_at_all(lacking)
    what = f"`{type(lacking).__module__}.{type(lacking).__qualname__}` has no attribute {error.name!r}, which its reader needs"
    got = f"Installed is {_distribution(library)}"
    do = "Load the model with the version that saved it, or fit it again with this one"
    raise UnsupportedModelError(what, got, do) from error


def _library(thing: Foreign) -> str:
    return type(thing).__module__.partition(".")[0]


def require_fitted_at_all(model: Foreign) -> None:
    """Raise scikit-learn's NotFittedError where its own check does; other objects pass."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(model)
    except NotFittedError:
        raise_not_fitted(model)
    except (TypeError, AttributeError):  # no estimator, or one without attributes that its tags need
        return


def _distribution(library: str) -> str:
    """Return the name and version of the installed package that a library comes in.

    >>> _distribution("sklearn").split()[0]
    'scikit-learn'
    """
    name = importlib.metadata.packages_distributions().get(library, [library])[0]
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return library
