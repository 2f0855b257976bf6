"""What a notebook shows of each object: the facts, with names from outside escaped."""

import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from exactshap import Explainer, decompose_mmd, solve
from exactshap.games import ProductGame
from exactshap.results.decomposition import Decomposition
from explanation_factory import linear

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def explainer():
    X = np.random.default_rng(0).normal(size=(20, 3))
    return Explainer(LinearRegression().fit(X, X[:, 0]), X[:5], feature_names=[HOSTILE, "b", "c"]), X


def shown(explainer, X):
    explanation = explainer(X)
    return {
        "explainer": explainer,
        "explanation": explanation,
        "forecast": explainer.plan(X),
        "verification": explainer.verify(X),
        "certificate": explanation.certificate(),
        "decomposition": Decomposition(
            statistic="R2", values=np.arange(12.0), total=66.0, feature_names=(HOSTILE, *"abcdefghijk")
        ),
        "pairwise": decompose_mmd(X[:10], X[10:], n_permutations=19),
        "solution": solve(ProductGame(c=[1.0], a=[[2.0, 3.0]], b=[[1.0, 1.0]])),
        "named": explanation.mean(),
    }


WORDS = {
    "explainer": ["Explainer of LinearRegression", "interventional", "5 rows", "explainer.plan"],
    "explanation": ["exact Shapley values", "passed"],
    "forecast": ["Forecast", "on one thread", "exact"],
    "verification": ["Verification passed", "hand-masked", "tolerance"],
    "certificate": ["Certificate: passed", "residual"],
    "decomposition": ["R2 = 66", "(2 more)"],
    "pairwise": ["MMD2 = ", "p = "],
    "solution": ["Solution", "[2. 3.]", "method", "1 to 6"],
    "named": ["player", "value"],
}


@pytest.mark.parametrize("name", WORDS)
def test_html_and_text_say_what_matters_and_run_nothing(name, explainer):
    one = shown(*explainer)[name]
    html, text = one._repr_html_(), repr(one)
    assert "<img" not in html
    assert html.count("<div") == html.count("</div")
    assert html.count("<table") == html.count("</table")
    for word in WORDS[name]:
        assert word in html, word
    assert len(text) < 2500
    assert not text.startswith("Solution(")
    assert "array(" not in text


def test_a_failed_certificate_says_so_and_where():
    failed = linear(np.ones((3, 2)), residual=np.array([0.0, 1.0, 0.0])).certificate()
    assert "FAILED" in failed._repr_html_()
    assert "worst row</th><td style='text-align:left'>1<" in failed._repr_html_()


def test_shares_show_their_errors_or_intervals_and_the_certificate():
    shares = Decomposition(
        statistic="R2",
        values=[0.5, -0.25],
        total=0.25,
        feature_names=("age", "bmi"),
        std_error=[0.1, 0.2],
        residual=1e-17,
        tolerance=1e-15,
    )
    assert "residual 1.0e-17 (tolerance 1.0e-15)" in repr(shares)
    headings, rows = shares.rows("column")
    assert headings == ["column", "contribution", "of total", "std error"]
    assert rows == [["age", "0.5", "200.0 %", "0.1"], ["bmi", "-0.25", "-100.0 %", "0.2"]]
    ends = {"intervals": [[0.4, 0.6], [-0.5, 0.1]], "details": {"level": 0.9}}
    headings, rows = dataclasses.replace(shares, **ends).rows(most=1)
    assert headings == ["feature", "contribution", "of total", "90 % interval"]
    assert rows == [["age", "0.5", "200.0 %", "0.4 to 0.6"]]
