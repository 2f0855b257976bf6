"""How much memory a block of code takes at its peak."""

import contextlib
import gc
import tracemalloc


@contextlib.contextmanager
def traced():
    """Yield a list that holds the peak, in bytes, once the block has ended."""
    peaks = []
    gc.collect()
    tracemalloc.start()
    try:
        yield peaks
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
