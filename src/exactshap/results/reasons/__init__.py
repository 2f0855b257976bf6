"""Find the strongest adverse reasons of each row, to justify decisions."""

from __future__ import annotations

from exactshap.results.reasons._find import find_reasons as find_reasons
from exactshap.results.reasons._reasons import Reasons

__all__ = ["Reasons"]
