"""Serve the live what-if page, which explains each change of a row."""

from __future__ import annotations

from exactshap.app._server import run_app
from exactshap.app._session import WhatIf

__all__ = ["WhatIf", "run_app"]
