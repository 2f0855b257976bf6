"""The front door: a model and a background in, explanations out."""

from exactshap.explainer._explainer import Explainer, explain
from exactshap.explainer._offset import require_score as require_score
from exactshap.explainer._plan import Forecast
from exactshap.explainer._verify import Verification

__all__ = ["Explainer", "Forecast", "Verification", "explain"]
