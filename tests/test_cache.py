"""The cache that threads share: nothing is made twice, nothing waits for ever, no more is kept than asked for."""

import multiprocessing
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from at_once import PATIENCE, at_once
from exactshap._runtime.cache import STEP, BoundedCache
from exactshap._runtime.process_settings import single_threaded_blas


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
