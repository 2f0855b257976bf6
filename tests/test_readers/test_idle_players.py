"""Players that cannot matter cost nothing: columns that a step drops, and columns that equal the whole background."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap.testing import check_reader
from oracles import interventional_values
from tolerances import assert_close, roundings

RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(40, 11))
TARGET = WIDE[:, 0] * WIDE[:, 1] + WIDE[:, 2]
KEPT = [0, 1, 2, 5]


class Calendar(TransformerMixin, BaseEstimator):
    """A transformer of one's own: three numbers of a date."""

    def fit(self, dates, y=None):
        self.fitted_ = True
        return self

    def transform(self, dates):
        parts = dates.iloc[:, 0].dt
        return np.column_stack([parts.month / 12, parts.day_of_week / 7, parts.year - 2024])


def squares(column):
    return np.asarray(column) ** 2


MIXED = pd.DataFrame(RNG.random((40, 4)), columns=list("abcd")).assign(
    day=pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 700, 40), "D"), city=RNG.choice(["u", "v", "w"], 40)
)
COLUMN_WISE = ColumnTransformer(
    [
        ("own function", FunctionTransformer(squares), ["a"]),
        ("own transformer", Calendar(), ["day"]),
        ("pipeline", make_pipeline(PowerTransformer(), FunctionTransformer(squares)), ["b"]),
        ("bins", KBinsDiscretizer(3, strategy="uniform"), ["c"]),
        ("one-hot", OneHotEncoder(), ["city"]),
        ("chi2", AdditiveChi2Sampler(), ["b", "a"]),
    ]
)
MODELS = {
    "forest": RandomForestRegressor(3, random_state=0),
    "bag": BaggingRegressor(SVR(), 2, max_features=0.3, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_steps_that_cannot_mix_columns(name):
    model = make_pipeline(COLUMN_WISE, MODELS[name]).fit(MIXED, MIXED["a"] * MIXED["b"] + MIXED["day"].dt.month / 12)
    check_reader(model, MIXED[20:22], MIXED[:2], n_masks=2, indices=("shapley",))
    explanation = explain(model, MIXED[20:23], MIXED[:9])
    assert explanation.values[:, 3].tolist() == [0.0, 0.0, 0.0]
    assert np.abs(explanation.values[:, 4]).max() > 0.0


@pytest.mark.parametrize("index", ["shapley", "banzhaf"])
@pytest.mark.parametrize("tail", [SVR(), Ridge(), GaussianProcessRegressor(alpha=1.0)], ids=["SVR", "Ridge", "GP"])
def test_dropped_columns_are_no_players_in_the_cost(tail, index):
    model = make_pipeline(ColumnTransformer([("s", StandardScaler(), KEPT)]), tail).fit(WIDE, TARGET)
    small = make_pipeline(StandardScaler(), tail).fit(WIDE[:, KEPT], TARGET)
    dropped = np.setdiff1d(np.arange(11), KEPT)
    for background in (WIDE[:9], None) if not isinstance(tail, Ridge) else (WIDE[:9],):
        explainer = Explainer(model, background)
        explanation = explainer(WIDE[20:23], index)
        expected = explain(small, WIDE[20:23][:, KEPT], None if background is None else background[:, KEPT], index=index)
        assert np.all(explanation.values[:, dropped] == 0.0)
        assert_close(explanation.values[:, KEPT], expected.values, np.abs(TARGET).max() * 10, n_terms=40, n_players=4)
        assert explanation.method == expected.method
        pairs = explainer(WIDE[20:23], "k-sii", 2).interactions
        assert np.all(pairs[:, dropped] == 0.0)
        assert np.abs(pairs[:, 0, 1]).max() > 0.0 or isinstance(tail, Ridge)
    check_reader(model, WIDE[20:23], WIDE[:5])


def test_covariances_and_normalized_games_know_all_players():
    front = ColumnTransformer([("s", StandardScaler(), KEPT)])
    process = make_pipeline(front, GaussianProcessRegressor(alpha=1.0)).fit(WIDE, TARGET)
    explanation = explain(process, WIDE[20:22], WIDE[:5])
    covariance = explanation.covariance(0)
    assert covariance.shape == (11, 11)
    assert np.all(covariance[3] == 0.0)
    assert covariance[0, 0] > 0.0
    machine = make_pipeline(front, SVR()).fit(WIDE, TARGET)
    shared = explain(machine, WIDE[20:22], value_function="normalized")
    assert np.all(shared.values[:, 3] != 0.0)
    np.testing.assert_array_equal(shared.values[:, 3], shared.values[:, 4])


@pytest.mark.parametrize("order", [3, 4])
def test_orders_above_the_live_players(order):
    model = make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 1])]), SVR()).fit(WIDE, TARGET)
    small = make_pipeline(StandardScaler(), SVR()).fit(WIDE[:, :2], TARGET)
    explanation = explain(model, WIDE[20:22], WIDE[:5], index="sii", order=order)
    pair = explanation.sets.index((0, 1))
    expected = explain(small, WIDE[20:22, :2], WIDE[:5, :2], index="sii", order=2)
    np.testing.assert_allclose(explanation.set_values[:, pair], expected.set_values[:, 2], atol=roundings(5_000))
    assert np.count_nonzero(np.abs(explanation.set_values).max(axis=0) > 1e-12) == 3


BACKGROUND, ROWS = RNG.normal(size=(4, 16)), RNG.normal(size=(5, 16))
BACKGROUND[:, :10], ROWS[:4, :10] = 0.5, 0.5


def curve(rows):
    rows = np.asarray(rows)
    return rows[:, 0] * rows[:, 1] + rows[:, 10] * rows[:, 11] * rows[:, 12] + np.sin(rows[:, 13])


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_columns_equal_to_the_background_are_not_paid_for(kind):
    names = [f"c{j}" for j in range(16)]
    frame = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(kind)
    rows, background = (
        table if frame is None else frame(dict(zip(names, table.T, strict=True))) for table in (ROWS[:3], BACKGROUND)
    )
    explanation = explain(curve, rows, background)
    assert explanation.exact
    assert explanation.n_evaluations <= 3 * (2**6 + 2)
    assert "6 of 16 players" in explanation.method
    assert np.all(explanation.values[:, :10] == 0.0)
    six = interventional_values(
        lambda cells: curve(np.hstack([np.full((len(cells), 10), 0.5), cells])), ROWS[:3, 10:], BACKGROUND[:, 10:]
    )
    assert_close(explanation.values[:, 10:], six, 10.0, n_players=16)


def test_exact_rows_among_sampled_ones_have_no_error():
    explanation = explain(curve, ROWS, BACKGROUND)  # four rows of one block are exact, the fifth is sampled
    assert not explanation.exact
    assert np.all(explanation.std_error[:4] == 0.0)
    assert explanation.std_error[4].max() > 0.0
    both = explain(curve, ROWS[3:], BACKGROUND)
    assert np.all(both.std_error[0] == 0.0)
    assert both.std_error[1].max() > 0.0


def test_gaps_and_groups_and_rows_of_the_background():
    gaps, rows = BACKGROUND.copy(), ROWS[:2].copy()
    gaps[:, 3], rows[:, 3] = np.nan, np.nan
    explanation = explain(curve, rows, gaps, groups={"g": [0, 1], "h": [9, 10]})
    assert "6 of 14 players" in explanation.method
    assert np.all(explain(curve, BACKGROUND[:1], BACKGROUND[:1]).values == 0.0)
    assert explain(curve, BACKGROUND[:1], BACKGROUND[:1], index="k-sii", order=3).exact


def test_zeros_of_two_signs_are_not_alike():
    background, row = np.repeat(WIDE[:1], 5, 0), WIDE[1:2].copy()
    background[:, 8], row[:, 8] = 0.0, -0.0
    found = explain(lambda rows: rows[:, 0] + np.signbit(rows[:, 8]), row, background)
    assert_close(found.values[0, [0, 8]], [row[0, 0] - background[0, 0], 1.0], scale=10.0)


def test_a_truth_value_is_not_the_number_one():
    background = pd.DataFrame({"a": [0.0, 1.0], "b": pd.Series([1, 1], dtype=object)})
    row = pd.DataFrame({"a": [2.0], "b": pd.Series([True], dtype=object)})
    found = explain(lambda rows: rows["a"] + [isinstance(cell, bool) for cell in rows["b"]], row, background)
    assert_close(found.values[0], [1.5, 1.0], scale=10.0)
