"""Readers of additive models: linear, spline, polynomial, EBM, GAM, RKHS weightings."""

from __future__ import annotations

from exactshap.readers.additive._several_linear import linear_side_by_side as linear_side_by_side
from exactshap.readers.additive._several_linear import sum_of_linear as sum_of_linear
from exactshap.readers.additive._term_scores import TermScores, explain_terms
from exactshap.readers.additive.additive_model import AdditiveModel
from exactshap.readers.additive.sklearn_basis import read as read_basis
from exactshap.readers.additive.sklearn_basis import recognise as is_basis
from exactshap.readers.additive.sklearn_linear import linear_parts as linear_parts
from exactshap.readers.additive.terms import SplineFeatures as SplineFeatures

__all__ = [
    "AdditiveModel",
    "TermScores",
    "explain_terms",
    "is_basis",
    "read_basis",
]
