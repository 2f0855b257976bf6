"""Read trees of libraries other than scikit-learn and XGBoost. These are LightGBM, CatBoost, YDF, treelite, scikit-survival, smaller packages."""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import InputError, InputTypeError, UnknownNameError, UnsupportedStructureError
from exactshap.frames import Table, as_table
from exactshap.readers import OwnCall, Reader, Request, require_fitted
from exactshap.readers.trees._response import LINKS, by_unit, read_trees
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import TreeModel, convert
from exactshap.trees.formats import CURVES, curve_columns, of_curve

# -- LightGBM ------------------------------------------------------------------------------------------------------------


def read_lightgbm(model: Model, request: Request) -> Reader:
    """Read f(x) = sum of trees, their mean in random-forest mode."""
    ensemble = convert(model)
    call = OwnCall("predict", {"raw_score": True})
    if not ensemble.boosted:
        n_rounds = ensemble.trees.n_trees // len(ensemble.output_names)
        call = OwnCall("predict", {"raw_score": True}, functools.partial(_mean_of_rounds, n_rounds))
    return read_trees(model, request, ensemble, call, functools.partial(_lightgbm_response, model))


def _lightgbm_response(model: Model, ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    """Return the response with its slope, LightGBM's parameter ``sigmoid``."""
    if ensemble.unit not in LINKS:
        return None
    booster: Any = getattr(model, "booster_", model)
    slope = re.search(r"sigmoid:([0-9.eE+-]+)", booster.dump_model(num_iteration=1)["objective"])
    call = OwnCall("predict_proba" if hasattr(model, "predict_proba") else "predict")
    return by_unit(ensemble, call, float(slope[1]) if slope else 1.0)


def _mean_of_rounds(n_rounds: int, scores: np.ndarray) -> np.ndarray:
    return scores / n_rounds  # LightGBM's raw score of a forest is the sum


# -- CatBoost ------------------------------------------------------------------------------------------------------------


def read_catboost(model: Model, request: Request) -> Reader:
    """Read f(x) = bias + scale times the sum of trees.

    One-hot splits and target statistics of one column are splits on that column. A target statistic that combines columns belongs to
    the group that holds them all; without such a group the model is refused with the groups to pass.
    """
    ensemble = convert(model)
    # rankers take no type of prediction: theirs is the raw value
    typed = "prediction_type" in inspect.signature(model.predict).parameters
    call = OwnCall("predict", {"prediction_type": "RawFormulaVal"} if typed else {})
    return read_trees(model, request, ensemble, call, functools.partial(_catboost_response, typed))


def _catboost_response(typed: bool, ensemble: TreeModel) -> tuple[str, OwnCall, float] | None:
    kind = "Exponent" if LINKS.get(ensemble.unit) == "exponential" else "Probability"
    return by_unit(ensemble, OwnCall("predict", {"prediction_type": kind})) if typed else None


# -- YDF -----------------------------------------------------------------------------------------------------------------


def read_ydf(model: Model, request: Request) -> Reader:
    """Read f(x) = initial prediction + sum of trees, or the mean of the trees of a forest."""
    ensemble = convert(model)
    served = ServedByYdf(model.serialize(), ensemble.feature_names or ())
    call = "scores" if ensemble.unit in LINKS else "predict"
    response = functools.partial(by_unit, call=OwnCall("predict"))
    return read_trees(served, request, ensemble, OwnCall(call, finish=_all_classes(ensemble)), response)


def _all_classes(ensemble: TreeModel) -> Any:
    """Return a function from YDF's one share to those of both classes."""
    return _with_first if ensemble.unit == "probability" and len(ensemble.output_names) == 2 else np.asarray


def _with_first(second: np.ndarray) -> np.ndarray:
    return np.stack([1.0 - second, second], axis=1)


class ServedByYdf:
    """Hold a YDF model that takes tables, and pickles as its bytes."""

    def __init__(self, content: bytes, names: tuple[str, ...]) -> None:
        import ydf

        self._content, self._names = content, names
        self._model = self._scores = ydf.deserialize_model(content)
        if hasattr(self._model, "set_output_logits") and self._model.task().name == "CLASSIFICATION":
            self._scores = ydf.deserialize_model(content)
            self._scores.set_output_logits(True)

    def __reduce__(self) -> tuple[Any, ...]:
        return ServedByYdf, (self._content, self._names)

    def _columns(self, rows: TableLike) -> dict[str, np.ndarray]:
        table = as_table(rows, allow_empty=True)
        return {name: table.column(j) for j, name in enumerate(self._names)}

    def predict(self, rows: TableLike) -> np.ndarray:
        """Return what the model predicts."""
        return np.asarray(self._model.predict(self._columns(rows)), float)

    def scores(self, rows: TableLike) -> np.ndarray:
        """Return the scores before the activation."""
        return np.asarray(self._scores.predict(self._columns(rows)), float)


# -- treelite ------------------------------------------------------------------------------------------------------------


def read_treelite(model: Model, request: Request) -> TreeReader:
    """Read f(x) = base scores + sum of trees, before treelite's postprocessor."""
    return TreeReader(ServedByTreelite(model), request, convert(model), GtilCall("predict"))


class ServedByTreelite:
    """Hold a treelite model that pickles, unlike its own class."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_treelite, (self.model.serialize_bytes(),)


def _restored_treelite(serialised: bytes) -> ServedByTreelite:
    import treelite

    return ServedByTreelite(treelite.Model.deserialize_bytes(serialised))


@dataclass(frozen=True, eq=False)
class GtilCall(OwnCall):
    """Call ``treelite.gtil.predict(model, rows, pred_margin=True)``; its targets and classes become one axis."""

    def __call__(self, model: ServedByTreelite, rows: TableLike) -> np.ndarray:
        import treelite

        served = model.model
        if type(rows).__module__.startswith("scipy.sparse"):
            do = "Pass X.toarray(), with NaN where the matrix leaves cells out if that is what they are"
            raise InputTypeError("Models of treelite are read with dense rows", "Got a sparse matrix", do)
        classes = np.asarray(served.get_header_accessor().get_field("num_class"))
        kind = np.float32 if served.input_type == "float32" else np.float64
        margins = treelite.gtil.predict(served, np.ascontiguousarray(rows, kind), nthread=1, pred_margin=True)
        margins = np.concatenate([margins[:, t, :n] for t, n in enumerate(classes)], axis=1).astype(float)
        return np.array(self.finish(margins[:, 0] if margins.shape[1] == 1 else margins), float)


# -- scikit-survival -----------------------------------------------------------------------------------------------------


def read_sksurv(model: Model, request: Request) -> TreeReader:
    r"""Read f(x) as a mean of trees, or the sum of boosted ones.

    .. math:: \hat H(t \mid x) = \tfrac1T \sum_k H_k(t \mid x), \qquad \mathrm{risk}(x) = \sum_{\text{events } t} \hat H(t \mid x)

    Risks by default; ``output="survival"`` and ``"cumulative hazard"`` are whole curves, with an output for each time of ``times=``.
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
    call = OwnCall(method, {"return_array": True}, functools.partial(_at_times, columns))
    options = {name: value for name, value in request.options.items() if name != "times"}
    return TreeReader(model, replace(request, output="auto", options=options), of_curve(model, curve, columns), call)


def _at_times(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    values = values[:, columns]
    return values[:, 0] if len(columns) == 1 else values


# -- smaller packages ----------------------------------------------------------------------------------------------------


def read_imodels(model: Model, request: Request) -> Reader:
    """Read f(x) as a sum of trees: targets, probabilities, or the log-odds that a softmax takes."""
    ensemble = convert(model)
    if not hasattr(model, "classes_"):
        call = OwnCall("predict")
    else:
        call = OwnCall("predict_proba") if ensemble.unit == "probability" else OwnCall("predict_proba", finish=_log_ratios)
    return read_trees(model, request, ensemble, call, refuse=functools.partial(_refuse_cells, ensemble.name))


def _refuse_cells(owner: str, X: Table) -> None:
    X.finite("X", owner)


def _log_ratios(shares: np.ndarray) -> np.ndarray:
    """Return the log-odds of each class against the first; of two classes, one column."""
    scores = np.log(shares[:, 1:]) - np.log(shares[:, :1])
    return scores[:, 0] if scores.shape[1] == 1 else scores


def read_ngboost(model: Model, request: Request) -> Reader:
    """Read the parameters; those of a Normal are its mean and the logarithm of its standard deviation."""
    ensemble = convert(model)
    response = functools.partial(by_unit, call=ArrayCall("predict_proba"))
    return read_trees(model, request, ensemble, ArrayCall("pred_param", finish=_squeezed), response)


class ArrayCall(OwnCall):
    """Call a method that takes arrays only."""

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        return super().__call__(model, np.asarray(rows, float))


def _squeezed(values: np.ndarray) -> np.ndarray:
    return values[:, 0] if values.shape[1] == 1 else values


def read_perpetual(model: Model, request: Request) -> Reader:
    """Read f(x) = base score + sum of trees; of two classes, the difference of their log probabilities."""
    ensemble = convert(model)
    call = OwnCall("predict_log_proba", finish=_log_odds) if ensemble.unit == "log-odds" else OwnCall("predict")
    return read_trees(model, request, ensemble, call)


def _log_odds(values: np.ndarray) -> np.ndarray:
    """Return the log-odds, which Perpetual answers itself; of a table of log probabilities, their difference."""
    return values if values.ndim == 1 else values[:, 1] - values[:, 0]


_MEAN, _MEAN_OF_LEAVES = "mean", "mean of leaves"


def read_quantile_forest(model: Model, request: Request) -> TreeReader:
    r"""Read f(x) as the mean over trees of the mean of the targets in a leaf.

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
