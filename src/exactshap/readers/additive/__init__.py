"""Read additive models: linear, spline, polynomial, EBM, GAM, RKHS weightings."""

from __future__ import annotations

from exactshap.readers.additive._additive import AdditiveReader as AdditiveReader
from exactshap.readers.additive.additive_model import AdditiveModel as AdditiveModel
from exactshap.readers.additive.additive_model import TermScores as TermScores
from exactshap.readers.additive.additive_model import explain_terms as explain_terms
from exactshap.readers.additive.response import with_response as with_response
from exactshap.readers.additive.sklearn_linear import LinearParts as LinearParts
from exactshap.readers.additive.sklearn_linear import is_logistic as is_logistic
from exactshap.readers.additive.sklearn_linear import linear_step as linear_step
from exactshap.readers.additive.sklearn_linear import read_parts as read_parts
from exactshap.readers.additive.sklearn_linear import read_side_by_side as read_side_by_side
from exactshap.readers.additive.sklearn_linear import response_of as response_of
from exactshap.readers.additive.sklearn_maps import SCALERS as SCALERS
from exactshap.readers.additive.sklearn_maps import MapsSideBySide as MapsSideBySide
from exactshap.readers.additive.sklearn_maps import Weight as Weight
from exactshap.readers.additive.sklearn_maps import is_affine as is_affine
from exactshap.readers.additive.sklearn_maps import is_map as is_map
from exactshap.readers.additive.sklearn_maps import is_projection as is_projection
from exactshap.readers.additive.sklearn_maps import is_selection as is_selection
from exactshap.readers.additive.sklearn_maps import read_projection as read_projection
