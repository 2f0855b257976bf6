"""The front door: a model and a background in, explanations out."""

from exactshap.explainer._certify import Verification
from exactshap.explainer._explainer import Explainer, explain
from exactshap.explainer._plan import Forecast

__all__ = ["Explainer", "Forecast", "Verification", "explain"]
