import inspect
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor, Ridge, TweedieRegressor
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.tree import DecisionTreeRegressor

from exactshap.errors import ExplanationWarning, InputError, UnknownNameError, UnsupportedStructureError
from exactshap.explainer import Explainer, explain
from exactshap.semivalues import owen
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import HALF_THE_DIGITS, assert_close, conditioned

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 50.0, 0.0, 1.0]
Y = X @ [1.0, 0.2, 5.0, -1.0] + 0.3 * RNG.normal(size=80)
LABELS = np.digitize(Y, [8.0, 11.0])
ROWS, Z = X[:5], X[20:32]
NAMES = {name: getattr(linear_model, name) for name in linear_model.__all__ if inspect.isclass(getattr(linear_model, name))}


def fitted(name):
    cls = NAMES[name]
    settings = {
        key: value for key, value in {"random_state": 0, "max_iter": 30, "cv": 3, "Cs": 2}.items() if key in cls().get_params()
    }
    model = cls(**(settings | ({"max_iter": 4} if "Pursuit" in name and "CV" in name else {})))
    if name.startswith("MultiTask"):
        return model.fit(X, np.stack([Y, Y**2, X[:, 0]], axis=1))
    if hasattr(model, "predict_proba") or "Classifier" in name or name in ("LogisticRegression", "Perceptron"):
        return model.fit(X, LABELS)
    return model.fit(X, np.abs(Y) + 1.0)


def own_prediction(model, rows):
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    if type(model).__name__ in ("PoissonRegressor", "GammaRegressor"):
        return np.log(model.predict(rows))
    return model.predict(rows)


@pytest.mark.parametrize("name", NAMES)
def test_every_linear_model_of_scikit_learn(name):
    model = fitted(name)
    check_answers(model, lambda rows: own_prediction(model, rows), ROWS, Z, conditioned(1e3))


CASES = {
    "several targets": (LinearRegression(), np.stack([Y, Y**2], axis=1)),
    "one target as a column": (LinearRegression(), Y[:, None]),
    "no intercept": (Ridge(fit_intercept=False), Y),
    "two classes": (LogisticRegression(), LABELS > 0),
    "named classes": (LogisticRegression(), np.array(["low", "mid", "high"])[LABELS]),
    "sparse coefficients": (LogisticRegression(l1_ratio=1.0, solver="liblinear"), LABELS > 0),
    "ridge classifier of labels": (linear_model.RidgeClassifier(), np.stack([LABELS > 0, LABELS > 1], axis=1).astype(int)),
    "log loss": (linear_model.SGDClassifier(loss="log_loss", random_state=0), LABELS),
    "identity link": (TweedieRegressor(power=0), Y),
    "log link": (TweedieRegressor(power=1.5, max_iter=30), np.abs(Y)),
    "log link by name": (TweedieRegressor(power=0, link="log", max_iter=30), np.abs(Y)),
}


@pytest.mark.parametrize("case", CASES)
def test_contract(case):
    model, y = CASES[case]
    model.fit(X, y)
    if case == "sparse coefficients":
        model.sparsify()
    check_reader(model, ROWS, Z)
    check_reader(model, ROWS, Z, groups={"g": [1, 3]}, background_weights=np.arange(12) + 1.0)


@pytest.mark.filterwarnings("ignore:Rounding leaves about")
@pytest.mark.parametrize("index", ["shapley", owen({"g": ["x0", "x1"]})], ids=["shapley", "owen"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_likelihoods_that_cancel_are_rounding(index, n_jobs):
    """Log-odds of some hundreds are differences of likelihoods of 1e12, whatever solves the games."""
    model = GaussianNB().fit(X, LABELS > 0)
    model.theta_[1], model.var_[0], model.var_[1] = model.theta_[0], 1e-10, 1e-10 * (1.0 + 1e-12 * np.arange(4))
    explanation = Explainer(model, Z, n_jobs=n_jobs)(X, index=index)
    assert np.abs(explanation.prediction).max() < 1e4
    assert np.abs(explanation.residual).max() > HALF_THE_DIGITS


@pytest.mark.parametrize(
    ("model", "y", "unit"),
    [
        (LogisticRegression(), LABELS > 0, "log-odds of class True"),
        (LogisticRegression(), LABELS, "score before the softmax"),
        (TweedieRegressor(power=1.5), np.abs(Y), "log of the target"),
        (GaussianNB(), LABELS, "joint log-likelihood"),
    ],
)
def test_units(model, y, unit):
    assert Explainer(model.fit(X, y), Z).reader.traits.unit == unit


def test_outputs_have_the_names_of_the_classes():
    model, two = (
        LogisticRegression().fit(X, names[LABELS]) for names in np.array([["low", "mid", "high"], ["no", "yes", "yes"]])
    )
    everything, one = Explainer(model, Z)(ROWS), Explainer(model, Z, output="mid")(ROWS)
    assert everything.output_names == ("high", "low", "mid")
    np.testing.assert_array_equal(one.values, everything.values[..., 2])
    np.testing.assert_array_equal(Explainer(two, Z, output="yes")(ROWS).values, Explainer(two, Z)(ROWS).values)
    with pytest.raises(UnknownNameError, match="LogisticRegression has no output 'chance'"):
        Explainer(model, Z, output="chance")


# -- bad input -----------------------------------------------------------------------------------------------------------


def frame_of(rows):
    return pd.DataFrame(rows, columns=list("abcd"))


@pytest.mark.parametrize(
    ("kind", "bad"),
    [(np.asarray, np.nan), (np.asfortranarray, np.inf), (frame_of, -np.inf), (frame_of, np.nan), (np.float32, np.inf)],
)
def test_cells_that_are_not_finite_are_named_whatever_their_coefficient(kind, bad):
    rows = np.tile(X, (600, 1))
    rows[41_234, 2], rows[41_235, 3] = bad, -bad
    model = Ridge().fit(kind(X), Y)
    model.coef_[2] = 0.0
    for n_jobs in (1, 2):
        with pytest.raises(InputError, match=r"Input X contains (NaN|infinity).* \(first at row 41234, column ('c'|2)\)"):
            explain(model, kind(rows), kind(Z), n_jobs=n_jobs)


# -- large coefficients that cancel --------------------------------------------------------------------------------------


def cancelling(size):
    """Return a linear model whose two large coefficients act on nearly the same column, and rows."""
    model = LinearRegression().fit(X, Y)
    model.coef_, model.intercept_ = np.array([size, -size, 1.0, 0.5]), 0.25
    rows = np.random.default_rng(3).normal(size=(12, 4))
    rows[:, 1] = rows[:, 0] + 1e-12 * rows[:, 1]
    return model, rows


def test_values_that_rounding_leaves_few_digits_of_are_approximate():
    model, rows = cancelling(1e11)
    with pytest.warns(ExplanationWarning, match=r"Rounding leaves about \d digits? of what LinearRegression predicts"):
        explainer = Explainer(model, rows[:6])
    found = explainer(rows[6:])
    assert found.kind == "approximate"
    assert found.certificate().passed
    assert (found.approximation_error > 1e-6 * np.abs(found.prediction)).all()


def test_constant_predictions_are_exact():
    """Rounding takes no digits of a constant, be it 0: every value is 0."""
    X = np.random.default_rng(0).uniform(0.1, 2.0, size=(40, 3))  # all of them 1 to a model of binary columns
    found = explain(BernoulliNB().fit(X, np.arange(40) % 2), X[:2], X[10:20])
    assert (found.kind, np.abs(found.values).max(), np.abs(found.prediction).max()) == ("exact", 0.0, 0.0)


def test_constant_predictions_hide_no_lost_digits():
    model, rows = cancelling(1e16)  # of whose small terms no digit is left
    rows[:, 1] = rows[:, 0] = 1.0
    model.coef_ = np.array([1e16, -1e16, 1.0, 0.0])
    model.intercept_ = 0.0
    assert np.ptp(model.predict(rows[:1])) == 0.0
    one, many = Explainer(model, rows[:1]), Explainer(model, np.repeat(rows[:1], 5, axis=0))
    rows[6:, 0] += 2.0**-50
    for explainer in (one, many):
        with pytest.warns(ExplanationWarning, match="Rounding leaves about 0 digits of what LinearRegression predicts"):
            found = explainer(rows[6:])
        assert found.kind == "approximate"
    model.coef_[:2], model.intercept_ = 1.0, -float(rows[0] @ np.array([1.0, 1.0, 1.0, 0.0]))
    found = explain(model, rows[6:], rows[:1])  # 0 for the reference row, with all digits for others
    assert found.kind == "exact"
    assert found.certificate().passed


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
def test_more_digits_hold_where_large_coefficients_cancel():
    """Against fractions: both large columns are one player, whose value is a small difference of large terms."""
    model, rows = cancelling(1e11)
    with pytest.warns(ExplanationWarning):
        explainer = Explainer(model, rows[:6], groups={"both": [0, 1]})
    coefficients = [Fraction(float(c)) for c in model.coef_]

    def exact(row):
        means = [sum(Fraction(float(z[j])) for z in rows[:6]) / 6 for j in (0, 1)]
        return float(sum(coefficients[j] * (Fraction(float(row[j])) - means[j]) for j in (0, 1)))

    expected = [exact(row) for row in rows[6:]]
    plain = [sum(model.coef_[j] * row[j] - (model.coef_[j] * rows[:6, j]).mean() for j in (0, 1)) for row in rows[6:]]
    missed = np.abs(explainer(rows[6:]).values[:, 0] - expected).max()
    assert missed < 0.02 * np.abs(np.subtract(plain, expected)).max()


# -- what is refused -----------------------------------------------------------------------------------------------------


def test_ransac_is_as_linear_as_what_is_inside():
    check_reader(RANSACRegressor(random_state=0).fit(X, Y), ROWS, Z)
    with pytest.raises(
        UnsupportedStructureError, match="DecisionTreeRegressor inside RANSACRegressor is not known to be linear"
    ):
        Explainer(RANSACRegressor(DecisionTreeRegressor(), min_samples=10, random_state=0).fit(X, Y), Z)


def test_a_model_that_does_not_predict_the_sum_of_its_terms_is_refused(monkeypatch):
    own = LinearRegression.predict
    monkeypatch.setattr(LinearRegression, "predict", lambda self, rows: np.maximum(own(self, rows), 10.0))
    message = r"LinearRegression does not predict the sum of its terms\. For background row"
    with pytest.raises(UnsupportedStructureError, match=message):
        Explainer(LinearRegression().fit(X, Y), Z)


def test_rows_wider_than_a_chunk_count_in_the_mean_of_the_background(monkeypatch):
    """A row of more columns than are evaluated at a time is evaluated alone, not left out."""
    monkeypatch.setattr("exactshap.readers.additive._terms.CHUNK_VALUES", 2**5)
    rows = np.zeros((6, 2**5 + 1))
    rows[:, :3] = np.random.default_rng(0).normal(size=(6, 3))
    model = Ridge().fit(rows[:2], [0.0, 1.0])
    model.coef_[:3] = 1.0, 2.0, 3.0
    explanation = explain(model, rows[5:], rows[:5], groups={"all": list(range(2**5 + 1))})
    assert_close(explanation.baseline[0], model.predict(rows[:5]).mean(), np.abs(rows).sum(axis=1).max() * 3.0, n_terms=5)
