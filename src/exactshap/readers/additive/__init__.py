"""Readers of additive models: linear, spline, polynomial, EBM, GAM, RKHS weightings."""

from __future__ import annotations

from exactshap.readers.additive.additive_model import AdditiveModel
from exactshap.readers.additive.sklearn_linear import linear_parts as linear_parts

__all__ = [
    "AdditiveModel",
]
