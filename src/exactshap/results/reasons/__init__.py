"""Find the strongest adverse reasons of each row, to justify decisions."""

from __future__ import annotations

from exactshap.results.reasons._reasons import Reasons
from exactshap.results.reasons._reasons import find_reasons as find_reasons

__all__ = ["Reasons"]
