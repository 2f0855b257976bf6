"""Other indices and orders: the certificate and ``verify`` see values that no sum of a row shows to be wrong."""

import functools
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from scipy.sparse import csr_matrix
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MaxAbsScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer
from exactshap.errors import ExactnessError, InputError
from exactshap.explainer._verify import reference_sums
from exactshap.games import AdditiveGame, OracleGame, ProductGame
from exactshap.semivalues import Density, Semivalue, available, beta, find, owen
from exactshap.solvers import player_sets, sets_by_size, solve
from injected_faults import spoil
from tolerances import assert_close

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
Y = X[:, 0] * X[:, 1] + X[:, 2]
MODELS = {
    "svr": SVR(C=5.0).fit(X, Y),
    "forest": RandomForestRegressor(20, random_state=0).fit(X, Y),
    "ridge": Ridge().fit(X, Y),
}


@pytest.mark.parametrize(("seed", "index", "order"), [(0, "shapley", 1), (0, "moebius", 1), (4, "stii", 2)])
def test_a_background_of_far_larger_terms_is_within_tolerance(seed, index, order):
    """Rows near zero have small terms: the rounding that counts is that of the background and of hybrids with it."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([10.0 * rng.normal(size=80), 10.0 * rng.integers(0, 4, size=80)])
    model = SVR(kernel="poly", C=3.0, epsilon=0.005).fit(rows, 0.01 * rng.normal(size=80))
    near = np.column_stack([rows[:2, 0], np.zeros(2)])
    for start in (0, 4, 8, 40):
        assert Explainer(model, rows[start : start + 30])(near, index, order).certificate().passed


def swapped(values):
    if values.shape[1] == 15:  # five players and their pairs, of which the first and the last are swapped
        values[:, [5, 14]] = values[:, [14, 5]]
    return values


CHANGES = {
    "banzhaf, half as much again": ("banzhaf", 1, lambda values: 1.5 * values),
    "moebius, doubled": ("moebius", 1, lambda values: 2.0 * values),
    "pairs swapped": ("k-sii", 2, swapped),
    "pairs of Banzhaf swapped": ("banzhaf-interaction", 2, swapped),
    "players in reverse": ("banzhaf", 1, lambda values: values[:, ::-1].copy()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["svr", "forest"])
def test_wrong_values_are_seen_by_the_certificate_and_by_verify(change, name, monkeypatch):
    index, order, wrong = CHANGES[change]
    explainer = Explainer(MODELS[name], X[:20])
    spoil(monkeypatch, type(explainer.reader), wrong)
    # a draw of players may miss the two pairs; what was wrong once stays wrong
    assert any(is_refused(explainer, X[start : start + 12], index, order) for start in range(20, 80, 12))
    assert not explainer.verify(X[30:32], index=index, order=order).passed


def is_refused(explainer, rows, index, order):
    try:
        explainer(rows, index, order)
    except ExactnessError:
        return True
    return False


@pytest.mark.parametrize("name", ["svr", "forest"])
def test_any_two_swapped_pairs_are_seen_at_once(name, monkeypatch):
    places, rng = np.array([0, 0]), np.random.default_rng(1)

    def swapped_there(values):
        if values.shape[1] == 15:
            values[:, places] = values[:, places[::-1]]
        return values

    spoil(monkeypatch, type(Explainer(MODELS[name], X[:20]).reader), swapped_there)
    for _ in range(12):
        places[:] = 5 + rng.choice(10, 2, replace=False)
        assert is_refused(Explainer(MODELS[name], X[rng.permutation(20)]), X[20:30], "banzhaf-interaction", 2)


CODES = RNG.integers(0, 4, (80, 5)).astype(float)
TEXT = pd.DataFrame({name: RNG.choice(list("uvwx"), 80) for name in "abcde"})
MIXED = TEXT.assign(d=RNG.normal(size=80), e=RNG.integers(0, 4, 80))
COUNTS = csr_matrix(RNG.poisson(1.0, (80, 5)).astype(float))


def encoder(is_sparse):
    return OneHotEncoder(handle_unknown="ignore", sparse_output=is_sparse)


def binned(is_sparse):
    return KBinsDiscretizer(3, encode="onehot" if is_sparse else "onehot-dense", quantile_method="averaged_inverted_cdf")


def of_columns(is_sparse, remainder="passthrough"):
    steps = [("c", encoder(is_sparse), ["a", "b", "c"])]
    return ColumnTransformer(steps, remainder=remainder, sparse_threshold=float(is_sparse))


def of_arrow_columns(is_sparse):
    return of_columns(is_sparse, StandardScaler())  # what passes through must be of pandas or polars


FIRST_STEPS = {
    "codes": (encoder, CODES),
    "bins": (binned, X),
    "text": (encoder, TEXT),
    "text and numbers": (of_columns, MIXED),
    "polars": (of_columns, pl.DataFrame(MIXED.to_dict("list"))),
    "pyarrow": (of_arrow_columns, pa.Table.from_pandas(MIXED)),
    "array of text": (encoder, TEXT.to_numpy()),
    "sparse rows": (lambda _: MaxAbsScaler(), COUNTS),
}
LAST_STEPS = {"xgboost": lambda: xgboost.XGBRegressor(n_estimators=15, max_depth=3, n_jobs=1), "svr": lambda: SVR(C=5.0)}


ENCODED = [  # each first step with each last one, sparse and dense; rows that are sparse themselves stay so
    (first, last, is_sparse, ("banzhaf, half as much again", "pairs swapped")[(number + (last == "svr") + is_sparse) % 2])
    for number, first in enumerate(FIRST_STEPS)
    for last, is_sparse in itertools.product(LAST_STEPS, (True, False))
    if is_sparse or first != "sparse rows"
]


@pytest.mark.parametrize(("first", "last", "is_sparse", "change"), ENCODED)
def test_wrong_values_of_pipelines_with_an_encoder_are_seen(first, last, is_sparse, change, monkeypatch):
    step, rows = FIRST_STEPS[first]
    index, order, wrong = CHANGES[change]
    model = make_pipeline(step(is_sparse), LAST_STEPS[last]()).fit(rows, Y + COUNTS.toarray()[:, 0])

    def some(numbers):
        if isinstance(rows, pa.Table):
            return rows.take(pa.array(numbers))
        return rows.iloc[numbers] if isinstance(rows, pd.DataFrame) else rows[numbers]

    explainer = Explainer(model, some(np.arange(20)))
    assert explainer.verify(some([30, 31]), index=index, order=order).passed
    spoil(monkeypatch, type(explainer.reader), wrong)
    assert not explainer.verify(some([30, 31]), index=index, order=order).passed
    # cells that equal those of the reference row show nothing
    drawn = [np.random.default_rng(seed).permutation(80) for seed in range(4)]
    assert any(is_refused(Explainer(model, some(rows[:20])), some(rows[20:32]), index, order) for rows in drawn)


def test_orders_of_players_are_no_index():
    explainer = Explainer(MODELS["ridge"], X[:20])
    with pytest.raises(InputError, match="Only semivalues and interaction indices can be verified"):
        explainer.verify(X[:2], index=owen({"a": ["x0", "x1"], "b": ["x2", "x3", "x4"]}))


def test_hybrids_with_very_many_sets_and_outputs_are_compared_in_pieces():
    rows = RNG.normal(size=(60, 60))
    model = Ridge().fit(rows, RNG.normal(size=(60, 700)))  # 1,830 sets of 700 outputs: 19 hybrids do not fit
    explainer = Explainer(model, rows[:5], output="all")
    explanation = explainer(rows[10:11], "k-sii", 2)
    certificate = explanation.certificate()
    assert certificate.passed
    assert certificate.n_masks >= 19


@functools.cache
def wide_explainers(d):
    """Return explainers of more than ten columns, with a background and without."""
    rows = np.random.default_rng(d).normal(size=(120, d))
    target = rows[:, 0] * rows[:, 1] + np.sin(rows[:, 2]) + rows[:, 3] * rows[:, 4] * rows[:, 5]
    svr, boosted = SVR(C=5.0, gamma=1.0 / d), xgboost.XGBRegressor(n_estimators=15, max_depth=4, n_jobs=1)
    forest = RandomForestRegressor(3, max_depth=3, random_state=0)
    pairs = make_pipeline(PolynomialFeatures(2, include_bias=False), Ridge())
    process = GaussianProcessRegressor(Matern(d**0.5, nu=1.5), alpha=0.1, optimizer=None)
    explainers = {
        "functional": Explainer(svr.fit(rows, target)),
        "mixture": Explainer(process.fit(rows[:40], target[:40])),
        "path-dependent": Explainer(boosted.fit(rows, target)),
        "interventional": Explainer(svr, rows[:10]),
        "leaves": Explainer(boosted, rows[:10]),
        "terms": Explainer(pairs.fit(rows, target), rows[:10]),
        "sum": Explainer(VotingRegressor([("svr", svr), ("forest", forest)]).fit(rows, target), rows[:10]),
        "sum, some columns": Explainer(BaggingRegressor(svr, 3, max_features=0.5, random_state=0).fit(rows, target), rows[:10]),
    }
    return rows, explainers


WIDE = ("functional", "mixture", "path-dependent", "interventional", "leaves", "terms", "sum", "sum, some columns")


@pytest.mark.parametrize(
    ("d", "index"),
    [*((15, index) for index in (*available(), beta(4, 1))), *((40, index) for index in ("banzhaf", "k-sii", "fsii"))],
)
@pytest.mark.parametrize("name", WIDE)
def test_every_index_of_many_players_is_compared_and_passes(d, name, index):
    rows, explainers = wide_explainers(d)
    for order in (1, 2) if d == 40 else (3,) if index in ("fsii", "stii") else (1 + len(name) % 2, 3):
        verification = explainers[name].verify(rows[60:62], n_masks=1, index=index, order=order)
        assert verification.passed
        assert verification.max_value_difference is not None
        assert not any("values" in text for text in verification.unchecked)


def two_swapped(values, d, order, rng):
    """Swap two random values of sets of the largest size, in each row, at which they differ most."""
    first = 0 if order == 1 else d
    largest = np.argmax(np.abs(values[0, first:])) + first
    other = rng.choice([place for place in range(first, values.shape[1]) if place != largest])
    values[:, [largest, other]] = values[:, [other, largest]]
    return values


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize(
    ("d", "question", "fault"),
    [
        (15, ("banzhaf", 1), "swapped"),
        (15, ("k-sii", 2), "scaled"),
        (15, ("banzhaf-interaction", 2), "one off"),
        (15, ("k-sii", 2), "swapped"),
        (40, ("banzhaf", 1), "one off"),
        (40, ("banzhaf-interaction", 2), "swapped"),
    ],
)
def test_wrong_values_of_many_players_are_seen_by_verify(d, name, question, fault, monkeypatch):
    rows, explainers = wide_explainers(d)
    index, order = question
    rng = np.random.default_rng(d)

    def wrong(values):
        if fault == "swapped":
            return two_swapped(values, d, order, rng)
        if fault == "scaled":
            return 1.5 * values
        values[:, -1] += 1e-6 * np.abs(values).max()
        return values

    spoil(monkeypatch, type(explainers[name].reader), wrong, question)
    assert not explainers[name].verify(rows[60:62], n_masks=1, index=index, order=order).passed


@pytest.mark.parametrize(("d", "n_outputs"), [(1, 0), (1, 3), (2, 1), (3, 3), (4, 0)])
def test_sums_of_values_by_the_multilinear_extension(d, n_outputs):
    tail = (n_outputs,) if n_outputs else ()
    factors, phases = RNG.uniform(0.5, 1.5, (8, 4, d)), np.exp(1j * RNG.normal(size=(8, 4, d)))
    subsets = [(), (d - 1,), tuple(range(d))[::-1]]
    games = (
        ProductGame(RNG.normal(size=(4, *tail)), factors[:3], factors[3:], weights=RNG.random(5)),
        ProductGame(RNG.normal(size=(4, *tail)), phases[:3], phases[3:]),
        ProductGame(RNG.normal(size=(4, *tail)), factors[:3], phases[3:]),
        AdditiveGame(d, subsets, [RNG.normal(size=(3, 2 ** len(subset), *tail)) for subset in subsets]),
    )
    late = Semivalue("late", Density(np.square))
    for game, index, order in itertools.product(games, (*map(find, available()), beta(4, 1), late), range(1, d + 1)):
        directions = RNG.uniform(-1.0, 1.0, (3, d))
        values = solve(game, index, order, method="enumeration").values.reshape(3, -1, max(n_outputs, 1))
        sums, start = reference_sums(game, index, order, directions), 0
        for size, members in enumerate(sets_by_size(player_sets(d, order), order)):
            weights = np.prod(directions[:, members], axis=2)
            expected = np.einsum("it,itk->ik", weights, values[:, start : start + len(members)])
            start += len(members)
            assert_close(sums[:, size], expected, scale=100.0, n_terms=20, n_players=d)


def test_orders_up_to_the_number_of_many_players():
    rows = RNG.normal(size=(30, 11))
    explainer = Explainer(SVR().fit(rows, rows[:, 0]))
    assert explainer.verify(rows[:1], n_masks=1, index="sii", order=11).passed
    with pytest.raises(InputError, match="must be at most the number of players, 11"):
        explainer.verify(rows[:1], n_masks=1, index="sii", order=12)


def test_games_of_another_kind_say_that_values_were_not_compared():
    rows = RNG.normal(size=(40, 12))
    network = MLPRegressor(hidden_layer_sizes=(3,), max_iter=20)
    both = VotingRegressor([("ridge", Ridge()), ("network", network)]).fit(rows, rows[:, 0])
    verification = Explainer(both, rows[:5]).verify(rows[5:7], index="banzhaf", order=2)
    assert verification.passed
    assert verification.max_value_difference is None
    assert any("values one by one" in text for text in verification.unchecked)
    assert reference_sums(OracleGame(lambda masks: masks.sum(axis=1), 12), find("banzhaf"), 1, np.ones((1, 12))) is None
