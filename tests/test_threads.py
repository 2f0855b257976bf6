"""Threads that share an explainer: the bits that each would get alone, no error, and nothing that waits for ever."""

import contextvars
import functools
import multiprocessing
import pickle
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from at_once import PATIENCE, at_once
from exactshap import Explainer
from exactshap._native import Cancellation, _kernel
from exactshap._native._kernel import Parameter
from exactshap._runtime import machine, process_settings
from exactshap._runtime.cache import STEP, BoundedCache
from exactshap._runtime.process_settings import single_threaded_blas, without_warnings
from exactshap._runtime.threads import map_in_threads
from exactshap.errors import ExplanationWarning, warn
from exactshap.readers import AdditiveModel, read
from exactshap.readers.black_box import function as black_box
from exactshap.solvers.sampled import _regression
from golden_models import Data, unfitted
from interruption import interrupted
from test_native import long_call
from tolerances import roundings

rng = np.random.default_rng(0)
DATA = Data()
X = DATA.X
QUESTIONS = [("shapley", 1, 1), ("banzhaf", 1, 12), ("k-sii", 2, 3), ("shapley", 1, 40)]  # index, order, rows


def _function(rows):
    return rows[:, 0] * rows[:, 1] + np.tanh(rows[:, 2])


WITHOUT_BACKGROUND = ("SVR", "KernelRidge laplacian", "GP", "random forest", "XGBoost", "LightGBM", "CatBoost", "scaler, SVR")
FAMILIES = (*WITHOUT_BACKGROUND, "EBM", "LinearRegression", "voting", "function")


@functools.cache
def _model(family):
    return _function if family == "function" else unfitted(family).fit(X, DATA.y)


@pytest.fixture
def hurried():
    """Let threads take turns after some microseconds, so that what can go between two steps does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize(
    ("family", "n_background", "n_jobs"),
    [*((family, 20, None) for family in FAMILIES), *((family, 0, 2) for family in WITHOUT_BACKGROUND), ("voting", 20, 2)],
)
def test_threads_that_share_an_explainer_get_the_bits_of_each_alone(family, n_background, n_jobs, hurried):
    def ask(explainer, index, order, n_rows):
        return explainer(X[:n_rows], index=index, order=order)

    model, background = _model(family), X[40 : 40 + n_background] if n_background else None
    alone = [ask(Explainer(model, background), *question) for question in QUESTIONS]
    for _ in range(2):
        shared = Explainer(model, background, n_jobs=n_jobs)
        together = at_once(*(functools.partial(ask, shared, *question) for question in QUESTIONS))
        for one, other in zip(alone, together, strict=True):
            for field in ("values", "set_values", "baseline", "prediction", "residual", "tolerance"):
                np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
            assert other.certificate().passed


@pytest.mark.parametrize("family", ["random forest", "SVR", "function"])
def test_an_explainer_may_be_pickled_while_others_ask_it(family, hurried):
    for _ in range(4):
        explainer = Explainer(_model(family), X[:20])
        dump = functools.partial(pickle.dumps, explainer)
        *_, copied = at_once(*(functools.partial(explainer, X[:n]) for n in (1, 12)), dump, dump)
    np.testing.assert_array_equal(pickle.loads(copied)(X[:2]).values, explainer(X[:2]).values)


def test_what_threads_hand_to_kernels_stays_alive(monkeypatch):
    """Two threads that pack one structure at once must be given the same address: the other copy is freed."""
    both, pack = threading.Barrier(2), _kernel._pack_fields

    def slowly(*given):
        found = pack(*given)
        both.wait(PATIENCE)  # both have packed, and neither has kept
        return found

    monkeypatch.setattr(_kernel, "_pack_fields", slowly)

    class One(NamedTuple):
        one: np.ndarray

    handle, parameter = _kernel.Handle(One(np.zeros(3))), Parameter("fields", fields=(Parameter("in", "one", "float64", 1),))
    one, other = at_once(lambda: handle.address(parameter), lambda: handle.address(parameter))
    assert one == other == handle.address(parameter)


def _warned():
    with warnings.catch_warnings(record=True) as found:
        warn("said", ExplanationWarning)
    return len(found)


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("library", [lambda: without_warnings, warnings.catch_warnings], ids=["our own", "another library's"])
@pytest.mark.parametrize("in_turn", [True, False])
def test_warnings_are_heard_again_whoever_ignored_them_meanwhile(library, in_turn):
    blocks = [without_warnings, library()][:: 1 if in_turn else -1]
    for block in blocks:
        block.__enter__()
    assert _warned() == 0
    for block in blocks:  # as threads do: not the last one first
        block.__exit__(None, None, None)
    assert _warned() == 1


@pytest.mark.filterwarnings("always")
def test_filters_that_a_library_puts_back_later_let_warnings_through():
    with without_warnings:
        copied = warnings.filters[:]
        assert _warned() == 0
    assert len(copied) == len(warnings.filters) + 1
    with warnings.catch_warnings():
        warnings.filters[:] = copied
        assert _warned() == 1


@pytest.mark.filterwarnings("always")
def test_reading_a_methods_owner_lets_other_threads_warn(monkeypatch):
    reading, warned = threading.Event(), threading.Event()

    def slowly(owner, request):
        reading.set()
        assert warned.wait(PATIENCE)
        return read(owner, request)

    monkeypatch.setattr(black_box, "read_any", slowly)

    def other():
        reading.wait(PATIENCE)
        found = _warned()
        warned.set()
        return found

    explainer, heard = at_once(lambda: Explainer(_model("LinearRegression").predict, X[:5]), other)
    assert heard == 1
    assert explainer.reader.traits.model_name == "LinearRegression"


def test_all_threads_see_one_rate_and_none_hears_of_its_file(monkeypatch, tmp_path, hurried):
    both = threading.Barrier(2)
    monkeypatch.setattr(machine, "_RATES", {})
    monkeypatch.setattr(machine, "_file", lambda: tmp_path / "rates.json")

    def sample(work):
        both.wait(PATIENCE)  # neither has measured yet
        return work, lambda: sum(range(2000))

    one, other = at_once(*(lambda work=work: machine.seconds_per_unit("units", lambda: sample(work)) for work in (1.0, 1e3)))
    assert one == other == machine.seconds_per_unit("units", lambda: sample(1.0))
    stop = threading.Event()

    def keep():
        for _ in range(20):
            machine._keep()
        stop.set()

    def measure():
        number = 0
        while not stop.is_set() and number < 20_000:
            machine._RATES[f"rate {number}"] = 0.5
            number += 1

    at_once(keep, measure)


def test_blas_is_on_one_thread_until_the_last_block_and_within_a_finalizer():
    library = process_settings._libraries()[0]
    before = library.get_num_threads()
    library.set_num_threads(2)  # of which threadpoolctl remembers the thread

    def interleave():
        one, other = single_threaded_blas(), single_threaded_blas()
        one.__enter__()
        with STEP:  # a generator that is collected within a step ends its block there
            other.__enter__()
        one.__exit__(None, None, None)
        within = library.get_num_threads()
        other.__exit__(None, None, None)
        return within, library.get_num_threads()

    assert at_once(interleave) == [(1, 2)]
    library.set_num_threads(before)


@pytest.mark.parametrize("budget", [60, 2000])
def test_estimates_keep_to_one_thread_of_blas_whatever_their_size(budget, monkeypatch):
    """Rows on threads do; alone, with as many threads of BLAS as there are cores, a row would get other bits."""
    seen = []
    estimator = _regression.ESTIMATORS["unbiased"]

    def watched(problem):
        seen.extend(library.get_num_threads() for library in process_settings._libraries())
        return estimator(problem)

    monkeypatch.setitem(_regression.ESTIMATORS, "unbiased", watched)
    rows = rng.normal(size=(1, 14))
    with threadpool_limits(2, user_api="blas"):
        Explainer(_function, np.zeros((1, 14)), budget=budget, estimator="unbiased")(rows)
    assert set(seen) == {1}


# --- tasks on threads: in order, the first error, interruption, tasks that have tasks themselves ----------------------


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


# --- the cache that threads share: nothing is made twice, nothing waits for ever --------------------------------------


def test_items_of_two_caches_may_need_each_other_in_both_orders():
    one, two, both = BoundedCache(), BoundedCache(), threading.Barrier(2)

    def make_with(other):
        both.wait(PATIENCE)  # both caches are making an item now
        return other.get_or_make(("inner",), lambda: "made", keep=1)

    assert at_once(
        lambda: one.get_or_make(("outer",), lambda: make_with(two), keep=1),
        lambda: two.get_or_make(("outer",), lambda: make_with(one), keep=1),
    ) == ["made", "made"]


def test_an_item_is_made_once_and_may_need_another_of_the_same_cache():
    cache, made, asked = BoundedCache(), [], threading.Barrier(2)

    def make():
        made.append(cache.get_or_make(("inner",), lambda: 1, keep=1))
        return len(made)

    def ask():
        asked.wait(PATIENCE)
        return cache.get_or_make(("outer",), make, keep=1)

    assert at_once(ask, ask) == [1, 1]


def test_an_item_that_failed_is_made_by_the_next_one():
    cache = BoundedCache()
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make(("share",), lambda: 1 / 0, keep=1)
    assert not cache._making
    assert cache.get_or_make(("share",), lambda: 2, keep=1) == 2


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_latest_items_of_a_word_are_kept(keep):
    cache = BoundedCache()
    cache.get_or_make(("other", 0), lambda: None, keep=1)
    for number in range(9):
        cache.get_or_make(("block", number), lambda: None, keep=keep)
        kept = [key[1] for key in cache if key[0] == "block"]
        assert kept == list(range(max(0, number + 1 - keep), number + 1))
    assert ("other", 0) in cache


def test_what_was_asked_for_last_stays():
    cache = BoundedCache()
    for number in (0, 1, 0, 2):
        cache.get_or_make(("block", number), lambda: None, keep=2)
    assert list(cache) == [("block", 0), ("block", 2)]


def test_any_number_of_threads_finds_the_same_items():
    cache = BoundedCache()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: cache.get_or_make(("square", n % 3), lambda: (n % 3) ** 2, keep=2), range(300)))
    assert found == [(n % 3) ** 2 for n in range(300)]


def _ask_in_child(cache):
    with single_threaded_blas():
        assert cache.get_or_make(("slow",), lambda: "made here", keep=1) == "made here"


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # that such a fork may wait for ever
def test_a_child_does_not_wait_for_threads_of_its_parent():
    cache, making, forked = BoundedCache(), threading.Event(), threading.Event()

    def make():
        making.set()
        with STEP:  # which the fork waits for
            time.sleep(0.05)
        return forked.wait(PATIENCE)

    def fork():
        making.wait(PATIENCE)
        child = multiprocessing.get_context("fork").Process(target=_ask_in_child, args=(cache,))
        child.start()
        child.join(PATIENCE)
        forked.set()
        child.kill()
        return child.exitcode

    assert at_once(lambda: cache.get_or_make(("slow",), make, keep=1), fork) == [True, 0]


def test_a_pickle_is_empty():
    cache = BoundedCache()
    cache.get_or_make(("block",), lambda: 1, keep=1)
    assert not pickle.loads(pickle.dumps(cache))
