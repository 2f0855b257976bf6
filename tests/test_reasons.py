"""Reasons of rows: which players, whether their order is decided, other backgrounds, hashes, letters, the command."""

import re

import joblib
import numpy as np
import pandas
import pyarrow
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVR

from command import run
from exactshap import Explainer, Explanation
from exactshap.errors import InputError, UnknownNameError
from explanation_factory import bilinear, linear
from tolerances import assert_close

RNG = np.random.default_rng(3)


def reference_reasons(values, errors, sign, k):
    """Return players and verdicts of one row, by sorting in plain Python."""
    ranked = sorted(range(len(values)), key=lambda j: (-sign * values[j], j))
    players, decided = [], []
    for place, j in enumerate(ranked[:k]):
        is_reason = sign * values[j] > errors[j]
        follower = ranked[place + 1] if place + 1 < len(ranked) else None
        ahead = follower is None or sign * (values[j] - values[follower]) > errors[j] + errors[follower]
        players.append(j if is_reason else -1)
        decided.append(is_reason and ahead)
    missing = k - len(players)
    return players + [-1] * missing, decided + [False] * missing


@pytest.mark.parametrize("adverse", ["positive", "negative"])
@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_reasons_are_those_of_a_plain_sort(adverse, k):
    X = RNG.integers(-3, 4, size=(60, 5)) / 2.0  # with ties and zeros
    explanation = linear(X, std_error=0.1 * np.abs(RNG.normal(size=X.shape)))
    reasons = explanation.reasons(k, adverse=adverse)
    sign = 1.0 if adverse == "positive" else -1.0
    errors = 1e-12 + 1.959963984540054 * explanation.std_error
    expected = [reference_reasons(row, error, sign, k) for row, error in zip(explanation.values, errors, strict=True)]
    assert reasons.players.tolist() == [players for players, _ in expected]
    assert reasons.decided.tolist() == [decided for _, decided in expected]
    there = reasons.players >= 0
    assert np.array_equal(np.isnan(reasons.values), ~there)
    row = np.nonzero(there)[0]
    assert np.array_equal(reasons.values[there], explanation.values[row, reasons.players[there]])


def test_rounding_decides_no_order_and_makes_no_reason():
    tiny = Explanation(
        values=[[1.0, 1.0 + 1e-13, -2.0, 1e-13]],
        baseline=[0.0],
        prediction=[0.0],
        residual=[-2e-13],
        tolerance=1e-12,
        feature_names=list("abcd"),
        value_function="baseline",
    )
    reasons = tiny.reasons(4, adverse="positive")
    assert reasons.players.tolist() == [[1, 0, -1, -1]]  # d is rounding
    assert reasons.decided.tolist() == [[False, True, False, False]]
    assert "b (order not certain)" in repr(reasons)


def test_what_is_known_to_be_inexact_counts():
    values = [[3.0, 2.5, 0.2]]
    shared = {"values": values, "baseline": [0.0], "prediction": [5.7], "residual": [0.0], "tolerance": 1e-12}
    named = {"feature_names": list("abc"), "value_function": "baseline"}
    assert Explanation(**shared, **named).reasons(3, adverse="positive").decided.all()
    bounded = Explanation(**shared, **named, error_bound=0.3).reasons(3, adverse="positive")
    assert bounded.decided.tolist() == [[False, True, False]]
    assert bounded.players.tolist() == [[0, 1, -1]]
    approximate = Explanation(**shared, **named, approximation_error=[0.15]).reasons(3, adverse="positive")
    assert approximate.decided.tolist() == [[False, True, False]]


def test_codes_stand_for_players():
    explanation = linear(np.ones((2, 3)), names=["age", "debt", "income"])
    reasons = explanation.reasons(3, adverse="negative", codes={"debt": "R01"})
    assert set(reasons.texts.ravel()) <= {"age", "R01", "income", ""}
    assert reasons.texts_by_player == ("age", "R01", "income")
    with pytest.raises(UnknownNameError, match=r"debts.*debt"):
        explanation.reasons(adverse="negative", codes={"debts": "R01"})
    with pytest.raises(InputError, match=r"one code.*groups="):
        explanation.reasons(adverse="negative", codes={"debt": "R01", "income": "R01"})


OFF = {"residual": np.ones(2), "prediction": linear(np.ones((2, 3))).prediction + 1.0}


@pytest.mark.parametrize(
    ("explanation", "settings", "words"),
    [
        (linear(np.ones((2, 3))), {"adverse": "high"}, "risk"),
        (linear(np.ones((2, 3))), {"k": 0}, "'k'"),
        (linear(np.ones((2, 3))), {"level": 1.0}, "'level'"),
        (bilinear(), {}, "shares of the prediction"),
        (linear(np.ones((2, 3)), n_outputs=2), {}, "one output"),
        (linear(np.ones((2, 3)), **OFF), {}, "add up"),
    ],
)
def test_settings_and_values_that_are_no_shares_are_refused(explanation, settings, words):
    with pytest.raises(InputError, match=words):
        explanation.reasons(**{"adverse": "positive"} | settings)
    assert len(linear(np.ones((2, 3)), n_outputs=2).reasons(adverse="positive", output="class 1")) == 2


# --- other backgrounds -------------------------------------------------------------------------------------------------


def machine(n_background=30, **settings):
    X = np.random.default_rng(0).normal(size=(120, 4))
    model = SVR(C=10.0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    return Explainer(model, X[:n_background], **settings), X[-6:]


def test_background_values_are_those_of_one_row_at_a_time():
    explainer, rows = machine(4)
    by_row = explainer.background_values(rows)
    background = explainer.reader.traits.background.numeric()
    for z, values in enumerate(by_row):
        alone = Explainer(explainer.reader.traits.model, background[z : z + 1])(rows).values
        assert_close(values, alone, scale=100.0, n_terms=200, n_players=4)
    assert_close(by_row.mean(axis=0), explainer(rows).values, scale=100.0, n_terms=200, n_players=4)


def test_background_values_of_several_outputs_and_of_trees():
    X = np.random.default_rng(1).normal(size=(90, 3))
    model = RandomForestClassifier(10, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    explainer = Explainer(model, X[:9], output="all")
    by_row, explanation = explainer.background_values(X[-5:]), explainer(X[-5:])
    assert by_row.shape == (9, 5, 3, 3)
    assert_close(by_row.mean(axis=0), explanation.values, scale=1.0, n_terms=100, n_players=3)
    name = explanation.output_names[1]
    again = explanation.reasons(2, adverse="positive", output=name, background_values=by_row)
    assert again.intervals.shape == (5, 2, 2)


def test_background_values_are_refused_where_they_are_no_mean():
    explainer, rows = machine(value_function="functional", n_background=3)
    with pytest.raises(InputError, match="functional"):
        explainer.background_values(rows)
    with pytest.raises(InputError, match="weights"):
        machine(3, background_weights=[1.0, 2.0, 3.0])[0].background_values(rows)
    with pytest.raises(InputError, match="must be exact"):
        Explainer(lambda X: X[:, 0], rows).background_values(rows)
    with pytest.raises(Exception, match="memory_limit"):
        machine(memory_limit=500.0)[0].background_values(rows)


def test_intervals_of_reasons_are_of_the_bootstrap():
    explainer, rows = machine()
    by_row, explanation = explainer.background_values(rows), explainer(rows)
    reasons = explanation.reasons(2, adverse="positive", background_values=by_row, n_bootstrap=4000)
    there = reasons.players >= 0
    assert there.any()
    assert (reasons.intervals[there][:, 0] < reasons.values[there]).all()
    assert (reasons.values[there] < reasons.intervals[there][:, 1]).all()
    # normal intervals of the mean over background rows
    i, r = np.argwhere(there)[0]
    spread = by_row[:, i, reasons.players[i, r]].std() / np.sqrt(len(by_row))
    width = np.ptp(reasons.intervals[i, r])
    assert 0.8 < width / (2 * 1.96 * spread) < 1.2
    m = len(by_row)
    counts = np.random.default_rng(0).multinomial(m, np.full(m, 1 / m), size=4000) / m
    for i, r in np.argwhere(there):
        drawn, j = counts @ by_row[:, i], reasons.players[i, r]
        place = np.argsort(np.argsort(-drawn, axis=1), axis=1)[:, j]
        assert reasons.kept[i, r] == np.mean((place < 2) & (drawn[:, j] > 0))
    assert np.isnan(reasons.kept[~there]).all()
    repeated = explanation.reasons(2, adverse="positive", background_values=by_row, n_bootstrap=4000)
    assert np.array_equal(repeated.intervals, reasons.intervals, equal_nan=True)
    for of_others, words in ((by_row[:, :3], "does not fit"), (by_row[:10], "of other values")):
        with pytest.raises(InputError, match=words):
            explanation.reasons(adverse="positive", background_values=of_others)


@pytest.mark.parametrize("m", [2, 3, 5, 10])
def test_intervals_with_few_background_rows_cover(m):
    """Percentiles alone hold in 0.5, 0.75, 0.86 and 0.91 of the cases."""
    rng, truth, held = np.random.default_rng(m), np.array([[3.0, 2.0, 1.0, -1.0]]), []
    for seed in range(200):
        by_row = truth[None] - rng.normal(size=(m, 1, 4))
        explanation = linear(
            truth, values=by_row.mean(axis=0), prediction=1.0 + by_row.mean(axis=0).sum(axis=1), residual=np.zeros(1)
        )
        reasons = explanation.reasons(2, adverse="positive", background_values=by_row, n_bootstrap=200, random_state=seed)
        there = reasons.players[0] >= 0
        expected, ends = truth[0, reasons.players[0][there]], reasons.intervals[0][there]
        held += [*((ends[:, 0] <= expected) & (expected <= ends[:, 1]))]
    assert np.mean(held) > 0.88


# --- frames, hashes, letters -------------------------------------------------------------------------------------------


def test_the_frame_has_a_line_per_row_in_the_users_order():
    data = pandas.DataFrame(RNG.normal(size=(4, 3)), columns=["age", "debt", "income"], index=list("wxyz"))
    frame = linear(data, names=list(data.columns), data=data).reasons(2, adverse="positive").to_frame()
    assert list(frame.index) == list("wxyz")
    assert list(frame.columns[:4]) == ["prediction", "reason_1", "value_1", "decided_1"]
    assert frame["hash"].str.fullmatch("[0-9a-f]{64}").all()
    assert "hash" not in linear(data, names=list(data.columns), data=None).reasons(2, adverse="positive").columns()


def test_hashes_tell_what_the_reasons_rest_on():
    data = pandas.DataFrame({"age": [1.0, 2.0], "sex": ["F", "M"]})
    values = linear([[1.0, 2.0], [3.0, 1.0]], names=list(data.columns), data=data)

    def hashes(explanation=values, **settings):
        return explanation.reasons(**({"k": 2, "adverse": "positive"} | settings)).hashes()

    assert hashes() == hashes()
    assert len(set(hashes())) == 2
    changed = linear([[1.0, 2.0], [3.0, 1.0]], names=list(data.columns), data=data.assign(sex=["F", "F"]))
    assert hashes(changed)[0] == hashes()[0]
    assert hashes(changed)[1] != hashes()[1]
    for settings in ({"k": 1}, {"adverse": "negative"}, {"codes": {"age": "R1"}}, {"model_digest": "aa"}):
        assert not set(hashes(**settings)) & set(hashes())
    same = linear([[1.0, 2.0], [3.0, 1.0]], names=list(data.columns), data=pyarrow.table(data.to_dict("list")))
    assert hashes(same) == hashes()


def test_the_letter_is_one_page_with_every_word_escaped(tmp_path):
    explainer, rows = machine()
    explanation = explainer(rows)
    reasons = explanation.reasons(3, adverse="positive", codes={"x0": "R1 <b>&"})
    path = reasons.letter(tmp_path / "letter.html", 1, recipient="A <script>", opening="two\nlines", language="de")
    page = path.read_text()
    assert "<script>" not in page
    assert "A &lt;script&gt;" in page
    assert '<html lang="de">' in page
    assert "two\nlines" in page
    assert reasons.hashes()[1] in page
    assert reasons.hashes()[0] not in page
    assert page.count("<li>") == (reasons.players[1] >= 0).sum()
    assert "row 1" in page
    assert not re.search(r"(src|href)=", page)
    none = linear(-np.abs(rows), seed=1).reasons(
        adverse="positive" if linear(-np.abs(rows), seed=1).values.max() <= 0 else "negative"
    )
    assert "reasons" in none.letter(tmp_path / "none.html").read_text()
    with pytest.raises(InputError, match=r"html or \.pdf"):
        reasons.letter(tmp_path / "letter.docx")


def test_a_letter_of_no_row_says_so(tmp_path):
    reasons = linear([[1.0, 2.0], [3.0, 1.0]]).reasons(2, adverse="positive")
    with pytest.raises(IndexError, match=r"Row 99 is out of range\. There are \d+ rows"):
        reasons.letter(tmp_path / "letter.html", 99)
    with pytest.raises(TypeError, match="Rows are selected by an int"):
        reasons.letter(0, tmp_path / "letter.html")
    with pytest.raises(IndexError, match="Row 99 is out of range"):
        reasons[99]


def test_a_letter_shows_cells_whole(tmp_path):
    words = " ".join(f"word{n}" for n in range(12))
    data = pandas.DataFrame({"trade": [words, "x"], "since": ["2020-02-01 00:00:00", ""], "debt": [1e6, np.nan]})
    explanation = linear(np.array([[1.0, -1.0, 1.0]] * 2), names=list(data), data=data)
    page = explanation.reasons(3, adverse="positive").letter(tmp_path / "letter.html").read_text()
    assert f"trade = {words}." in page
    assert "since = 2020-02-01." in page
    assert "debt = 1,000,000." in page


def test_the_letter_in_print(tmp_path):
    pytest.importorskip("weasyprint")
    explainer, rows = machine()
    reasons = explainer(rows).reasons(3, adverse="positive")
    assert reasons.letter(tmp_path / "letter.pdf").read_bytes().startswith(b"%PDF")


def test_a_model_card_says_what_and_how_well(tmp_path):
    explainer, rows = machine()
    explanation = explainer(rows)
    card = explanation.model_card(tmp_path / "card.md", intended_use="tests | only", data_name="rows.csv").read_text()
    for words in (
        "## Model",
        "tests \\| only",
        "rows.csv",
        "## Limits",
        "passed",
        "95 % interval",
        explanation.background_hash[:12],
    ):
        assert words in card
    page = explanation.model_card(tmp_path / "card.html", title="<Card>").read_text()
    assert "<h1>&lt;Card&gt;</h1>" in page
    assert "Certificate" in page
    failed = linear(np.ones((2, 3)), residual=np.ones(2), prediction=linear(np.ones((2, 3))).prediction + 1.0)
    assert "FAILED" in failed.model_card(tmp_path / "failed.html").read_text()
    with pytest.raises(InputError, match=r"\.md, \.html or \.pdf"):
        explanation.model_card(tmp_path / "card.docx")


# --- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_reasons_and_a_letter(tmp_path, monkeypatch, capsys):
    explainer, _ = machine()
    monkeypatch.chdir(tmp_path)
    joblib.dump(explainer.reader.traits.model, "model.joblib")
    names = [f"x{j}" for j in range(4)]
    rows = pandas.DataFrame(RNG.normal(size=(12, 4)), columns=names)
    rows.assign(id=range(100, 112)).to_csv("data.csv", index=False)
    rows.head(5).to_csv("background.csv", index=False)
    (tmp_path / "codes.toml").write_text('x0 = "R1: the first"\n')
    common = ["reasons", "model.joblib", "data.csv", "--background", "background.csv", "--drop", "id", "--allow-pickle"]
    settings = ["--adverse", "positive", "-k", 2, "--codes", "codes.toml", "--resample", 50]
    assert run(*common, *settings, "--keep", "id", "--rows", "3:9", "-o", "out.csv", "--letter", "letter.html") == 0
    frame = pandas.read_csv("out.csv")
    explanation = Explainer(explainer.reader.traits.model, rows.head(5).to_numpy())(rows[3:9].to_numpy())
    expected = explanation.reasons(2, adverse="positive", codes={"x0": "R1: the first"})
    assert frame["row"].tolist() == list(range(3, 9))
    assert frame["id"].tolist() == list(range(103, 109))
    assert frame["reason_1"].fillna("").tolist() == expected.texts[:, 0].tolist()
    assert {"lower_1", "kept_2", "hash"} <= set(frame.columns)
    assert "letter of row 3, the first of 6, written to letter.html" in capsys.readouterr().out
    assert (tmp_path / "letter.html").exists()
    explanation.save("saved.npz")
    assert run("reasons", "saved.npz", "--adverse", "negative") == 0
    assert run("reasons", "saved.npz", "--adverse", "negative", "--resample", 9) == 2
    assert run("reasons", "saved.npz", "--adverse", "bad") == 2
    (tmp_path / "codes.toml").write_text("x0 = 3\n")
    assert run(*common, *settings) == 2
    assert "is not text" in capsys.readouterr().err
