"""Explain any model by conditional means that are estimated from a background: by a copula, a ridge regression or a forest."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri

from exactshap._runtime.checks import check_count
from exactshap._runtime.threads import n_threads
from exactshap._runtime.types import Model
from exactshap.errors import ExactshapError, InputError, InputTypeError, message
from exactshap.frames import Table, is_missing
from exactshap.games import normalised_weights
from exactshap.readers import Coalitions, ConditionalGame, DelegatingReader, Reader, Request, averaged, columns_of
from exactshap.readers import read as read_any
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Cost, Solution
from exactshap.solvers.rkhs import check_eta

SAMPLED = ("budget", "random_state")
OPTIONS = {"observational": ("eta",), "observational-copula": ("n_samples",), "observational-forest": ("n_trees",)}
# Background rows for the model's own reader, of which only predictions are needed.
READING_ROWS = 16
# Draws for a coalition's mean under a copula; trees of a forest, as scikit-learn has them.
DRAWS, TREES = 256, 100

# Scramblings of the points; their spread is the standard error.
REPLICATES = 8
# Largest fraction of rows with one value in a continuous column.
LARGEST_TIE = 0.1
# Rows of one call of the model.
CALL_ROWS = 2**16
# Correlations of columns that determine each other are raised to it.
SMALLEST_EIGENVALUE = 1e-9

# Candidate bandwidths, in units of half the mean squared distance of two rows; narrower ones fit noise.
BANDWIDTHS = (1.0, 2.0, 4.0)
# Candidate ridges: smaller ones extrapolate wildly beyond the background.
ETAS = np.logspace(-5.0, 1.0, 13)
# Least rows of a leaf, as in regression forests since Breiman (2001).
LEAF_ROWS = 5
# Binary digits of predictions for forests, so that rounding decides no split.
FOREST_BITS = 40

# predict(points) -> (n_rows, n_outputs), and left-out predictions
Fit = tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]


def read(model: Model, request: Request) -> Reader:
    """Read a model and explain it by conditional means. Its own reader gives predictions and names.

    Settings (keywords of ``Explainer``): ``eta`` (ridge of ``"observational"``, default "auto": chosen for each coalition),
    ``n_samples`` (draws a coalition of ``"observational-copula"``, default 256), ``n_trees`` (of ``"observational-forest"``,
    default 100), ``budget`` (coalitions that are sampled beyond 12 players, default 2048), ``random_state`` (default 0).
    """
    if request.background is None:
        raise InputError(
            f"value_function={request.value_function!r} needs rows to learn the conditional distribution from",
            "Got background=None",
            "Pass background=X_train",
        )
    own = (*SAMPLED, *OPTIONS[request.value_function])
    settings = {name: value for name, value in request.options.items() if name in own}
    others = {name: value for name, value in request.options.items() if name not in own}
    few = request.background.take(slice(0, READING_ROWS))
    inner = replace(request, value_function="interventional", background=few, weights=None, options=others)
    return ConditionalReader(read_any(model, inner), request, settings)


class ConditionalReader(DelegatingReader):
    """Explain ``inner``'s predictions by conditional means, each for all rows of a block; v(empty) and v(D) are exact."""

    def __init__(self, inner: Reader, request: Request, settings: dict[str, Any]) -> None:
        assert request.background is not None
        weights = normalised_weights(request.weights, request.background.n_rows)
        super().__init__(
            inner,
            value_function=request.value_function,
            background=request.background,
            weights=request.weights,
            block_rows=4096,
            uses_threads=True,
            calls=None,
            advice_on_memory="Raise memory_limit=, or pass fewer rows as background=",
        )
        if inner.traits.rounding.cancels:
            # v(D) and the certificate's prediction are two calls: each is rounded by the size of the terms that cancel in it.
            terms = inner.solve(inner.traits.reference, find("shapley"), 1).part.scale
            self.traits = self.traits.with_rounding(floor=self.traits.rounding.floor + float(np.max(terms)))
        self.coalitions = Coalitions.of(inner.traits.n_players, settings)
        rows, weights = request.background.take(np.flatnonzero(weights > 0)), weights[weights > 0]
        targets = np.asarray(inner.predict(rows), float).reshape(rows.n_rows, -1)
        self.empty = weights @ targets
        self.means = self._means(rows, targets, weights, settings)
        self.replicates = self.means.replicates

    def _means(self, rows: Table, targets: np.ndarray, weights: np.ndarray, settings: dict[str, Any]) -> Any:
        seed = self.coalitions.random_state
        if self.traits.value_function == "observational-copula":
            return GaussianCopula(self.inner, rows, weights, settings.get("n_samples", DRAWS), seed)
        if self.traits.value_function == "observational-forest":
            way: Any = ForestRegression(settings.get("n_trees", TREES), seed)
        else:
            way = RidgeRegression(settings.get("eta", "auto"))
        coordinates = Coordinates.of(rows, weights, self.traits.players)
        return RegressedMeans(way, rows, coordinates, targets, weights)

    def game(self, X: Table) -> ConditionalGame:
        full = np.asarray(self.inner.predict(X), float).reshape(X.n_rows, -1)
        return ConditionalGame(
            function=self.means.bound_to(X),
            empty=np.repeat(self.empty, self.replicates),
            full=np.repeat(full, self.replicates, axis=1),
            intercept=np.zeros(self.traits.n_outputs * self.replicates),
            n_players=self.traits.n_players,
            single_output=self.traits.single_output and self.replicates == 1,
            size=self.means.bytes(X.n_rows) / 48.0,
            replicates=self.replicates,
        )

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        game = self.game(X)
        found = self.coalitions.solve(game, semivalue, order)
        found = found.renamed(f"{found.method} of {game.function.describe()}")
        return found if self.replicates == 1 else averaged(found, self.replicates, self.traits.single_output)

    def memory(self, n_rows: int, order: int) -> float:
        table, each = self.coalitions.table_values() * self.traits.n_outputs * self.replicates, self.means.bytes(n_rows)
        return each * n_threads(each / 48.0) + 8.0 * n_rows * (table + 4.0 * self.traits.n_features)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        blocks = -(-n_rows // max(block_rows, 1))
        seconds, kind = self.coalitions.seconds(lambda k: self.game(few.take(slice(0, k))), few.n_rows, n_rows, blocks)
        kind = "all coalitions" if self.replicates > 1 and self.coalitions.enumerated else kind
        method = f"{kind} of {self.means.bound_to(few.take(slice(0, 1))).describe()}"
        exact = self.coalitions.enumerated and self.replicates == 1
        return Cost(seconds, bytes=self.memory(block_rows, order), exact=exact, method=method)

    def bind(self, row: Table) -> None:
        """Return None: no column is replaced by a reference row's."""

    def masked_predictions(self, X: Table, masks: np.ndarray) -> None:
        """Return None: no row can be masked by hand."""

    def stability(self, X: Table) -> None:
        """Return None: none is known."""


class GaussianCopula:
    r"""Fit a copula with the background's margins; evaluate the model on draws, a power of two for each of 8 scramblings.

    .. math:: Z_{\bar S} \mid Z_S = z_S \sim N\bigl(R_{\bar S S} R_{SS}^{-1} z_S,\; R_{\bar S \bar S} - R_{\bar S S} R_{SS}^{-1} R_{S \bar S}\bigr)

    with normal scores :math:`z_j = \Phi^{-1}(F_j(x_j))` and their correlations R (Aas, Jullum & Loland 2021, section 3.2). A drawn cell is
    a cell of the background: :math:`F_j^{-1}` is not interpolated.
    """

    replicates = REPLICATES

    def __init__(self, reader: Reader, background: Table, weights: np.ndarray, n_samples: object, random_state: int) -> None:
        n_samples = check_count("n_samples", n_samples, REPLICATES)
        self.reader, self.background, self.weights = reader, background, weights
        self.power = int(np.ceil(np.log2(n_samples / REPLICATES)))
        self.random_state = random_state
        cells = self._cells(background)
        self.order = np.argsort(cells, axis=0, kind="stable")
        self.sorted = np.take_along_axis(cells, self.order, axis=0)
        self.cumulated = np.cumsum(weights[self.order], axis=0)
        self._refuse_ties()
        scores = self.scores(background)
        scores = scores - weights @ scores
        covariance = scores.T @ (weights[:, None] * scores)
        deviation = np.sqrt(np.diag(covariance))
        self.correlations = _raised(covariance / np.outer(deviation, deviation))

    def _cells(self, X: Table) -> np.ndarray:
        try:
            cells = X.numeric()
        except (InputError, InputTypeError) as error:
            do = "Pass value_function='observational' or 'observational-forest', which take text, or rows that are encoded"
            raise InputError("A Gaussian copula needs columns of numbers", f"{error}".partition(". ")[0], do) from error
        if np.isnan(cells).any():
            j = int(np.flatnonzero(np.isnan(cells).any(axis=0))[0])
            raise InputError(self._message(X.label(j), "has missing cells"))
        return cells

    def _refuse_ties(self) -> None:
        for j, column in enumerate(self.sorted.T):
            _, places = np.unique(column, return_inverse=True)
            share = np.bincount(places, self.weights[self.order[:, j]]).max()
            if share > max(LARGEST_TIE, 2.0 * self.weights.max()):
                label = self.background.label(j)
                raise InputError(self._message(label, f"holds one value in {share:.0%} of the background"))

    def _message(self, label: str, got: str) -> str:
        text = "value_function='observational-copula' needs continuous columns"
        do = "Pass 'observational' (kernel regressions) or 'observational-forest', which take columns of any kind"
        return message(text, f"{label[0].upper()}{label[1:]} {got}", do)

    def scores(self, X: Table) -> np.ndarray:
        """Return the normal scores (n_rows, n_columns) of rows. They come from ranks among the background's cells."""
        cells, below = self._cells(X), np.concatenate([np.zeros((1, self.sorted.shape[1])), self.cumulated])
        ranks = np.empty_like(cells)
        for j, column in enumerate(cells.T):
            left, right = (np.searchsorted(self.sorted[:, j], column, side) for side in ("left", "right"))  # type: ignore[call-overload]
            ranks[:, j] = 0.5 * (below[left, j] + below[right, j])
        half = 0.5 * self.weights.min()
        return np.asarray(ndtri(np.clip(ranks, half, 1.0 - half)))

    def bound_to(self, X: Table) -> BoundCopula:
        return BoundCopula(self, X)

    def bytes(self, n_rows: int) -> float:
        """Return the memory of one coalition."""
        return 32.0 * (CALL_ROWS + REPLICATES * 2.0**self.power) * self.background.n_columns

    def conditional(self, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the regression (n_outside, n_inside) of missing on known scores, and a root of the covariance that is left."""
        R, outside = self.correlations, ~inside
        slopes = np.linalg.solve(R[np.ix_(inside, inside)], R[np.ix_(inside, outside)]).T
        covariance = R[np.ix_(outside, outside)] - slopes @ R[np.ix_(inside, outside)]
        return slopes, np.linalg.cholesky(_raised(covariance))


class BoundCopula:
    """``v(mask) -> (n_rows, n_outputs * REPLICATES)`` for proper coalitions of some rows; replicates are the last axis."""

    def __init__(self, copula: GaussianCopula, X: Table) -> None:
        from scipy.stats import qmc

        self.copula, self.X, self.scores = copula, X, copula.scores(X)
        d = X.n_columns
        seeds = np.random.SeedSequence(copula.random_state).generate_state(REPLICATES)
        points = [qmc.Sobol(d, seed=int(seed)).random_base2(copula.power) for seed in seeds]
        self.normal = ndtri(np.clip(np.concatenate(points), 2.0**-40, 1.0 - 2.0**-40))  # (n_draws, d)

    def __call__(self, mask: np.ndarray) -> np.ndarray:
        inside = columns_of(self.copula.reader, mask[None])[0]
        if inside.all():
            return np.repeat(self._outputs(self.copula.reader.predict(self.X)), REPLICATES, axis=1)
        slopes, root = self.copula.conditional(inside)
        noise, centres = self.normal[:, : len(root)] @ root.T, self.scores[:, inside] @ slopes.T
        step = max(1, CALL_ROWS // len(noise))
        parts = [self._some(slice(i, i + step), inside, centres[i : i + step], noise) for i in range(0, self.X.n_rows, step)]
        return np.concatenate(parts) if parts else np.empty((0, 1))

    def _some(self, rows: slice, inside: np.ndarray, centres: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return v(S) of some rows, from one call of the model."""
        copula, X = self.copula, self.X.take(rows)
        shares = ndtr(centres[:, None, :] + noise).reshape(X.n_rows * len(noise), -1)
        cells = np.zeros((len(shares), X.n_columns), int)
        for place, j in enumerate(np.flatnonzero(~inside)):
            cells[:, j] = copula.order[np.searchsorted(copula.cumulated[:-1, j], shares[:, place], "right"), j]
        drawn = X.repeat(len(noise)).hybrid(copula.background, inside, cells)
        predicted = self._outputs(copula.reader.predict(drawn)).reshape(
            X.n_rows, REPLICATES, -1, copula.reader.traits.n_outputs
        )
        return np.moveaxis(predicted.mean(axis=2), 1, 2).reshape(X.n_rows, -1)

    def _outputs(self, predicted: np.ndarray) -> np.ndarray:
        return np.asarray(predicted, float).reshape(len(predicted), -1)

    def describe(self) -> str:
        copula = self.copula
        n, draws = len(copula.weights), len(self.normal)
        return (
            f"conditional means under a Gaussian copula of {n} background rows, {draws} draws a coalition (unbiased for the "
            "estimated conditional distribution; its own error is not in the standard errors)"
        )


def _raised(matrix: np.ndarray) -> np.ndarray:
    """Return a covariance with eigenvalues of at least 1e-9."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if len(matrix) == 0 or eigenvalues[0] >= SMALLEST_EIGENVALUE:
        return matrix
    return np.asarray((vectors * np.maximum(eigenvalues, SMALLEST_EIGENVALUE)) @ vectors.T)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Hold Euclidean coordinates of each player's columns. Two background rows are 2 apart on average, squared, per column.

    A missing number is the mean, with an indicator coordinate; a level that the background lacks is the
    origin, equally far from every level; constant columns have no coordinates.
    """

    columns: tuple[Any, ...]
    players: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, background: Table, weights: np.ndarray, players: Sequence[Sequence[int]]) -> Coordinates:
        return cls(tuple(_column(background, j, weights) for j in range(background.n_columns)), tuple(map(tuple, players)))

    def __call__(self, X: Table) -> list[np.ndarray]:
        """Return one array (n_rows, n_coordinates) for each player."""
        columns = [np.empty((X.n_rows, 0)), *(column(X, j) for j, column in enumerate(self.columns))]
        return [np.concatenate([columns[0], *(columns[1 + j] for j in members)], axis=1) for members in self.players]


def _refuse_infinity(values: np.ndarray, X: Table, j: int, what: str) -> None:
    """Refuse cells that are infinitely far from all others."""
    infinite = np.isinf(values)
    if infinite.any():
        i = int(np.argmax(infinite))
        place = f"First in {X.label(j)}, {X.row_label(i)}"
        raise InputError(f"Input {what} contains infinity", place, "Clip or drop it", row=i if what == "X" else None)


def _column(background: Table, j: int, weights: np.ndarray) -> _Number | _Category:
    try:
        values = background.select([j]).numeric()[:, 0]
    except ExactshapError:  # text, dates
        levels, places = np.unique(_words(background.column(j)), return_inverse=True)
        # The chance that two rows have one level
        together = float(np.sum(np.bincount(places, weights) ** 2))
        return _Category(tuple(levels), 1.0 / np.sqrt(1.0 - together) if len(levels) > 1 else 0.0)
    _refuse_infinity(values, background, j, "background")
    missing = np.isnan(values)
    if missing.all():
        return _Number(0.0, 0.0, 0.0)
    share = weights * ~missing
    mean = float(np.nansum(share * values) / share.sum())
    deviation = float(np.sqrt(np.nansum(share * (values - mean) ** 2) / share.sum()))
    return _Number(mean, 1.0 / deviation if deviation > 0.0 else 0.0, 1.0)


@dataclass(frozen=True)
class _Number:
    mean: float
    per_unit: float
    gap: float

    def __call__(self, X: Table, j: int) -> np.ndarray:
        values = X.select([j]).numeric()[:, 0]
        _refuse_infinity(values, X, j, "X")
        missing = np.isnan(values)
        return np.stack([np.where(missing, 0.0, (values - self.mean) * self.per_unit), self.gap * missing], axis=1)


@dataclass(frozen=True)
class _Category:
    levels: tuple[str, ...]
    edge: float

    def __call__(self, X: Table, j: int) -> np.ndarray:
        return self.edge * (_words(X.column(j))[:, None] == np.array(self.levels)[None, :])


def _words(column: np.ndarray) -> np.ndarray:
    """Return each cell as a text that does not depend on how its library holds it; what is missing is one level."""
    if column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]").astype(object)
    return np.array(["" if is_missing(cell) else f"={cell}" for cell in column])


class RidgeRegression:
    r"""Regress by kernel ridge around the mean m. It is the conditional mean embedding of the background applied to f.

    .. math:: v_x(S) = m + k_S(x, Z)\, (K_S + \eta \operatorname{diag}(1 / w))^{-1} (f(Z) - m)

    A Gaussian kernel with the bandwidth and ridge of least squared error on left-out rows, for each coalition.
    With :math:`A` the inverse the error of row i is :math:`[A (f - m)]_i / A_{ii}`, as in every linear smoother.
    """

    name = "kernel ridge regressions"

    def __init__(self, eta: float | None) -> None:
        auto = isinstance(eta, str) and eta == "auto"
        self.etas = ETAS if auto else np.array([check_eta(eta, "value_function='observational'")])

    def fit(self, known: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Fit:
        mean, root = weights @ targets, np.sqrt(weights)[:, None]
        centred, spread = targets - mean, float(np.sum(weights @ (known - weights @ known) ** 2))
        # If known columns are constant, the conditional mean is the mean.
        if spread == 0.0 or not centred.any():
            return lambda points: np.broadcast_to(mean, (len(points), len(mean))), np.broadcast_to(mean, targets.shape)
        squared, variance = cdist(known, known, "sqeuclidean"), weights @ centred**2
        variance = np.where(variance > 0.0, variance, 1.0)
        best: Any = (np.inf,)
        for width in BANDWIDTHS:
            scale = 0.5 / (width**2 * spread)
            # W^1/2 K W^1/2: one decomposition serves all ridges, as only the eigenvalues move.
            matrix = root * np.exp(-scale * squared) * root.T
            # SciPy's blocks other threads
            eigenvalues, vectors = np.linalg.eigh(matrix)
            vectors = np.asfortranarray(vectors)  # and returns Fortran order, which suits the products below
            inverses = 1.0 / (np.maximum(eigenvalues, 0.0)[:, None] + self.etas)
            dual = np.einsum("za,ak,ae->ezk", vectors, vectors.T @ (root * centred), inverses, optimize=True)
            errors = dual / (vectors**2 @ inverses).T[:, :, None] / root
            # Outputs of different sizes count alike: each error is relative to the variance of its output.
            losses = np.einsum("z,ezk,k->e", weights, errors**2, 1.0 / variance)
            e = int(np.argmin(losses))
            best = min(best, (losses[e], scale, root * dual[e], targets - errors[e]), key=lambda found: found[0])
        _, scale, coefficients, left_out = best

        def predict(points: np.ndarray) -> np.ndarray:
            similar = np.exp(-scale * cdist(points, known, "sqeuclidean"))
            # Not BLAS, in which a row's bits depend on the others
            return mean + np.einsum("xz,zk->xk", similar, coefficients)

        return predict, left_out

    def bytes(self, n: int, n_rows: int) -> float:
        return 8.0 * n * (6.0 * n + 3.0 * n_rows)


class ForestRegression:
    """Fit random forests that split on known columns only; weights come from the leaves of x, left-out errors from rows out of bag."""

    name = "random forests"

    def __init__(self, n_trees: object, random_state: int) -> None:
        self.settings = {
            "n_estimators": check_count("n_trees", n_trees, 20),
            "min_samples_leaf": LEAF_ROWS,
            "random_state": random_state,
        }

    def fit(self, known: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Fit:
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(oob_score=True, **self.settings)
        # A power of two: dividing by it and multiplying again rounds nothing but the digits that are cut off.
        unit = 2.0 ** (np.ceil(np.log2(max(np.abs(targets).max(initial=0.0), 1e-300))) - FOREST_BITS)
        targets = np.rint(targets / unit) * unit
        forest.fit(known, targets[:, 0] if targets.shape[1] == 1 else targets, sample_weight=weights / weights.max())
        return lambda points: forest.predict(points).reshape(len(points), -1), forest.oob_prediction_.reshape(targets.shape)

    def bytes(self, n: int, n_rows: int) -> float:
        return 100.0 * self.settings["n_estimators"] * n + 16.0 * n_rows


class RegressedMeans:
    r"""The conditional means of some rows by one regression of the background's predictions for each coalition.

    .. math:: v_x(S) = \sum_z W^S_{zx}\, f(z) \approx E[f(X) \mid X_S = x_S], \qquad \sum_z W^S_{zx} = 1

    The model predicts the background once for all coalitions: no row is ever mixed. Columns of any kind become points in space
    first: numbers in units of their deviation, categories as corners of a simplex.
    """

    replicates = 1

    def __init__(self, way: Any, background: Table, coordinates: Coordinates, targets: np.ndarray, weights: np.ndarray):
        self.way, self.coordinates, self.targets, self.weights = way, coordinates, targets, weights
        self.background = self.rows = coordinates(background)
        self.scores: list[float] = []  # of the coalitions so far

    def bound_to(self, X: Table) -> RegressedMeans:
        """Return ``v(mask) -> (n_rows, n_outputs)`` of some rows for proper coalitions."""
        bound = copy.copy(self)
        bound.rows, bound.scores = self.coordinates(X), []
        return bound

    def bytes(self, n_rows: int) -> float:
        """Return the memory of one coalition."""
        return float(self.way.bytes(len(self.weights), n_rows))

    def __call__(self, mask: np.ndarray) -> np.ndarray:
        inside = np.flatnonzero(mask).tolist()
        known, points = (np.concatenate([of[j] for j in inside], axis=1) for of in (self.background, self.rows))
        predict, left_out = self.way.fit(known, self.targets, self.weights)
        # The share of variance explained on left-out rows, over all outputs
        total = float(np.sum(self.weights @ (self.targets - self.weights @ self.targets) ** 2))
        missed = float(np.sum(self.weights @ (self.targets - left_out) ** 2))
        self.scores.append(1.0 - missed / total if total > 0.0 else 0.0)
        return np.asarray(predict(points))

    def describe(self) -> str:
        text = "exact for the estimated conditional distribution"
        if self.scores:
            explained = f"{min(self.scores):.2g} to {max(self.scores):.2g}"
            text += f"; a coalition explains {explained} of the variance of f over rows that are left out"
        n = len(self.weights)
        return f"conditional means by {self.way.name} of the predictions of {n} background rows ({text})"
