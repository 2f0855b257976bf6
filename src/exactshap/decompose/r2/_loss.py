r"""Split skill scores of boosted trees under losses beyond the squared error.

The game of one tree is exact by a table of its coalitions, or solved for the parabola nearest to the loss:

.. math:: v_k(S) = \sum_i w_i\, \ell\bigl(y_i, F_{k-1}(x_i) + f_{k,S}(x_i)\bigr)

**Tables.** :math:`f_{k,S}` depends on the players of tree k only. If they are few, all their coalitions are visited.

**Parabolas.** :math:`f_{k,S}(x_i)` lies between the smallest and the largest leaf. The parabola through the loss at the three Chebyshev
points of that interval, of half width h, is off by at most :math:`\max |\ell'''|\, h^3 / 24` (Trefethen, Approximation Theory, chapter 4: the
node polynomial of three Chebyshev points is at most h^3 / 4), or as computed for a loss with a kink; a value of its game by at most twice
as much; and a parabola of :math:`f_{k,S}` is a squared error with the game of R2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from exactshap._runtime.slices import slices
from exactshap._runtime.types import Column, Model, TableLike
from exactshap.decompose.r2._games import EnsembleLayout, residual_rows, tree_decisions
from exactshap.decompose.r2._input import EPS, R2Problem, problem_of
from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError, did_you_mean
from exactshap.games import all_masks
from exactshap.readers import require_own_prediction
from exactshap.results.decomposition import Decomposition, check_residual, frame_kind
from exactshap.semivalues import find
from exactshap.solvers.core import set_values
from exactshap.trees import TreeModel, apply, convert

Pointwise = Callable[[np.ndarray, np.ndarray], np.ndarray]
Bound = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
TABLE_VALUES = 2**21  # values of a table of some rows and all coalitions
FLAT = 1e-10  # curvature of a parabola at least, relative to its slope over the interval
MAX_TABLE_PLAYERS = 10  # of one tree: 1024 coalitions of each row
METHODS = ("auto", "tables", "parabolas")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LossDecomposition(Decomposition):
    """Hold the shares of a skill score.

    Attributes
    ----------
    loss : str
    error_bound : float
        A-priori bound on the error of each share, in units of the score: 0.0 where every tree was solved by its table.
    """

    loss: str
    error_bound: float = 0.0


def decompose_loss(
    model: Model,
    X: TableLike,
    y: Column,
    *,
    loss: str = "auto",
    level: float | None = None,
    power: float | None = None,
    method: str = "auto",
    sample_weight: Column = None,
    groups: Mapping[str, Any] | None = None,
) -> LossDecomposition:
    r"""Split the skill score of boosted trees over their features.

    McFadden's R2, Brier skill, and the D2 of Poisson, gamma, Tweedie and pinball losses:

    .. math:: \phi_j = -\frac{1}{L_0 - L_{sat}} \sum_k \operatorname{Shapley}_j(v_k), \qquad
              v_k(S) = \sum_i w_i\, \ell\bigl(y_i, F_{k-1}(x_i) + f_{k,S}(x_i)\bigr)

    with :math:`F_{k-1}` the margin of the trees before tree k, :math:`f_{k,S}` its path-dependent expectation when only the features in S are
    known, and :math:`L_0`, :math:`L_{sat}` the losses of the best constant and of a perfect prediction. For the squared error this is the game
    of :func:`exactshap.decompose_r2` and of Q-SHAP.

    Parameters
    ----------
    model : fitted boosted trees
        With one margin: binary classifiers, regressions with a log link and (pinball) without a link, of scikit-learn, XGBoost,
        LightGBM, CatBoost.
    X : array or DataFrame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Labels of a classifier; counts or positive numbers.
    loss : {"auto", "log_loss", "brier", "poisson", "gamma", "tweedie", "pinball"}, default="auto"
        "auto": log_loss for log-odds; for the logarithm of the target gamma if the model was fitted with it, else poisson.
    level : float, default=None
        Quantile of "pinball". None is 0.5: half the absolute error, with the same score.
    power : float, default=None
        Power of the variance of "tweedie", in (1, 2). None is 1.5.
    method : {"auto", "tables", "parabolas"}, default="auto"
        "tables" visits all coalitions of the features of each tree, exactly; "parabolas" approximates each tree's loss by a parabola, with a
        bound; "auto": tables for trees of up to 10 features.
    sample_weight : array of shape (n_rows,), default=None
    groups : mapping of name to list of columns, default=None

    Returns
    -------
    shares : LossDecomposition
        ``values`` (n_features,) in units of the score; ``total``, the score of the model's predictions; ``drift = sum(values) - total``,
        as in :func:`exactshap.decompose_r2`; ``error_bound``.

    Raises
    ------
    UnsupportedModelError, UnsupportedStructureError
        Not boosted trees with one margin and a link; the message names the route.
    InputError
        y does not suit the loss, or does not vary.
    ExactnessError
        Our margins are not those of the model, or the shares do not add up.

    Notes
    -----
    A parabola at three Chebyshev points over the range of a tree's leaves, of half width h, is off by at most
    :math:`\max|\ell'''| h^3 / 24`, that of a pinball loss by at most h / 6, computed row by row, and by nothing where y is out of the range;
    a share by twice the sum of that over rows and trees. Cost O(n 2^m) for trees of m features by tables,
    O(n m^2) in the number m of half-leaves by parabolas.

    References
    ----------
    .. [1] Jiang, Z., Zhang, M. and Zhang, D. Fast calculation of feature contributions in boosting trees. Section 7 leaves other losses open.
    .. [2] McFadden, D. (1974). Conditional logit analysis of qualitative choice behavior. Frontiers in Econometrics, 105-142.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> X, y = make_classification(200, 4, n_informative=2, n_redundant=0, random_state=0)
    >>> shares = decompose_loss(GradientBoostingClassifier(n_estimators=20, max_depth=2).fit(X, y), X, y)
    >>> shares.statistic, shares.error_bound, bool(abs(shares.values.sum() - shares.total - shares.drift) < 1e-12)
    ('McFadden R2', 0.0, True)
    """
    if method not in METHODS:
        raise UnknownNameError(f"Unknown method {method!r}", do=did_you_mean(str(method), METHODS))
    problem, name, form = _prepare(model, X, y, loss, level, power, sample_weight, groups)
    shares, ends, error, margin = _solve(problem, form, method)
    response = form.response(margin)
    problem.check_prediction(response, 1.0 + np.abs(response))
    weights, target = problem.weights, problem.y
    constant = np.full_like(target, form.constant(target, weights))
    perfect = np.sum(weights * form.saturated(target))
    null = np.sum(weights * form.best(target, constant)) - perfect
    if not null > 0:
        raise InputError("`y` must vary", f"Got {target[0]:.6g} in all rows of positive weight")
    total = 1.0 - (np.sum(weights * form.value(target, margin)) - perfect) / null
    values, expected = -shares / null, -(ends[1] - ends[0]) / null
    residual = float(values.sum() - expected)
    magnitude = np.sum(weights * (np.abs(form.value(target, margin)) + np.abs(margin))) + null
    tolerance = 64.0 * EPS * (problem.ensemble.trees.n_trees + 16.0) * magnitude / null + 2.0 * error / null
    check_residual(form.statistic, residual, tolerance, "what their game says of their sum")
    return LossDecomposition(
        statistic=form.statistic,
        values=values,
        total=total,
        feature_names=problem.player_names,
        drift=float(values.sum() - total),
        loss=name,
        error_bound=float(2.0 * error / null),
        residual=residual,
        tolerance=tolerance,
        details={"game": "residual", "value_function": "path_dependent", "method": method, "model": problem.ensemble.name},
        backend=frame_kind(problem.table.native),
    )


def _prepare(
    model: Model,
    X: TableLike,
    y: Column,
    loss: str,
    level: float | None,
    power: float | None,
    sample_weight: Column,
    groups: Mapping[str, Any] | None,
) -> tuple[R2Problem, str, Loss]:
    """Check everything that the caller passed. Also return the loss and its name."""
    require_own_prediction(model)
    ensemble = convert(model)
    ensemble = ensemble.pick("auto") if ensemble.trees.n_trees else ensemble
    name = _loss_of(ensemble, loss)
    form = loss_form(name, level, power)
    problem = problem_of(model, ensemble, X, y, sample_weight, groups, "a loss")
    bad = np.flatnonzero(~form.valid(problem.y))
    if bad.size:
        text = f"`y` must be {form.needs} for loss={name!r}"
        raise InputError(text, f"Got {problem.y[bad[0]]:.6g} at row {bad[0]}")
    return problem, name, form


def _loss_of(ensemble: TreeModel, loss: str) -> str:
    """Return the name of the loss, or refuse models without a margin for it."""
    links = {"log-odds": ("log_loss", "brier"), "log of the target": ("poisson", "gamma", "tweedie")}
    known = ("pinball",) if ensemble.unit == "target" and loss != "auto" else links.get(ensemble.unit, ())
    if not known or not ensemble.boosted or not ensemble.single_output or ensemble.trees.n_trees == 0:
        kind = "no trees" if ensemble.trees.n_trees == 0 else f"{len(ensemble.output_names)} outputs in {ensemble.unit}"
        text = f"{ensemble.name} is no sum of boosted trees with one margin and a link"
        do = "Use decompose_r2 for squared errors and Brier scores of forests, loss='pinball' for quantiles; fit one model for each class"
        raise UnsupportedStructureError(text, f"It has {kind}", do)
    if loss == "auto":
        return "gamma" if "gamma" in ensemble.objective.lower() else known[0]
    names = (*LOSSES, "tweedie", "pinball")
    if loss not in names:
        raise UnknownNameError(f"Unknown loss {loss!r}", do=did_you_mean(str(loss), ("auto", *names)))
    if loss not in known:
        do = f"Use loss={' or '.join(map(repr, known))}"
        raise InputError(f"loss={loss!r} does not suit trees that add up to {ensemble.unit}", do=do)
    return loss


def _solve(problem: R2Problem, form: Loss, method: str) -> tuple[np.ndarray, tuple[float, float], float, np.ndarray]:
    """Return values (n_players,), losses with no and all players, a bound on the error of v(S), and margins (n_rows,)."""
    layout, weights, y = problem.layout, problem.weights, problem.y
    trees = problem.ensemble.trees
    met, leaves = np.full(len(y), float(trees.constant[0])), apply(trees, problem.numbers)
    shares, ends, error = np.zeros(len(problem.players)), np.zeros(2), 0.0
    for k in range(trees.n_trees):
        game = TreeGame(layout, k)
        empty, full = layout.arrays.empty[k], trees.value[leaves[:, k], 0]
        # Shares of a tree must add up to its loss with all players less that with none.
        ends += [np.sum(weights * form.value(y, met + f)) for f in (empty, full)]
        if method == "tables" or (method == "auto" and len(game.players) <= MAX_TABLE_PLAYERS):
            rows = table_rows(game, form, y, met)
            shares[game.players] += weights @ rows
        else:
            rows, off = parabola_rows(game, form, y, met)
            shares += weights @ rows
            error += float(weights @ off)
        met += full
    return shares, (float(ends[0]), float(ends[1])), error, met


class TreeGame:
    """Evaluate one tree on some rows and all coalitions of its players."""

    def __init__(self, layout: EnsembleLayout, tree: int) -> None:
        trees, arrays = layout.trees, layout.arrays
        self.nodes = slice(int(trees.tree_start[tree]), int(trees.tree_start[tree + 1]))
        self.trees, self.tree, self.layout, self.shares = trees, tree, layout, arrays.share[self.nodes]
        is_leaf = trees.feature[self.nodes] < 0
        self.player_of_node = arrays.player_of_node[self.nodes]
        self.players = np.unique(self.player_of_node[~is_leaf])
        leaves = arrays.value[self.nodes][is_leaf]
        self.low, self.high = float(leaves.min()), float(leaves.max())

    def values(self, went_left: np.ndarray) -> np.ndarray:
        """Return f_S (n_rows, 2^n_players) from decisions (n_rows, n_nodes of the tree)."""
        inside = all_masks(len(self.players)).T  # (n_players, 2^n_players)
        return self._below(0, went_left, inside)

    def _below(self, node: int, went_left: np.ndarray, inside: np.ndarray) -> np.ndarray:
        start, trees = self.nodes.start, self.trees
        if trees.feature[start + node] < 0:
            # Of shape (1, 1): a leaf is the same for all rows and coalitions, and broadcasting spreads it only where it must.
            return np.full((1, 1), trees.value[start + node, 0])
        left, right = (int(child[start + node]) - start for child in (trees.left, trees.right))
        below = [self._below(child, went_left, inside) for child in (left, right)]
        averaged = self.shares[left] * below[0] + self.shares[right] * below[1]
        followed = np.where(went_left[:, node, None], *below)
        known = inside[np.searchsorted(self.players, self.player_of_node[node])]
        return np.where(known[None], followed, averaged)


def table_rows(game: TreeGame, loss: Loss, y: np.ndarray, met: np.ndarray) -> np.ndarray:
    """Return each row's shares (n_rows, n_players of the tree) of the loss."""
    n, semivalue = len(game.players), find("shapley")
    shares, decided = np.zeros((len(y), n)), tree_decisions(game.layout, game.tree)
    # 2^n coalitions of each row: fewer rows at a time for trees of more players.
    for rows in slices(len(y), TABLE_VALUES >> n):
        f = np.broadcast_to(game.values(decided[rows]), (rows.stop - rows.start, 2**n))
        table = loss.value(y[rows, None], met[rows, None] + f)[:, :, None]
        for j in range(n):
            shares[rows, j] = set_values(table, (j,), semivalue, 1, n)[:, 0]
    return shares


def parabola_rows(game: TreeGame, loss: Loss, y: np.ndarray, met: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's shares of the parabola, and the error (n_rows,) of its game."""
    middle, half = (game.high + game.low) / 2.0, (game.high - game.low) / 2.0
    # The players of a constant tree do not change the loss.
    if half == 0.0:
        return np.zeros((len(y), game.layout.n_players)), np.zeros(len(y))
    points = half * np.cos(np.pi * np.array([1.0, 3.0, 5.0]) / 6.0)
    at = loss.value(y[:, None], met[:, None] + middle + points)
    slope = (at[:, 0] - at[:, 2]) / (points[0] - points[2])
    curvature = (at[:, 0] - 2.0 * at[:, 1] + at[:, 2]) / (2.0 * points[0] ** 2)
    # Where the loss is nearly straight, slope over curvature overflows: a slight bend is added, and counted in ``off``.
    flattest = FLAT * np.abs(slope) / half + np.finfo(float).tiny
    weight = np.where(np.abs(curvature) < flattest, flattest, curvature)  # a residual is slope over curvature
    shares = residual_rows(game.layout, middle - slope / (2.0 * weight), weight, False, chosen=(game.tree, game.tree + 1))
    off = loss.missed(y, met + game.low, met + game.high) + np.abs(weight - curvature) * half**2
    return shares, off


@dataclass(frozen=True)
class Loss:
    r"""Define a loss l(y, m) of a target and a margin."""

    statistic: str  # name of :math:`1 - (L - L_{sat}) / (L_0 - L_{sat})`
    value: Pointwise  # l(y, m), of broadcast arrays
    response: Callable[[np.ndarray], np.ndarray]  # the prediction that a margin stands for
    best: Pointwise  # loss (n_rows,) of the best constant prediction, which is ``constant(y, weights)``
    saturated: Callable[[np.ndarray], np.ndarray]  # loss of a perfect prediction
    # ``missed(y, low, high)``, how far the parabola through the three Chebyshev points of [low, high] can be off l within
    missed: Bound
    valid: Callable[[np.ndarray], np.ndarray]  # whether each y is one that the loss knows
    needs: str  # what y must be, for messages
    # the best constant prediction for weighted rows: the mean but for quantiles
    constant: Callable[[np.ndarray, np.ndarray], float] = lambda y, weights: float(np.average(y, weights=weights))


def _brier_third() -> float:
    r"""Return the largest \|d^3 (y - s)^2 / dm^3\| for y in {0, 1} and s = expit(m), from the extrema of a polynomial in s.

    For y = 0 it is :math:`8 s^2 - 38 s^3 + 54 s^4 - 24 s^5` by s' = s (1 - s); y = 1 is its mirror image.
    """
    polynomial = np.polynomial.Polynomial([0.0, 0.0, 8.0, -38.0, 54.0, -24.0])
    extrema = polynomial.deriv().roots()
    inside = np.real(extrema[(np.abs(np.imag(extrema)) < 1e-9) & (np.real(extrema) >= 0) & (np.real(extrema) <= 1)])
    return float(np.abs(polynomial(inside)).max()) * (1.0 + 1e-9)


_BRIER_THIRD = _brier_third()


# The largest derivative of s (1 - s), where s = 1/2 +- 1 / sqrt(12).
_LOGISTIC_THIRD = 1.0 / (6.0 * np.sqrt(3.0))


def _log_of_mean(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return -xlogy(y, mean) - xlogy(1.0 - y, 1.0 - mean)


def _smooth(third: Bound) -> Bound:
    """Return the bound max |l_3| h^3 / 24 from ``third(y, low, high)``, a bound on the third derivative in the margin."""
    return lambda y, low, high: third(y, low, high) * ((high - low) / 2.0) ** 3 / 24.0


def _kinked(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    r"""Bound the parabola's error for a function with a kink at y.

    Up to a straight line it is :math:`h\, (x - t)_+` for x in [-1, 1]. The difference to the parabola p is a parabola on both sides of t, and
    largest at -1, t, 1 or where p' = 0 (left of t) or p' = 1 (right of it). The error is 0 where the kink is outside.
    """
    half = (high - low) / 2.0
    t = np.clip((y - (high + low) / 2.0) / half, -1.0, 1.0)
    c = np.sqrt(0.75)
    left, middle, right = (np.maximum(x - t, 0.0) for x in (-c, 0.0, c))
    slope, curvature = (right - left) / (2.0 * c), (right - 2.0 * middle + left) / (2.0 * c**2)
    bent = np.where(curvature > 0.0, curvature, 1.0)
    flat, steep = np.clip(-slope / (2.0 * bent), -1.0, t), np.clip((1.0 - slope) / (2.0 * bent), t, 1.0)
    error = lambda x: np.abs(np.maximum(x - t, 0.0) - middle - slope * x - curvature * x**2)  # noqa: E731
    return half * np.max([error(x) for x in (-1.0, t, 1.0, flat, steep)], axis=0)


def _pinball(level: float) -> Loss:
    def value(y: np.ndarray, m: np.ndarray) -> np.ndarray:
        return np.maximum(level * (y - m), (level - 1.0) * (y - m))

    def quantile(y: np.ndarray, weights: np.ndarray) -> float:
        order = np.argsort(y, kind="stable")
        cumulated = np.cumsum(weights[order])
        # The weighted quantile minimises the pinball loss among constants.
        return float(y[order][np.searchsorted(cumulated, level * cumulated[-1])])

    anything = lambda y: np.ones(len(y), bool)  # noqa: E731
    name = f"pinball D2 at {level:g}"
    return Loss(name, value, lambda m: m, value, np.zeros_like, _kinked, anything, "a number", quantile)


def _tweedie(power: float) -> Loss:
    a, b = power - 1.0, 2.0 - power

    def value(y: np.ndarray, m: np.ndarray) -> np.ndarray:
        return y * np.exp(-a * m) / a + np.exp(b * m) / b

    def third(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        # The larger of two terms, which have opposite signs.
        return np.maximum(y * a**2 * np.exp(-a * low), b**2 * np.exp(b * high))

    return Loss(
        f"Tweedie D2 of power {power:g}",
        value,
        np.exp,
        lambda y, mean: y * mean**-a / a + mean**b / b,
        lambda y: y**b * (1.0 / a + 1.0 / b),
        _smooth(third),
        lambda y: y >= 0,
        "0 or more",
    )


def loss_form(name: str, level: float | None, power: float | None) -> Loss:
    """Return a loss by name. Only quantiles take ``level``, only Tweedie's deviance takes ``power``."""
    for given, word, owner in ((level, "level", "pinball"), (power, "power", "tweedie")):
        if given is not None and name != owner:
            raise InputError(f"`{word}` belongs to loss={owner!r}", f"Got {word}={given!r} with loss={name!r}")
    if name == "pinball":
        return _pinball(_between(0.0, 0.5 if level is None else level, 1.0, "level"))
    if name == "tweedie":
        return _tweedie(_between(1.0, 1.5 if power is None else power, 2.0, "power"))
    return LOSSES[name]


def _between(least: float, value: float, most: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not least < value < most:
        raise InputError(f"`{name}` must be a number in ({least:g}, {most:g})", f"Got {value!r}")
    return float(value)


LOSSES = {
    "log_loss": Loss(
        "McFadden R2",
        lambda y, m: np.logaddexp(0.0, m) - y * m,
        expit,
        _log_of_mean,
        lambda y: np.zeros_like(y),
        _smooth(lambda y, low, high: np.full_like(low, _LOGISTIC_THIRD)),
        lambda y: (y == 0) | (y == 1),
        "0 or 1",
    ),
    "brier": Loss(
        "Brier skill score",
        lambda y, m: (y - expit(m)) ** 2,
        expit,
        lambda y, mean: (y - mean) ** 2,
        lambda y: np.zeros_like(y),
        _smooth(lambda y, low, high: np.full_like(low, _BRIER_THIRD)),
        lambda y: (y == 0) | (y == 1),
        "0 or 1",
    ),
    "poisson": Loss(
        "Poisson D2",
        lambda y, m: np.exp(m) - y * m,
        np.exp,
        lambda y, mean: mean - xlogy(y, mean),
        lambda y: y - xlogy(y, y),
        _smooth(lambda y, low, high: np.exp(high)),
        lambda y: y >= 0,
        "0 or more",
    ),
    "gamma": Loss(
        "gamma D2",
        lambda y, m: y * np.exp(-m) + m,
        np.exp,
        lambda y, mean: y / mean + np.log(mean),
        lambda y: 1.0 + np.log(y),
        _smooth(lambda y, low, high: y * np.exp(-low)),
        lambda y: y > 0,
        "positive",
    ),
}
