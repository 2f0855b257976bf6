"""Readers of additive models: linear, spline, polynomial, EBM, GAM, RKHS weightings."""

from __future__ import annotations

from exactshap.readers.additive._term_scores import TermScores as TermScores
from exactshap.readers.additive._term_scores import explain_terms as explain_terms
from exactshap.readers.additive.additive_model import AdditiveModel as AdditiveModel
from exactshap.readers.additive.sklearn_basis import read as read_basis
from exactshap.readers.additive.sklearn_basis import recognise as is_basis
from exactshap.readers.additive.sklearn_linear import LinearParts as LinearParts
from exactshap.readers.additive.sklearn_linear import linear_parts as linear_parts
from exactshap.readers.additive.sklearn_linear import read_parts as read_parts
from exactshap.readers.additive.sklearn_linear import read_side_by_side as read_side_by_side
from exactshap.readers.additive.sklearn_projection import read as read_projection
from exactshap.readers.additive.sklearn_projection import recognise as is_projection

__all__ = ["is_basis", "is_projection", "read_basis", "read_projection"]
