"""Rows and parameters of long doubles: linear kernel machines, whose certificate has the tolerance of double precision."""

import itertools

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import OneClassSVM

from exactshap import Explainer
from exactshap.errors import ExactnessError
from injected_faults import spoil
from tolerances import exact

pytestmark = pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
LONG = np.longdouble
N_FIT, N_BACKGROUND = 40, 8
# a spread and a mean of the columns that is much larger, so that terms cancel
SIZES = {"one column": (1, 0), "centred": (6, 0), "far from zero": (6, 1000), "many columns": (30, 10)}


def rows_of(size):
    """Return rows of thirds and sevenths, which are no doubles."""
    d, mean = SIZES[size]
    rng = np.random.default_rng(d + mean)
    return rng.normal(size=(N_FIT + 20, d)).astype(LONG) / LONG(3) + LONG(mean) / LONG(7)


def fitted(kind, rows):
    """Return a model that was fitted on long doubles, and its points and their coefficients (n_points, n_outputs)."""
    if kind == "one-class SVM":
        model = OneClassSVM(kernel="linear", nu=LONG(1) / LONG(3), max_iter=2000).fit(rows)
        return model, model.support_vectors_, model.dual_coef_.T
    target = np.sin(rows[:, :1] * LONG(3)) + rows[:, -1:] * np.arange(1, 3)
    model = KernelRidge(kernel="linear", alpha=LONG(1) / LONG(3))
    model.fit(rows, target if kind == "ridge of two targets" else target[:, 0])
    if kind == "ridge of long doubles":
        model.dual_coef_ = model.dual_coef_.astype(LONG) / LONG(3)
    return model, model.X_fit_, model.dual_coef_.reshape(len(rows), -1)


KINDS = ("one-class SVM", "ridge", "ridge of two targets", "ridge of long doubles")


def settings_of(model):
    return {"output": "all"} if isinstance(model, KernelRidge) and model.dual_coef_.ndim == 2 else {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_long_doubles_are_certified_with_a_tolerance_from_the_sizes_of_terms(kind, size):
    rows = rows_of(size)
    model, points, coefficients = fitted(kind, rows[:N_FIT])
    background = rows[:N_BACKGROUND]
    # all terms of a prediction, and of one of the background
    magnitude = np.abs(coefficients).sum(axis=1) @ (np.abs(points) @ np.abs(rows).T) + np.abs(
        np.ravel(getattr(model, "offset_", 0.0))
    )
    for row_dtype, background_dtype in itertools.product((LONG, np.float64), repeat=2):
        explainer = Explainer(model, background.astype(background_dtype), **settings_of(model))
        explained = rows[N_FIT:].astype(row_dtype)
        explanation = explainer(explained)
        certificate = explanation.certificate()
        assert certificate.passed
        assert certificate.mask_rows
        assert explainer.verify(explained[:2], n_masks=2).passed
        limit = exact(2.0 * float(magnitude.max()), len(points), rows.shape[1])
        assert np.max(explanation.tolerance) <= limit
        # phi_j = sum of coefficients times (x_j - mean of z_j) p_j, in extended precision
        moved = explained.astype(LONG) - background.mean(axis=0)
        values = np.einsum("ij,lj,lk->ijk", moved, points.astype(LONG), coefficients.astype(LONG))
        assert np.abs(explanation.values.reshape(values.shape) - values).max() <= np.max(explanation.tolerance)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_is_off_by_more_than_the_tolerance_is_seen(kind, size, monkeypatch):
    rows = rows_of(size)
    model, _, _ = fitted(kind, rows[:N_FIT])
    explainer = Explainer(model, rows[:N_BACKGROUND], **settings_of(model))
    tolerance = explainer(rows[N_FIT:]).tolerance
    shift = [0.0]

    def shifted(values):
        if len(values) == len(tolerance):
            values[3, 0] += shift[0] * tolerance[3]
        return values

    spoil(monkeypatch, type(explainer.reader), shifted)
    shift[0] = 0.5  # rounding itself takes less than the other half
    assert explainer(rows[N_FIT:]).certificate().passed
    shift[0] = 2.0
    with pytest.raises(ExactnessError):
        explainer(rows[N_FIT:])
