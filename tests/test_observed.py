"""Errors of predictions are in the unit of the target, on both pages."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from exactshap import explain
from exactshap.errors import InputError
from exactshap.results.data import observe
from exactshap.results.report import render
from exactshap.results.report.interactive import pack
from explanation_factory import linear
from tolerances import roundings

TWO = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)
WORDS = np.array(["no", "yes", "perhaps"])


@pytest.mark.parametrize(("X", "y"), [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("labels", ["numbers", "words", "truth"])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=2000),
        RandomForestClassifier(5, random_state=0),
        GradientBoostingClassifier(n_estimators=3),
        GaussianNB(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_error_of_a_classifier_is_its_class_less_its_probability(model, X, y, labels):
    if labels == "truth" and len(set(y)) > 2:
        pytest.skip("two truth values")
    y = {"numbers": y, "words": WORDS[y], "truth": y.astype(bool)}[labels]
    X, rows = X[:, :4], np.arange(len(y))[::30]
    model.fit(X, y)
    observed = observe(explain(model, X[rows], X[:10]), y[rows])
    wanted = (y[rows, None] == model.classes_) - model.predict_proba(X[rows])
    np.testing.assert_allclose(
        observed.error, wanted[:, 1] if observed.error.ndim == 1 else wanted, atol=roundings(10_000), rtol=0
    )


def test_one_class_of_several_is_compared_with_the_others():
    X, y = THREE
    model = RandomForestClassifier(5, random_state=0).fit(X, WORDS[y])
    explanation = explain(model, X[::10], X[:10]).output("yes")
    wanted = (WORDS[y[::10]] == "yes") - model.predict_proba(X[::10])[:, list(model.classes_).index("yes")]
    np.testing.assert_allclose(observe(explanation, WORDS[y[::10]]).error, wanted, atol=roundings(100), rtol=0)


def test_a_missing_label_has_no_error_and_numbers_are_taken_as_they_are():
    scores = linear(np.zeros((3, 2)), unit="log-odds of class 1")
    np.testing.assert_array_equal(np.isnan(observe(scores, [1, None, 0]).error), [False, True, False])
    counts = linear(np.zeros((2, 2)), unit="log of the target")
    np.testing.assert_allclose(observe(counts, [3.0, 1.0]).error, np.array([3.0, 1.0]) - np.e, rtol=roundings(10))
    np.testing.assert_array_equal(observe(linear(np.zeros((2, 2))), [3.0, np.nan]).error, [2.0, np.nan])


@pytest.mark.parametrize("model", [SVC(), RidgeClassifier()], ids=lambda model: type(model).__name__)
def test_labels_are_not_compared_with_a_decision_function(model):
    X, y = TWO
    explanation = explain(model.fit(X[:, :3], y), X[:4, :3], X[:10, :3])
    with pytest.raises(InputError, match=r"not in the unit of this output.*decision function.*probabilities"):
        observe(explanation, y[:4])


def test_labels_are_not_compared_with_a_function_that_returns_scores():
    with pytest.raises(InputError, match="It holds 0 and 1; the function returns -3 to 5"):
        observe(linear(np.zeros((2, 1)), unit="output of the function", prediction=[-3.0, 5.0], residual=[0, 0]), [0, 1])
    probabilities = linear(np.zeros((2, 1)), unit="output of the function", prediction=[0.2, 0.9], residual=[0, 0])
    np.testing.assert_allclose(observe(probabilities, [0, 1]).error, [-0.2, 0.1], atol=roundings(10))


@pytest.mark.parametrize(
    ("unit", "target", "match"),
    [
        ("log-odds of class yes", [0, 1, 1], "classes of this output: 'yes'.*Got 0, 1"),
        ("log-odds of class 1", [0.1, 0.7, 1.0], "Got 0.1, 0.7, 1.0"),
        ("log-odds", ["a", "b", "a"], "1 .the class of the output. and 0"),
        ("log-odds of class 1", [1, 0], "one class for each row.*shape .2,. for 3 rows"),
        ("target", ["a", "b", "c"], "Got text"),
        ("target", [1.0], "one number for each prediction"),
        ("latent mean (before the link and the averaging over the posterior)", [0, 1, 0], "not in the unit"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(unit, target, match):
    with pytest.raises(InputError, match=match):
        observe(linear(np.zeros((3, 2)), unit=unit), target)


def classified():
    X, y = TWO
    model = LogisticRegression(max_iter=2000).fit(X[:, :3], WORDS[y])
    rows = np.arange(0, 500, 25)
    error = (WORDS[y[rows]] == "yes") - model.predict_proba(X[rows, :3])[:, 1]
    return explain(model, X[rows, :3], X[:20, :3]), WORDS[y[rows]], error


def test_both_reports_name_the_row_with_the_largest_error_of_the_probability(tmp_path):
    explanation, labels, error = classified()
    worst = int(np.argmax(np.abs(error)))
    assert pack(explanation, target=labels).first == worst
    page = explanation.report(tmp_path / "static.html", target=labels).read_text()
    assert f"row {worst}: largest error" in page
    assert "The error is the observed class (1, else 0) minus the probability." in page
    largest = f"{error[worst]:.4g}".replace("-", "\N{MINUS SIGN}")
    assert f'<tr><th scope="row">row {worst}</th>' in page
    assert f"<td>{largest}</td></tr>" in page
    shown = explanation.report(tmp_path / "page.html", interactive=True, target=labels).read_text()
    assert "minus the probability" in shown


def test_the_report_of_several_outputs_has_errors_of_each(tmp_path):
    X, y = THREE
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    page = explain(model, X[::10], X[:10]).report(tmp_path / "static.html", target=y[::10]).read_text()
    assert page.count("<h2>Largest errors</h2>") == 3


def test_settings_of_a_static_report_are_refused_by_the_page(tmp_path):
    with pytest.raises(InputError, match="`max_display` and `n_rows` are settings of a static report"):
        linear(np.zeros((2, 2))).report(tmp_path / "page.html", interactive=True, max_display=3, n_rows=2)
    with pytest.raises(TypeError, match="n_row"):
        linear(np.zeros((2, 2))).report(tmp_path / "page.html", n_row=3)


def test_the_mean_error_is_over_the_known_ones():
    assert "Its mean magnitude is 1.5." in render(linear(np.zeros((3, 2))), target=[2.0, np.nan, 3.0])
