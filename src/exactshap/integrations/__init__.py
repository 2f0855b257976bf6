"""Integrate other tools; each module imports its library on first use."""

from __future__ import annotations

__all__: list[str] = []
