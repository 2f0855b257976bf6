"""Explain models: ``Explainer``, ``explain`` and what they report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use
from exactshap.explainer._explainer import Explainer as Explainer
from exactshap.explainer._explainer import explain as explain
from exactshap.explainer._offset import require_score as require_score
from exactshap.explainer._plan import Forecast

if TYPE_CHECKING:
    from exactshap.explainer._verify import Verification

__all__ = ["Forecast", "Verification"]

__getattr__ = on_first_use(__name__, {"_verify": "Verification"})
