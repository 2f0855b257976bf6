"""Explain responses such as probabilities: exactly if the score is a sum over players, else sampled with a control variate."""

from __future__ import annotations

from exactshap.readers.responses._exact import ALL_COALITIONS as ALL_COALITIONS
from exactshap.readers.responses._exact import LinkedReader as LinkedReader
from exactshap.readers.responses._exact import PiecewiseReader as PiecewiseReader
from exactshap.readers.responses._exact import ResponseReader as ResponseReader
from exactshap.readers.responses._links import NEAR_ENOUGH as NEAR_ENOUGH
from exactshap.readers.responses._links import Coupled as Coupled
from exactshap.readers.responses._links import Isotonic as Isotonic
from exactshap.readers.responses._links import Response as Response
from exactshap.readers.responses._links import Sigmoid as Sigmoid
from exactshap.readers.responses._links import Votes as Votes
from exactshap.readers.responses._links import couple as couple
from exactshap.readers.responses._links import exponential as exponential
from exactshap.readers.responses._links import isotonic as isotonic
from exactshap.readers.responses._links import needs_rows as needs_rows
from exactshap.readers.responses._links import no_response as no_response
from exactshap.readers.responses._links import normalised as normalised
from exactshap.readers.responses._links import probabilities as probabilities
from exactshap.readers.responses._links import sigmoid as sigmoid
from exactshap.readers.responses._links import temperature as temperature
from exactshap.readers.responses._orders import sample_orders as sample_orders
from exactshap.readers.responses._products import ProductScores as ProductScores
from exactshap.readers.responses._sampled import OPTIONS as SAMPLING_OPTIONS
from exactshap.readers.responses._sampled import HybridScores as HybridScores
from exactshap.readers.responses._sampled import RowScores as RowScores
from exactshap.readers.responses._sampled import SampledResponse as SampledResponse
from exactshap.readers.responses._sampled import of_score as of_score

__all__ = ["SAMPLING_OPTIONS"]
