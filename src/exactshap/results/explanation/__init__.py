"""What an explanation holds: arrays, names, the question, and how far off the answer can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use
from exactshap.results.data import Certificate
from exactshap.results.data import fingerprint as fingerprint
from exactshap.results.explanation._explanation import Explanation

if TYPE_CHECKING:
    from exactshap.results.data import Importance

__all__ = ["Certificate", "Explanation", "Importance"]

__getattr__ = on_first_use("exactshap.results", {"data": "Importance"})
