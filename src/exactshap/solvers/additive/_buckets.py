"""Buckets of equal width over ascending cuts: a search begins among the few cuts of one bucket."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exactshap.solvers.additive._kernels import Buckets

__all__ = ["buckets_of"]

PER_CUT, FEW = 4, 3  # buckets for each cut; cuts in one that are few enough: two comparisons, instead of ten among 1,000
MOST = 2**16  # cuts of one way at most, of which buckets are made
ENDS = (0, 32, 8)  # one part in so many of the cuts lie beyond the buckets, on either side: none, or long tails


def buckets_of(cuts: Sequence[np.ndarray]) -> Buckets:
    """Return the buckets of several ways to cut a column: one for all cuts where these lie too close or too far apart.

    >>> buckets = buckets_of([np.array([0.0, 1.0, 2.0, 10.0])])
    >>> buckets.most, buckets.n_below[:3]
    (array([1]), array([0, 1, 2], dtype=uint16))
    """
    ways = [_with_few_cuts(part) for part in cuts]
    start = np.cumsum([0, *(len(way[2]) for way in ways)]).astype(np.int64)
    return Buckets(
        np.array([way[0] for way in ways], float),
        np.array([way[1] for way in ways], float),
        start,
        np.concatenate([np.empty(0, np.uint16), *(way[2] for way in ways)]),
        np.array([way[3] for way in ways], np.int64),
    )


def _with_few_cuts(cuts: np.ndarray) -> tuple[float, float, np.ndarray, int]:
    """Return the buckets between those ends of which the fullest has fewest cuts."""
    best = _of_one(cuts, ENDS[0])
    for end in ENDS[1:]:
        if best[3] > FEW:
            best = min(best, _of_one(cuts, end), key=lambda way: way[3])
    return best


def _of_one(cuts: np.ndarray, end: int) -> tuple[float, float, np.ndarray, int]:
    """Return origin, buckets per unit, the number of cuts below each bucket, and how many lie in one at most."""
    n_buckets, beyond = PER_CUT * len(cuts), len(cuts) // end if end else 0
    origin, per_unit = 0.0, 0.0
    if 1 < len(cuts) < MOST:
        with np.errstate(all="ignore"):
            origin, per_unit = cuts[beyond], n_buckets / (cuts[-1 - beyond] - cuts[beyond])
    if not 0.0 < per_unit < np.inf:
        return 0.0, 0.0, np.zeros(1, np.uint16), len(cuts)
    with np.errstate(all="ignore"):
        place = np.clip((cuts - origin) * per_unit, 0.0, n_buckets - 1.0).astype(np.int64)  # as the kernel has it
    counts = np.bincount(place, minlength=n_buckets)
    most = int(counts.max())
    return float(origin), float(per_unit), np.minimum(np.cumsum(counts) - counts, len(cuts) - most).astype(np.uint16), most
