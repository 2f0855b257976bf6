"""Define inverse links, which turn the scores of a model into probabilities, rates or votes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.special import expit, softmax

from exactshap._native import kernel
from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.expansions import expand, links
from exactshap.frames import Table
from exactshap.readers import OwnCall, outputs_of

# What LIBSVM does: chances are kept from 0 and 1, and the last step of a solution is the first that is near enough
FARTHEST, NEAR_ENOUGH, MOST_STEPS = 1e-7, 0.005, 100

# src/native/responses/pairs.cpp
couple = kernel("responses.couple(chances, near, most_steps, out)")


@dataclass(frozen=True, eq=False)
class Link:
    """Describe an inverse link of scores (n, n_outputs, ...): elementwise, or over the second axis."""

    function: Callable[[np.ndarray], np.ndarray]
    steepest: float | None  # the largest slope, which multiplies the rounding of a score; None where it grows without end
    takes_several: bool = False  # whether a wrapper makes it of the scores of several classes

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the function of scores."""
        return self.function(scores)


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
class Votes:
    r"""Describe the one-vs-rest decision function of scikit-learn's machines.

    .. math:: \sum_j 1[f_{ij} \ge 0] + \frac{s_i}{3 (|s_i| + 1)}, \qquad s_i = \sum_j f_{ij}, \quad f_{ji} = -f_{ij}
    """

    n_classes: int
    rounding: float  # of a score: the vote of a smaller one is not certain

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the decision functions of the classes; ``scores`` (n, n_pairs, ...)."""
        if (np.abs(scores) < self.rounding).any():
            do = "Call it: explain(model.decision_function, X, background), or predict_proba of its calibration"
            got = f"Got a score of {np.abs(scores).min():.1g}, which rounds by {self.rounding:.1g}"
            raise UnsupportedStructureError("A row lies between two classes, so that its vote is a matter of rounding", got, do)
        votes = np.zeros((len(scores), self.n_classes, *scores.shape[2:]))
        sums = np.zeros_like(votes)
        for k, (i, j) in enumerate(itertools.combinations(range(self.n_classes), 2)):
            votes[:, i] += scores[:, k] >= 0.0
            votes[:, j] += scores[:, k] < 0.0
            sums[:, i] += scores[:, k]
            sums[:, j] -= scores[:, k]
        return votes + sums / (3.0 * (np.abs(sums) + 1.0))

    @property
    def steepest(self) -> float:
        """Return the largest slope between two jumps."""
        return (self.n_classes - 1) / 3.0


@dataclass(frozen=True, eq=False)
class Coupled:
    r"""Describe probabilities of classes by sigmoids of the scores of their pairs, coupled; of two classes that of the second.

    .. math:: \min_p \sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2 \quad \text{s.t.} \quad \sum_i p_i = 1, \qquad
              r_{ij} = \sigma(-(a_{ij} f_{ij} + b_{ij})), \quad r_{ji} = 1 - r_{ij}

    Wu, Lin & Weng 2004, J. Mach. Learn. Res. 5, 975-1005, their second method and its algorithm 2, in the steps of LIBSVM: it ends where the
    optimality conditions hold to 0.005 / n_classes, so that probabilities jump by about that where one more step is needed.
    """

    a: np.ndarray  # (n_pairs,)
    b: np.ndarray
    n_classes: int

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities; ``scores`` (n, n_pairs, ...)."""
        of_pairs = np.ascontiguousarray(np.moveaxis(scores, 1, -1))
        chances = np.clip(expit(-(self.a * of_pairs + self.b)), FARTHEST, 1.0 - FARTHEST)
        found = np.empty((*chances.shape[:-1], self.n_classes))
        steps = max(MOST_STEPS, self.n_classes)
        couple(chances.reshape(-1, len(self.a)), NEAR_ENOUGH, steps, found.reshape(-1, self.n_classes))
        return np.moveaxis(found[..., 1:] if self.n_classes == 2 else found, -1, 1)

    @property
    def steepest(self) -> float:
        """Return a bound of the largest slope between two jumps: 0.27 times this for thousands of random scores."""
        return float(np.abs(self.a).max())


def _same(table: Table) -> Table:
    return table


def _softmax(slope: float, scores: np.ndarray) -> np.ndarray:
    return np.asarray(softmax(slope * scores, axis=1))


def _divided(parts: Callable[[np.ndarray], np.ndarray], scores: np.ndarray) -> np.ndarray:
    """Return chances of the classes divided by their sum."""
    chances = parts(scores)
    total = chances.sum(axis=1, keepdims=True)
    # As scikit-learn does where all of them vanish
    return np.divide(chances, total, out=np.full_like(chances, 1.0 / chances.shape[1]), where=total > 0.0)


def _each(parts: tuple[Sigmoid | Isotonic, ...], scores: np.ndarray) -> np.ndarray:
    return np.stack([part(scores[:, k]) for k, part in enumerate(parts)], axis=1)


_SLOPES = {"logistic": 0.25, "normal": 0.4, "complementary log-log": 0.37, "log-log": 0.37, "softmax": 0.5}
_LINKS = {
    **{name: Link(expand(name, 1.0).function, _SLOPES.get(name)) for name in links()},
    # Its tails are algebraic: no short sum of exponentials
    "cauchit": Link(lambda scores: 0.5 + np.arctan(scores) / np.pi, 0.32),
    "softmax": Link(partial(_softmax, 1.0), _SLOPES["softmax"]),
    "one-vs-rest": Link(partial(_divided, expit), 1.0),
}


@dataclass(frozen=True, eq=False, repr=False)
class Response:
    """Describe the response of a model, such as a probability; as ``output=``, what a wrapper makes of a model's score."""

    link: str | None  # a name, as of `exactshap.expansions.links`; None where the score is the response
    call: OwnCall  # the documented call that gives it
    unit: str
    # slope, shift: the link's argument is so many times the score, and that is added
    slope: float = 1.0
    rows: Callable[[Table], Table] = field(default=_same)  # ``rows(table) -> table``, of the kind that the call takes
    shift: float = 0.0
    function: Link | Isotonic | Votes | Coupled | None = None  # the inverse link where it has no name
    outputs: tuple[str, ...] | None = None  # names, where they are not those of the scores

    def __repr__(self) -> str:
        return f"{self.unit} by a wrapper"  # for messages: it is what a wrapper asks for, not the user

    @property
    def inverse(self) -> Link | Isotonic | Votes | Coupled:
        """Return the inverse link."""
        return self.function or _LINKS[str(self.link)]

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the response of scores."""
        # Most links take the score as it is: no copy of all hybrids' scores is made then.
        is_plain = self.slope == 1.0 and self.shift == 0.0
        return self.inverse(scores if is_plain else self.slope * scores + self.shift)

    @property
    def steepest(self) -> float | None:
        """Return the largest slope, or None."""
        slope = self.inverse.steepest
        return None if slope is None else abs(self.slope) * slope

    def after(self, inner: Response) -> Response:
        """Return this response of another one, as a function of the other's score."""
        slope = None if self.steepest is None or inner.steepest is None else self.steepest * inner.steepest
        chain = Link(partial(_chained, self, inner), slope)
        return replace(self, link=f"calibrated {inner.link}", slope=1.0, shift=0.0, function=chain)

    @property
    def takes_several(self) -> bool:
        """Say whether a wrapper makes it of the scores of several classes."""
        return isinstance(self.function, Link) and self.function.takes_several

    @property
    def is_of_probability(self) -> bool:
        """Say whether a wrapper makes it of a probability, not of a score."""
        return self.call.method == "predict_proba"


def _chained(outer: Response, inner: Response, scores: np.ndarray) -> np.ndarray:
    return outer.of_scores(inner.of_scores(scores))


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
    parts = tuple(parts)
    # Where the sum is about 1
    function = Link(partial(_divided, partial(_each, parts)), max(part.steepest for part in parts), takes_several=True)
    return Response("one-vs-rest", OwnCall(method, finish=function), "probability", function=function)


def temperature(slope: float) -> Response:
    """Return the softmax of so many times the decision functions of several classes."""
    function = Link(partial(_softmax, slope), abs(slope) * _SLOPES["softmax"], takes_several=True)
    return Response("softmax", OwnCall("decision_function", finish=function), "probability", function=function)


def exponential(rate: float, unit: str) -> Response:
    r"""Return :math:`e^{a f}` of a prediction f: a target of which a logarithm was fitted."""
    return Response("exponential", OwnCall("predict", finish=partial(_exponential, rate)), unit, rate)


def _exponential(rate: float, logarithms: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(rate * logarithms))


def probabilities(classes: Sequence[object], link: str = "softmax") -> Response:
    """Return the response of a classifier: of all classes, joined by a link; of two the second's, where the score is its log-odds."""
    if len(classes) != 2:
        return Response(link, OwnCall("predict_proba"), "probability")
    of_second = OwnCall("predict_proba", finish=partial(outputs_of, [1], True))
    return Response("logistic", of_second, f"probability of class {classes[1]}")


def no_response(model: Model, why: str) -> UnsupportedStructureError:
    """Return the error for a model without a known response of its score."""
    # XGBoost's boosters take no tables in ``predict``
    way = next((name for name in ("predict_proba", "inplace_predict") if hasattr(model, name)), "predict")
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
