"""Provide checks for authors of games and readers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.errors import ExactshapError
from exactshap.frames import as_table
from exactshap.games import Game, all_masks
from exactshap.semivalues import available
from exactshap.solvers import solve

__all__ = ["check_game", "check_reader"]


def check_game(game: Game, *, orders: tuple[int, ...] = (1, 2), tolerance: float = 1e-9) -> None:
    """Compare the automatic solver with enumeration, for every index, set by set.

    Parameters
    ----------
    game : Game
        With at most 14 players.
    orders : tuple of int, default=(1, 2)
    tolerance : float, default=1e-9
        Relative to the largest ``|v(S)|``.

    Raises
    ------
    AssertionError
        If values differ; the message names the index and the order.

    Examples
    --------
    >>> from exactshap.games import ProductGame
    >>> check_game(ProductGame(c=[1.0, -2.0], a=[[2.0, 3.0], [0.0, 1.0]]))
    """
    assert game.n_players <= 14, "check_game enumerates 2^d coalitions; pass a game of at most 14 players"
    values = np.asarray(game.value(all_masks(game.n_players)))
    limit = tolerance * max(1.0, float(np.abs(values).max(initial=0.0)))
    for name in available():
        for order in (k for k in orders if k <= game.n_players):
            fast, slow = solve(game, name, order), solve(game, name, order, method="enumeration")
            assert fast.sets == slow.sets, f"{name} of order {order}: different sets"
            assert fast.values.shape == slow.values.shape, f"{name}: shape {fast.values.shape} against {slow.values.shape}"
            difference = np.abs(fast.values - slow.values)
            assert difference.max(initial=0.0) <= limit, f"{name} of order {order} is off by {difference.max():.3g}"


def check_reader(
    model: Model,
    X: TableLike,
    background: TableLike = None,
    *,
    n_masks: int = 6,
    indices: tuple[str, ...] = ("shapley", "banzhaf"),
    **settings: Any,
) -> None:
    """Check a reader against the model itself, on awkward models, too.

    Checked: v(D) is the model's own prediction; v(empty) is its mean over the background; v(S) on random coalitions is the
    prediction of hand-masked rows; values agree with enumeration of the game, one by one (for at most 10 players); residuals
    are within tolerance; one row gives the bits of the batch, and so do rows that lie column by column; the reader pickles; its
    cost can be forecast; the cells of X are not changed; settings and outputs that the reader does not know are refused.

    Parameters
    ----------
    model : object
        A fitted model with a reader.
    X : array or DataFrame of shape (n_rows, n_features)
        A few rows.
    background : array or DataFrame, default=None
    n_masks : int, default=6
        Random coalitions compared with the model on rows masked by hand.
    indices : tuple of str
        Compared with enumeration, at orders 1 and 2.
    **settings
        Of :class:`exactshap.Explainer`.

    Raises
    ------
    AssertionError
        If a check fails; the message says which and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> check_reader(SVR().fit(X, X[:, 0] * X[:, 1]), X[:2], X[5:9])
    """
    from exactshap.explainer import Explainer
    from exactshap.results.explanation import fingerprint

    before = fingerprint(as_table(X).native)
    explainer = Explainer(model, background, **settings)
    explanation = explainer(X)
    assert explanation.certificate().passed, explanation.certificate()
    verification = explainer.verify(X, n_masks=n_masks)
    assert verification.passed, str(verification)
    reader, table = explainer.reader, as_table(X)
    game = reader.game(table)
    prediction = np.asarray(reader.predict(table))
    allowed = np.max(explanation.tolerance) + 1e-12 * np.abs(prediction).max(initial=0.0)
    ends = np.zeros((2, reader.traits.n_players), bool)
    ends[1] = True
    values = game.value(ends)
    assert np.abs(values[:, 1] - prediction).max() <= allowed, "v(D) is not the model's prediction"
    assert np.abs(values[:, 0] - explanation.baseline).max() <= allowed, "v(empty) is not the reported baseline"
    if reader.traits.value_function in ("interventional", "baseline"):
        assert reader.traits.background is not None
        mean = np.average(np.asarray(reader.predict(reader.traits.background)), axis=0, weights=reader.traits.weights)
        assert np.abs(explanation.baseline - mean).max() <= allowed, "v(empty) is not the mean prediction over the background"
    if reader.traits.n_players <= 10:
        _check_values(explainer, game, X, indices, float(allowed))
    _check_rows(explainer, X, explanation.values)
    clone = pickle.loads(pickle.dumps(explainer))
    by_column = np.asfortranarray(X) if isinstance(X, np.ndarray) else X
    np.testing.assert_array_equal(clone(by_column).values, explanation.values)
    assert clone.plan(by_column).block_rows > 0
    assert fingerprint(as_table(X).native) == before, "X was changed"
    for unknown in ({"no_such_setting": 1}, {"output": "no such output"}):
        assert _is_refused(model, background, settings | unknown), f"{unknown} is ignored"


def _is_refused(model: Model, background: TableLike, settings: dict[str, Any]) -> bool:
    from exactshap.explainer import Explainer

    try:
        Explainer(model, background, **settings)
    except ExactshapError:
        return True
    return False


def _check_values(explainer: Model, game: Game, X: TableLike, indices: tuple[str, ...], allowed: float) -> None:
    for index in indices:
        for order in (1, 2) if explainer.reader.traits.n_players > 1 else (1,):
            fast = explainer(X, index, order)
            slow = solve(game, index, order, method="enumeration")
            values = fast.values if order == 1 else fast.set_values
            difference = np.abs(values - slow.values).max(initial=0.0)
            assert difference <= 2**order * allowed, (
                f"{index} of order {order} is off by {difference:.3g} (allowed {allowed:.3g})"
            )


def _check_rows(explainer: Model, X: TableLike, values: np.ndarray) -> None:
    table = as_table(X)
    for i in (0, table.n_rows - 1):
        single = explainer(table.take(slice(i, i + 1)).native).values[0]
        np.testing.assert_array_equal(single, values[i], err_msg=f"row {i} alone differs from row {i} in the batch")
