"""The memory of this machine."""

from __future__ import annotations

import functools
import os

__all__ = ["physical_memory"]


@functools.cache
def physical_memory() -> float:
    """Return the bytes of memory of this machine."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return 2.0**36
