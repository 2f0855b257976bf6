"""Read forests of quantile-forest, in which means are sums of trees but quantiles are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, UnsupportedStructureError, message
from exactshap.readers import OwnCall, Request, require_fitted
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import convert

_MEAN, _MEAN_OF_LEAVES = "mean", "mean of leaves"


def read(model: Model, request: Request) -> TreeReader:
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
        raise UnsupportedStructureError(
            message(f"{type(model).__name__} {what}: no sum of trees", f"Got output={output!r}", do)
        )
    if output not in (_MEAN, _MEAN_OF_LEAVES):
        do = f"Pass output={_MEAN!r} or {_MEAN_OF_LEAVES!r}"
        raise UnknownNameError(message(f"{type(model).__name__} has no output {output!r}", do=do))
    call = OwnCall("predict", {"quantiles": "mean"} | ({} if output == _MEAN else {"aggregate_leaves_first": False}))
    return TreeReader(model, replace(request, output="auto"), convert(model), call)
