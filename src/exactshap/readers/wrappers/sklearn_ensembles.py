r"""Read ensembles of scikit-learn as weighted sums of fitted models: votes, bags, stacks, several targets, calibrations.

.. math:: f(x) = c + \sum_m f_m(x)\, W_m
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import ExactshapError, UnknownNameError, UnsupportedStructureError
from exactshap.readers import Outputs, Reader, Request, choose_value_function, class_names, is_of_target, score_names
from exactshap.readers.additive import linear_step
from exactshap.readers.responses import Isotonic, Response, Sigmoid, isotonic, normalised, sigmoid, temperature
from exactshap.readers.wrappers._sum import Member, SumReader, n_columns_of, read_member, request_of_sum

Columns = tuple[int, ...] | None
# A classifier, what each of its classes adds to the outputs (n_classes, n_outputs), and its columns
Part = tuple[Model, np.ndarray, Columns]


# -- regressors ----------------------------------------------------------------------------------------------------------


def read_mean(model: Model, request: Request) -> Reader:
    """Read the weighted mean of regressors: a vote, or bags with columns of their own."""
    request, shares = request_of_sum(model, request), np.full(len(model.estimators_), 1.0 / len(model.estimators_))
    columns: list[Columns] = [None] * len(shares)
    if hasattr(model, "estimators_features_"):
        columns = [tuple(int(c) for c in own) for own in model.estimators_features_]
    else:
        shares = _votes(model)
    pairs = list(zip(model.estimators_, columns, strict=True))
    readers = [_regressor(inner, replace(request, output="all"), model, own) for inner, own in pairs]
    names, single = readers[0].traits.output_names, readers[0].traits.single_output
    outputs = Outputs.of(names, request.output, owner=type(model).__name__, multiple=not single)
    chosen, own = np.eye(len(names))[:, outputs.numbers], outputs.call("predict")
    members = [Member(reader, share * chosen, of) for reader, share, of in zip(readers, shares, columns, strict=True)]
    return SumReader(model, request, members, own, outputs=outputs, unit="target")


def _votes(model: Model) -> np.ndarray:
    """Return the shares of the models in a vote that were not dropped."""
    weights = [1.0] * len(model.estimators) if model.weights is None else model.weights
    kept = [weight for (_, inner), weight in zip(model.estimators, weights, strict=True) if inner != "drop"]
    return np.asarray(kept, float) / np.sum(kept)


def _regressor(inner: Model, request: Request, model: Model, columns: tuple[int, ...] | None = None) -> Reader:
    """Read one regressor with values that add up to its prediction."""
    owner = type(model).__name__
    reader = read_member(inner, request, owner, columns)
    if not is_of_target(reader.traits.unit):  # as with a link
        reader = read_member(inner, replace(request, output="response"), owner, columns)
    if not is_of_target(reader.traits.unit):
        raise UnsupportedStructureError(
            f"{owner} adds up predictions, and those of {reader.traits.model_name} are exact only as {reader.traits.unit}",
            do="Sample with Explainer(model.predict, background)",
        )
    return reader


# -- classifiers that add up probabilities -------------------------------------------------------------------------------


def read_probabilities(model: Model, request: Request) -> Reader:
    r"""Read a weighted sum of the probabilities of the classifiers inside.

    .. math:: p_k(x) = \sum_m w_m\, p_{mk}(x)
    """
    kind = next(cls.__name__ for cls in type(model).__mro__ if cls.__name__ in _PARTS)
    names, parts = _PARTS[kind](model)
    wanted = "auto" if request.asks_response and request.output not in names else request.output
    if isinstance(wanted, str) and wanted == "auto" and len(names) == 2 and kind != "MultiOutputClassifier":
        wanted = 1  # the second of two classes, as for forests
    return _weighted_probabilities(model, replace(request, output=wanted), names, parts)


def read_every_class(model: Model, request: Request) -> Reader:
    """Read the probabilities of all classes, as ``predict_proba`` returns them. Only exact ones."""
    names = tuple(map(str, model.classes_))
    reader = _weighted_probabilities(model, request, names, [(model, np.eye(len(names)), None)])
    (member,) = reader.members
    own = member.reader.traits
    if own.calls is not None and own.is_sampled:
        do = 'Pass output="probability" and the model, or a function that calls it'
        raise UnsupportedStructureError(f"The probabilities of {own.model_name} would be sampled", own.calls.sentence, do)
    reader.traits = replace(reader.traits, model_name=own.model_name)
    return reader


def _weighted_probabilities(model: Model, request: Request, names: tuple[str, ...], parts: list[Part]) -> SumReader:
    kind = "" if isinstance(model.classes_, list) else "class "  # those of several targets say which
    # Several of two outputs have an axis all the same: they are of two targets.
    outputs = Outputs.of(names, request.output, owner=type(model).__name__, multiple=True)
    request = request_of_sum(model, request)
    constant, members = np.zeros(len(outputs.names)), []
    for inner, weights, columns in parts:
        member, added = _member_of_probabilities(inner, weights[:, outputs.numbers], columns, request, model)
        members.append(member)
        constant += added
    return SumReader(
        model,
        request,
        members,
        outputs.call("predict_proba"),
        constant=constant,
        outputs=outputs,
        unit=f"probability of {kind}{outputs.names[0]}" if outputs.single else "probability",
    )


def _member_of_probabilities(
    inner: Model, weights: np.ndarray, columns: Columns, request: Request, model: Model
) -> tuple[Member, np.ndarray | float]:
    """Read the probabilities of one classifier, of two classes perhaps the second one only."""
    owner = type(model).__name__
    try:
        chances = read_member(inner, replace(request, output="probability"), owner, columns)
        if chances.traits.single_output and len(weights) == 2:
            return Member(chances, weights[1:] - weights[:1], columns), weights[0]
        if chances.traits.n_outputs == len(weights):
            return Member(chances, weights, columns), 0.0
        why = f"Those of {chances.traits.model_name} are {chances.traits.n_outputs}, for {len(weights)} classes"
    except ExactshapError as error:
        why = str(error)
    do = "Call it: explain(model.predict_proba, X, background), exact up to 13 players"
    raise UnsupportedStructureError(f"{owner} adds up probabilities", why, do)


def _soft_votes(model: Model) -> tuple[tuple[str, ...], list[Part]]:
    if model.voting != "soft":
        do = "Call one of its models, or fit with voting='soft'"
        raise UnsupportedStructureError("A vote of labels is not a sum of scores", "Got voting='hard'", do)
    classes = np.eye(len(model.classes_))
    parts: list[Part] = [(inner, share * classes, None) for inner, share in zip(model.estimators_, _votes(model), strict=True)]
    return class_names(model.classes_), parts


def _bags(model: Model) -> tuple[tuple[str, ...], list[Part]]:
    """Return classifiers of encoded classes, each on its own columns."""
    classes, share = np.eye(len(model.classes_)), 1.0 / len(model.estimators_)
    parts: list[Part] = []
    for inner, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        if not hasattr(inner, "predict_proba"):
            do = "Explain model.estimators_[k], one of its models"
            raise UnsupportedStructureError("A vote of labels is not a sum of scores", f"Got {type(inner).__name__}", do)
        parts.append((inner, share * classes[np.asarray(inner.classes_, int)], tuple(int(c) for c in columns)))
    return class_names(model.classes_), parts


def _targets(model: Model) -> tuple[tuple[str, ...], list[Part]]:
    """Return one classifier for each target."""
    names = class_names(model.classes_)
    every, starts = np.eye(len(names)), np.cumsum([0, *map(len, model.classes_)])
    parts: list[Part] = [(inner, every[starts[k] : starts[k + 1]], None) for k, inner in enumerate(model.estimators_)]
    return names, parts


_PARTS: dict[str, Callable[[Model], tuple[tuple[str, ...], list[Part]]]] = {
    "VotingClassifier": _soft_votes,
    "BaggingClassifier": _bags,
    "MultiOutputClassifier": _targets,
}


# -- stacks ----------------------------------------------------------------------------------------------------------------


def read_stack(model: Model, request: Request) -> Reader:
    r"""Read a last step that is linear in the first models' answers. With ``passthrough`` it is linear in the rows, too.

    .. math:: g(x) = b + \sum_m f_m(x)\, W_m
    """
    parts, is_classifier = linear_step(model.final_estimator_), hasattr(model, "classes_")
    called = "decision_function" if is_classifier else "predict"
    if parts is None or parts.method != called or (is_classifier and isinstance(model.classes_, list)):
        raise _refused_stack(model, f"Its last step is {type(model.final_estimator_).__name__}")
    # The last step knows the classes of the stack as numbers.
    names = score_names(model.classes_) if is_classifier else parts.output_names
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    weights, request = np.asarray(parts.coefficients, float)[:, outputs.numbers], request_of_sum(model, request)
    members, constant, place = [], np.asarray(parts.intercept, float)[outputs.numbers], 0
    width = len(model.classes_) if is_classifier and len(model.classes_) > 2 else 1  # of two classes the first is left out
    for inner, method in zip(model.estimators_, model.stack_method_, strict=True):
        member, added = _member_of_stack(model, inner, method, weights[place : place + width], request)
        members.append(member)
        constant, place = constant + added, place + width
    if model.passthrough:
        columns = tuple(range(n_columns_of(model)))
        members.append(Member(_rows_themselves(model, weights[place:], request), np.eye(len(outputs.names)), columns))
    unit = "target"
    if is_classifier:
        unit = f"{parts.unit.split(' of class ')[0]}{f' of class {names[0]}' if len(names) == 1 else ''}"
    own = outputs.call(called)
    return SumReader(model, request, members, own, constant=constant, outputs=outputs, unit=unit)


def _rows_themselves(model: Model, coefficients: np.ndarray, request: Request) -> Reader:
    """Read the part of a stack that is linear in the rows."""
    from sklearn.linear_model import LinearRegression

    linear = LinearRegression()
    linear.coef_, linear.intercept_, linear.n_features_in_ = coefficients.T, 0.0, len(coefficients)
    return read_member(linear, request, type(model).__name__, range(len(coefficients)))


def _member_of_stack(
    model: Model, inner: Model, method: str, weights: np.ndarray, request: Request
) -> tuple[Member, np.ndarray | float]:
    """Read one model by the method that feeds the last step."""
    if method == "predict_proba":
        of_classes = np.concatenate([np.zeros_like(weights), weights]) if len(weights) == 1 else weights
        return _member_of_probabilities(inner, of_classes, None, request, model)
    request = replace(request, output="auto")
    if not hasattr(model, "classes_"):
        return Member(_regressor(inner, request, model), weights), 0.0
    if method != "decision_function":
        raise _refused_stack(model, f"It takes the labels of {type(inner).__name__}")
    reader = read_member(inner, request, type(model).__name__)
    classes = tuple(map(str, inner.classes_))[-len(weights) :]
    if reader.traits.output_names != classes or reader.traits.unit.startswith("probability"):
        raise _refused_stack(model, f"Got {reader.traits.model_name} as {reader.traits.unit}")
    return Member(reader, weights), 0.0


def _refused_stack(model: Model, got: str) -> UnsupportedStructureError:
    name = type(model).__name__
    if not hasattr(model, "classes_"):
        what, do = f"{name} can be read only where its last step is linear", "Sample with Explainer(model.predict, background)"
        return UnsupportedStructureError(what, got, do)
    what = f"{name} can be read only where a linear step adds up probabilities or decision functions"
    do = "Call it: explain(model.predict_proba, X, background), exact up to 13 players"
    return UnsupportedStructureError(what, got, do)


# -- calibrations --------------------------------------------------------------------------------------------------------


def read_calibrated(model: Model, request: Request) -> Reader:
    r"""Read the mean of calibrations: sigmoid or isotonic, of many classes divided by their sum, or a softmax.

    .. math:: p(x) = \frac1K \sum_k g_k(f_k(x)), \qquad g_k(t) = \frac{1}{1 + \exp(a_k t + b_k)} \text{ or piecewise linear}
    """
    names = score_names(model.classes_)
    if model.method not in ("sigmoid", "isotonic", "temperature"):
        raise _refused_calibration(model, f"Got method={model.method!r}")
    wanted = "auto" if request.asks_response and request.output not in names else request.output
    outputs = Outputs.of(names, wanted, owner=type(model).__name__)
    unit = f"probability of class {outputs.names[0]}" if outputs.single else "probability"
    request = request_of_sum(model, request)
    shares = np.eye(len(names))[:, outputs.numbers] / len(model.calibrated_classifiers_)
    members = [Member(_calibrated(one, request, model, unit), shares) for one in model.calibrated_classifiers_]
    own = Outputs(outputs.names, [k + 1 for k in outputs.numbers], True) if len(names) == 1 else outputs
    return SumReader(model, request, members, own.call("predict_proba"), outputs=outputs, unit=unit)


def _calibrated(one: Model, request: Request, model: Model, unit: str) -> Reader:
    n_classes = len(model.classes_)
    refused = _refused_calibration(model, f"Got {type(one.estimator).__name__} of {n_classes} classes")
    if n_classes > 2 and model.method != "temperature" and len(one.calibrators) < n_classes:  # a fold without some class
        raise refused
    method = "decision_function" if hasattr(one.estimator, "decision_function") else "predict_proba"
    if model.method == "temperature" and method != "decision_function":  # of logarithms of probabilities
        raise refused
    output = _calibration(one, model.method, n_classes, method, unit)
    try:
        return read_member(one.estimator, replace(request, output=output), type(model).__name__)
    except (UnknownNameError, UnsupportedStructureError) as error:
        if request.options:
            # Settings are refused by their names, and not with the model, which is read without them
            _calibrated(one, replace(request, options={}), model, unit)
            raise
        # Some steps are read only with rows
        if request.background is None and isinstance(error, UnsupportedStructureError):
            raise
        if request.background is not None:
            choose_value_function(request, owner=f"The {unit} of {type(model).__name__}")
        raise refused from error


def _calibration(one: Model, kind: str, n_classes: int, method: str, unit: str) -> Response:
    """Return what a calibration makes of the answers of ``method``."""
    first = one.calibrators[0]
    if kind == "temperature":  # of two classes the scores are -f and f
        slope = float(first.beta_)
        return temperature(slope) if n_classes > 2 else sigmoid(Sigmoid(-2.0 * slope, 0.0), unit)
    if n_classes > 2:
        return normalised(map(_isotonic if kind == "isotonic" else _sigmoid, one.calibrators), method)
    if kind == "isotonic":
        return isotonic(_isotonic(first), unit, method)
    return sigmoid(_sigmoid(first), unit, method)


def _sigmoid(calibrator: Model) -> Sigmoid:
    return Sigmoid(float(calibrator.a_), float(calibrator.b_))


def _isotonic(calibrator: Model) -> Isotonic:
    return Isotonic(np.asarray(calibrator.X_thresholds_, float), np.asarray(calibrator.y_thresholds_, float))


def _refused_calibration(model: Model, got: str) -> UnsupportedStructureError:
    what = (
        f"{type(model).__name__} can be read only where it calibrates sums of terms, by a temperature only decision functions"
    )
    do = "Call the model: explain(model.predict_proba, X, background), exact up to 13 players and sampled beyond"
    return UnsupportedStructureError(what, got, do)
