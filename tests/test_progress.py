"""What a run says while it works, and that nothing is said where nobody watches."""

import io
import re
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVR

from exactshap import Explainer, explain
from exactshap._runtime import progress as _progress
from exactshap.errors import ExactnessError, InputError, UnsupportedStructureError

X = np.random.default_rng(0).normal(size=(600, 4))
MODEL = SVR().fit(X[:50], X[:50, 0] * X[:50, 1])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def said(monkeypatch, work, *, terminal=True, patience=0.0):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_progress, "PATIENCE", patience)
    monkeypatch.setattr(_progress, "RENEWAL", 0.01)
    work()
    return stream.getvalue()


def slow(rows):
    time.sleep(0.05)
    return rows[:, 0]


CASES = {  # progress, a terminal, patience -> whether something is said
    "watched and long": (None, True, 0.0, True),
    "watched and short": (None, True, 60.0, False),
    "a file": (None, False, 0.0, False),
    "never": (False, True, 0.0, False),
    "always, even to a file": (True, False, 60.0, True),
    "a function instead": (lambda done, total: None, True, 0.0, False),
}


@pytest.mark.parametrize("case", CASES)
def test_who_is_told(case, monkeypatch):
    progress, terminal, patience, told = CASES[case]
    text = said(monkeypatch, lambda: Explainer(slow, X[:2], progress=progress)(X[:5]), terminal=terminal, patience=patience)
    assert ("explained 5 of 5 rows in" in text) == told
    assert text.endswith("\n") == told
    if told:
        assert "explained 4 of 5 rows in" not in text.splitlines()[-1]


@pytest.mark.parametrize(("total", "said"), [(12_000, True), (120, False)])
def test_a_request_of_more_than_a_minute_says_so_once_in_a_log_line(monkeypatch, caplog, total, said):
    clock = iter(np.arange(0.0, 1000.0, 3.0))  # seconds: each reading of the clock is three later
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(_progress.time, "perf_counter", lambda: float(next(clock)))
    with _progress.progress_rows(None, total) as reached:
        for done in (50, 100, 110):
            reached(done)
    lines = [record.getMessage() for record in caplog.records if record.name == "exactshap"]
    assert len(lines) == said
    if said:
        assert lines[0].startswith("explaining 12,000 rows takes about 12 min; ")


def test_a_long_row_of_a_function_says_so_before_it_is_done(monkeypatch, caplog):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "LONG", 0.01)
    at = []
    Explainer(lambda rows: at.append(len(caplog.records)) or lazy(rows), WIDE[:10])(WIDE[10:11])
    assert len(caplog.records) == 1
    assert 1 in at[:-1]  # said while coalitions of the first and only row are called
    assert not _progress._forecasts
    Explainer(slow, X[:2], progress=False)(X[:12])
    assert len(caplog.records) == 1  # a request that is refused its progress says nothing


class AtOnce:
    """A timer that calls when it is started."""

    def __init__(self, seconds, call, given):
        self.start = lambda: call(*given)

    def cancel(self):
        """Do nothing: it has called."""


@pytest.mark.parametrize(
    ("process", "thread", "said"),  # seconds on both clocks
    [(2.0, 1.0, "6.9 hours"), (2.0, 2.0, "14 hours"), (0.0, 0.0, "14 hours"), (0.02, 0.0, "14 hours"), (2.0, 0.001, None)],
)
def test_a_large_request_is_forecast_while_its_first_block_is_solved(monkeypatch, caplog, process, thread, said):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(_progress.threading, "Timer", AtOnce)
    monkeypatch.setattr(_progress.time, "process_time", iter([0.0, process]).__next__)
    monkeypatch.setattr(_progress.time, "thread_time", iter([0.0, thread]).__next__)
    with _progress.progress_rows(None, 500, ahead=lambda: 50_000.0) as reached:
        assert [record.getMessage().split(";")[0] for record in caplog.records] == (
            [f"explaining 500 rows takes about {said}"] if said else []
        )
        reached(250)
    assert len(caplog.records) == (said is not None)


def test_a_forecast_that_is_refused_says_nothing(monkeypatch, caplog):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(_progress.threading, "Timer", AtOnce)

    def refused():
        raise InputError("no such rows")

    with _progress.progress_rows(None, 500, ahead=refused):
        assert not caplog.records


def test_an_explainer_forecasts_large_requests_alone(monkeypatch):
    seen = []

    class Waiting:
        def __init__(self, seconds, call, given):
            seen.extend(given)

        def start(self):
            """Wait for ever."""

        cancel = start

    monkeypatch.setattr(_progress.threading, "Timer", Waiting)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    Explainer(MODEL, X[:20])(X[:20])
    assert not seen
    Explainer(MODEL, np.repeat(X, 40, axis=0))(X[:200])
    (ahead,) = seen
    assert 0.0 < ahead() < 60.0


def lazy(rows):
    time.sleep(0.02)
    return np.tanh(rows[:, 0] * rows[:, 1]) + rows.sum(axis=1)


WIDE = np.random.default_rng(0).normal(size=(20, 14))


def test_a_function_is_heard_of_within_a_row_and_what_asks_for_less_is_said_first(monkeypatch):
    text = said(monkeypatch, lambda: Explainer(lazy, WIDE[:10], progress=True)(WIDE[10:11]))
    first, *lines = re.split(r"[\r\n]+", text[text.index("regression:") :])
    coalitions = "regression: 2,076 coalitions for each row, 10 background rows for each of them"
    every = "budget=16384 for all of them, exactly: quicker where one takes less than 14 microseconds"
    assert first == f"{coalitions}; budget=300 asks for fewer, tol= for as few as an error allows, {every}"
    assert text.count(first) == 1
    within = [
        line
        for line in lines
        if re.match(r"explained 0 of 1 rows in .* s \((5|1,[05])\d\d of 2,076 coalitions\), about .* left", line)
    ]
    assert within, lines
    assert re.match(
        r"explained 1 of 1 rows in [\d.]+ s \(2,\d\d\d of 2,076 coalitions\) *$", [line for line in lines if line][-1]
    )


def test_forecast_and_explanation_say_what_asks_for_less_also_where_nobody_watches():
    def curved(rows):
        return np.tanh(rows[:, 0] * rows[:, 1]) + rows.sum(axis=1)

    assert "about" in str(Explainer(MODEL, X[:20]).plan(X))
    assert "min on one thread" in str(Explainer(slow, X[:2], progress=False).plan(np.repeat(X, 20, axis=0)))
    explainer = Explainer(curved, WIDE[:5])
    assert "; budget=300 asks for fewer, tol=" in str(explainer.plan(WIDE[:1]))
    assert "less" in explainer.plan(WIDE[:1])._repr_html_()
    told = explainer(WIDE[10:11]).facts()["evaluations"]
    assert re.fullmatch(r"2,\d\d\d: 2,\d\d\d coalitions a row; budget=300 or tol=\S+ asks for fewer", told)
    wider = np.hstack([WIDE, WIDE[:, :3]])
    assert str(Explainer(curved, wider[:5]).plan(wider[:1])).endswith("tol= for as few as an error allows")  # 2^17 are too many
    few = Explainer(curved, WIDE[:5], budget=300)
    assert "asks for fewer" not in str(few.plan(WIDE[:1]))
    assert few(WIDE[10:11]).facts()["evaluations"] == "300"


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({"budget": 100}, "regression: 100 coalitions for each row, 10 background rows for each of them"),
        ({"tol": 0.5}, "lazy is called until standard errors are below tol=0.5"),
        ({"method": "enumeration", "groups": {"a": [*range(10)]}}, "enumeration: 32 coalitions for each row"),
    ],
    ids=str,
)
def test_what_was_chosen_is_said_without_advice(monkeypatch, settings, first):
    text = said(monkeypatch, lambda: Explainer(lazy, WIDE[:10], progress=True, **settings)(WIDE[10:12]))
    assert first in text
    assert "asks for fewer" not in text
    assert "coalitions" in text.splitlines()[-1]


def test_a_model_that_is_known_says_rows_alone_and_the_time_left(monkeypatch):
    text = said(monkeypatch, lambda: Explainer(MODEL, X[:20], progress=True)(X[:300]))
    assert "explained 300 of 300 rows in" in text
    assert "coalitions" not in text
    text = said(monkeypatch, lambda: Explainer(slow, X[:2], progress=True)(X[:12]))
    assert "explained 8 of 12 rows" in text
    assert "left" in text


def test_a_failure_leaves_the_line_alone(monkeypatch):
    def fail():
        with pytest.raises(InputError, match="server gone"):
            Explainer(lambda rows: (_ for _ in ()).throw(RuntimeError("server gone")), X[:2], progress=True)

    assert said(monkeypatch, fail).endswith("\n")


def test_warnings_point_at_the_caller():
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = SVR().fit(frame[:50], X[:50, 0])
    for call in (lambda: explain(named, X[:3]), lambda: Explainer(named)(X[:3]), lambda: Explainer(named, X[:3])):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        ours = [item for item in seen if item.filename == __file__]
        assert len(ours) == 1, [(item.filename, str(item.message)) for item in seen]
        assert "does not have valid feature names, but SVR was fitted with feature names" in str(ours[0].message)


def centred(cells):
    return cells - cells.mean()


def disturbed(cells):
    return cells + np.random.default_rng().random(cells.shape)


@pytest.mark.filterwarnings("ignore:.*not deterministic")
@pytest.mark.parametrize("function", [centred, disturbed, None])
def test_what_does_not_repeat_itself_is_named_as_the_reason(function):
    if function is None:  # of the user, which repeats no answer
        model, words = lambda rows: disturbed(rows).sum(axis=1), "predicts this row differently each time: fix its seed"
    else:
        step = ColumnTransformer([("one", FunctionTransformer(function), [0]), ("others", "passthrough", [1])])
        model, words = make_pipeline(step, SVR()).fit(X, X[:, 0]), "fix its seed, .* no step look at other rows"
        with pytest.raises(UnsupportedStructureError, match=r"when other rows come with it.*fix the seed"):
            explain(model, X[:3], X[:5])
    with pytest.raises(ExactnessError, match=words):  # of single rows, on which steps are not tried
        explain(model, X[:1], X[4:5])


@pytest.mark.filterwarnings("ignore:.*returns another number for a row")
def test_labels_that_depend_on_other_rows_are_named_as_the_reason():
    def outlying(rows):  # the far rows of a call, as some outlier detectors say: those explained are so among any others
        far = np.abs(rows).sum(axis=1)
        return (far >= np.quantile(far, 0.9)).astype(float)

    with pytest.raises(ExactnessError, match=r"predicts rows of the background differently each time: .* look at other rows"):
        explain(outlying, X[:1] + 1e3, X[:9])
