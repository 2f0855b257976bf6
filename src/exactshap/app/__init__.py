"""The live what-if page: change a row, and its prediction and exact values follow at each move."""

from __future__ import annotations

from exactshap.app._server import make_app, run_app
from exactshap.app._session import WhatIf

__all__ = ["WhatIf", "make_app", "run_app"]
