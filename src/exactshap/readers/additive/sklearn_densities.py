"""Read models of scikit-learn by densities: naive Bayes, and quadratic forms (discriminants, nearest centroids, elliptic envelope)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import InputError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import Outputs, Request, score_names, sklearn_name
from exactshap.readers.additive._additive import AdditiveForm, AdditiveReader
from exactshap.readers.additive._terms import ColumnTerms, LinearTerms, MonomialTerms, TermBlock
from exactshap.readers.additive.response import with_response
from exactshap.readers.responses import Response, no_response, probabilities

Likelihoods = Callable[[np.ndarray], np.ndarray]  # of rows: (n_classes, n_rows, n_columns)

# -- naive Bayes: sums of log-likelihoods of single columns --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Classes:
    r"""Hold the joint log-likelihoods of all classes, :math:`b_k + \sum_j l_{kj}(x_j)`."""

    prior: np.ndarray  # (n_classes,): b
    n_columns: int
    # ``magnitude(rows) -> (n_rows,)``: sizes that the model adds up for one class
    magnitude: Callable[[np.ndarray], np.ndarray]
    likelihoods: Likelihoods | None = None  # l; None where it is linear
    coefficients: np.ndarray | None = None  # (n_classes, n_columns): of the rows, where l is linear

    def terms(self, is_margin: bool, chosen: list[int]) -> TermBlock:
        if self.coefficients is not None:
            return LinearTerms(_of_outputs(self.coefficients, is_margin, chosen).T)
        assert self.likelihoods is not None
        columns = tuple((j,) for j in range(self.n_columns))
        return ColumnTerms(columns, functools.partial(_terms, self.likelihoods, is_margin, chosen))


@with_response(lambda model: probabilities(model.classes_))
def read_naive_bayes(model: Model, request: Request) -> AdditiveReader:
    r"""Read the joint log-likelihood of each class, or the log-odds of two.

    .. math:: \log P(y_k) + \sum_j \log P(x_j \mid y_k)
    """
    name = sklearn_name(model)
    parts = _CLASSES[name](model)
    names, is_margin = score_names(model.classes_), len(model.classes_) == 2
    outputs = Outputs.of(names, request.output, owner=name)
    chosen = outputs.numbers
    form = AdditiveForm(
        blocks=(parts.terms(is_margin, chosen),),
        intercept=_of_outputs(parts.prior, is_margin, chosen),
        encode=functools.partial(_categories, model, request.feature_names) if name == "CategoricalNB" else None,
        own_call=outputs.call("predict_joint_log_proba", link=_margin if is_margin else None),
        n_columns=parts.n_columns,
        outputs=outputs,
        unit=f"log-odds of class {names[0]}" if is_margin else "joint log-likelihood",
        magnitude=parts.magnitude,
        # Variances of single-precision rows are in single precision.
        precision=getattr(model, "var_", parts.prior).dtype,
    )
    return AdditiveReader(model, request, form)


def _require_finite(model: Model, *likelihoods: np.ndarray) -> None:
    """Refuse a model in which a class never or always has a feature. Values of alpha below rounding allow that."""
    if not all(np.isfinite(table).all() for table in likelihoods):
        what, got = f"This {type(model).__name__} has likelihoods that are not finite", "A probability of 0 has no logarithm"
        raise UnsupportedStructureError(what, got, "Fit it with a larger alpha, such as alpha=1")


def _gaussian(model: Model) -> _Classes:
    mean, variance = model.theta_.astype(float), model.var_.astype(float)
    prior, densities = np.log(model.class_prior_), functools.partial(_log_densities, mean, variance)
    return _Classes(prior, model.theta_.shape[1], functools.partial(_size, densities, prior), densities)


def _log_densities(mean: np.ndarray, variance: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the log densities (n_classes, n_rows, n_columns) of normal distributions."""
    densities = np.empty((len(mean), *rows.shape))
    for own, centre, spread in zip(densities, mean, variance, strict=True):
        np.subtract(rows, centre, out=own)
        own *= own
        own /= spread
        own += np.log(2.0 * np.pi * spread)
        own *= -0.5
    return densities


def _counts(model: Model) -> _Classes:
    """Read a multinomial or complement model, which is linear in the counts."""
    coefficients, prior = np.asarray(model.feature_log_prob_, float), np.asarray(model.class_log_prior_, float)
    _require_finite(model, coefficients)
    # ComplementNB uses its prior only where there is a single class.
    if sklearn_name(model) == "ComplementNB" and len(prior) > 1:
        prior = np.zeros(len(prior))
    return _linear(coefficients, prior)


def _linear(coefficients: np.ndarray, prior: np.ndarray, offset: float = 0.0) -> _Classes:
    sizes, least = np.abs(coefficients).max(axis=0), float(np.abs(prior).max()) + offset
    return _Classes(prior, coefficients.shape[1], functools.partial(_linear_size, sizes, least), coefficients=coefficients)


def _bernoulli(model: Model) -> _Classes:
    """Read log p above the threshold, else log(1 - p); without one, linear between them."""
    present = np.asarray(model.feature_log_prob_, float)
    with np.errstate(divide="ignore"):
        absent = np.log(1.0 - np.exp(present))
    _require_finite(model, present, absent)
    prior, offset = np.asarray(model.class_log_prior_, float), float(np.abs(absent).sum(axis=1).max())
    if model.binarize is None:
        # x log p + (1 - x) log(1 - p), for rows of 0 and 1.
        return _linear(present - absent, prior + absent.sum(axis=1), offset)
    steps = functools.partial(_steps, present, absent, float(model.binarize))
    least = float((np.abs(present) + 2.0 * np.abs(absent)).sum(axis=1).max() + np.abs(prior).max())
    return _Classes(prior, present.shape[1], functools.partial(_linear_size, np.zeros(present.shape[1]), least), steps)


def _steps(present: np.ndarray, absent: np.ndarray, threshold: float, rows: np.ndarray) -> np.ndarray:
    return np.where(rows > threshold, present[:, None, :], absent[:, None, :])


def _categorical(model: Model) -> _Classes:
    prior = np.asarray(model.class_log_prior_, float)
    tables = tuple(np.asarray(table, float) for table in model.feature_log_prob_)
    likelihoods = functools.partial(_look_up, tables)
    return _Classes(prior, len(tables), functools.partial(_size, likelihoods, prior), likelihoods)


def _look_up(tables: tuple[np.ndarray, ...], rows: np.ndarray) -> np.ndarray:
    codes = rows.astype(int)
    return np.stack([table[:, codes[:, j]] for j, table in enumerate(tables)], axis=2)


def _categories(model: Model, names: tuple[str, ...] | None, X: Table, what: str) -> np.ndarray:
    """Return the rows as numbers; as in scikit-learn, each column must hold one of its categories."""
    values = X.finite(what, type(model).__name__, names=names)
    unknown = (values < 0.0) | (values.astype(int) >= np.asarray(model.n_categories_))
    if unknown.any():
        i, j = (int(place) for place in np.argwhere(unknown)[0])
        raise InputError(
            f"Input {what} holds a category that CategoricalNB does not know (first at row {i}, {X.label(j)})",
            f"Got {values[i, j]:g}; it knows 0 to {int(model.n_categories_[j]) - 1}",
            "Fit it with min_categories= for more",
            row=i if what == "X" else None,
        )
    return values


_CLASSES: dict[str, Callable[[Any], _Classes]] = {
    "GaussianNB": _gaussian,
    "MultinomialNB": _counts,
    "ComplementNB": _counts,
    "BernoulliNB": _bernoulli,
    "CategoricalNB": _categorical,
}


def _of_outputs(values: np.ndarray, is_margin: bool, chosen: list[int]) -> np.ndarray:
    """Return the chosen classes of the first axis, or two classes' margin."""
    return (np.diff(values, axis=0) if is_margin else values)[chosen]


def _terms(likelihoods: Likelihoods, is_margin: bool, chosen: list[int], rows: np.ndarray) -> np.ndarray:
    return np.moveaxis(_of_outputs(likelihoods(rows), is_margin, chosen), 0, 2)


def _margin(likelihoods: np.ndarray) -> np.ndarray:
    return np.diff(likelihoods, axis=1)


def _size(likelihoods: Likelihoods, prior: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the largest magnitude (n_rows,) of joint log-likelihoods, which cancel in the log-odds."""
    return np.asarray(np.abs(prior).max() + np.abs(likelihoods(rows)).sum(axis=2).max(axis=0))


def _linear_size(sizes: np.ndarray, least: float, rows: np.ndarray) -> np.ndarray:
    return np.asarray(least + (np.abs(rows) * sizes).sum(axis=1))


# -- quadratic forms -----------------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """Hold f(x) = constant + (x - centre) . matrix (x - centre), with a symmetric matrix."""

    centre: np.ndarray
    matrix: np.ndarray
    constant: float


def _of_joint_densities(model: Model) -> Response:
    """Return the probability of a class: scores are logarithms of joint densities, up to a common constant."""
    if not hasattr(model, "predict_proba"):  # nearest centroids have it since scikit-learn 1.6
        raise no_response(model, "It has no predict_proba")
    return probabilities(model.classes_)


@with_response(_of_joint_densities)
def read_quadratic(model: Model, request: Request) -> AdditiveReader:
    r"""Read quadratic forms as squares, products of two columns and linear terms.

    .. math:: (x - \mu) \cdot A (x - \mu) = z \cdot A z - 2\, \delta \cdot A z + \delta \cdot A \delta, \qquad z = x - m, \; \delta = \mu - m
    """
    forms, unit = _FORMS[sklearn_name(model)](model)
    names = score_names(model.classes_) if hasattr(model, "classes_") else ("decision function",)
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
        unit=f"{unit} of class {names[0]}" if len(forms) == 2 else unit,
        magnitude=functools.partial(_magnitude, forms, centre),
        own_call=outputs.call("decision_function"),
    )
    return AdditiveReader(model, request, form)


def _envelope(model: Model) -> tuple[list[Form], str]:
    """Return the negative squared Mahalanobis distance minus the threshold."""
    precision = np.asarray(model.get_precision(), float)
    form = Form(np.asarray(model.location_, float), -precision, -float(model.offset_))
    return [form], "decision function"


def _discriminant(model: Model) -> tuple[list[Form], str]:
    """Return the logarithms of prior times density of the classes."""
    forms = []
    for mean, rotation, scaling, prior in zip(model.means_, model.rotations_, model.scalings_, model.priors_, strict=True):
        # Scaled in the precision of the fit, as predictions do
        root = np.asarray(rotation * scaling**-0.5, float)
        matrix = -0.5 * root @ root.T
        forms.append(
            Form(np.asarray(mean, float), 0.5 * (matrix + matrix.T), float(np.log(prior) - 0.5 * np.log(scaling).sum()))
        )
    return forms, "log-odds" if len(forms) == 2 else "joint log-likelihood"


def _centroids(model: Model) -> tuple[list[Form], str]:
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
    return forms, "decision function"


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


_FORMS: dict[str, Callable[[Model], tuple[list[Form], str]]] = {
    "EllipticEnvelope": _envelope,
    "NearestCentroid": _centroids,
    "QuadraticDiscriminantAnalysis": _discriminant,
}
