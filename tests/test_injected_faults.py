"""Injected faults: ``verify`` sees every one that moves a value by 1e-6 of the largest, the certificate 95 % of them."""

import functools

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
from golden_models import unfitted
from injected_faults import Case, campaign, spoil

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 6))
HOLES = np.where(rng.random(X.shape) < 0.15, np.nan, X)
Y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + np.abs(X[:, 3]) + 0.3 * X[:, 4]
CLASSES = np.digitize(Y, [0.0, 1.5])
# Of the golden record, and the module that reads each
BOOSTERS = dict.fromkeys(("XGBoost", "XGBoost three classes", "LightGBM", "CatBoost"), "boosters") | {
    "histogram boosting": "packages"
}
TREES = BOOSTERS | dict.fromkeys(("random forest", "gradient boosting"), "packages")
KERNELS = ("SVR", "KernelRidge", "GP", "scaler, SVR")
ADDITIVE = ("LinearRegression", "polynomials", "EBM")
CASES = [(name, True) for name in (*TREES, *KERNELS, *ADDITIVE)] + [(name, False) for name in (*TREES, "SVR")]


@functools.cache
def case_of(name, background):
    data, y = HOLES if name in BOOSTERS else X, CLASSES if "classes" in name else Y
    family = "trees" if name in TREES else "kernel" if name in KERNELS else "additive"
    rows, module = data[150:170] if background else None, f"exactshap.readers.trees.{TREES.get(name)}"
    return Case(name, unfitted(name).fit(data, y), data[:12], rows, family, module)


SEEN = {}  # faults that the certificate saw, of the visible ones, by case


@pytest.mark.parametrize(("name", "background"), CASES)
def test_verify_sees_injected_faults(name, background):
    found = campaign(case_of(name, background), n_each=4 if background else 2, seed=2)
    moved = {kind: [one for one in outcomes if one.moved] for kind, outcomes in found.items()}
    missed = {kind: sum(not one.verify for one in outcomes) for kind, outcomes in moved.items()}
    assert not any(missed.values()), f"verify missed faults of {name}: {missed}"
    if background:
        by_kind = {kind: f"{sum(one.certificate for one in ones)} of {len(ones)}" for kind, ones in moved.items()}
        SEEN[f"{name}: {by_kind}"] = [one.certificate for outcomes in moved.values() for one in outcomes]
        assert np.mean(SEEN[f"{name}: {by_kind}"]) >= 0.8, f"the certificate of {name} saw {by_kind}"


def test_the_certificate_sees_nearly_all_of_them():
    if not SEEN:
        pytest.skip("the tests above tell what was seen")
    every = [one for seen in SEEN.values() for one in seen]
    assert np.mean(every) >= 0.95, f"the certificate saw {sum(every)} of {len(every)}: {list(SEEN)}"


# --- checks must be able to fail: each against a solver or reader that was broken on purpose --------------------------


random = np.random.default_rng(0)
GAME = ProductGame(random.normal(size=3), random.normal(size=(3, 5)), random.normal(size=(3, 5)))
ROWS = random.normal(size=(40, 4))
MODEL = SVR(C=5).fit(ROWS, ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2])


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


@pytest.mark.parametrize("background", [None, ROWS[:6]])
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
        explainer(ROWS[:3])


def swap(points):
    points[[0, 1]] = points[[1, 0]]


def test_check_reader_sees_rows_that_depend_on_their_company(monkeypatch):
    spoil(monkeypatch, KernelReader, lambda values: values + 1e-15 * len(values))
    with pytest.raises(AssertionError, match="alone differs"):
        check_reader(MODEL, ROWS[:3])
