"""Predictions in the unit that people read: exactly where the score is a sum over players, sampled with a control variate elsewhere."""

from __future__ import annotations

from exactshap.readers.responses._exact import PlayerScores, ResponseReader
from exactshap.readers.responses._links import Response, link_of, no_response, probability
from exactshap.readers.responses._sampled import HybridScores, SampledResponse

__all__ = [
    "HybridScores",
    "PlayerScores",
    "Response",
    "ResponseReader",
    "SampledResponse",
    "link_of",
    "no_response",
    "probability",
]
