"""Read the final model of FLAML's ``AutoML``, after its two documented preparations of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import ExactnessError, UnknownNameError, UnsupportedModelError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import DelegatingReader, Reader, Request, joined_outputs, raise_not_fitted
from exactshap.readers.wrappers.sklearn_pipeline import PipelineReader

# Background rows on which the inner model is compared with the whole
CHECKED_ROWS = 32


def read(model: Model, request: Request) -> Reader:
    """Read the model inside ``AutoML`` behind its preparation of rows."""
    around, inside = _layers(model)
    if inside is None:
        raise_not_fitted(model)
    if request.background is None:
        do = "Pass reference rows: explain(model, X, background)"
        raise UnsupportedStructureError(
            "FLAML transforms the rows, and only rows show which column each output comes from", do=do
        )
    classes = [] if getattr(model, "label_transformer", None) is None else [str(label) for label in model.classes_]
    # Models inside are fitted on numbers in the place of labels; two classes share one score, which is the second's.
    if request.output in classes[len(classes) == 2 :]:
        request = replace(request, output=str(classes.index(request.output)))
    try:
        return FlamlReader(around, inside, classes, request)
    except (UnsupportedModelError, UnsupportedStructureError) as error:
        do = f"Pass its function: explain(model.{_answering(inside)}, X, background), sampled beyond 13 players"
        do += ", its outputs in the order of model.classes_" if classes else ""
        what = "FLAML is read where it prepares each column for itself, for a model that is read"
        raise UnsupportedStructureError(what, str(error).split(". ")[0], do) from error


def _layers(model: Model) -> tuple[list[Model], Model]:
    """Return what prepares the rows, from outside inwards, and the model inside: an estimator or a stack of FLAML's."""
    inside = model.model if hasattr(model, "label_transformer") else model.estimator
    return ([model, inside], inside.estimator) if hasattr(inside, "preprocess") else ([model], inside)


def _answering(inside: Model) -> str:
    """Return the method that gives numbers, for models with classes the probabilities."""
    return "predict_proba" if hasattr(inside, "predict_proba") and len(getattr(inside, "classes_", ())) else "predict"


class FlamlPreparation(BaseEstimator):
    """Apply FLAML's preparation of rows as a step of a pipeline."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def transform(self, rows: TableLike) -> TableLike:
        try:
            return self.model.preprocess(rows)
        except KeyError as error:
            do = "Pass the columns of the fit"
            raise UnknownNameError(
                "FLAML transforms the columns of the fit, and the rows have others", f"{error}", do
            ) from error


class FlamlReader(PipelineReader):
    """Explain the model inside in the user's columns, with the user's classes."""

    def __init__(self, around: list[Model], inside: Model, classes: list[str], request: Request) -> None:
        front = [FlamlPreparation(part) for part in around]
        super().__init__(make_pipeline(*front, inside), front, [inside], request)
        numbered = {str(k): label for k, label in enumerate(classes)}
        before, word, number = self.traits.unit.rpartition(" class ")
        self.traits = replace(
            self.traits,
            model=around[0],
            model_name=f"{type(around[0]).__name__}({self.inner.traits.model_name})",
            # Neither AutoML nor its estimators answer scores.
            own_call=None,
            output_names=tuple(numbered.get(name, name) for name in self.traits.output_names),
            unit=before + word + numbered.get(number, number),
        )
        assert request.background is not None
        self._require_same_answers(inside, request.background.take(slice(0, CHECKED_ROWS)))

    # Not a pipeline's, which compares other calls: AutoML's are compared below
    predict = DelegatingReader.predict

    def _require_same_answers(self, inside: Model, rows: Table) -> None:
        """Compare predictions of the explained model and of the one passed."""
        called = _answering(inside)
        if called == "predict" and len(getattr(inside, "classes_", ())):
            return  # labels, in other words outside than inside
        outside = joined_outputs(getattr(self.traits.model, called)(rows.native))
        own = joined_outputs(getattr(inside, called)(self.rows(rows).native))
        if outside.shape != own.shape or not np.allclose(outside, own, rtol=1e-12, atol=0.0):
            do = f"Pass its function: explain(model.{called}, X, background)"
            raise ExactnessError(f"{self.traits.model_name} does not predict what the model inside predicts", do=do)
