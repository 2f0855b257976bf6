"""Integrate other tools, each in a module that imports its library on first use: ``exactshap.integrations.mlflow``."""

from __future__ import annotations

__all__: list[str] = []
