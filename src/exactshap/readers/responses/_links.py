"""Define inverse links, which turn the scores of a model into probabilities and rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.special import expit, softmax

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.expansions import expand, links
from exactshap.frames import Table
from exactshap.readers import OwnCall, outputs_of
from exactshap.readers.responses._pairs import Coupled, Votes


def _same(table: Table) -> Table:
    return table


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Describe a piecewise linear function of a score, constant outside its knots."""

    # knots, heights: (n_knots,): strictly ascending places, and the values there
    knots: np.ndarray
    heights: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the function of scores."""
        return np.asarray(np.interp(scores, self.knots, self.heights))

    @property
    def slopes(self) -> np.ndarray:
        """Return the slopes between the knots (n_knots - 1,)."""
        return np.asarray(np.diff(self.heights) / np.diff(self.knots))

    @property
    def steepest(self) -> float:
        """Return the largest slope."""
        return float(np.abs(self.slopes).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Sigmoid:
    r"""Describe :math:`\sigma(-(a f + b))` of a score f: Platt's calibration."""

    a: float
    b: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the function of scores."""
        return np.asarray(expit(-(self.a * scores + self.b)))

    @property
    def steepest(self) -> float:
        """Return the largest slope of its logarithm. A division by a sum leaves that."""
        return abs(self.a)


@dataclass(frozen=True, eq=False)
class Normalised:
    """Describe functions of the scores of several classes, divided by their sum."""

    parts: tuple[Sigmoid | Isotonic, ...]

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities; ``scores`` (n, n_classes, ...)."""
        chances = np.stack([part(scores[:, k]) for k, part in enumerate(self.parts)], axis=1)
        total = chances.sum(axis=1, keepdims=True)
        # As scikit-learn does where all of them vanish
        return np.divide(chances, total, out=np.full_like(chances, 1.0 / len(self.parts)), where=total > 0.0)

    @property
    def steepest(self) -> float:
        """Return the largest slope, where the sum is about 1."""
        return max(part.steepest for part in self.parts)


@dataclass(frozen=True, eq=False)
class Temperature:
    """Describe the softmax of so many times the scores of several classes."""

    slope: float

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities; ``scores`` (n, n_classes, ...)."""
        return _softmax(self.slope * scores)

    @property
    def steepest(self) -> float:
        """Return the largest slope."""
        return abs(self.slope) * _STEEPEST["softmax"]


@dataclass(frozen=True, eq=False)
class Chain:
    """Describe a response of a response, such as a calibration of a probability."""

    outer: Response
    inner: Response

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the outer response of the inner one."""
        return self.outer.of_scores(self.inner.of_scores(scores))

    @property
    def steepest(self) -> float | None:
        """Return the largest slope."""
        outer, inner = self.outer.steepest, self.inner.steepest
        return None if outer is None or inner is None else outer * inner


@dataclass(frozen=True, eq=False, repr=False)
class Response:
    """Describe the response of a model, such as a probability; as ``output=``, what a wrapper makes of a model's score."""

    link: str | None  # a name of :func:`link_of`; None where the score is the response
    call: OwnCall  # the documented call that gives it
    unit: str
    # slope, shift: the link's argument is so many times the score, and that is added
    slope: float = 1.0
    rows: Callable[[Table], Table] = field(default=_same)  # ``rows(table) -> table``, of the kind that the call takes
    shift: float = 0.0
    function: Isotonic | Normalised | Temperature | Votes | Coupled | Chain | None = (
        None  # the inverse link where it has no name
    )
    outputs: tuple[str, ...] | None = None  # names, where they are not those of the scores

    def __repr__(self) -> str:
        return f"{self.unit} by a wrapper"  # for messages: it is what a wrapper asks for, not the user

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the response of scores."""
        # Most links take the score as it is: no copy of all hybrids' scores is made then.
        is_plain = self.slope == 1.0 and self.shift == 0.0
        link = self.function or link_of(str(self.link))
        return link(scores if is_plain else self.slope * scores + self.shift)

    @property
    def steepest(self) -> float | None:
        """Return the largest slope, or None."""
        slope = steepest(str(self.link)) if self.function is None else self.function.steepest
        return None if slope is None else abs(self.slope) * slope

    def after(self, inner: Response) -> Response:
        """Return this response of another one, as a function of the other's score."""
        return replace(self, link=f"calibrated {inner.link}", slope=1.0, shift=0.0, function=Chain(self, inner))

    @property
    def takes_several(self) -> bool:
        """Say whether a wrapper makes it of the scores of several classes."""
        return isinstance(self.function, Normalised | Temperature)

    @property
    def is_of_probability(self) -> bool:
        """Say whether a wrapper makes it of a probability, not of a score."""
        return self.call.method == "predict_proba"


def sigmoid(function: Sigmoid, unit: str, method: str = "decision_function") -> Response:
    """Return a sigmoid of a decision function or probability."""
    return Response("logistic", _calibrated(method, function), unit, -function.a, shift=-function.b)


def isotonic(function: Isotonic, unit: str, method: str = "decision_function") -> Response:
    """Return a piecewise linear function of a decision function or probability."""
    return Response("piecewise linear", _calibrated(method, function), unit, function=function)


def _calibrated(method: str, function: Callable[[np.ndarray], np.ndarray]) -> OwnCall:
    return OwnCall(method, finish=function if method == "decision_function" else partial(_of_second, function))


def _of_second(function: Callable[[np.ndarray], np.ndarray], chances: np.ndarray) -> np.ndarray:
    return function(outputs_of([1], True, chances))


def normalised(parts: Iterable[Sigmoid | Isotonic], method: str) -> Response:
    """Return functions of the answers for several classes, divided by their sum."""
    function = Normalised(tuple(parts))
    return Response("one-vs-rest", OwnCall(method, finish=function), "probability", function=function)


def temperature(slope: float) -> Response:
    """Return the softmax of so many times the decision functions of several classes."""
    function = Temperature(slope)
    return Response("softmax", OwnCall("decision_function", finish=function), "probability", function=function)


def exponential(rate: float, unit: str) -> Response:
    r"""Return :math:`e^{a f}` of a prediction f: a target of which a logarithm was fitted."""
    return Response("exponential", OwnCall("predict", finish=partial(_exponential, rate)), unit, rate)


def _exponential(rate: float, logarithms: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(rate * logarithms))


def _softmax(scores: np.ndarray) -> np.ndarray:
    return np.asarray(softmax(scores, axis=1))


def _normalised(scores: np.ndarray) -> np.ndarray:
    chances = expit(scores)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _cauchit(scores: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 + np.arctan(scores) / np.pi)


_LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{name: expand(name, 1.0).function for name in links()},
    "cauchit": _cauchit,  # its tails are algebraic: no short sum of exponentials
    "softmax": _softmax,
    "one-vs-rest": _normalised,
}
_STEEPEST = {
    "logistic": 0.25,
    "normal": 0.4,
    "complementary log-log": 0.37,
    "log-log": 0.37,
    "cauchit": 0.32,
    "softmax": 0.5,
    "one-vs-rest": 1.0,
}


def link_of(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return an inverse link of scores (n, n_outputs, ...): elementwise, or over the second axis."""
    return _LINKS[name]


def steepest(name: str) -> float | None:
    """Return the largest slope of an inverse link, which multiplies the rounding of the score, or None."""
    return _STEEPEST.get(name)


def probability(name: str) -> Response:
    """Return the response of a score that is the log-odds of the second of two classes, called ``name``."""
    return Response("logistic", OwnCall("predict_proba", finish=partial(outputs_of, [1], True)), f"probability of class {name}")


def probabilities(link: str) -> Response:
    """Return the response of a classifier with a score for each class: all classes, joined by "softmax" or "one-vs-rest"."""
    return Response(link, OwnCall("predict_proba"), "probability")


def no_response(model: Model, why: str) -> UnsupportedStructureError:
    """Return the error for a model without a known response of its score."""
    way = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    do = f"Call the model: explain(model.{way}, X, background), sampled beyond 13 players"
    if way == "predict" and hasattr(model, "decision_function"):  # its predict returns labels
        do = "Explain its decision function, explain(model, X, background), or fit CalibratedClassifierCV(model) for probabilities"
    return UnsupportedStructureError(f"The response of {type(model).__name__} is no known function of its score", why, do)


def needs_rows(unit: str) -> UnsupportedStructureError:
    """Return the error for a response without reference rows."""
    return UnsupportedStructureError(
        f"A {unit} needs reference rows: what a model keeps of its training rows does not say which cells occur together",
        "Got background=None",
        "Pass background=X_reference",
    )
