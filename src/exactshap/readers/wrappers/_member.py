"""The models of a sum: how each of them is read, what it adds, and how the sum's own prediction asks it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap.errors import ExactshapError, UnsupportedStructureError
from exactshap.frames import Table, as_table
from exactshap.readers import OwnPrediction, Reader, Request, Stages, fitted_names, predicted_in_stages
from exactshap.readers import read as read_any
from exactshap.readers.wrappers._linear import linear_step
from exactshap.readers.wrappers._live_players import read_live

__all__ = ["Member", "name_of_sum", "prediction_of_sum", "read_member", "total_of"]

TRIED = 64  # rows on which an ensemble's own prediction is held against its regressors', added up
_THROUGH = ("_predict", "_weights_not_none", "transform", "_transform", "_concatenate_predictions")  # of predictions


@dataclass(frozen=True, eq=False)
class Member:
    """One model of a sum.

    Attributes
    ----------
    reader : Reader
    weights : array of shape (n_member_outputs, n_outputs)
        What each of its outputs adds to those of the sum.
    columns : tuple of int or None
        The columns that it was fitted on, as an array; None: it takes the rows as they come.
    """

    reader: Reader
    weights: np.ndarray
    columns: tuple[int, ...] | None = None

    def rows(self, X: Table) -> Table:
        """Return the rows as the member takes them."""
        return X if self.columns is None else _array(X, self.columns)

    def add_to(self, total: np.ndarray, values: np.ndarray) -> None:
        """Add to ``total (..., n_outputs)`` what the member's ``values (..., [n_member_outputs])`` give to the sum."""
        for target, source, weight in self._shares:
            given = values if self.reader.single_output else values[source]
            total[target] += given if weight == 1.0 else weight * given

    @functools.cached_property
    def _shares(self) -> tuple[tuple[Any, Any, float], ...]:
        """Return outputs of the sum, outputs of the member, and the weight between them, where that is not 0."""
        weights = self.weights
        if len(weights) > 1 and np.array_equal(weights, weights[0, 0] * np.eye(len(weights))):
            return ((..., ..., float(weights[0, 0])),)  # all outputs at once
        return tuple(((..., k), (..., i), float(weights[i, k])) for i, k in np.argwhere(weights))

    @property
    def magnitude(self) -> float:
        """The largest factor between an error of the member's outputs and one of the sum's."""
        return float(np.abs(self.weights).sum(axis=0).max(initial=0.0))


def total_of(members: Sequence[Member], arrays: Iterable[np.ndarray], constant: np.ndarray | None = None) -> np.ndarray:
    r"""Return the weighted sum (..., n_outputs) of what members give, one array (..., [n_member_outputs]) of each.

    .. math:: c + \sum_m a_m W_m
    """
    total: np.ndarray | None = None
    for member, array in zip(members, arrays, strict=True):
        if total is None:
            shape = array.shape if member.reader.single_output else array.shape[:-1]
            total = np.full((*shape, member.weights.shape[1]), 0.0)
        member.add_to(total, array)
    assert total is not None
    if constant is not None:
        total += constant
    return total


def name_of_sum(model: Any, readers: Iterable[Reader]) -> str:
    """Return what a sum is called: its class, with the kinds of its models."""
    return f"{type(model).__name__}({', '.join(dict.fromkeys(reader.model_name for reader in readers))})"


def read_member(model: Any, request: Request, owner: str, columns: Sequence[int] | None = None) -> Reader:
    """Read one model of a sum for the sum's players; ``columns``: those that it was fitted on, as an array.

    A model that cannot be read is refused with the sum's own prediction as the way out.
    """
    if columns is not None:
        request = _of_columns(request, tuple(columns))
    try:
        return read_live(functools.partial(read_any, model), request) if request.players else read_any(model, request)
    except UnsupportedStructureError as error:
        raise UnsupportedStructureError(_of_member(owner, error)) from error
    except ExactshapError as error:
        raise type(error)(_of_member(owner, error)) from error


def _of_member(owner: str, error: Exception) -> str:
    return f"{owner} is read as the sum of its models, and one of them is refused: {error}"


def _of_columns(request: Request, columns: tuple[int, ...]) -> Request:
    """Return the request of a model that was fitted on some columns, which may be repeated; players keep their number."""
    assert request.players is not None
    assert request.feature_names is not None
    players = tuple(
        (name, tuple(place for place, column in enumerate(columns) if column in members)) for name, members in request.players
    )
    background = None if request.background is None else _array(request.background, columns)
    repeated = len(set(columns)) < len(columns)
    names = tuple(request.feature_names[c] + (f" [{place}]" if repeated else "") for place, c in enumerate(columns))
    return replace(request, background=background, players=players, feature_names=names)


def _array(X: Table, columns: tuple[int, ...]) -> Table:
    values = X.numeric() if X.is_frame else np.asarray(X.native)
    if columns != tuple(range(X.n_columns)):
        values = values[:, list(columns)]
    return Table(np.ascontiguousarray(values), None, X.n_rows, len(columns))


# -- the model's own prediction ------------------------------------------------------------------------------------------


def prediction_of_sum(model: Any, request: Request, readers: list[Reader]) -> OwnPrediction:
    """Return the model's own prediction: by those of its regressors where these take as long as solving, or can be cut."""
    readers = readers[: len(model.estimators_)]
    pays = any(reader.predicts_in_pieces for reader in readers) or all(reader.rows_are_cheap for reader in readers)
    inside = _Inside(model, readers) if pays and all(reader.asks() is None for reader in readers) else None
    return OwnPrediction(
        model,
        "predict",
        _documented,
        inside,
        trial=functools.partial(_trial, request.background, int(model.n_features_in_)),
        through=_THROUGH,
        cells=functools.partial(_as_table, model),
        most=np.inf,
    )


def _documented(model: Any, rows: Any) -> Any:
    return model.predict(rows)


class _Inside:
    """What an ensemble predicts, when its regressors' readers have asked these in their quicker ways.

    The ensemble's own code adds that up: the code of a twin whose regressors have been asked before.
    """

    def __init__(self, model: Any, readers: list[Reader]) -> None:
        self.estimators, self.readers = tuple(model.estimators_), tuple(readers)
        kinds = {type(estimator) for estimator in self.estimators}
        pairs = zip(self.estimators, readers, strict=True)
        # threads would wait for one that takes longer than the others
        self.is_even = len(kinds) == 1 or all(r.predicts_in_pieces or linear_step(e) is not None for e, r in pairs)

    def __call__(self, model: Any, rows: Any) -> Any:
        X = as_table(rows)
        if not self._are_inside(model):
            return None
        rows = _Rows(model, X)
        return self._added_up(model, X, [reader.predict_again(rows(k, X)) for k, reader in enumerate(self.readers)])

    def stages(self, model: Any, X: Table) -> Stages | None:
        """Return the same in parts that threads may share."""
        if not self.is_even or not self._are_inside(model):
            return None
        return predicted_in_stages(self.readers, _Rows(model, X), X, functools.partial(self._added_up, model, X))

    def _are_inside(self, model: Any) -> bool:
        """Say whether these are still the model's regressors, which it asks itself, one by one."""
        now = model.estimators_
        same = len(now) == len(self.estimators) and all(a is b for a, b in zip(now, self.estimators, strict=True))
        return same and (not _is_bag(model) or (model.n_jobs in (None, 1) and not model.verbose))

    def _added_up(self, model: Any, X: Table, predictions: list[np.ndarray]) -> Any:
        twin = object.__new__(type(model))
        twin.__dict__.update(model.__dict__)
        twin.__dict__["estimators_"] = [_Asked(*pair) for pair in zip(self.estimators, predictions, strict=True)]
        if _is_bag(model):
            twin.__dict__["estimators_features_"] = [slice(0, 0)] * len(predictions)  # no column is copied once more
        return twin.predict(X.native)


class _Asked:
    """A regressor that was asked about the rows already."""

    def __init__(self, estimator: Any, prediction: np.ndarray) -> None:
        self._estimator, self._prediction = estimator, prediction

    def predict(self, rows: Any) -> np.ndarray:
        return self._prediction

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._estimator, name)


def _is_bag(model: Any) -> bool:
    return hasattr(model, "estimators_features_")


class _Rows:
    """Rows as a model hands them to one of its regressors: their layout decides the bits of a product."""

    def __init__(self, model: Any, X: Table) -> None:
        self.features = model.estimators_features_ if _is_bag(model) else None
        self.X = X
        self.last: tuple[bytes, Table] | None = None  # all of the rows, for the next regressor if it has the same columns

    def __call__(self, k: int, some: Table) -> Table:
        if self.features is None:
            return some
        chosen, last = np.asarray(self.features[k]), self.last  # once: threads take turns in setting it
        if some is self.X and last is not None and last[0] == chosen.tobytes():
            return last[1]
        rows = np.asarray(some.native)[:, chosen]
        table = Table(rows, None, *rows.shape)
        if some is self.X:
            self.last = chosen.tobytes(), table
        return table


def _as_table(model: Any, X: Table) -> Table | None:
    """Return rows that the model takes as numbers, none of them rounded anew, and has nothing to say of; None of others."""
    if X.names != fitted_names(model) or X.n_columns != int(model.n_features_in_):
        return None
    if not X.is_frame:
        return X if X.native.dtype == np.float64 else None
    is_array = X.has_one_dtype and X.dtypes[0] == np.float64
    return X if is_array or (X.is_plain and not _is_bag(model)) else None


def _trial(background: Table | None, n_columns: int) -> np.ndarray:
    """Return rows near the background."""
    generator = np.random.default_rng(0)
    noise = generator.normal(size=(TRIED, n_columns))
    if background is None:
        return noise
    rows = background.numeric()
    return rows[generator.integers(len(rows), size=TRIED)] * (1.0 + 0.1 * noise)  # type: ignore[no-any-return]
