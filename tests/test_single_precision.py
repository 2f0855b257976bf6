"""Rows in single precision, of the fit, the background or the request: the same answers as of doubles, and no refusal."""

import itertools

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, FastICA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

import exactshap
from exactshap.frames import as_table
from tolerances import SINGLE_PRECISION_SUM

RNG = np.random.default_rng(0)
DOUBLES = 50.0 + 10.0 * RNG.normal(size=(60, 4))
SINGLES = DOUBLES.astype(np.float32)
TARGET = DOUBLES[:, 0] - DOUBLES[:, 1] * DOUBLES[:, 2] / 50.0
MODELS = (
    (GaussianProcessRegressor(DotProduct(1.0) + RBF(20.0), alpha=1.0, optimizer=None), TARGET),
    (KernelRidge(kernel="laplacian", gamma=0.01), TARGET),
    (SVR(), TARGET),
    (GaussianNB(), np.median(TARGET) < TARGET),
    (PLSRegression(2), TARGET),
    *(
        (make_pipeline(step, Ridge()), TARGET)
        for step in (
            Nystroem(gamma=1e-3, n_components=8, random_state=0),
            RBFSampler(gamma=1e-3, n_components=8, random_state=0),
            PCA(3),
            FastICA(3, random_state=0, whiten="unit-variance"),
            PolynomialFeatures(2),
            StandardScaler(),
        )
    ),
)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, "polars"])
@pytest.mark.parametrize("case", MODELS, ids=lambda case: str(case[0])[:40])
def test_single_precision_of_fit_background_and_rows_makes_no_bug(case, kind):
    model, target = case
    if kind == "polars":
        kind = polars.DataFrame
    for of_fit, of_background, of_rows in itertools.product((SINGLES, DOUBLES), repeat=3):
        model.fit(kind(of_fit), target)
        explanation = exactshap.explain(model, kind(of_rows[20:26]), kind(of_background[:6]))
        assert explanation.certificate().passed
        again = exactshap.explain(model, kind(of_rows[20:26].astype(float)), kind(of_background[:6].astype(float)))
        scale = np.abs(again.values).max() + np.abs(again.prediction).max()
        assert np.abs(explanation.values - again.values).max() <= SINGLE_PRECISION_SUM * scale


def test_frames_in_double_keep_index_labels_and_other_columns():
    frame = pd.DataFrame({0: np.float32([1.5, 2.5]), 1: [1, 2], 2: ["a", "b"]}, index=[7, 7])
    doubled = as_table(frame).in_double().native
    assert list(doubled.columns) == [0, 1, 2]
    assert list(doubled.index) == [7, 7]
    assert list(map(str, doubled.dtypes)) == ["float64", "int64", str(frame[2].dtype)]
    assert doubled[0].tolist() == [1.5, 2.5]
