"""Threads that stay: tasks in order, the first error, interruption, forks and tasks that have tasks themselves."""

import contextvars
import multiprocessing
import os
import sys
import threading
import time

import numpy as np
import pytest

from exactshap import Explainer
from exactshap._native import Cancellation
from exactshap._runtime import crew, threads
from exactshap._runtime.crew import map_with_help
from exactshap._runtime.threads import map_in_threads
from exactshap.readers import AdditiveModel
from interruption import interrupted
from test_native import long_call
from tolerances import roundings

MARK = contextvars.ContextVar("mark", default="none")


def test_results_come_in_the_order_of_the_tasks_and_others_help():
    seen, mine, met = set(), threading.get_ident(), threading.Event()

    def run(task):
        seen.add(threading.get_ident())
        if len(seen) > 1 and mine in seen:
            met.set()
        met.wait(30.0)
        return task, MARK.get()

    MARK.set("mine")  # seen nowhere: else it would depend on the thread
    assert list(map_with_help(run, range(60), 3)) == [(task, "none") for task in range(60)]
    assert 2 <= len(seen) <= 3
    assert list(map_with_help(run, [], 3)) == []


def test_of_all_errors_that_of_the_first_task_is_raised_and_no_task_begins_after():
    begun, both = [], threading.Barrier(2, timeout=30.0)

    def run(task):
        begun.append(task)
        if task < 2:
            both.wait()
            time.sleep(0.05 * (1 - task))  # the second fails first
            raise [KeyError, ValueError][task]
        return task

    with pytest.raises(KeyError):
        list(map_with_help(run, range(50), 2))
    assert sorted(begun) == [0, 1]


def test_tasks_that_have_tasks_do_not_wait_for_each_other():
    def run(task):
        return sum(map_with_help(lambda inner: inner + task, range(20), 4))

    assert list(map_with_help(run, range(40), 4)) == [190 + 20 * task for task in range(40)]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_an_interruption_ends_the_kernels_of_all_threads():
    with interrupted(0.3):
        list(map_in_threads(lambda task: long_call(), range(8), 2))


def test_who_stops_asking_ends_the_others():
    def run(task):
        return long_call() if task else task

    started = time.perf_counter()
    results = map_with_help(run, [0, 1], 2)
    assert next(results) == 0
    results.close()
    assert time.perf_counter() - started < 3.0  # of minutes


@pytest.mark.parametrize("model", [lambda f: f, lambda f: AdditiveModel([((0, 1), f)])], ids=["function", "term"])
def test_a_thread_that_helps_calls_no_function_after_the_end(model):
    calls, cancellation, X = [], Cancellation(), np.arange(12.0).reshape(6, 2)
    explainer = Explainer(model(lambda rows: calls.append(len(rows)) or rows[:, 0] * rows[:, 1]), X)
    explainer(X)
    made = len(calls)
    cancellation.set()
    with cancellation.watched(), pytest.raises(KeyboardInterrupt):
        explainer(X)
    assert made == len(calls) > 1
    np.testing.assert_allclose(explainer(X).residual, 0.0, atol=roundings(100) * 100.0)


def test_the_pace_of_rows_tells_which_are_too_few_for_threads():
    pace = threads.Pace()
    pace.each, pace.beside = 1e-5, 1e-5
    assert threads.pace_of_little(900) is None  # nothing is known
    for asked, little in ((900, True), (5000, False)):  # of a request of more
        with threads.at_pace(pace, asked):
            assert (threads.pace_of_little(900) is pace) == little
    with threads.at_pace(threads.Pace(), 900):
        assert threads.pace_of_little(900) is None


@pytest.mark.parametrize(
    ("n_tasks", "size", "quick", "wanted"),
    [
        (40, 2.0**15, np.inf, [1, 1]),  # one tells, and the others are as quick
        (40, 2.0**15, 0.0, [1, 2]),
        (40, 2.0**17, np.inf, [2]),  # large matrices need no proof
        (15, 2.0**15, np.inf, [2]),  # of few coalitions one is a large share
        (40, 2.0**13, 0.0, [1]),
    ],
)
def test_coalitions_get_threads_that_are_worth_it_and_keep_their_order(n_tasks, size, quick, wanted, monkeypatch):
    workers, original = [], threads.map_in_threads
    monkeypatch.setattr(threads, "map_in_threads", lambda f, tasks, n: workers.append(n) or original(f, tasks, n))
    monkeypatch.setattr(threads, "QUICK", quick)
    with threads.using_jobs(2):
        assert threads.coalitions_in_threads(abs, list(range(n_tasks)), size) == list(range(n_tasks))
    assert workers == wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    list(map_with_help(abs, range(4), 2))
    assert crew._pool is not None
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found, fresh = pool.apply_async(_in_child).get(timeout=60)
    np.testing.assert_array_equal(found, np.arange(30.0))
    assert fresh


def _in_child():
    fresh = crew._pool is None
    return list(map_with_help(float, range(30), 2)), fresh


@pytest.mark.parametrize("workers", [2, 3, 8])
@pytest.mark.parametrize(("beside", "extra"), [(0.0, 0.0), (1e-4, 0.0), (1e-4, 1e-2), (1e-2, 0.0), (1e-5, 2e-3)])
def test_pieces_cover_all_rows_once_and_the_small_ones_are_enough_for_all_threads(workers, beside, extra):
    pace = threads.Pace()
    pace.each, pace.beside, pace.extra = 1e-4, beside, extra
    for first, n_rows in ((0, 2), (62, 1000), (3, 5000)):
        large, small = pace.pieces(first, n_rows, workers)
        assert [i for rows in [*large, *small] for i in range(rows.start, rows.stop)] == list(range(first, n_rows))
        assert len(large) <= workers
        assert not small or n_rows < 100 or len(small) >= workers
        if beside == extra == 0.0 and n_rows >= 1000:  # all threads begin with the same number of rows
            assert max(rows.stop - rows.start for rows in large) <= (n_rows - first) / workers + 1
