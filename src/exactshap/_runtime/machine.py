"""Measure this machine: its memory, and how fast it runs the kernels, each once; rates are kept in the user's cache folder."""

from __future__ import annotations

import functools
import json
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows, which has no limits of this kind
    resource = None  # type: ignore[assignment]

# Seconds: a sample that takes longer is not repeated.
SECONDS_OF_A_LONG_SAMPLE = 0.1
# Most timings of a size, seconds up to which it is timed again, and the factor to the next size.
TIMES, QUICK, LARGER = 4, 0.02, 16
# Fraction of all units that a second size may be, however long it takes.
SMALL_SHARE = 0.05
# Seconds that a second size may take after a slow first, and of a first after which no second is tried.
SECOND, SLOW = 0.02, 0.1
# Fraction of computing time below which a function is taken to wait.
MOSTLY_WAITING = 0.3
_RATES: dict[str, float] = {}
_LIMITS_OF_CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

# Work, and a function that does it
Sample = tuple[float, Callable[[], object]]


def seconds_per_unit(name: str, sample: Callable[[], Sample]) -> float:
    """Return this machine's seconds for one unit of some work.

    They are kept for each machine and version.

    ``sample()`` returns units of work and a function that does them in about a millisecond; it is called only if the rate is unknown.
    """
    if name not in _RATES:
        # Rates measured by this process are kept
        for known, rate in _kept().items():
            _RATES.setdefault(known, rate)
        if name not in _RATES:
            work, run = sample()
            warm_up = clocked(run, time.thread_time)  # loads the kernel
            # The least of several times, as any disturbance makes a run longer
            rate = min(clocked(run, time.thread_time) for _ in range(1 if warm_up > SECONDS_OF_A_LONG_SAMPLE else 5)) / work
            _RATES.setdefault(name, rate)  # that of another thread stays
            _keep()
    return _RATES[name]


def clocked(run: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the processor time of ``run()`` in seconds, independent of other load.

    >>> clocked(lambda: None) < 1.0
    True
    """
    started = clock()
    run()
    return clock() - started


def clocked_waiting(run: Callable[[], object]) -> float:
    """Return the seconds of a function that may wait for a service or a disk.

    This is processor time, independent of other load, unless the function mostly waits.
    """
    wall = time.perf_counter()
    computed = clocked(run)
    passed = time.perf_counter() - wall
    # A function that mostly waits is timed by the wall clock; for others that would include the load of others
    return passed if computed < MOSTLY_WAITING * passed else computed


def seconds_by_size(
    run: Callable[[int], object],
    most: int,
    *,
    patience: float,
    n_units: float = 0.0,
    timed: Callable[[Callable[[], object]], float] = clocked,
) -> tuple[float, float]:
    """Time work of 1, 16, 256, ... units while it is quick; return the seconds of the first unit and of each other.

    ``run(n)`` does so many units, ``most`` of them at most, and no larger size is tried from ``patience`` seconds on. A second size that is
    a small share of the ``n_units`` of the whole work is tried all the same, and a few units after a first of less than :data:`SLOW`.
    ``timed`` is :func:`clocked` or :func:`clocked_waiting`.

    A forest's calls cost more than its rows:

    >>> one, each = seconds_by_size(lambda n: 3e-3 + 1e-5 * n, 1000, patience=2e-3, timed=lambda run: run())
    >>> round(1e3 * one, 3), round(1e3 * each, 3)
    (3.01, 0.01)
    """

    def seconds(n: int) -> float:
        found = [timed(lambda: run(n))]
        while len(found) < TIMES and sum(found) < QUICK:
            found.append(timed(lambda: run(n)))
        return min(found)

    n = 1
    one = some = seconds(1)
    while n < most and (some < patience or (n == 1 and SMALL_SHARE * n_units >= LARGER)):
        n = min(LARGER * n, most)
        some = seconds(n)
    if n == 1 < most and some < SLOW:
        n = min(most, max(2, int(SECOND / some)))
        some = seconds(n)
    # Two sizes give a line: its slope is the cost of a unit, its intercept that of a call
    return one, one if n == 1 else max(0.0, some - one) / (n - 1)


@functools.cache
def _machine() -> str:
    """Name the machine and the version of the kernels."""
    from exactshap import __version__

    kernels = [str(path.stat().st_mtime_ns) for path in Path(__file__).parents[1].glob("_native/exactshap.*")]
    return " ".join((__version__, platform.node(), platform.machine(), str(os.cpu_count()), *kernels))


def _file() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("exactshap", appauthor=False, ensure_exists=True) / "rates.json"


def _kept() -> dict[str, float]:
    """Return the stored rates; none if the file is missing, damaged or of another machine."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
        rates = found["rates"] if found["machine"] == _machine() else {}
        # A file may contain anything: other numbers cannot be seconds of a unit
        return {str(name): float(rate) for name, rate in rates.items() if 0.0 < float(rate) < 1.0}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _keep() -> None:
    """Store the rates, or keep them for this process if that fails."""
    from exactshap._runtime.files import atomic_write

    with suppress(OSError), atomic_write(_file()) as draft:
        draft.write_text(json.dumps({"machine": _machine(), "rates": dict(_RATES)}, indent=1), encoding="utf-8")


def physical_memory() -> float:
    """Return the usable memory of this process in bytes, at most the machine's."""
    soft = None if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    return _memory_of_machine() if soft is None or soft == resource.RLIM_INFINITY else min(_memory_of_machine(), float(soft))


@functools.cache
def _memory_of_machine() -> float:
    try:
        physical = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        physical = 2.0**36
    limits = [physical]
    for path in _LIMITS_OF_CONTAINERS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            limits.append(float(Path(path).read_text()))
    return min(limits)
