"""Find the memory that this process may use."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # Windows, which has no limits of this kind
    resource = None  # type: ignore[assignment]

_LIMITS_OF_CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def physical_memory() -> float:
    """Return the usable memory of this process in bytes, at most the machine's."""
    limits = [_memory_of_machine()]
    if resource is not None:
        limits += [float(soft) for soft in [resource.getrlimit(resource.RLIMIT_AS)[0]] if soft != resource.RLIM_INFINITY]
    return min(limits)


@functools.cache
def _memory_of_machine() -> float:
    try:
        physical = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        physical = 2.0**36
    return min([physical, *_limits_of_containers()])


def _limits_of_containers() -> Iterator[float]:
    for path in _LIMITS_OF_CONTAINERS:
        try:
            yield float(Path(path).read_text())
        except (OSError, ValueError):  # no such file, or "max"
            continue
