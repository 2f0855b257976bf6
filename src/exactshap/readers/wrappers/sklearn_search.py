"""Read the inner model of searches, thresholds, self-training and frozen estimators, which makes their predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import ExactnessError, InputError
from exactshap.frames import Table
from exactshap.readers import DelegatingReader, Reader, Request, fitted_names
from exactshap.readers import read as read_any
from exactshap.readers.wrappers._columns import readable

_INSIDE = {
    "BaseSearchCV": "best_estimator_",
    "BaseThresholdClassifier": "estimator_",
    "SelfTrainingClassifier": "estimator_",
    "FrozenEstimator": "estimator",
}


def read(model: Model, request: Request) -> Reader:
    """Read the fitted model inside; a threshold changes labels, not the output that is explained."""
    inside = next(_INSIDE[cls.__name__] for cls in type(model).__mro__ if cls.__name__ in _INSIDE)
    if inside == "best_estimator_" and model.refit is False:
        do = "Fit one with the best parameters, or search with refit=True"
        raise InputError(f"{type(model).__name__} holds no fitted model", "Got refit=False", do)
    held = getattr(model, inside)
    if request.background is not None:
        request = replace(request, background=_as_fitted(model, held, request.background))
    if request.feature_names is None:
        request = replace(request, feature_names=fitted_names(model))
    return HolderReader(model, inside, read_any(held, request))


class HolderReader(DelegatingReader):
    """Explain the model in an attribute of another by ``inner``; the current object there predicts."""

    def __init__(self, model: Model, inside: str, inner: Reader) -> None:
        names, call = fitted_names(model) or inner.traits.fitted_names, inner.traits.own_call
        # Searches and thresholds hand no settings of a call through, in a pipeline neither
        answers = call is not None and not call.settings and hasattr(model, call.method)
        super().__init__(
            inner, model=model, model_name=inner.traits.model_name, fitted_names=names, own_call=call if answers else None
        )
        # The object as read: where no call of the current one gives the explained value, a new one after a fit would not show.
        self.inside, self._as_read = inside, getattr(model, inside)

    def rows(self, X: Table) -> Table:
        return _as_fitted(self.traits.model, getattr(self.traits.model, self.inside), X)

    def predict(self, X: Table) -> np.ndarray:
        """Call the model itself, or the current one inside."""
        held, call = getattr(self.traits.model, self.inside), self.inner.traits.own_call
        if call is None:
            if held is not self._as_read:
                raise ExactnessError(
                    f"{type(self.traits.model).__name__} was fitted again after it was read", do="Make a new Explainer"
                )
            return self.inner.predict(self.rows(X))
        model, X = (held, self.rows(X)) if self.traits.own_call is None else (self.traits.model, X)
        return call(model, readable(held, X))


def _as_fitted(model: Model, held: Model, X: Table) -> Table:
    """Return the rows as the model inside was fitted on them; self-training passes arrays."""
    if not X.is_frame or fitted_names(model) is None or hasattr(held, "feature_names_in_"):
        return X
    return Table(X.numeric(categories=True), None, X.n_rows, X.n_columns)
