"""Trace each number of a graph, from the inputs to its one model, to its input column.

Operators that may mix columns end the trace with a reason. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._graphs._document import Attributes, array_of
from exactshap._runtime.types import Foreign
from exactshap.errors import ModelFormatError

FLOAT, DOUBLE, STRING, INT64 = 1, 11, 8, 7
MAX_COLUMNS = 2**22
CORES = {
    "TreeEnsembleRegressor": "trees",
    "TreeEnsembleClassifier": "trees",
    "TreeEnsemble": "trees",
    "LinearRegressor": "linear",
    "LinearClassifier": "linear",
    "SVMRegressor": "support vectors",
    "SVMClassifier": "support vectors",
}
_ELEMENTWISE = {"Identity", "Imputer", "Binarizer", "Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Floor", "Ceil"}
_ELEMENTWISE |= {"Round", "Sign", "Sigmoid", "Tanh", "Relu", "Cast", "Scaler", "LabelEncoder", "CategoryMapper"}
_ARITHMETIC = {"Add", "Sub", "Mul", "Div"}


@dataclass(frozen=True, eq=False)
class Columns:
    """Describe numbers or texts of one input column each, ``owners``; ``cube``: with the axis that OneHotEncoder adds."""

    owners: np.ndarray
    dtype: int | None
    cube: bool = False


@dataclass(frozen=True, eq=False)
class Score:
    """Describe the model's score after ``scale * score + shift`` and perhaps an exponential.

    ``normalised``: scores of classes are divided by their sum.
    """

    node: Any
    source: Columns
    scale: float = 1.0
    shift: float = 0.0
    exponential: bool = False
    normalised: bool = False
    column: int | None = None


@dataclass(frozen=True)
class Unread:
    """State why a tensor cannot be traced."""

    reason: str


State = Columns | Score | Unread


@dataclass(frozen=True, eq=False)
class _Step:
    """Hold one operator and what is known of its inputs."""

    node: Any
    attributes: Attributes
    given: tuple[State, ...]
    constants: tuple[np.ndarray | None, ...]
    players: Sequence[int]

    @property
    def columns(self) -> list[Columns]:
        return [state for state in self.given if isinstance(state, Columns)]

    def mixing(self) -> Unread:
        return Unread(f"{self.node.op_type} is not known to work column by column")


def walk(model: Foreign, inputs: dict[str, Columns], players: Sequence[int]) -> dict[str, State]:
    """Return what is known of each tensor of a graph."""
    constants = {entry.name: array_of(entry, f"tensor {entry.name!r}") for entry in model.graph.initializer}
    states: dict[str, State] = dict(inputs)
    for node in model.graph.node:
        if node.op_type == "Constant":
            if "value" in (attributes := Attributes(node)) and node.output:
                constants[node.output[0]] = attributes.tensor("value")
            continue
        given = tuple(states.get(name, Unread(f"no operator makes {name!r}")) for name in node.input if name not in constants)
        values = tuple(constants.get(name) for name in node.input)
        step = _Step(node, Attributes(node), given, values, players)
        for place, name in enumerate(node.output):
            states[name] = _after(step, place)
    return states


def _after(step: _Step, place: int) -> State:
    """Return what is known of output number ``place`` of an operator."""
    kind = step.node.op_type
    if (unread := next((state for state in step.given if isinstance(state, Unread)), None)) is not None:
        # The first reason on the way is the useful one
        return unread
    if not step.given or step.node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
        return step.mixing()
    if kind in CORES:
        return _core(step, place)
    if any(isinstance(state, Score) for state in step.given):
        return _after_score(step) if len(step.given) == 1 else Unread(f"{kind} joins the outputs of several models")
    # Second outputs of operators are not traced
    if place:
        return step.mixing()
    after = _HANDLERS.get(kind, _of_one_player)(step)
    if isinstance(after, Columns):
        _check_width(kind, len(after.owners))
    return after


def _check_width(kind: str, n_columns: int) -> None:
    if n_columns > MAX_COLUMNS:
        raise ModelFormatError(f"{kind} makes too many columns", f"Got {n_columns}; the limit is {MAX_COLUMNS}")


def _core(step: _Step, place: int) -> State:
    columns = step.given[0]
    if not isinstance(columns, Columns) or columns.cube or len(step.node.input) != 1:
        return Unread(f"{step.node.op_type} does not take a table")
    is_classifier = step.node.op_type.endswith("Classifier")
    if place != int(is_classifier):
        return Unread(f"{step.node.op_type} returns labels")
    if columns.dtype not in (FLOAT, DOUBLE):
        return Unread(f"{step.node.op_type} takes no floating-point numbers")
    return Score(step.node, columns)


def _after_score(step: _Step) -> State:
    """Trace the model's output through reshapes, a factor, a summand, an exponential."""
    score, kind = step.given[0], step.node.op_type
    assert isinstance(score, Score)
    constant = next((value for value in step.constants if value is not None), None)
    if kind == "Identity":
        return score
    if kind == "ZipMap":
        same = _labels(step.attributes) == _labels(Attributes(score.node))
        return score if same else Unread("ZipMap has other labels than the model")
    if kind == "Cast":
        precise = step.attributes.integer("to", 0) in (FLOAT, DOUBLE)
        return score if precise else Unread("the answer is cast to whole numbers")
    if kind in ("Reshape", "Flatten"):
        is_column = constant is not None and constant.tolist() in ([-1, 1], [-1])
        return score if kind == "Flatten" or is_column else Unread("the answer is reshaped")
    if kind == "Normalizer" and step.attributes.text("norm", "MAX") == "L1":
        return replace(score, normalised=True)
    if kind == "Exp" and not score.exponential and not score.normalised and not _is_probability(score):
        return replace(score, exponential=True)
    if kind == "ArrayFeatureExtractor" and constant is not None and constant.size == 1 and score.column is None:
        return replace(score, column=int(np.ravel(constant)[0]))
    if (
        kind in _ARITHMETIC
        and not score.normalised
        and constant is not None
        and constant.size == 1
        and constant.dtype.kind == "f"
    ):
        number = float(np.ravel(constant)[0])
        if _is_probability(score):  # the score is explained, and operations on its probability do not change it
            # Times 1 or plus 0 changes nothing
            return score if number == (kind in ("Mul", "Div")) else Unread(f"{kind} follows probabilities")
        return _moved(score, kind, number, first=step.constants[0] is None)
    return Unread(f"{kind} follows the model")


def _labels(attributes: Attributes) -> tuple[object, ...]:
    """Return the labels of classes, which linear and support vector models call ``classlabels_ints``."""
    numbers = [*attributes.integers("classlabels_int64s").tolist(), *attributes.integers("classlabels_ints").tolist()]
    return (*attributes.texts("classlabels_strings"), *numbers)


def _is_probability(score: Score) -> bool:
    """Say whether the model returns probabilities."""
    return Attributes(score.node).text("post_transform", "NONE") != "NONE"


def _moved(score: Score, kind: str, number: float, *, first: bool) -> State:
    """Return a score with a factor or summand; of an exponential, a positive factor is a summand of its logarithm."""
    # c - score and c / score are not traced: the score must come first
    unread = Unread(f"{kind} follows the model")
    if not np.isfinite(number) or (kind in ("Sub", "Div") and not first) or (kind == "Div" and number == 0.0):
        return unread
    if kind in ("Add", "Sub"):
        sign = 1.0 if kind == "Add" else -1.0
        return unread if score.exponential else replace(score, shift=score.shift + sign * number)
    factor = number if kind == "Mul" else 1.0 / number
    if score.exponential:
        return replace(score, shift=score.shift + float(np.log(factor))) if factor > 0.0 else unread
    return replace(score, scale=score.scale * factor, shift=score.shift * factor) if factor else unread


# -- column by column ----------------------------------------------------------------------------------------------------
def _elementwise(step: _Step) -> State:
    columns, kind = step.columns[0], step.node.op_type
    if len(step.node.input) != 1 or (columns.cube and kind not in ("Identity", "Cast")):
        return step.mixing()
    dtype = columns.dtype
    if kind == "Cast":
        dtype = step.attributes.integer("to", 0)
    elif kind == "Scaler":
        dtype = FLOAT
    elif kind in ("LabelEncoder", "CategoryMapper"):
        dtype = FLOAT if "values_floats" in step.attributes else None
    return replace(columns, dtype=dtype)


def _arithmetic(step: _Step) -> State:
    columns = step.columns
    width = len(columns[0].owners)
    if any(part.cube or len(part.owners) != width for part in columns):
        return step.mixing()
    for value in step.constants:
        # A constant may be one number or one per column; others could change the shape
        if value is not None and not (value.ndim <= 2 and (value.size == 1 or value.size == value.shape[-1] == width)):
            return step.mixing()
    players = np.asarray(step.players, int)
    together = all(np.array_equal(players[part.owners], players[columns[0].owners]) for part in columns)
    return columns[0] if together else Unread(f"{step.node.op_type} mixes columns")


def _concatenated(step: _Step) -> State:
    by_columns = step.node.op_type == "FeatureVectorizer" or step.attributes.integer("axis", 0) in (1, -1)
    if not by_columns or any(part.cube for part in step.columns) or any(value is not None for value in step.constants):
        return step.mixing()
    dtype = FLOAT if step.node.op_type == "FeatureVectorizer" else step.columns[0].dtype
    return Columns(np.concatenate([part.owners for part in step.columns]), dtype)


def _selected(step: _Step) -> State:
    columns, places = step.columns[0], step.constants[-1]
    flat = step.node.op_type == "ArrayFeatureExtractor"
    if places is None or places.dtype.kind != "i" or columns.cube or len(step.node.input) != 2:
        return step.mixing()
    if not flat and (places.ndim != 1 or step.attributes.integer("axis", 0) not in (1, -1)):
        return step.mixing()
    places = np.ravel(places)
    # Gather counts negative indices from the end, ArrayFeatureExtractor does not
    if places.size == 0 or places.min() < (0 if flat else -len(columns.owners)) or places.max() >= len(columns.owners):
        raise ModelFormatError(f"{step.node.op_type} selects columns that are not there")
    return replace(columns, owners=columns.owners[places])


def _one_hot(step: _Step) -> State:
    columns = step.columns[0]
    texts, numbers = step.attributes.texts("cats_strings"), step.attributes.integers("cats_int64s")
    n_categories = len(texts) or len(numbers)
    if columns.cube or not n_categories or (len(texts) and len(numbers)):
        return step.mixing()
    if len(set(texts)) < len(texts) or len(np.unique(numbers)) < len(numbers):
        raise ModelFormatError("OneHotEncoder: a category occurs twice")
    # Before they are made: a small file may name many categories of many columns.
    _check_width("OneHotEncoder", n_categories * len(columns.owners))
    return Columns(np.repeat(columns.owners, n_categories), FLOAT, cube=True)


def _reshaped(step: _Step) -> State:
    columns, shape = step.columns[0], step.constants[-1]
    if step.node.op_type == "Flatten":
        return replace(columns, cube=False) if step.attributes.integer("axis", 1) == 1 else step.mixing()
    if shape is None or len(step.node.input) != 2 or shape.tolist() != [-1, len(columns.owners)]:
        return step.mixing()
    return replace(columns, cube=False)


def _of_one_player(step: _Step) -> State:
    """Refuse operators that may mix columns of several players."""
    owners = step.columns[0].owners
    if step.node.op_type == "Normalizer" and len({step.players[column] for column in owners.tolist()}) == 1:
        return replace(step.columns[0], dtype=FLOAT)
    return Unread(f"{step.node.op_type} mixes columns") if step.node.op_type == "Normalizer" else step.mixing()


_HANDLERS: dict[str, Callable[[_Step], State]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
    "Concat": _concatenated,
    "FeatureVectorizer": _concatenated,
    "Gather": _selected,
    "ArrayFeatureExtractor": _selected,
    "OneHotEncoder": _one_hot,
    "Reshape": _reshaped,
    "Flatten": _reshaped,
}
