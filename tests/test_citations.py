"""What a result cites: the library, and the papers of its value function, method or statistic."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.svm import SVR

from exactshap import __version__, decompose_hsic, decompose_mmd, decompose_r2, explain

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] + X[:, 1] * X[:, 2]


def keys(text):
    return re.findall(r"@\w+{([^,]+),", text)


@pytest.mark.parametrize(
    ("model", "background", "settings", "wanted"),
    [
        (SVR(), None, {}, ["pkexshapley", "owen"]),
        (SVR(), X[:9], {"value_function": "observational"}, ["rkhsshap"]),
        (SVR(), X[:1], {}, ["owen"]),
        (Ridge(), X[:9], {}, ["starshap"]),
        (RandomForestRegressor(3, max_depth=3, random_state=0), None, {}, ["treeshap"]),
        (RandomForestRegressor(3, max_depth=3, random_state=0), X, {"value_function": "observational"}, ["rkhsshap", "olsen"]),
        (
            RandomForestRegressor(3, max_depth=3, random_state=0),
            X,
            {"value_function": "observational-forest", "n_trees": 20},
            ["olsen"],
        ),
        (Ridge(), X, {"value_function": "observational-copula", "n_samples": 16}, ["aas"]),
    ],
)
def test_values_cite_their_game_and_their_method(model, background, settings, wanted):
    text = explain(model.fit(X, Y), X[:2], background, **settings).cite()
    assert keys(text) == ["exactshap", *wanted]
    assert __version__ in text


def test_sampled_values_cite_their_estimator():
    wide = RNG.normal(size=(20, 15))
    sampled = explain(lambda rows: np.sin(rows).sum(axis=1) * rows[:, 0], wide[:1], wide, budget=300, random_state=0)
    assert keys(sampled.cite()) == ["exactshap", "polyshap"]


def test_decompositions_cite_their_statistic():
    forest = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, Y)
    assert keys(decompose_r2(forest, X, Y).cite()) == ["exactshap", "qshap"]
    assert keys(decompose_r2(LinearRegression(), X, Y, game="refit").cite()) == ["exactshap", "lindeman"]
    assert keys(decompose_mmd(X[:30], X[30:]).cite()) == ["exactshap", "pkexshapley"]
    assert keys(decompose_hsic(X, Y).cite()) == ["exactshap", "pkexshapley"]


def test_all_entries_are_on_the_page_and_in_the_citation_file():
    root = Path(__file__).parents[1]
    entries = (root / "src/exactshap/results/data/citations.bib").read_text(encoding="utf-8")
    plain = (root / "CITATION.cff").read_text(encoding="utf-8") + (root / "docs/cite.md").read_text(encoding="utf-8")
    for title in re.findall(r"^  title = {(.*)},?$", entries, re.MULTILINE):
        assert re.sub("[{}]", "", title) in plain, title
