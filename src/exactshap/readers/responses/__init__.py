"""Predictions in the unit that people read: exactly where the score is a sum over players, sampled with a control variate elsewhere."""

from __future__ import annotations

from exactshap.readers.responses._exact import PlayerScores, ResponseReader
from exactshap.readers.responses._factors import MAX_WIDTH, Factor, FactorReader, FactorScores
from exactshap.readers.responses._links import Response, Sigmoid, link_of, needs_rows, no_response, probabilities, probability
from exactshap.readers.responses._sampled import OPTIONS as SAMPLING_OPTIONS
from exactshap.readers.responses._sampled import HybridScores, SampledResponse

__all__ = [
    "MAX_WIDTH",
    "SAMPLING_OPTIONS",
    "Factor",
    "FactorReader",
    "FactorScores",
    "HybridScores",
    "PlayerScores",
    "Response",
    "ResponseReader",
    "SampledResponse",
    "Sigmoid",
    "link_of",
    "needs_rows",
    "no_response",
    "probabilities",
    "probability",
]
