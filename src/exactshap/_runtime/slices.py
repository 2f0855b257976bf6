"""Cut rows or terms into slices that are worked on one after the other."""

from __future__ import annotations


def slices(n: int, step: int) -> list[slice]:
    """Return slices of at most ``step`` that cover 0 to n. A step is at least one.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, int(step))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
