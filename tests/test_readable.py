"""Numbers within the certificate's tolerance read 0 wherever people read; arrays, frames and files keep them."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from exactshap import decompose_mmd, decompose_r2
from exactshap.app._page import answer_html
from exactshap.cli.commands import show_explanation
from exactshap.results.data import readable
from exactshap.results.report import render
from exactshap.results.report._interactive import pack
from explanation_factory import linear
from tolerances import roundings

NOISE, BASELINE = -8.9e-16, 6.9e-17


def noisy(n=6, **changes):
    """Explain with one feature that has rounding noise alone, and a baseline that is nothing else."""
    values = np.random.default_rng(0).normal(size=(n, 3))
    values[:, 1] = NOISE
    baseline = np.full(n, BASELINE)
    prediction = baseline + values.sum(axis=1)
    settings = {
        "values": values,
        "baseline": baseline,
        "prediction": prediction,
        "residual": prediction - baseline - values.sum(axis=1),
        "names": ["age", "sex", "bmi"],
        "tolerance": 1e-12,
    }
    return linear(np.ones((n, 3)), **(settings | changes))


def shown(explanation, tmp_path, capsys):
    """Return every text that people read, by where they read it."""

    show_explanation(explanation)
    yield "command", capsys.readouterr().out
    yield "summary", repr(explanation)
    yield "ranking", repr(explanation.ranking())
    yield "rows", repr(explanation.abs())
    yield "selection", repr(explanation[:, ["sex", "age"]])
    yield "comparison", repr(explanation.compare(explanation[:3], drift=False))
    yield "report", re.sub(r"at most <b>.*?up to [^<]*", "", render(explanation), flags=re.DOTALL)
    for name, draw in (
        ("waterfall", lambda: explanation.plot.waterfall(0)),
        ("interactions or bars", lambda: explanation.plot.bar(0)),
    ):
        ax = draw()
        yield name, " ".join(text.get_text() for text in ax.findobj(lambda artist: hasattr(artist, "get_text")))


def small(text):
    """Return numbers below 1e-13 that a text shows, but for those of residual and tolerance."""
    text = re.sub(r"(residual|tolerance|within|off by)[^,;)\n]*", "", text)
    return re.findall(r"\d(?:\.\d+)?e[\N{MINUS SIGN}-]1[4-9]", text)


def test_rounding_noise_is_shown_nowhere(tmp_path, capsys):
    for name, text in shown(noisy(), tmp_path, capsys):
        assert not small(text), (name, small(text))


def test_the_app_and_the_page_show_none(tmp_path):
    from test_interactive_report import unpacked

    html = answer_html(noisy(n=1), 1.0, 0, None)
    assert not small(re.sub(r"data-value='[^']*'", "", html.partition("<p class='fact'")[0]))
    _, arrays = unpacked(pack(noisy()).text)
    assert not arrays["baseline"].any()
    assert not arrays["values"].reshape(3, -1)[1].any()
    np.testing.assert_array_equal(arrays["residual"], noisy().residual)


def test_arrays_frames_and_files_keep_every_bit(tmp_path):
    source = noisy()
    assert (source.values[:, 1] == NOISE).all()
    assert (np.asarray(source.to_frame("pandas"))[:, 1] == NOISE).all()
    source.save(tmp_path / "values.npz")
    assert (type(source).load(tmp_path / "values.npz").values[:, 1] == NOISE).all()
    assert np.asarray(source.mean())[1] == pytest.approx(NOISE, rel=roundings(10))


def test_what_is_above_the_tolerance_is_shown_and_an_infinite_one_hides_nothing():
    assert readable(noisy(tolerance=1e-16)).values[0, 1] == NOISE
    assert readable(noisy(tolerance=np.inf)).values[0, 1] == NOISE
    many = noisy(tolerance=np.array([1e-12, 1e-17, 1e-12, 1e-12, 1e-12, 1e-12]))
    np.testing.assert_array_equal(readable(many).values[:2, 1], [0.0, NOISE])


def test_values_still_add_up_however_many_read_zero():
    values = np.full((2, 1000), 9e-13)
    source = linear(np.ones((2, 1000)), values=values, prediction=1.0 + values.sum(axis=1), residual=np.zeros(2))
    assert source.additive
    assert readable(source).additive
    assert not readable(source).values.any()


def test_an_explanation_without_noise_is_not_copied():
    source = linear(np.ones((2, 3)))
    assert readable(source) is source


def test_shares_within_rounding_read_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 2] = 0.0  # a constant column has no share of anything
    y = X[:, 0] + X[:, 1]

    shares = decompose_r2(DecisionTreeRegressor(max_depth=3).fit(X, y), X, y)
    noisy = replace(shares, values=shares.values + np.array([0.0, 0.0, 1e-17]), drift=-1.1e-16)
    assert re.search(r"x2 +0 +0\.0 %", repr(noisy))
    assert "(drift 0)" in repr(noisy)
    assert "1e-17" not in repr(noisy) + noisy._repr_html_()
    moved = decompose_mmd(X, X + np.array([1.0, 0.0, 0.0]))
    noisy = replace(moved, values=moved.values + np.array([0.0, 0.0, 1e-17]))
    assert "e-17" not in repr(noisy) + noisy._repr_html_()


def test_a_total_of_rounding_has_no_fractions():
    moved = decompose_mmd(np.arange(12.0).reshape(6, 2), np.arange(12.0).reshape(6, 2) + 1.0)
    nothing = replace(moved, total=1e-17)
    assert np.isnan(nothing.fractions).all()
    assert nothing.facts()[0].startswith("MMD2 = 0 ")
    assert all(row[2] in ("", "0.0 %") for row in nothing.rows()[1])
    assert all(row[2] in ("", "0.0 %") for row in replace(moved, total=-0.01).rows()[1])


def test_a_baseline_that_differs_by_rounding_is_one_number():
    baseline = np.full(5, 153.357)
    baseline[2] += 3e-14
    explanation = linear(np.ones((5, 2)), baseline=baseline, prediction=baseline + linear(np.ones((5, 2))).values.sum(axis=1))
    assert explanation.facts()["baseline"] == "153.357"
