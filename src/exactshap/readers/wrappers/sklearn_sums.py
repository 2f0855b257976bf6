"""Read votes, bags and stacks of scikit-learn's regressors as weighted sums of fitted models."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.frames import Table, check_columns
from exactshap.readers import Reader, Request, fitted_names, is_of_target, names_of, outputs_of, players_of, select_outputs
from exactshap.readers.additive import linear_step
from exactshap.readers.wrappers._columns import readable, reads_texts
from exactshap.readers.wrappers._sum import Member, SumReader, read_member


def read(model: Model, request: Request) -> Reader:
    """Read the models inside and weigh them as the regressor does."""
    return next(_READERS[cls.__name__] for cls in type(model).__mro__ if cls.__name__ in _READERS)(model, request)


def _voting(model: Model, request: Request) -> Reader:
    r"""Read the weighted mean of its regressors."""
    request = request_of_sum(model, request)
    readers = [_regressor(inner, request, model) for inner in model.estimators_]
    members = [Member(reader, np.array([[share]])) for reader, share in zip(readers, votes(model), strict=True)]
    return _sum(model, request, members)


def votes(model: Model) -> np.ndarray:
    """Return the shares of the models in a vote that were not dropped."""
    weights = [1.0] * len(model.estimators) if model.weights is None else model.weights
    kept = [weight for (_, inner), weight in zip(model.estimators, weights, strict=True) if inner != "drop"]
    return np.asarray(kept, float) / np.sum(kept)


def _stacking(model: Model, request: Request) -> Reader:
    """Read a linear model of predictions, and of the rows with ``passthrough``."""
    parts = _linear(model)
    coefficients, request = np.asarray(parts.coefficients[:, 0], float), request_of_sum(model, request)
    readers = [_regressor(inner, request, model) for inner in model.estimators_]
    members = [Member(reader, np.array([[c]])) for reader, c in zip(readers, coefficients, strict=False)]
    if model.passthrough:
        columns = tuple(range(n_columns_of(model)))
        members.append(Member(rows_themselves(model, coefficients[len(readers) :], request), np.eye(1), columns))
    return _sum(model, request, members, np.asarray(parts.intercept, float))


def _linear(model: Model) -> Any:
    """Return the parts of a stack's last step, or refuse it."""
    final = model.final_estimator_
    parts = linear_step(final)
    if parts is None or parts.method != "predict":
        raise UnsupportedStructureError(
            f"{type(model).__name__} can be read only where its last step is linear",
            f"Got {type(final).__name__}",
            "Sample with Explainer(model.predict, background)",
        )
    return parts


def rows_themselves(model: Model, coefficients: np.ndarray, request: Request) -> Reader:
    """Read the part of a stack that is linear in the rows."""
    from sklearn.linear_model import LinearRegression

    linear = LinearRegression()
    linear.coef_, linear.intercept_, linear.n_features_in_ = coefficients.T, 0.0, len(coefficients)
    return read_member(linear, request, type(model).__name__, range(len(coefficients)))


def _bagging(model: Model, request: Request) -> Reader:
    """Read the mean of regressors, each on its own columns."""
    request = request_of_sum(model, request)
    chosen = [tuple(int(c) for c in columns) for columns in model.estimators_features_]
    pairs = list(zip(model.estimators_, chosen, strict=True))
    readers = [_regressor(inner, replace(request, output="all"), model, columns) for inner, columns in pairs]
    names, single_model = readers[0].traits.output_names, readers[0].traits.single_output
    outputs, single = select_outputs(names, request.output, owner=type(model).__name__)
    share = np.eye(len(names))[:, outputs] / len(readers)
    members = [Member(reader, share, columns) for reader, columns in zip(readers, chosen, strict=True)]
    return _sum(model, request, members, outputs=outputs, single=single or single_model)


def request_of_sum(model: Model, request: Request) -> Request:
    """Give all models inside the same names and players."""
    names, n_columns, owner = fitted_names(model), n_columns_of(model), type(model).__name__
    background = request.background
    if background is not None:
        background = check_columns(background, names, n_columns, owner=owner, what="background")
    all_names = names_of(request, names, n_columns, owner)
    players, player_names = players_of(request, all_names)
    named = tuple(zip(player_names, players, strict=True))
    return replace(request, background=background, groups=None, players=named, feature_names=all_names)


def n_columns_of(model: Model) -> int:
    """Return the number of columns of the models inside; a column of texts has none."""
    return 1 if reads_texts(model) else int(model.n_features_in_)


def _regressor(inner: Model, request: Request, model: Model, columns: tuple[int, ...] | None = None) -> Reader:
    """Read one regressor with values that add up to its prediction."""
    owner = type(model).__name__
    reader = read_member(inner, request, owner, columns)
    if not is_of_target(reader.traits.unit):
        raise UnsupportedStructureError(
            f"{owner} adds up predictions, and those of {reader.traits.model_name} are exact only as {reader.traits.unit}",
            do="Sample with Explainer(model.predict, background)",
        )
    return reader


def _sum(
    model: Model,
    request: Request,
    members: list[Member],
    constant: np.ndarray | None = None,
    *,
    outputs: list[int] | None = None,
    single: bool = True,
) -> Reader:
    """Return the reader of a sum that predicts by ``model.predict``."""
    chosen = outputs or [0]
    names = members[0].reader.traits.output_names
    return SumReader(
        model,
        request,
        members,
        functools.partial(_predict, model, chosen, single),
        constant=np.zeros(len(chosen)) if constant is None else constant,
        output_names=tuple(names[k] for k in chosen),
        unit="target",
        fitted_names=fitted_names(model),
        n_columns=n_columns_of(model),
        single_output=single,
    )


def _predict(model: Model, chosen: list[int], single: bool, X: Table) -> np.ndarray:
    return outputs_of(chosen, single, np.asarray(model.predict(readable(model, X)), float))


_READERS: dict[str, Callable[[Any, Request], Reader]] = {
    "VotingRegressor": _voting,
    "StackingRegressor": _stacking,
    "BaggingRegressor": _bagging,
}
