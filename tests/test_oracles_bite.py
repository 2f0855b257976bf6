"""The checks must be able to fail: each is run against a solver or reader that was broken on purpose."""

import numpy as np
import pytest
from sklearn.svm import SVR

from exactshap import Explainer
from exactshap.errors import ExactnessError
from exactshap.games import ProductGame
from exactshap.readers.kernel_machines import KernelReader
from exactshap.semivalues import Beta
from exactshap.solvers.product import _quadrature
from exactshap.testing import check_game, check_reader
from injected_faults import spoil

rng = np.random.default_rng(0)
GAME = ProductGame(rng.normal(size=3), rng.normal(size=(3, 5)), rng.normal(size=(3, 5)))
X = rng.normal(size=(40, 4))
MODEL = SVR(C=5).fit(X, X[:, 0] * X[:, 1] + X[:, 2])


RULES = {  # nodes and weights, broken
    "one node too few": lambda nodes, weights: tuple(np.asarray(part, float) for part in Beta().gauss(len(nodes) - 1)),
    "weights a little off": lambda nodes, weights: (nodes, weights * (1.0 + 1e-7)),
    "nodes reflected": lambda nodes, weights: (1.0 - nodes, weights),
}


def test_the_intact_solver_passes():
    check_game(GAME, orders=(1, 2, 3))


@pytest.mark.parametrize("broken", RULES)
def test_a_broken_rule_is_seen(monkeypatch, broken):
    fill = _quadrature.fill_singles
    monkeypatch.setattr(_quadrature, "fill_singles", lambda *given: fill(*given[:5], *RULES[broken](*given[5:7]), given[7]))
    with pytest.raises(AssertionError, match="is off by"):
        check_game(GAME)


def test_values_moved_between_players_are_seen_although_the_sum_is_right(monkeypatch):
    original = _quadrature.solve_terms

    def rolled(*arguments, **settings):
        sums = original(*arguments, **settings)
        sums.values[:, :2] = sums.values[:, 1::-1].copy()
        return sums

    monkeypatch.setattr(_quadrature, "solve_terms", rolled)
    with pytest.raises(AssertionError, match="is off by"):
        check_game(GAME)


@pytest.mark.parametrize("background", [None, X[:6]])
@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda reader: setattr(reader.expansion.intercept, "flat", reader.expansion.intercept + 1e-6), "do not add up"),
        (lambda reader: reader.expansion.parts[0].component.squared.__imul__(1.0 + 1e-7), "do not add up"),
        (
            lambda reader: reader.expansion.parts[0].points[[0, 1]].__class__ and swap(reader.expansion.parts[0].points),
            "do not add up",
        ),
    ],
)
def test_a_damaged_reading_is_seen(background, damage, text):
    explainer = Explainer(MODEL, background)
    damage(explainer.reader)
    with pytest.raises(ExactnessError, match=text):
        explainer(X[:3])


def swap(points):
    points[[0, 1]] = points[[1, 0]]


def test_check_reader_sees_rows_that_depend_on_their_company(monkeypatch):
    spoil(monkeypatch, KernelReader, lambda values: values + 1e-15 * len(values))
    with pytest.raises(AssertionError, match="alone differs"):
        check_reader(MODEL, X[:3])
