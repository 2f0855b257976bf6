"""The front door: a model and a background in, explanations out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exactshap._runtime.progress import Progress, duration, saying
from exactshap._runtime.threads import using_jobs
from exactshap.errors import BudgetError, ExactnessError, ExplanationWarning, memory_needed, message, warn
from exactshap.explainer._blocks import Solved, physical_memory, solve_blocks
from exactshap.explainer._forecast import Forecast, Verification
from exactshap.explainer._settings import aligned, check_names, check_settings, checked_names
from exactshap.frames import Table, as_table, check_columns
from exactshap.games import normalised_weights
from exactshap.readers import Reader, Request, read
from exactshap.results.explanation import Explanation, fingerprint
from exactshap.semivalues import Semivalue, find
from exactshap.solvers import Solution, player_sets

__all__ = ["Explainer", "explain"]

_ELSEWHERE = {  # what shap calls it
    "shap_values": "explainer(X).values",
    "shap_interaction_values": "explainer(X, index='k-sii', order=2).interactions",
    "expected_value": "explainer(X).baseline",
}
REPEATED = 1.0  # seconds of one row below which a forecast solves it twice


class Explainer:
    """Explain a fitted model.

    Parameters
    ----------
    model : object
        A fitted model that a reader knows (kernel machines, Gaussian processes, trees, additive models, pipelines of them),
        or a function on tables, which is then sampled.
    background : array or DataFrame of shape (n_background, n_features), default=None
        Reference rows, all of them used. One row with ``value_function="baseline"`` is a single reference point.
    value_function : str, default="auto"
        What v(S) means. "auto" is "interventional" with a background, else the family's own: "functional" for kernel machines,
        "path_dependent" for trees.
    output : int, str, "auto" or "all", default="auto"
        Which output of a model with several.
    groups : mapping of name to list of columns, default=None
        Players that are groups of columns, treated as one player exactly (not summed afterwards).
    background_weights : array of shape (n_background,), default=None
        Weights of the reference rows.
    feature_names : sequence of str, default=None
        Names for a model that was fitted without.
    align : bool, default=False
        Reorder the columns of a frame by name instead of refusing a different order.
    n_jobs : int, default=None
        Threads, with joblib's conventions. Results are the same bits for every value.
    memory_limit : float, default=2**30
        Bytes of working memory; rows stream in blocks under it. A request that cannot fit is refused.
    on_inexact : {"raise", "warn"}, default="raise"
        What happens when a residual is above its derived tolerance.
    progress : bool, callable or None, default=None
        None: a line on standard error with the time left, once the work takes more than two seconds and if that is a terminal
        or a notebook. True and False: always and never. A function is called with (rows done, rows in all).
    **options
        Settings of one model family; unknown names raise.

    Raises
    ------
    UnsupportedModelError, UnsupportedStructureError
        If no exact form is known; the message names the closest route.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> explainer = Explainer(SVR(C=10.0).fit(X, y), background=X[:50])
    >>> explanation = explainer(X[:3])
    >>> explanation.values.shape, explanation.value_function, explanation.certificate().passed
    ((3, 10), 'interventional', True)
    """

    def __init__(
        self,
        model: Any,
        background: Any = None,
        *,
        value_function: str = "auto",
        output: Any = "auto",
        groups: Mapping[str, Any] | None = None,
        background_weights: Any = None,
        feature_names: Sequence[str] | None = None,
        align: bool = False,
        n_jobs: int | None = None,
        memory_limit: float = 2.0**30,
        on_inexact: str = "raise",
        progress: Progress = None,
        **options: Any,
    ) -> None:
        check_settings(locals())
        self.align, self.n_jobs, self.memory_limit = align, n_jobs, float(memory_limit)
        self.on_inexact, self.progress = on_inexact, progress
        table = None if background is None else _background(background, model, align)
        self._request = Request(
            background=table,
            weights=None
            if table is None or background_weights is None
            else normalised_weights(background_weights, table.n_rows),
            value_function=value_function,
            output=output,
            groups=groups,
            feature_names=checked_names(feature_names),
            options=options,
            memory_limit=self.memory_limit,
        )
        reading = saying(progress, lambda _, seconds: f"reading {type(model).__name__} for {duration(seconds)}")
        with reading, np.errstate(all="ignore"):  # overflow is told by the certificate
            self.reader: Reader = read(model, self._request)
        check_names(self.reader, self._request)
        self._background_hash = None if table is None else fingerprint(table.native)

    def __repr__(self) -> str:
        reader = self.reader
        background = "" if reader.background is None else f", {reader.background.n_rows} background rows"
        return (
            f"Explainer({reader.model_name}, value_function={reader.value_function!r}, {reader.n_players} players{background})"
        )

    def __getattr__(self, name: str) -> Any:
        if name in _ELSEWHERE:
            raise AttributeError(f"Explainer has no attribute {name!r}. It is {_ELSEWHERE[name]} here.")
        return object.__getattribute__(self, name)  # raises again, whatever it was

    def __call__(self, X: Any, index: str | Semivalue = "shapley", order: int = 1) -> Explanation:
        """Explain rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_rows, n_features)
        index : str or Semivalue, default="shapley"
            See :func:`exactshap.semivalues.available`.
        order : int, default=1
            2 for pairs (``explanation.interactions``), more for larger sets (``explanation.set_values``).

        Returns
        -------
        explanation : Explanation
            ``values (n_rows, n_players[, n_outputs])`` in the unit of the model output.

        Raises
        ------
        InputError
            If the rows do not fit the model; the message names row and column.
        BudgetError
            If the request cannot fit in ``memory_limit``.
        ExactnessError
            If a residual against the model's own prediction is above its tolerance.
        """
        started = time.perf_counter()
        table = self._checked(X)
        semivalue = find(index)
        sets = player_sets(self.reader.n_players, order)
        blocks = self._blocks(table, order)
        with using_jobs(self.n_jobs):
            solved = list(solve_blocks(self.reader, table, blocks, semivalue, order, self.n_jobs, self.progress))
        explanation = self._wrap(table, solved, sets, semivalue, order, time.perf_counter() - started)
        self._certify(explanation)
        return explanation

    # -- asking before paying ----------------------------------------------------------------------------------------

    def plan(self, X: Any, index: str | Semivalue = "shapley", order: int = 1) -> Forecast:
        """Say which method will run on ``X`` and what it will cost, from one row or what the reader times instead."""
        with using_jobs(self.n_jobs):
            return self._forecast(self._checked(X), index, order)

    def _forecast(self, table: Table, index: str | Semivalue, order: int) -> Forecast:
        semivalue = find(index)
        n_sets = len(player_sets(self.reader.n_players, order))
        block = self._block_rows(table.n_rows, order)
        known = self.reader.forecast(table, semivalue, order, block) if table.n_rows else ("nothing to do", True, 0.0)
        method, exact, seconds = self._timed(table, semivalue, order) if known is None else known
        return Forecast(
            method=method,
            exact=exact,
            seconds=seconds,
            operations=self.reader.row_operations(order) * table.n_rows,
            memory=self.reader.row_bytes(order) * block + self.reader.fixed_bytes(),
            result=8.0 * table.n_rows * n_sets * self.reader.n_outputs,
            block_rows=block,
        )

    def _timed(self, table: Table, semivalue: Semivalue, order: int) -> tuple[str, bool, float]:
        """Return method, exactness and seconds, extrapolated from one row; short ones again, as the first has to warm up."""
        row = table.take(slice(0, 1))
        from exactshap._runtime.compilation import compilation

        with compilation() as compiled:
            solution, seconds = self._clocked(row, semivalue, order)
        if (seconds := seconds - compiled.seconds) < REPEATED:
            solution, seconds = self._clocked(row, semivalue, order)
        return solution.method, solution.std_error is None, seconds * table.n_rows

    def _clocked(self, row: Table, semivalue: Semivalue, order: int) -> tuple[Solution, float]:
        started = time.perf_counter()
        return self.reader.solve(row, semivalue, order), time.perf_counter() - started

    def verify(self, X: Any, n_masks: int = 8, random_state: int = 0) -> Verification:
        """Check the reading of the model beyond additivity, which cannot see credit given to the wrong column.

        On random coalitions S the game's v(S) is compared with the model's own prediction on rows masked by hand. Residuals
        are checked on the same rows.
        """
        table = self._checked(X)
        rng = np.random.default_rng(random_state)
        masks = rng.random((n_masks, self.reader.n_players)) < rng.random((n_masks, 1))
        solution = self.reader.solve(table, find("shapley"), 1)
        prediction = np.asarray(self.reader.predict(table), float)
        tolerance = self.reader.tolerance(table, prediction, solution)
        residual = prediction - solution.empty - solution.values.sum(axis=1)
        by_hand = self.reader.masked_predictions(table, masks)
        difference = None
        if by_hand is not None:
            difference = (
                np.abs(self.reader.game(table).value(masks) - by_hand).reshape(table.n_rows, -1).max(axis=1, initial=0.0)
            )
        worst = np.abs(residual).reshape(table.n_rows, -1).max(axis=1, initial=0.0)
        return Verification(
            max_residual=float(worst.max(initial=0.0)),
            max_mask_difference=None if difference is None else float(difference.max(initial=0.0)),
            tolerance=float(np.max(tolerance, initial=0.0)),
            passed=bool(np.all(worst <= tolerance) and (difference is None or np.all(difference <= tolerance))),
            n_rows=table.n_rows,
            n_masks=n_masks if by_hand is not None else 0,
        )

    # -- the way of the rows -----------------------------------------------------------------------------------------

    def _checked(self, X: Any) -> Table:
        reader = self.reader
        table = as_table(X, allow_empty=True)
        if self.align:
            table = aligned(table, reader.model)
        names = reader.fitted_names
        if names is None and reader.background is not None and reader.background.names is not None:
            names = reader.background.names
        if reader.fitted_names is not None and not table.is_frame:
            warn(f"X does not have valid feature names, but {reader.model_name} was fitted with feature names")
        elif (
            reader.fitted_names is None and table.is_frame and reader.background is not None and not reader.background.is_frame
        ):
            warn(f"X has feature names, but {reader.model_name} was fitted without feature names")
        return check_columns(table, names, reader.n_features, owner=reader.model_name, align=self.align)

    def _block_rows(self, n_rows: int, order: int) -> int:
        free = self.memory_limit - self.reader.fixed_bytes()
        row = max(self.reader.row_bytes(order), 1.0)
        if free < row:
            needed = self.reader.fixed_bytes() + row
            raise BudgetError(
                message(
                    f"Explaining one row at order {order} does not fit in memory_limit",
                    f"It would need {memory_needed(needed, self.memory_limit)}",
                    self.reader.memory_advice(),
                )
            )
        return int(min(self.reader.block_rows, max(1, n_rows), free // row))

    def _blocks(self, table: Table, order: int) -> list[slice]:
        n_sets = len(player_sets(self.reader.n_players, order))
        result = 8.0 * table.n_rows * n_sets * self.reader.n_outputs
        if result > 0.8 * physical_memory():
            raise BudgetError(
                message(
                    f"The result of order {order} does not fit in this machine",
                    f"{table.n_rows} rows x {n_sets} sets x {self.reader.n_outputs} outputs are {result / 2**30:.3g} GiB",
                    "Explain fewer rows at a time, or group columns with groups=",
                )
            )
        step = self._block_rows(table.n_rows, order)
        return [slice(start, min(start + step, table.n_rows)) for start in range(0, table.n_rows, step)]

    def _wrap(
        self, table: Table, solved: list[Solved], sets: tuple, semivalue: Semivalue, order: int, seconds: float
    ) -> Explanation:
        reader = self.reader
        tail = () if reader.single_output else (reader.n_outputs,)
        solutions = [part[0] for part in solved]
        values = _rows([s.values for s in solutions], (0, len(sets), *tail))
        std_error = None if not solutions or solutions[0].std_error is None else _rows([s.std_error for s in solutions], ())
        background = reader.background
        return Explanation(
            values=values[:, : reader.n_players],
            baseline=_rows([s.empty for s in solutions], (0, *tail)),
            prediction=_rows([part[1] for part in solved], (0, *tail)),
            residual=_rows([part[2] for part in solved], (0, *tail)),
            tolerance=_rows([part[3] for part in solved], (0,)),
            std_error=None if std_error is None else std_error[:, : reader.n_players],
            data=table.native,
            feature_names=reader.player_names,
            output_names=None if reader.single_output else reader.output_names,
            index=semivalue.name,
            order=order,
            sets=sets if order > 1 else None,
            set_values=values if order > 1 else None,
            set_std_error=std_error if order > 1 else None,
            value_function=reader.value_function,
            unit=reader.unit,
            method=_longest([s.method for s in solutions]),
            model_name=reader.model_name,
            error_bound=_rows([np.broadcast_to(s.error_bound, (len(s.values),)) for s in solutions], (0,)),
            n_evaluations=sum(s.n_evaluations for s in solutions),
            seconds=seconds,
            background_size=None if background is None else background.n_rows,
            background_hash=self._background_hash,
            groups=_groups(reader),
            covariances=_optional_rows([s.covariance for s in solutions]),
            covariance_residual=_optional_rows([s.covariance_residual for s in solutions]),
            set_std=_optional_rows([s.set_std for s in solutions]),
            approximation_error=_optional_rows([s.approximation_error for s in solutions]),
            stability_bound=reader.stability(table) if semivalue.name == "shapley" else None,
        )

    def _certify(self, explanation: Explanation) -> None:
        certificate = explanation.certificate()
        if certificate.passed:
            return
        text = message(
            f"Values do not add up: residual {certificate.max_residual:.3g} at row {certificate.row} (tolerance {certificate.tolerance:.3g})",
            f"Of {certificate.checks}, for {self.reader.model_name} with value_function={self.reader.value_function!r}",
            f"{self._reason(explanation)}; on_inexact='warn' returns the explanation with its residuals",
        )
        if self.on_inexact == "raise":
            raise ExactnessError(text)
        warn(text, ExplanationWarning)

    def _reason(self, explanation: Explanation) -> str:
        """Return what may be wrong: the numbers overflow, the model does not repeat itself, or our reading is wrong."""
        certificate = explanation.certificate()
        if not np.isfinite(certificate.max_residual):
            return "Numbers overflow float64 in the model or in its factors: scale the columns"
        if certificate.max_residual <= 1e-5 * np.abs(explanation.prediction).max(initial=0.0):
            return (
                "The model may compute in lower precision than its float64 answers say: let a function return float32 numbers, whose "
                "rounding is then allowed for. Else this is a bug: please report it with exactshap.show_versions()"
            )
        again = np.asarray(self.reader.predict(as_table(explanation.data).take([certificate.row])), float)
        if np.abs(again - explanation.prediction[certificate.row]).max() > certificate.tolerance:
            return "The model predicts this row differently each time: fix its seed, or make it deterministic"
        return "This is a bug in the reader: please report it with exactshap.show_versions()"


def explain(
    model: Any, X: Any, background: Any = None, *, index: str | Semivalue = "shapley", order: int = 1, **settings: Any
) -> Explanation:
    """Explain rows of a fitted model in one call: ``Explainer(model, background, **settings)(X, index, order)``.

    Parameters
    ----------
    model, background, **settings
        As in :class:`Explainer`.
    X, index, order
        As in :meth:`Explainer.__call__`; mind that the rows come before the background.

    Returns
    -------
    explanation : Explanation

    Raises
    ------
    ExactshapError
        Whatever :class:`Explainer` and its call raise.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> explain(SVR(C=10.0).fit(X, y), X[:5]).value_function
    'functional'
    """
    return Explainer(model, background, **settings)(X, index, order)


def _background(background: Any, model: Any, align: bool) -> Table:
    """Read the background; a mutation by the caller afterwards must not change anything, so it is copied."""
    table = as_table(background, what="background").copy()
    if not table.is_frame:
        return table
    if align:
        table = aligned(table, model)
    names = getattr(model, "feature_names_in_", None)
    if names is None or type(model).__module__.startswith("lightgbm"):  # which puts underscores for spaces; its reader checks
        return table
    owner = type(model).__name__
    return check_columns(table, [str(n) for n in names], len(names), owner=owner, what="background", align=align)


def _groups(reader: Reader) -> dict[str, tuple[str, ...]] | None:
    if all(len(columns) == 1 for columns in reader.players):
        return None
    return {
        name: tuple(reader.feature_names[j] for j in columns)
        for name, columns in zip(reader.player_names, reader.players, strict=True)
        if len(columns) != 1
    }


def _rows(parts: list[Any], empty_shape: tuple[int, ...]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(empty_shape)


def _optional_rows(parts: list[Any]) -> np.ndarray | None:
    """Join what every block has, or return None."""
    return np.concatenate(parts) if parts and all(part is not None for part in parts) else None


def _longest(methods: list[str]) -> str:
    return max(methods, key=lambda text: (len(text), text), default="")
