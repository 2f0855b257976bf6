"""Check requests for R2, and hold what parts add up to."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._runtime.process_settings import without_lost_threads
from exactshap._runtime.types import Column, Model, TableLike
from exactshap.decompose.r2._games import EnsembleLayout, lay_out
from exactshap.errors import (
    BudgetError,
    ExactnessError,
    ExplanationWarning,
    InputError,
    UnsupportedModelError,
    UnsupportedStructureError,
    message,
    warn,
)
from exactshap.frames import Table, as_table, check_columns, warn_of_other_order
from exactshap.games import player_of_columns
from exactshap.readers import Columns, Request, known_class, require_own_prediction
from exactshap.results.decomposition import Decomposition, check_residual
from exactshap.trees import FlatTrees, TreeModel, convert, margin
from exactshap.trees.ensemble import encode, largest_sum, readable

EPS = float(np.finfo(np.float64).eps)
# Seconds of one core: above a minute a warning, above a day an error.
WARN_SECONDS, REFUSE_SECONDS = 60.0, 86_400.0
TREE_MODULES = (
    "sklearn.tree",
    "sklearn.ensemble._forest",
    "sklearn.ensemble._gb",
    "sklearn.ensemble._iforest",
    "sklearn.ensemble._hist_gradient_boosting",
    "xgboost",
    "lightgbm",
    "catboost",
)
_CATBOOST = {"log-odds": "Probability", "log of the target": "Exponent"}  # predictions on the scale of y


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class R2Decomposition(Decomposition):
    """Hold the shares of R2 (or of the Brier skill score).

    Attributes
    ----------
    game : str
        ``"residual"``: tree by tree, each against the residual of the trees before it (Q-SHAP); ``"ensemble"``: the squared
        error of the whole model; ``"refit"``: of a regression fitted to each subset of columns.
    value_function : str
        ``"path_dependent"``: features out of a coalition are averaged over the cover of the trees; ``"refit"``: they are left out of
        the fit; else as in :func:`exactshap.explain`.
    """

    game: str
    value_function: str = "path_dependent"


@dataclass(frozen=True, eq=False, kw_only=True)
class R2Sums:
    """Hold sums over rows, in the squared unit of y."""

    facts: Mapping[str, Any]  # what is known of the model: parts of different models do not add up
    statistic: str
    feature_names: tuple[str, ...]
    game: str
    shares: np.ndarray  # (n_players,): Shapley(Q)
    expected: float  # what the shares must add up to, with the sign of R2
    rounding: float  # bound on the rounding error of that sum
    squared_error: float  # of the model's predictions
    weight: float  # sum of the weights
    mean: float  # weighted mean of y
    variation: float  # weighted sum of (y - mean)^2
    n_rows: int
    seconds: float | None = None  # forecast of the work
    value_function: str = "path_dependent"

    def __add__(self, other: R2Sums) -> R2Sums:
        if (dict(self.facts), self.feature_names, self.game) != (dict(other.facts), other.feature_names, other.game):
            got = f"Got {self.game!r} of {self.facts['model']} and {other.game!r} of {other.facts['model']}"
            raise InputError("Parts of R2 must be of one model, its columns and one game", got)
        weight, between = self.weight + other.weight, other.mean - self.mean
        added = ("shares", "expected", "rounding", "squared_error", "n_rows", "seconds")
        return replace(
            self,
            weight=weight,
            mean=self.mean + between * other.weight / weight,
            # the variation of two parts: within both, and between their means
            variation=self.variation + other.variation + between**2 * self.weight * other.weight / weight,
            **{name: getattr(self, name) + getattr(other, name) for name in added},
        )

    def result(self, rows: np.ndarray | None, backend: str | None) -> R2Decomposition:
        """Return the shares after checking their sum against the game."""
        sst = self.variation
        total, values = 1.0 - self.squared_error / sst, -self.shares / sst
        residual, tolerance = float(values.sum()) - self.expected / sst, self.rounding / sst
        check_residual("R2", residual, tolerance, "what their game says of their sum")
        return R2Decomposition(
            statistic=self.statistic,
            values=values,
            total=total,
            feature_names=self.feature_names,
            drift=float(values.sum()) - total,
            per_row=None if rows is None else -rows / sst,
            details={**self.facts, "n_rows": self.n_rows}
            | ({} if self.seconds is None else {"forecast_seconds": self.seconds}),
            backend=backend,
            game=self.game,
            value_function=self.value_function,
            residual=residual,
            tolerance=tolerance,
        )


def require_variation(variation: float, mean: float, weight: float) -> None:
    """Refuse a constant y: its sum of squares about the mean is rounding."""
    if not np.isfinite(variation):
        raise InputError(
            "The squares of `y` overflow, so that R2 is not defined", f"The mean is {mean:.6g}", "Use a larger unit"
        )
    if not variation > np.square(8.0 * EPS * mean) * weight:
        raise InputError("`y` does not vary, so that R2 is not defined", f"All weighted values are {mean:.6g}")


def check_seconds(seconds: float, what: str, do: str) -> None:
    """Warn above a minute and refuse above a day; ``what`` names the work."""
    if seconds > REFUSE_SECONDS:
        raise BudgetError(what, "More than a day", do)
    if seconds > WARN_SECONDS:
        warn(message(what, do=do), ExplanationWarning)


@dataclass(frozen=True, eq=False)
class Target:
    """Hold what is to be predicted, with the weights of the rows."""

    y: np.ndarray  # float64 (n_rows,), as the weights
    weights: np.ndarray

    @functools.cached_property
    def weight(self) -> float:
        """Return the sum of the weights."""
        return float(np.sum(self.weights))

    @functools.cached_property
    def mean(self) -> float:
        """Return the weighted mean of y."""
        return float(np.sum(self.weights * self.y)) / self.weight

    @functools.cached_property
    def sst(self) -> float:
        """Return the weighted sum of (y - mean)^2."""
        return self.squared_error(self.mean)

    def squared_error(self, prediction: np.ndarray | float) -> float:
        """Return the weighted sum of (y - prediction)^2."""
        return float(np.sum(self.weights * (self.y - prediction) ** 2))

    def require_variation(self) -> None:
        """Refuse a constant y: its sum of squares about the mean is rounding."""
        require_variation(self.sst, self.mean, self.weight)


@dataclass(frozen=True, eq=False)
class R2Problem(Target):
    """Hold a checked request: target, single-output trees, numeric rows, players."""

    ensemble: TreeModel  # with one output
    table: Table  # X, its columns in the order of the model
    numbers: np.ndarray  # float64 (n_rows, n_features)
    players: tuple[tuple[int, ...], ...]  # columns of each player
    player_names: tuple[str, ...]
    # float64 (n_rows,): the model's own prediction; None for a ``TreeModel``, which has none of its own
    own_prediction: np.ndarray | None = None
    n_jobs: int | None = None

    @property
    def boosted(self) -> bool:
        """Say whether the trees have an order: those of one stage are averaged."""
        stage = self.ensemble.tree_stage
        # Random forests of boosting libraries hold all their trees in one stage.
        return self.ensemble.boosted and not (len(stage) > 1 and stage[0] == stage[-1])

    @functools.cached_property
    def layout(self) -> EnsembleLayout:
        trees = self.ensemble.trees
        owner = player_of_columns(self.ensemble.tree_players(self.players), trees.n_features)
        return lay_out(trees, self.numbers, owner, len(self.players), self.n_jobs)

    def predict(self) -> np.ndarray:
        """Predict each row by our own routing."""
        return margin(self.ensemble.trees, self.numbers)[:, 0]

    def rounding(self, game: str) -> float:
        r"""Return the rounding of the sum of shares, in squared units of y.

        A game adds up :math:`\sum_i w_i (f_S^2 - 2 r f_S)` with :math:`|f_S| \le V`, the largest leaf, in products of as many
        factors as the trees have levels.
        """
        trees = self.ensemble.trees
        leaves, every = np.count_nonzero(trees.feature < 0), float(trees.largest.sum())
        met = float(np.abs(self.y - trees.constant[0]).max()) + every
        size = every**2 if game == "ensemble" else float((trees.largest**2).sum())
        scale = self.weight * (size + 2.0 * met * every)
        # Residuals are differences of y and of predictions, which are rounded as large as they are.
        of_residuals = self.weight * met * float(np.abs(self.y).max())
        return float(16.0 * EPS * ((np.sqrt(leaves) + 2 * (self.layout.depth + 1)) * scale + of_residuals))

    def check_prediction(self, ours: np.ndarray, sizes: np.ndarray | float = 1.0) -> None:
        """Compare our prediction of each row with the model's own; ``sizes`` multiply the rounding of its trees."""
        own, trees = self.own_prediction, self.ensemble.trees
        if own is None:
            return
        allowed = 64.0 * self.ensemble.epsilon * (np.sqrt(trees.n_trees) + 1.0) * largest_sum(trees) * sizes * np.ones(len(own))
        # ``~ <=``, so that NaN is refused as well.
        bad = np.flatnonzero(~(np.abs(ours - own) <= allowed))
        if bad.size:
            i = bad[0]
            raise ExactnessError(
                f"The trees of {self.ensemble.name} do not add up to its own prediction",
                f"Row {i}: {ours[i]:.17g} against {own[i]:.17g}, tolerance {allowed[i]:.3g}",
                "Please report this with exactshap.show_versions()",
            )


def prepare_rows(
    model: Model, X: TableLike, y: Column, sample_weight: Column, groups: Mapping[str, Any] | None, n_jobs: int | None
) -> R2Problem:
    """Check everything that the caller passed; y may be constant, as in a part of a table."""
    without_lost_threads()
    require_own_prediction(model)
    ensemble = _single_output(convert(model))
    problem = problem_of(model, ensemble, X, y, sample_weight, groups, "R2")
    level = _levelled(ensemble.trees, slice(None) if not problem.boosted else slice(1))
    return replace(problem, ensemble=replace(ensemble, trees=level), n_jobs=n_jobs)


def _levelled(trees: FlatTrees, chosen: slice) -> FlatTrees:
    """Return trees with the mean leaf of some moved to the constant: games square leaves, so the level of y would cost its digits.

    That of a boosted tree after the first may not move, as the trees before it meet it in no residual.
    """
    leaf, first = (trees.feature < 0)[:, None], trees.tree_start[:-1]
    level = np.add.reduceat(trees.value, first) / np.add.reduceat(leaf, first)
    moved = np.zeros_like(level)
    moved[chosen] = level[chosen]
    value = trees.value - leaf * np.repeat(moved, np.diff(trees.tree_start), axis=0)
    return replace(trees, value=value, constant=trees.constant + moved.sum(axis=0))


def problem_of(
    model: Model,
    ensemble: TreeModel,
    X: TableLike,
    y: Column,
    sample_weight: Column,
    groups: Mapping[str, Any] | None,
    statistic: str,
) -> R2Problem:
    """Return a model's trees, which have one output, with rows that fit them."""
    if ensemble.offset_note:  # predictions leave out the offsets that the model was fitted with
        warn(ensemble.offset_note, ExplanationWarning)
    table, fitted = as_table(X), ensemble.feature_names
    table = check_columns(table, fitted, ensemble.n_features, owner=ensemble.name)
    request, n_features = Request(groups=groups), ensemble.n_features
    _, players, player_names = Columns.of(request, fitted or table.names, n_features, ensemble.name)
    target, weights = target_of(model, y, table), weights_of(sample_weight, table)
    do = "Refit with constant leaves, or explain predictions: Explainer(model, background)"
    ensemble.require_constant_leaves(f"game of {statistic}", do)
    ensemble.require_covers(f"game of {statistic}", "Save the model with its node statistics")
    # First, as our message names what the library would refuse in its own words.
    numbers = encode(ensemble, table)
    own = None if isinstance(model, TreeModel) else _own_prediction(model, readable(ensemble, table), ensemble)
    return R2Problem(target, weights, ensemble, table, numbers, players, player_names, own)


def is_trees(model: Model) -> bool:
    """Say whether a model is made of trees or unknown. The converters of trees raise the error."""
    known = known_class(model)
    return known is None or issubclass(known, TreeModel) or known.__module__.startswith(TREE_MODULES)


def _single_output(ensemble: TreeModel) -> TreeModel:
    """Return the ensemble with one output on the scale of y, or refuse."""
    if ensemble.trees.n_trees == 0:
        raise UnsupportedModelError(f"{ensemble.name} has no trees", do="Fit it first")
    if ensemble.unit not in ("target", "probability", "raw score"):
        raise UnsupportedStructureError(
            f"The trees of {ensemble.name} add up to a {ensemble.unit}, which has no R2 against y",
            "Only sums of trees that are on the scale of y do: regression with an identity link, forests, single trees",
            "Use decompose_loss for a booster with a link; or a regression model, or a forest or a tree for a Brier score",
        )
    one = ensemble.pick("auto")
    if not one.single_output:
        raise UnsupportedStructureError(
            f"{ensemble.name} has {len(ensemble.output_names)} outputs, and each has its own R2",
            f"Got {', '.join(ensemble.output_names[:5])}",
            "Fit one model for each output (for a class: a binary target)",
        )
    return one


def _own_prediction(model: Model, table: Table, ensemble: TreeModel) -> np.ndarray:
    """Return the model's own prediction on the scale of y, for the certificate."""
    if ensemble.unit in ("probability", "log-odds") and hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(table.native), float)[:, -1]
    if ensemble.library == "catboost":  # a plain CatBoost predicts raw scores by default
        kind = _CATBOOST.get(ensemble.unit, "RawFormulaVal")
        return np.asarray(model.predict(table.native, prediction_type=kind), float).reshape(table.n_rows, -1)[:, -1]
    # Names were compared above; XGBoost would refuse arrays for a model with names.
    if ensemble.library == "xgboost":
        predict = model.predict if hasattr(model, "get_booster") else model.inplace_predict
        return np.asarray(predict(table.native, validate_features=False), float)
    return np.asarray(model.predict(table.native), float).reshape(-1)


def target_of(model: Model, y: Column, table: Table) -> np.ndarray:
    """Return y as float64. The labels of a binary classifier become 0 and 1."""
    warn_of_other_order(table, y, "y")
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError("`y` must have shape (n_rows,)", f"Got {np.shape(y)}")
    _same_length(values, table.n_rows, "y")
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) == 2:
        unknown = ~np.isin(values, classes)
        if unknown.any():
            i = int(np.argmax(unknown))
            raise InputError(
                f"`y` holds a label that the model was not fitted with, at row {i}",
                f"Got {values.tolist()[i]!r}; the classes are {np.asarray(classes).tolist()}",
            )
        return (values == classes[1]).astype(float)
    return _finite(values, "y")


def weights_of(sample_weight: Column, table: Table) -> np.ndarray:
    if sample_weight is None:
        return np.ones(table.n_rows)
    warn_of_other_order(table, sample_weight, "sample_weight")
    values = np.asarray(sample_weight)
    if values.ndim != 1:
        raise InputError("`sample_weight` must have shape (n_rows,)", f"Got {values.shape}")
    _same_length(values, table.n_rows, "sample_weight")
    weights = _finite(values, "sample_weight")
    if (weights < 0).any() or not weights.sum() > 0:
        raise InputError("`sample_weight` must not be negative and must not all be zero", f"Smallest {weights.min():.6g}")
    return weights


def _same_length(values: np.ndarray, n_rows: int, what: str) -> None:
    if len(values) != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows}, `{what}` has {len(values)}"
        )


def _finite(values: np.ndarray, what: str) -> np.ndarray:
    if np.iscomplexobj(values):
        raise InputError("Complex data not supported", f"Got dtype {values.dtype} in `{what}`")
    try:
        if values.dtype.kind in "mM":
            raise TypeError("NumPy would count dates in units of their resolution")
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"`{what}` must be numeric", f"Got dtype {values.dtype}", "Encode it") from None
    bad = ~np.isfinite(numbers)
    if bad.any():
        i = int(np.argmax(bad))
        what_is = "NaN" if np.isnan(numbers[i]) else "infinity"
        raise InputError(f"Input `{what}` contains {what_is} (first at row {i})", do="Drop or impute these rows")
    return numbers
