"""Statistics of parts of a table that add up to those of the whole."""

from __future__ import annotations

from exactshap.scale.statistics._importance import GlobalImportance

__all__ = ["GlobalImportance"]
