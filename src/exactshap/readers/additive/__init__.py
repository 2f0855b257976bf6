"""Readers of additive models: linear, spline, polynomial, EBM, GAM, RKHS weightings."""

from __future__ import annotations

from exactshap.readers.additive.additive_model import AdditiveModel

__all__ = [
    "AdditiveModel",
]
