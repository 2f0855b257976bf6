"""Read trees of scikit-learn and of smaller packages.

These are imodels, NGBoost, Perpetual, quantile-forest, scikit-survival, treelite and YDF. Classifier forests are explained as
probabilities (binary: of the positive class only, unless ``output=`` says otherwise), boosted models in the space of their link
(log-odds, the log of the target, the target), isolation forests as the average path length h, which is the part of their score that is a
sum of trees: score_samples = -2^(-h / c(max_samples)). Of survival models, ``output="survival"`` and ``"cumulative hazard"`` are whole
curves, with an output for each time of ``times=``; risks are the default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, InputTypeError, UnknownNameError, UnsupportedStructureError
from exactshap.frames import Table, as_table
from exactshap.readers import OwnCall, Reader, Request, require_fitted
from exactshap.readers.trees._response import LINKS, by_unit, read_trees
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import TreeModel, convert
from exactshap.trees.formats import CURVES, average_path_length, curve_columns, of_curve

_MEAN, _MEAN_OF_LEAVES = "mean", "mean of leaves"  # outputs of quantile forests


# --- scikit-learn -----------------------------------------------------------------------------------------------------
def read_sklearn(model: Model, request: Request) -> Reader:
    """Read f(x) as a sum of trees: leaf means or class shares, averaged or added up; or what a link makes of it."""
    ensemble = convert(model)
    # histogram boosting takes any number; the others compare in single precision
    refuse = partial(_refuse_float32_cells, model) if ensemble.trees.single_precision else None
    call = OwnCall("predict_proba" if hasattr(model, "predict_proba") else "predict")
    response = by_unit(ensemble, call)
    if ensemble.objective == "votes":  # of AdaBoost
        response = "logistic" if ensemble.single_output else "softmax", call, 1.0 / (len(model.classes_) - 1)
    return read_trees(model, request, ensemble, _own_call(model, ensemble), response, refuse)


def _own_call(model: Model, ensemble: TreeModel) -> OwnCall:
    if hasattr(model, "score_samples"):
        return OwnCall("score_samples", finish=partial(_path_length, model))
    if hasattr(model, "decision_function"):
        return OwnCall("decision_function")
    if hasattr(model, "predict_proba"):
        return OwnCall("predict_proba", finish=np.ravel) if ensemble.single_output else OwnCall("predict_proba")
    return OwnCall("predict", finish=np.log) if ensemble.unit == "log of the target" else OwnCall("predict")


def _path_length(model: Model, scores: np.ndarray) -> np.ndarray:
    # The score is rounded to eps; so is its logarithm, times c: our epsilon covers it, c is at most about 2 ln(n).
    return -np.log2(-scores) * average_path_length(np.array(model.max_samples_))


def _refuse_float32_cells(model: Model, X: Table) -> None:
    """Refuse the first infinite or missing cell, in single precision. So the trees compare it."""
    with np.errstate(over="ignore"):
        numbers = X.numeric().astype(np.float32)
    what = "Input X contains infinity or a value too large for dtype('float32')"
    do = "Clip or impute it: float32 ends at 3.4e38"
    wrong = np.argwhere(np.isinf(numbers))
    if not len(wrong):
        what, do, wrong = "Input X contains NaN", "Impute it, or explain the Pipeline that does", np.argwhere(np.isnan(numbers))
    if len(wrong):
        i, j = (int(position) for position in wrong[0])
        text = f"{what} (first at row {i}, {X.label(j)})"
        raise InputError(text, f"{type(model).__name__} does not accept it", do, row=i)


# --- imodels, NGBoost, Perpetual, quantile-forest ---------------------------------------------------------------------
def read_imodels(model: Model, request: Request) -> Reader:
    """Read f(x) as a sum of trees: targets, probabilities, or the log-odds that a softmax takes."""
    ensemble = convert(model)
    if not hasattr(model, "classes_"):
        call = OwnCall("predict")
    else:
        call = OwnCall("predict_proba") if ensemble.unit == "probability" else OwnCall("predict_proba", finish=_log_ratios)
    return read_trees(model, request, ensemble, call, by_unit(ensemble), methodcaller("finite", "X", ensemble.name))


def _log_ratios(shares: np.ndarray) -> np.ndarray:
    """Return the log-odds of each class against the first; of two classes, one column."""
    return _only_column(np.log(shares[:, 1:]) - np.log(shares[:, :1]))


def read_ngboost(model: Model, request: Request) -> Reader:
    """Read the parameters; those of a Normal are its mean and the logarithm of its standard deviation."""
    ensemble = convert(model)
    response = by_unit(ensemble, ArrayCall("predict_proba"))
    return read_trees(model, request, ensemble, ArrayCall("pred_param", finish=_only_column), response)


class ArrayCall(OwnCall):
    """Call a method that takes arrays only."""

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        return super().__call__(model, np.asarray(rows, float))


def _only_column(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.shape[1] == 1 else values


def read_perpetual(model: Model, request: Request) -> Reader:
    """Read f(x) = base score + sum of trees; of two classes, the difference of their log probabilities."""
    ensemble = convert(model)
    call = OwnCall("predict_log_proba", finish=_log_odds) if ensemble.unit == "log-odds" else OwnCall("predict")
    return read_trees(model, request, ensemble, call, by_unit(ensemble))


def _log_odds(values: np.ndarray) -> np.ndarray:
    """Return the log-odds, which Perpetual answers itself; of a table of log probabilities, their difference."""
    return values if values.ndim == 1 else values[:, 1] - values[:, 0]


def read_quantile_forest(model: Model, request: Request) -> TreeReader:
    r"""Read the mean over trees of the targets' mean in a leaf.

    .. math:: f(x) = \tfrac1T \sum_k \overline{y}_{k, \mathrm{leaf}_k(x)}

    ``predict(X, quantiles="mean")`` is that where leaves keep one target each, the default. It weights trees by the size of their leaf
    where they keep several.
    """
    require_fitted(model, "estimators_")
    output = _MEAN if request.output == "auto" and model.default_quantiles in (None, "mean", ["mean"]) else request.output
    one_each = np.shape(model.forest_.y_train_leaves)[3] == 1
    if output == "auto" or (output == _MEAN and not one_each):
        what = (
            "predicts quantiles" if output == "auto" else "keeps several targets in a leaf, so that its mean weights the trees"
        )
        chosen = "" if output == "auto" else ", quantiles='mean'"
        exact = f"Pass output='{_MEAN if one_each else _MEAN_OF_LEAVES}', which is exact, or sample it: "
        do = f"{exact}explain(lambda rows: model.predict(rows{chosen}), X, background)"
        raise UnsupportedStructureError(f"{type(model).__name__} {what}: no sum of trees", f"Got output={output!r}", do)
    if output not in (_MEAN, _MEAN_OF_LEAVES):
        do = f"Pass output={_MEAN!r} or {_MEAN_OF_LEAVES!r}"
        raise UnknownNameError(f"{type(model).__name__} has no output {output!r}", do=do)
    call = OwnCall("predict", {"quantiles": "mean"} | ({} if output == _MEAN else {"aggregate_leaves_first": False}))
    return TreeReader(model, replace(request, output="auto"), convert(model), call)


# --- scikit-survival --------------------------------------------------------------------------------------------------
def read_sksurv(model: Model, request: Request) -> TreeReader:
    r"""Read f(x) as a mean of trees, or the sum of boosted ones.

    .. math:: \hat H(t \mid x) = \tfrac1T \sum_k H_k(t \mid x), \qquad \mathrm{risk}(x) = \sum_{\text{events } t} \hat H(t \mid x)
    """
    require_fitted(model, "n_features_in_")
    if isinstance(request.output, str) and request.output in CURVES:
        return _read_curve(model, request)
    if "times" in request.options:
        do = f"Pass output={' or '.join(map(repr, CURVES))} with it"
        raise InputError("`times` needs a survival curve as output", f"Got output={request.output!r}", do)
    ensemble = convert(model)
    timed = ensemble.unit == "log of the survival time"
    return TreeReader(model, request, ensemble, OwnCall("predict", finish=np.log) if timed else OwnCall("predict"))


def _read_curve(model: Model, request: Request) -> TreeReader:
    curve = request.output
    method = f"predict_{curve.replace(' ', '_')}_function"
    if hasattr(model, "init_"):
        do = f"Sample it: explain(lambda rows: model.{method}(rows, return_array=True), X, background)"
        raise UnsupportedStructureError("The curves of boosted models are not sums of trees", do=do)
    columns = curve_columns(model, request.options.get("times"))
    call = OwnCall(method, {"return_array": True}, partial(_at_times, columns))
    options = {name: value for name, value in request.options.items() if name != "times"}
    return TreeReader(model, replace(request, output="auto", options=options), of_curve(model, curve, columns), call)


def _at_times(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    return _only_column(values[:, columns])


# --- treelite ---------------------------------------------------------------------------------------------------------
def read_treelite(model: Model, request: Request) -> TreeReader:
    """Read f(x) = base scores + sum of trees, before treelite's postprocessor."""
    return TreeReader(ServedTreelite(model), request, convert(model), GtilCall("predict"))


class ServedTreelite:
    """Hold a treelite model that pickles, unlike its own class."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.model.serialize_bytes(),)


def _restored(serialised: bytes) -> ServedTreelite:
    import treelite

    return ServedTreelite(treelite.Model.deserialize_bytes(serialised))


@dataclass(frozen=True, eq=False)
class GtilCall(OwnCall):
    """Call ``treelite.gtil.predict(model, rows, pred_margin=True)``; its targets and classes become one axis."""

    def __call__(self, model: ServedTreelite, rows: TableLike) -> np.ndarray:
        import treelite

        served = model.model
        if type(rows).__module__.startswith("scipy.sparse"):
            do = "Pass X.toarray(), with NaN where the matrix leaves cells out if that is what they are"
            raise InputTypeError("Models of treelite are read with dense rows", "Got a sparse matrix", do)
        classes = np.asarray(served.get_header_accessor().get_field("num_class"))
        kind = np.float32 if served.input_type == "float32" else np.float64
        margins = treelite.gtil.predict(served, np.ascontiguousarray(rows, kind), nthread=1, pred_margin=True)
        margins = np.concatenate([margins[:, t, :n] for t, n in enumerate(classes)], axis=1).astype(float)
        return np.array(self.finish(_only_column(margins)), float)


# --- YDF --------------------------------------------------------------------------------------------------------------
def read_ydf(model: Model, request: Request) -> Reader:
    """Read f(x) = initial prediction + sum of trees, or the mean of the trees of a forest."""
    ensemble = convert(model)
    served = ServedYdf(model.serialize(), ensemble.feature_names or ())
    call = OwnCall("scores" if ensemble.unit in LINKS else "predict")
    if ensemble.unit == "probability" and len(ensemble.output_names) == 2:
        call = replace(call, finish=_with_first)
    return read_trees(served, request, ensemble, call, by_unit(ensemble, OwnCall("predict")))


def _with_first(second: np.ndarray) -> np.ndarray:
    """Return the shares of both classes; YDF answers that of the second."""
    return np.stack([1.0 - second, second], axis=1)


class ServedYdf:
    """Hold a YDF model that takes tables, and pickles as its bytes."""

    def __init__(self, content: bytes, names: tuple[str, ...]) -> None:
        import ydf

        self._content, self._names = content, names
        self._model = self._scores = ydf.deserialize_model(content)
        if hasattr(self._model, "set_output_logits") and self._model.task().name == "CLASSIFICATION":
            self._scores = ydf.deserialize_model(content)
            self._scores.set_output_logits(True)

    def __reduce__(self) -> tuple[Any, ...]:
        return ServedYdf, (self._content, self._names)

    def _columns(self, rows: TableLike) -> dict[str, np.ndarray]:
        table = as_table(rows, allow_empty=True)
        return {name: table.column(j) for j, name in enumerate(self._names)}

    def predict(self, rows: TableLike) -> np.ndarray:
        """Return what the model predicts."""
        return np.asarray(self._model.predict(self._columns(rows)), float)

    def scores(self, rows: TableLike) -> np.ndarray:
        """Return the scores before the activation. Of regressions only rates have one, which YDF does not leave out."""
        scores = np.asarray(self._scores.predict(self._columns(rows)), float)
        return np.log(scores) if self._model.task().name == "REGRESSION" else scores
