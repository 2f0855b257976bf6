"""The front door: a model and a background in, explanations out."""

from exactshap.explainer._explainer import Explainer, explain
from exactshap.explainer._forecast import Forecast, Verification

__all__ = ["Explainer", "Forecast", "Verification", "explain"]
