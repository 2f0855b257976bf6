"""Threads that stay and help whoever has tasks: the thread that asks works as well, and waits only for what others have begun."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import Context, ContextVar
from typing import Any, Generic, TypeVar

from exactshap._native import Cancellation
from exactshap._runtime.shared import STEP

__all__ = ["in_company", "map_with_help"]

T = TypeVar("T")
Result = TypeVar("Result")
MOST = 1024  # threads that stay, whoever asks; one is made only where none is idle

in_company: ContextVar[bool] = ContextVar("in company", default=False)  # whether other threads have tasks of the same work
_pool: Any = None
_of_tasks = Context()
_of_tasks.run(in_company.set, True)


def map_with_help(function: Callable[[T], Result], tasks: Iterable[T], workers: int) -> Iterator[Result]:
    """Yield ``function(task)`` in the order of the tasks, from this thread and ``workers - 1`` others.

    A task sees none of this thread's context variables, wherever it runs, but that it is ``in_company``. Of all errors that of the
    first task is raised, after the others have ended; where this thread is interrupted, or stops asking, their kernels end as well.

    >>> list(map_with_help(abs, [-2, 1, -3], 2))
    [2, 1, 3]
    """
    work = _Work(function, tasks)
    helpers = [_threads().submit(work.help) for _ in range(min(workers, work.size) - 1)]
    try:
        yield from work.results()
    except BaseException:
        work.stop()
        for helper in helpers:
            if not helper.cancel():
                helper.result()  # waits for it
        raise
    for helper in helpers:
        helper.cancel()  # it came too late: there was no task left


class _Work(Generic[T, Result]):
    """Tasks that are left, begun in their order, and what was found and not yet asked for."""

    def __init__(self, function: Callable[[T], Result], tasks: Iterable[T]) -> None:
        self._function, self._left = function, deque(enumerate(tasks))
        self.size = len(self._left)
        self._found: dict[int, tuple[Any, BaseException | None]] = {}
        self._changed, self._cancellation = threading.Condition(), Cancellation()

    def results(self) -> Iterator[Result]:
        for place in range(self.size):
            while place not in self._found and self._take(Exception):
                pass
            with self._changed:
                while place not in self._found:
                    self._changed.wait()
            result, error = self._found.pop(place)
            if error is not None:
                raise error
            yield result

    def help(self) -> None:
        with self._cancellation.watched():
            while self._take(BaseException):
                pass

    def stop(self) -> None:
        self._left.clear()
        self._cancellation.set()

    def _take(self, kept: type[BaseException]) -> bool:
        """Run the next task, if one is left; keep an error for whoever asks for its result, and begin no other then."""
        try:
            place, task = self._left.popleft()
        except IndexError:
            return False
        result = error = None
        try:
            result = _of_tasks.copy().run(self._function, task)
        except kept as raised:
            error = raised
            self._left.clear()
        with self._changed:
            self._found[place] = result, error
            self._changed.notify()
        return True


def _threads() -> Any:
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor

        with STEP:
            _pool = _pool or ThreadPoolExecutor(MOST, thread_name_prefix="exactshap")
    return _pool


def _forget() -> None:
    """In a child the threads of its parent are gone."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
