"""Define terms of additive models, one file for each kind, with binding to a background and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use
from exactshap.readers.additive.terms._blocks import CHUNK_VALUES as CHUNK_VALUES
from exactshap.readers.additive.terms._blocks import Bound as Bound
from exactshap.readers.additive.terms._blocks import BoundLinear as BoundLinear
from exactshap.readers.additive.terms._blocks import Coalitions as Coalitions
from exactshap.readers.additive.terms._blocks import ColumnTerms as ColumnTerms
from exactshap.readers.additive.terms._blocks import LinearTerms as LinearTerms
from exactshap.readers.additive.terms._blocks import Reference as Reference
from exactshap.readers.additive.terms._blocks import TermBlock as TermBlock
from exactshap.readers.additive.terms._blocks import by_size as by_size
from exactshap.readers.additive.terms._blocks import calls_of_row as calls_of_row
from exactshap.readers.additive.terms._blocks import coalitions as coalitions
from exactshap.readers.additive.terms._blocks import players_of_term as players_of_term
from exactshap.readers.additive.terms._blocks import seconds_of_row as seconds_of_row
from exactshap.readers.additive.terms._blocks import slices as slices
from exactshap.readers.additive.terms._blocks import weighted_mean as weighted_mean

if TYPE_CHECKING:
    from exactshap.readers.additive.terms._binned import BinnedTerms as BinnedTerms
    from exactshap.readers.additive.terms._binned import numeric_bins as numeric_bins
    from exactshap.readers.additive.terms._functions import BoundFunctions as BoundFunctions
    from exactshap.readers.additive.terms._functions import FunctionTerm as FunctionTerm
    from exactshap.readers.additive.terms._functions import FunctionTerms as FunctionTerms
    from exactshap.readers.additive.terms._functions import ProductTerm as ProductTerm
    from exactshap.readers.additive.terms._functions import ProductTerms as ProductTerms
    from exactshap.readers.additive.terms._functions import distinct as distinct
    from exactshap.readers.additive.terms._homogeneous import Growth as Growth
    from exactshap.readers.additive.terms._homogeneous import Interpolant as Interpolant
    from exactshap.readers.additive.terms._homogeneous import interpolate as interpolate
    from exactshap.readers.additive.terms._monomials import MonomialTerms as MonomialTerms

__getattr__ = on_first_use(
    __name__,
    {
        "_binned": "BinnedTerms numeric_bins",
        "_functions": "BoundFunctions FunctionTerm FunctionTerms ProductTerm ProductTerms distinct",
        "_homogeneous": "Growth Interpolant interpolate",
        "_monomials": "MonomialTerms",
    },
)
