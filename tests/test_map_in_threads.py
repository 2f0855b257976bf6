"""Tasks on threads: in order, the first error, interruption, and tasks that have tasks themselves."""

import contextvars
import sys
import threading
import time

import numpy as np
import pytest

from exactshap import Explainer
from exactshap._native import Cancellation
from exactshap._runtime.threads import map_in_threads
from exactshap.readers import AdditiveModel
from interruption import interrupted
from test_native import long_call
from tolerances import roundings

MARK = contextvars.ContextVar("mark", default="none")


def test_results_come_in_the_order_of_the_tasks_from_several_threads():
    seen, both = set(), threading.Barrier(2, timeout=30.0)

    def run(task):
        seen.add(threading.get_ident())
        if task < 2:
            both.wait()
        return task, MARK.get()

    MARK.set("mine")  # seen nowhere: else it would depend on the thread
    assert list(map_in_threads(run, range(60), 3)) == [(task, "none") for task in range(60)]
    assert 2 <= len(seen) <= 3
    assert list(map_in_threads(run, [], 3)) == []


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
        list(map_in_threads(run, range(50), 2))
    assert sorted(begun) == [0, 1]


def test_tasks_that_have_tasks_do_not_wait_for_each_other():
    def run(task):
        return sum(map_in_threads(lambda inner: inner + task, range(20), 4))

    assert list(map_in_threads(run, range(40), 4)) == [190 + 20 * task for task in range(40)]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_an_interruption_ends_the_kernels_of_all_threads():
    with interrupted(0.3):
        list(map_in_threads(lambda task: long_call(), range(8), 2))


def test_who_stops_asking_ends_the_others():
    def run(task):
        return long_call() if task else task

    started = time.perf_counter()
    results = map_in_threads(run, [0, 1], 2)
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
