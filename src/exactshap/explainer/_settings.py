"""Check the settings of an Explainer before any work."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_jobs, check_memory_limit
from exactshap._runtime.types import Model
from exactshap.errors import ExplanationWarning, InputError, InputTypeError, UnknownNameError, message, warn
from exactshap.frames import Shape, Shaped, Table, underscored
from exactshap.readers import Reader, Request

# of estimators (feature_name_: of LightGBM before 4.5), then of boosters
_NAMES_OF_FIT = ("feature_names_in_", "feature_names_", "feature_name_", "feature_names", "feature_name")


def check_settings(given: Mapping[str, Any]) -> None:
    """Refuse invalid or misspelt settings of Explainer."""
    own = [name for name in given if name not in ("self", "model", "options")]
    for name in given["options"]:
        if close := difflib.get_close_matches(name, own, n=1, cutoff=0.8):
            raise UnknownNameError(f"Explainer has no setting {name!r}", do=f"Did you mean {close[0]!r}?")
    if given["on_inexact"] not in ("raise", "warn"):
        raise InputError("The 'on_inexact' parameter must be 'raise' or 'warn'", f"Got {given['on_inexact']!r}")
    n_jobs, memory_limit, progress = given["n_jobs"], given["memory_limit"], given["progress"]
    check_jobs(n_jobs)
    check_memory_limit(memory_limit)
    if not (progress is None or isinstance(progress, (bool, np.bool_)) or callable(progress)):
        do = "A function is called with (rows done, rows in all)"
        raise InputTypeError("The 'progress' parameter must be a bool, a function or None", f"Got {progress!r}", do)
    if given["background"] is None and given["background_weights"] is not None:
        raise InputError("`background_weights` needs reference rows", "Got background=None")


def checked_names(names: Any) -> tuple[str, ...] | None:
    """Return the user's names as text; refuse repeated ones."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputTypeError("`feature_names` must be a sequence of str", f"Got {names!r}")
    texts = tuple(str(name) for name in names)
    repeated = next((name for name in texts if texts.count(name) > 1), None)
    if repeated is not None:
        got = f"{repeated!r} occurs {texts.count(repeated)} times"
        raise InputError("`feature_names` must be unique", got, "Give each column a name of its own")
    return texts


def of_shape(model: Model, shape: Shape) -> Shaped:
    """Return a function of rows of a shape as one of flat rows."""
    if not callable(model) or isinstance(model, type):
        do = f"Pass its function: model.{'predict' if hasattr(model, 'predict') else '__call__'}"
        raise InputTypeError("`shape` needs a function of rows", f"Got a {type(model).__name__}", do)
    return Shaped(model, shape)


def aligned(table: Table, model: Model) -> Table:
    """Return a frame's columns in the order of the fit. Estimators and boosters know their names; others are left as they are.

    LightGBM keeps names with underscores for white space; other differences are left for the reader to refuse.
    """
    names = next((known for known in (getattr(model, name, None) for name in _NAMES_OF_FIT) if known is not None), None)
    fitted = names() if callable(names) else names
    if not table.is_frame or fitted is None:
        return table
    spelling = underscored if type(model).__module__.startswith("lightgbm") else str
    wanted, here = [str(name) for name in fitted], [spelling(name) for name in table.names or ()]
    if wanted == here or sorted(wanted) != sorted(here):
        return table
    return table.select([here.index(name) for name in wanted])


def warn_of_number(reader: Reader, output: object) -> None:
    """Warn where ``output`` counts to one class and is the label of another."""
    classes = getattr(reader.traits.model, "classes_", None)
    if isinstance(output, bool) or not isinstance(output, (int, np.integer)) or not isinstance(classes, np.ndarray):
        return
    labels, (name, *others) = [str(label) for label in classes], reader.traits.output_names
    if not others and name != str(output) and {name, str(output)} <= set(labels):
        do = f"Pass output={str(output)!r} for the class {output}, output={name!r} for this one"
        warn(message(f"output={output} is the number of an output", f"It is that of the class {name}", do), ExplanationWarning)


def check_names(reader: Reader, request: Request) -> None:
    """Refuse names other than those of the fit. Say where the background's columns are taken by position."""
    fitted = reader.traits.fitted_names
    if fitted is None:
        return
    if request.feature_names is not None and request.feature_names != tuple(fitted):
        what, got = (
            f"{reader.traits.model_name} was fitted with feature names of its own",
            f"Got other `feature_names` than {fitted[:4]}...",
        )
        raise InputError(what, got, "Leave feature_names= out, or rename the columns of the explanation's frame")
    if request.background is not None and not request.background.is_frame:
        warn(f"background does not have valid feature names, but {reader.traits.model_name} was fitted with feature names")
