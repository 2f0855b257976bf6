"""How fast this machine runs the kernels: each rate is measured once, by the kernel itself, and kept in the user's cache folder."""

from __future__ import annotations

import functools
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

from exactshap._runtime.files import atomic_write

# Seconds: a sample that takes longer is not repeated.
SECONDS_OF_A_LONG_SAMPLE = 0.1
# Times that a size is timed at most, and seconds up to which it is timed again; how many times as large the next size is.
TIMES, QUICK, LARGER = 4, 0.02, 16
# Share of all units that a second size may be, however long it takes.
SMALL_SHARE = 0.05
# Seconds that a second size may take after a slow first, and of a first after which no second is tried: calls cost more than their units.
SECOND, SLOW = 0.02, 0.1
# Share of the time that a function computes below which it is taken to wait.
MOSTLY_WAITING = 0.3
_RATES: dict[str, float] = {}


Sample = tuple[float, Callable[[], object]]


def seconds_per_unit(name: str, sample: Callable[[], Sample]) -> float:
    """Return this machine's seconds for one unit of some work, kept under its name for this machine and this version.

    ``sample()`` returns units of work and a function that does them, in a millisecond or so; it is called only if the rate was never measured.
    """
    if name not in _RATES:
        # What this process has measured itself stays
        for known, rate in _kept().items():
            _RATES.setdefault(known, rate)
        if name not in _RATES:
            work, run = sample()
            warm_up = clocked(run, time.thread_time)  # loads the kernel
            # The least of several times: whatever disturbs a run makes it longer
            rate = min(clocked(run, time.thread_time) for _ in range(1 if warm_up > SECONDS_OF_A_LONG_SAMPLE else 5)) / work
            _RATES.setdefault(name, rate)  # another thread's stays
            _keep()
    return _RATES[name]


def clocked(run: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the processor's seconds for ``run()``, whatever else this machine does.

    >>> clocked(lambda: None) < 1.0
    True
    """
    started = clock()
    run()
    return clock() - started


def clocked_waiting(run: Callable[[], object]) -> float:
    """Return the seconds for a function that may wait, for a service or a disk.

    They are the processor's, whatever else this machine does, unless most of the time it does not compute.
    """
    wall = time.perf_counter()
    computed = clocked(run)
    passed = time.perf_counter() - wall
    # Little computing in much time is waiting, which the caller waits for too; else the wall clock shows the load of others
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
    # Two sizes give a line: its slope is a unit's share, its start what a call costs by itself
    return one, one if n == 1 else max(0.0, some - one) / (n - 1)


@functools.cache
def _machine() -> str:
    """Name the machine and the kernels that the rates are of."""
    from exactshap import __version__

    kernels = [str(path.stat().st_mtime_ns) for path in Path(__file__).parents[1].glob("_native/exactshap.*")]
    return " ".join((__version__, platform.node(), platform.machine(), str(os.cpu_count()), *kernels))


def _file() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("exactshap", appauthor=False, ensure_exists=True) / "rates.json"


def _kept() -> dict[str, float]:
    """Return what was measured here before; nothing where the file is missing, damaged or another machine's."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
        rates = found["rates"] if found["machine"] == _machine() else {}
        # A file may hold anything: other numbers cannot be the seconds of one unit
        return {str(name): float(rate) for name, rate in rates.items() if 0.0 < float(rate) < 1.0}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _keep() -> None:
    """Write the rates down; where that is not possible they last as long as the process."""
    try:
        with atomic_write(_file()) as draft:
            draft.write_text(json.dumps({"machine": _machine(), "rates": dict(_RATES)}, indent=1), encoding="utf-8")
    except OSError:
        return
