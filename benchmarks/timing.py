"""How everything here is timed: the best of several runs, in one process, after a warm-up."""

import os
import time


def best(function, repeat=5, warm_up=1):
    """Return the shortest wall time of ``repeat`` calls, in seconds."""
    for _ in range(warm_up):
        function()
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def best_in_turn(*functions, repeat=5):
    """Return the shortest wall time of each of several calls, made in turn: machines change their pace, and caches hold one work or the other."""
    times = [[best(function, 1, warm_up=i == 0) for function in functions] for i in range(repeat)]
    return [min(column) for column in zip(*times, strict=True)]


def touch_memory(share=0.25):
    """Write to a share of the memory and give it back: where a host lends it, pages that nobody has written to cost ten times as much."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    held = bytearray(b"x") * int(share * pages)
    del held


def row(what, ours, peer=None, target="", **extra):
    """Return one line of the table: seconds of ours and of the peer, their ratio, and the target in words."""
    return {"what": what, "ours": ours, "peer": peer, "ratio": None if peer is None else peer / ours, "target": target, **extra}


def rows_of(*parts):
    """Return the lines that parts of a table give; those whose libraries are absent are left out."""
    results = []
    for part in parts:
        try:
            results += part()
        except ImportError:
            continue
    return results
