import copy
import functools
import warnings

import numpy as np
import pytest

from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError
from exactshap.explainer import Explainer
from exactshap.testing import check_reader
from tolerances import roundings

pygam = pytest.importorskip("pygam")
f, l, s, te = pygam.f, pygam.l, pygam.s, pygam.te

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(250, 2)), RNG.integers(0, 3, 250), RNG.normal(size=250)])
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 3] + (X[:, 2] == 1) * X[:, 0] + 0.05 * RNG.normal(size=250)
ROWS, Z, WEIGHTS = X[:3], X[20:26], np.arange(6) + 1.0


def fitted(model, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def small(*features, **settings):
    return te(*features, n_splines=5, **settings)


MODELS = {
    "spline, linear, factor": (pygam.LinearGAM(s(0, n_splines=8) + l(1) + f(2) + s(3, n_splines=6)), Y),
    "tensor": (pygam.LinearGAM(s(0, n_splines=8) + small(1, 3) + f(2)), Y),
    "tensor of three": (pygam.LinearGAM(te(0, 1, 3, n_splines=4) + f(2, coding="dummy")), Y),
    "by": (pygam.LinearGAM(s(0, by=2, n_splines=6) + s(1, by=3, n_splines=6)), Y),
    "tensor by": (pygam.LinearGAM(small(0, 1, by=3) + l(2)), Y),
    "tensor of terms": (pygam.LinearGAM(te(s(0, n_splines=5), l(1)) + te(s(1, n_splines=4, by=3), f(2))), Y),
    "tensor on one column twice": (pygam.LinearGAM(small(0, 0) + l(1)), Y),
    "cyclic, unused column": (pygam.LinearGAM(s(0, basis="cp", n_splines=8) + s(1, spline_order=2, n_splines=7)), Y),
    "no intercept": (pygam.LinearGAM(s(0, n_splines=6) + l(3), fit_intercept=False), Y),
    "default terms": (pygam.LinearGAM(n_splines=6), Y),
    "logistic": (pygam.LogisticGAM(s(0, n_splines=6) + small(1, 3)), Y > 0),
    "poisson": (pygam.PoissonGAM(s(0, n_splines=6) + small(1, 3)), np.round(np.exp(Y / 3))),
    "gamma": (pygam.GammaGAM(s(0, n_splines=6) + l(1)), np.exp(Y / 3)),
    "expectile": (pygam.ExpectileGAM(s(0, n_splines=6) + small(1, 3), expectile=0.8), Y),
}


@functools.cache
def case_of(name):
    return fitted(*MODELS[name])


UNITS = {"logistic": "log-odds", "poisson": "log of the target", "gamma": "log of the target"}


@pytest.mark.parametrize("case", MODELS)
def test_contract(case):
    check_reader(case_of(case), ROWS, Z)
    check_reader(case_of(case), ROWS, Z, groups={"g": [0, 3]}, background_weights=WEIGHTS)
    assert Explainer(case_of(case), Z).reader.traits.unit == UNITS.get(case, "target")


def test_logistic_models_are_explained_in_log_odds_far_out_too():
    model = fitted(pygam.LogisticGAM(l(0, lam=1e-6) + l(1, lam=1e-6)), Y > 0)
    far = np.array([[400.0, -400.0, 0.0, 0.0], [-400.0, 400.0, 1.0, 0.0]])
    explanation = Explainer(model, Z)(far)
    assert np.abs(explanation.prediction).max() > 50.0
    assert explanation.certificate().passed
    near = Explainer(model, Z)(ROWS)
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-near.prediction)), model.predict_proba(ROWS), rtol=roundings(5_000))


def test_bad_input_is_refused():
    model = case_of("tensor")
    bad = ROWS.copy()
    bad[1, 3] = np.nan
    with pytest.raises(InputError, match=r"Input X contains NaN \(first at row 1, column 3\). LinearGAM"):
        Explainer(model, Z)(bad)
    bad[1, 3], bad[1, 2] = 0.0, 7.0
    text = r"X holds a category out of the range of those fitted \(first at row 1, column 2\). Got 7; LinearGAM knows 0 to 2"
    with pytest.raises(InputError, match=text):
        Explainer(model, Z)(bad)
    with pytest.raises(InputError, match="background holds a category"):
        Explainer(case_of("tensor of terms"), bad)
    with pytest.raises(UnknownNameError, match="LinearGAM has no output 'probability'"):
        Explainer(model, Z, output="probability")


def test_unknown_terms_are_refused():
    model = copy.deepcopy(case_of("no intercept"))
    model.terms[0].__class__ = type("OddTerm", (type(model.terms[0]),), {})
    with pytest.raises(UnsupportedStructureError, match="A pyGAM term of type OddTerm is not known"):
        Explainer(model, Z)
