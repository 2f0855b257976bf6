"""``exactshap r2`` and the bar plot of shares."""

import numpy as np
import pytest

from command import run
from exactshap.decompose import decompose_r2
from tolerances import conditioned


@pytest.fixture
def files(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(80, 3)), columns=["age", "bmi", "sex"])
    frame["w"], frame["cost"] = rng.integers(1, 4, 80), frame["age"] + 0.5 * frame["bmi"] ** 2
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(frame[["age", "bmi", "sex"]], frame["cost"])
    model.save_model(tmp_path / "m.json")
    frame.to_parquet(tmp_path / "d.parquet")
    return model, frame, tmp_path


@pytest.mark.parametrize("game", ["residual", "ensemble"])
def test_command_prints_and_writes_what_the_function_gives(files, game, capsys):
    pytest.importorskip("matplotlib")
    import pandas

    model, frame, folder = files
    arguments = ("--target", "cost", "--sample-weight", "w", "--game", game)
    arguments = (*arguments, "--out", folder / "t.csv", "--picture", folder / "p.svg")
    assert run("r2", folder / "m.json", folder / "d.parquet", *arguments) == 0
    shares = decompose_r2(model, frame[["age", "bmi", "sex"]], frame["cost"], game=game, sample_weight=frame["w"])
    pandas.testing.assert_frame_equal(pandas.read_csv(folder / "t.csv"), shares.to_frame(), rtol=conditioned(1e5))
    text = capsys.readouterr().out
    assert f"R2 = {shares.total:.6g} ({game} game)" in text
    assert "value function: path_dependent" in text
    assert "drift" in text
    assert f"{shares.values.max():.4g}" in text
    assert (folder / "p.svg").read_text().lstrip().startswith("<?xml")


def test_reference_rows_may_have_the_target_and_the_weights(files):
    """The same file for both, as for the other commands."""
    import pandas
    from joblib import dump
    from sklearn.linear_model import Ridge

    _, frame, folder = files
    X = frame[["age", "bmi", "sex"]]
    model = Ridge().fit(X, frame["cost"])
    dump(model, folder / "m.joblib")
    common = ("r2", folder / "m.joblib", folder / "d.parquet", "--target", "cost", "--sample-weight", "w", "--allow-pickle")
    assert run(*common, "--background", folder / "d.parquet", "--out", folder / "t.csv") == 0
    shares = decompose_r2(model, X, frame["cost"], background=X, sample_weight=frame["w"])
    pandas.testing.assert_frame_equal(pandas.read_csv(folder / "t.csv"), shares.to_frame(), rtol=conditioned(1e5))


def test_command_says_what_is_wrong_in_one_line(files, capsys):
    _, _, folder = files
    assert run("r2", folder / "m.json", folder / "d.parquet", "--target", "price") == 2
    assert "has no column 'price'" in capsys.readouterr().err


def test_bars_are_sorted_and_the_rest_is_one_bar():
    from exactshap.results.decomposition import Decomposition

    values = np.array([0.1, -0.3, 0.05, 0.5, 0.02])
    shares = Decomposition(statistic="R2", values=values, total=0.4, feature_names=tuple("abcde"), std_error=np.full(5, 0.1))
    bars = shares.plot.prepare(max_display=3)
    assert bars.labels == ("d", "b", "3 others")
    assert bars.values == pytest.approx([0.5, -0.3, 0.17])
    assert bars.cumulative == pytest.approx([0.5, 0.2, 0.37])
    assert np.isnan(bars.error[:, 2]).all()
    assert shares.plot.prepare(max_display=5).labels == ("d", "b", "a", "c", "e")


def test_bar_draws_into_the_axes_that_it_gets(files):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    model, frame, _ = files
    ax = figure.subplots()
    shares = decompose_r2(model, frame[["age", "bmi", "sex"]], frame["cost"])
    assert shares.plot.bar(ax=ax, max_display=2) is ax
    assert [text.get_text() for text in ax.get_yticklabels()][-1] == "2 others"
    widths = [bar.get_width() for bar in ax.patches]
    assert sum(widths) == pytest.approx(shares.values.sum())
