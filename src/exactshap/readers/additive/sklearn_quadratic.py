"""Read quadratic forms of scikit-learn: quadratic discriminant analysis, nearest centroids, elliptic envelope."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, Request, score_names, sklearn_name
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._monomials import MonomialTerms
from exactshap.readers.additive.response import with_response

if TYPE_CHECKING:
    from exactshap.readers.responses import Response


class Form(NamedTuple):
    """Hold f(x) = constant + (x - centre) . matrix (x - centre), with a symmetric matrix."""

    centre: np.ndarray
    matrix: np.ndarray
    constant: float


def _response(model: Model) -> Response:
    """Return the probability of a class: scores are logarithms of joint densities, up to a common constant."""
    from exactshap.readers.responses import no_response, probabilities

    if not hasattr(model, "predict_proba"):  # nearest centroids have it since scikit-learn 1.6
        raise no_response(model, "It has no predict_proba")
    return probabilities(model.classes_)


@with_response(_response)
def read(model: Model, request: Request) -> AdditiveReader:
    r"""Read quadratic forms as squares, products of two columns and linear terms.

    .. math:: (x - \mu) \cdot A (x - \mu) = z \cdot A z - 2\, \delta \cdot A z + \delta \cdot A \delta, \qquad z = x - m, \; \delta = \mu - m
    """
    forms, names, unit = _KINDS[sklearn_name(model)](model)
    centre = np.mean([form.centre for form in forms], axis=0)
    coefficients, constants = (np.stack(parts, axis=-1) for parts in zip(*(_expanded(f, centre) for f in forms), strict=True))
    if len(forms) == 2:  # the log-odds of the second class
        coefficients, constants = coefficients[:, 1:] - coefficients[:, :1], constants[1:] - constants[:1]
    powers = _powers(len(centre))
    used = np.any(coefficients, axis=1)
    outputs = Outputs.of(names, request.output, owner=type(model).__name__)
    form = AdditiveForm(
        blocks=(MonomialTerms(powers[used], coefficients[used][:, outputs.numbers]),),
        intercept=constants[outputs.numbers],
        encode=functools.partial(_encode, type(model).__name__, request.feature_names, centre),
        n_columns=len(centre),
        outputs=outputs,
        unit=unit,
        magnitude=functools.partial(_magnitude, forms, centre),
        own_call=outputs.call("decision_function"),
    )
    return AdditiveReader(model, request, form)


def _envelope(model: Model) -> tuple[list[Form], tuple[str, ...], str]:
    """Return the negative squared Mahalanobis distance minus the threshold."""
    precision = np.asarray(model.get_precision(), float)
    form = Form(np.asarray(model.location_, float), -precision, -float(model.offset_))
    return [form], ("decision function",), "decision function"


def _discriminant(model: Model) -> tuple[list[Form], tuple[str, ...], str]:
    """Return the logarithms of prior times density of the classes."""
    forms = []
    for mean, rotation, scaling, prior in zip(model.means_, model.rotations_, model.scalings_, model.priors_, strict=True):
        # Scaled in the precision of the fit, as predictions do
        root = np.asarray(rotation * scaling**-0.5, float)
        matrix = -0.5 * root @ root.T
        forms.append(
            Form(np.asarray(mean, float), 0.5 * (matrix + matrix.T), float(np.log(prior) - 0.5 * np.log(scaling).sum()))
        )
    names = score_names(model.classes_)
    return forms, names, f"log-odds of class {names[0]}" if len(names) == 1 else "joint log-likelihood"


def _centroids(model: Model) -> tuple[list[Form], tuple[str, ...], str]:
    """Return negative squared distances to the centroids, and twice the log priors."""
    if model.metric != "euclidean":
        do = "Fit it with metric='euclidean'"
        raise UnsupportedStructureError(
            "NearestCentroid has a decision function of squared distances only", f"Got metric={model.metric!r}", do
        )
    deviation = np.asarray(model.within_class_std_dev_, float)
    matrix = -np.diag(1.0 / np.square(np.where(deviation == 0.0, 1.0, deviation)))
    forms = [
        Form(np.asarray(centroid, float), matrix, 2.0 * float(np.log(prior)))
        for centroid, prior in zip(model.centroids_, model.class_prior_, strict=True)
    ]
    names = score_names(model.classes_)
    return forms, names, f"decision function of class {names[0]}" if len(names) == 1 else "decision function"


def _expanded(form: Form, centre: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the coefficients of monomials of z = x - centre, and the constant. Monomials have the order of :func:`_powers`."""
    shift = form.centre - centre
    upper = np.triu_indices(len(centre), 1)
    squares, pairs, single = np.diag(form.matrix), 2.0 * form.matrix[upper], -2.0 * form.matrix @ shift
    return np.concatenate([single, squares, pairs]), form.constant + float(shift @ form.matrix @ shift)


def _powers(d: int) -> np.ndarray:
    """Return the powers of single columns, squares and pairs."""
    first, second = np.triu_indices(d, 1)
    pairs = np.zeros((len(first), d), np.int64)
    pairs[np.arange(len(first)), first] = pairs[np.arange(len(first)), second] = 1
    return np.concatenate([np.eye(d, dtype=np.int64), 2 * np.eye(d, dtype=np.int64), pairs])


def _encode(owner: str, names: tuple[str, ...] | None, centre: np.ndarray, X: Table, what: str) -> np.ndarray:
    return X.finite(what, owner, names=names) - centre


def _magnitude(forms: list[Form], centre: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the magnitudes (n_rows,) that cancel in each form. They hold for any order of summation."""
    sizes = np.zeros(len(rows))
    for form in forms:
        moved = np.abs(rows) + np.abs(form.centre - centre)
        sizes = np.maximum(sizes, np.einsum("ij,jk,ik->i", moved, np.abs(form.matrix), moved) + abs(form.constant))
    return sizes


_KINDS: dict[str, Callable[[Model], tuple[list[Form], tuple[str, ...], str]]] = {
    "EllipticEnvelope": _envelope,
    "NearestCentroid": _centroids,
    "QuadraticDiscriminantAnalysis": _discriminant,
}
