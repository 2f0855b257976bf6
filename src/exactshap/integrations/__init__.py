"""Other people's tools, each in a module of its own that imports its library on first use: ``exactshap.integrations.mlflow``."""

from __future__ import annotations

__all__: list[str] = []
