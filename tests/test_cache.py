"""The cache that threads share: nothing is made twice, nothing waits for ever, no more is kept than asked for."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from exactshap._runtime.cache import BoundedCache

PATIENCE = 20.0  # seconds; what hangs, hangs for good


def in_threads(*functions):
    """Run the functions at once, on threads that do not keep a failed test alive; return what they found."""
    found = [None] * len(functions)

    def run(place):
        found[place] = functions[place]()

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "threads wait for each other"
    return found


def test_items_of_two_caches_may_need_each_other_in_both_orders():
    one, two, both = BoundedCache(), BoundedCache(), threading.Barrier(2)

    def make_with(other):
        both.wait(PATIENCE)  # both caches are making an item now
        return other.made(("inner",), lambda: "made", keep=1)

    assert in_threads(
        lambda: one.made(("outer",), lambda: make_with(two), keep=1),
        lambda: two.made(("outer",), lambda: make_with(one), keep=1),
    ) == ["made", "made"]


def test_an_item_is_made_once_and_may_need_another_of_the_same_cache():
    cache, made, asked = BoundedCache(), [], threading.Barrier(2)

    def make():
        made.append(cache.made(("inner",), lambda: 1, keep=1))
        return len(made)

    def ask():
        asked.wait(PATIENCE)
        return cache.made(("outer",), make, keep=1)

    assert in_threads(ask, ask) == [1, 1]


def test_an_item_that_failed_is_made_by_the_next_one():
    cache = BoundedCache()
    with pytest.raises(ZeroDivisionError):
        cache.made(("share",), lambda: 1 / 0, keep=1)
    assert cache.made(("share",), lambda: 2, keep=1) == 2


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_latest_items_of_a_word_are_kept(keep):
    cache = BoundedCache()
    cache.made(("other", 0), lambda: None, keep=1)
    for number in range(9):
        cache.made(("block", number), lambda: None, keep=keep)
        kept = [key[1] for key in cache if key[0] == "block"]
        assert kept == list(range(max(0, number + 1 - keep), number + 1))
    assert ("other", 0) in cache


def test_any_number_of_threads_finds_the_same_items():
    cache = BoundedCache()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: cache.made(("square", n % 3), lambda: (n % 3) ** 2, keep=2), range(300)))
    assert found == [(n % 3) ** 2 for n in range(300)]


def test_a_pickle_is_empty():
    cache = BoundedCache()
    cache.made(("block",), lambda: 1, keep=1)
    assert not pickle.loads(pickle.dumps(cache))
