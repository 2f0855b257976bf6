"""Read trees of smaller packages: imodels, NGBoost, Perpetual, quantile-forest."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import UnknownNameError, UnsupportedStructureError
from exactshap.frames import Table
from exactshap.readers import OwnCall, Reader, Request, require_fitted
from exactshap.readers.trees._response import by_unit, read_trees
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert


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
