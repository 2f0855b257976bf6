"""Dependence that is left given other variables."""

from __future__ import annotations

from exactshap.decompose.conditional._hsic import decompose_conditional_hsic

__all__ = ["decompose_conditional_hsic"]
