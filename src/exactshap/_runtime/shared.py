"""What threads share with care: a lock for single steps, and the state of objects that other threads fill meanwhile."""

from __future__ import annotations

import os
import threading
from typing import Any

__all__ = ["STEP", "copied_state"]

# for microseconds, while nothing is made or waited for; a finalizer may come within, on the same thread
STEP = threading.RLock()
# In a child the threads of its parent are gone: none of them may hold it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=STEP.acquire, after_in_parent=STEP.release, after_in_child=STEP.release)


def copied_state(one: Any) -> dict[str, Any]:
    """Return an object's state for pickling: its ``__getstate__``. Other threads may fill its cached properties meanwhile."""
    return dict(one.__dict__)
