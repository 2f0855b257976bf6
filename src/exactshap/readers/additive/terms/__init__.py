"""Terms of additive models: one file for each kind, and what binding them to a background and evaluating them costs."""

from __future__ import annotations

from exactshap.readers.additive.terms._binned import BinnedTerms, numeric_bins
from exactshap.readers.additive.terms._blocks import (
    CHUNK_VALUES,
    Bound,
    BoundLinear,
    Coalitions,
    ColumnTerms,
    LinearTerms,
    Reference,
    TermBlock,
    by_size,
    calls_of_row,
    coalitions,
    players_of_term,
    seconds_of_row,
    slices,
    weighted_mean,
)
from exactshap.readers.additive.terms._functions import FunctionTerm, FunctionTerms, ProductTerm, ProductTerms
from exactshap.readers.additive.terms._homogeneous import Growth, Interpolant, interpolate
from exactshap.readers.additive.terms._monomials import MonomialTerms

__all__ = [
    "CHUNK_VALUES",
    "BinnedTerms",
    "Bound",
    "BoundLinear",
    "Coalitions",
    "ColumnTerms",
    "FunctionTerm",
    "FunctionTerms",
    "Growth",
    "Interpolant",
    "LinearTerms",
    "MonomialTerms",
    "ProductTerm",
    "ProductTerms",
    "Reference",
    "TermBlock",
    "by_size",
    "calls_of_row",
    "coalitions",
    "interpolate",
    "numeric_bins",
    "players_of_term",
    "seconds_of_row",
    "slices",
    "weighted_mean",
]
