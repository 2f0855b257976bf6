"""Turn solutions into explanations, and refuse those that are not exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exactshap.errors import ExactnessError, ExplanationWarning, message, warn
from exactshap.explainer._certify import Certified, Check
from exactshap.frames import Table, as_table
from exactshap.readers import Reader
from exactshap.results.explanation import Explanation
from exactshap.semivalues import Question
from exactshap.solvers import Solution, player_sets

OVERFLOW = "Numbers overflow float64 in the model or in its factors: scale the columns"
MIXED_OVERFLOW = (
    "The model predicts NaN or infinity for rows that mix the explained and the background rows: compare its own predictions"
    " of both, and mend its kernel or scale its columns"
)
UNSTEADY = (
    "The model predicts {} differently each time: fix its seed, make it deterministic, and let no step look at other rows"
)
REPEATED_ROWS = 16  # of the background, which are predicted alone and together
BUG = " is a bug in the reader: please report it with exactshap.show_versions()"
CHANGED = "If the model has changed since it was read, make a new Explainer. Else it"
OTHER_DTYPES = "If the model answers otherwise in the dtypes of the background, as sums of truth values and of numbers are, cast X to them. Else it"


def wrap(
    reader: Reader, table: Table, solution: Solution, certified: Certified, question: Question, order: int, **settings: Any
) -> Explanation:
    """Return a certified solution as an explanation."""
    part, posterior = solution.part, solution.posterior
    n_players, background, groups = len(reader.traits.player_names), reader.traits.compared_with, _groups(reader)
    return Explanation(
        values=part.values[:, :n_players],
        baseline=part.empty,
        prediction=certified.prediction,
        residual=certified.residual,
        tolerance=certified.tolerance,
        feature_names=reader.traits.player_names,
        output_names=None if reader.traits.single_output else reader.traits.output_names,
        std_error=None if part.std_error is None else part.std_error[:, :n_players],
        # Whether an absent cell means 0 or missing is the model's to say, so that sparse rows become dense here.
        data=table.numeric(absent=reader.traits.absent) if table.is_sparse else table.as_it_is(),
        index=question.name,
        order=order,
        sets=solution.sets or player_sets(n_players, order),
        set_values=part.values if order > 1 else None,
        set_std_error=part.std_error if order > 1 else None,
        set_std=posterior.set_std,
        value_function=reader.traits.value_function,
        method=part.method,
        model_name=reader.traits.model_name,
        error_bound=part.error_bound if np.ndim(part.error_bound) else np.full(table.n_rows, part.error_bound),
        n_evaluations=solution.n_evaluations,
        approximation_error=certified.approximation_error,
        background_size=None if background is None else background.n_rows,
        groups=groups and _columns_in(table, reader, groups),
        covariances=posterior.covariance,
        covariance_residual=posterior.covariance_residual,
        **_mask_facts(certified.check),
        **settings,
        # The bound is derived for Shapley values, not for other indices.
        stability_bound=reader.stability(table) if question.name == "shapley" else None,
    )


def named_unit(reader: Reader, output: object) -> str:
    """Return the unit with the name of the output that ``output=`` chose, unless it is there."""
    unit, name = reader.traits.unit, reader.traits.output_names[0]
    is_number = isinstance(output, (int, np.integer)) and not isinstance(output, bool)
    is_chosen = reader.traits.single_output and (is_number or output == name) and name != "output"
    return f"{unit} of {name}" if is_chosen and f" {name} " not in f" {unit} " else unit


def _mask_facts(check: Check) -> dict[str, Any]:
    """Return the results of a check that an explanation keeps."""
    if not check.n_masks:
        return {"mask_reason": check.reason}
    # An infinite tolerance is no comparison.
    if not math.isfinite(check.tolerance):
        return {"mask_reason": "numbers overflow in them"}
    return {
        "mask_difference": check.difference,
        "mask_tolerance": check.tolerance,
        "n_masks": check.n_masks,
        "mask_rows": check.rows,
    }


def _columns_in(table: Table, reader: Reader, groups: dict[str, tuple[str, ...]]) -> dict[str, tuple[str | int, ...]]:
    """Return each group's columns: names in the explained rows, else numbers. ``feature_names=`` may name them otherwise."""
    names = table.names or tuple(f"x{j}" for j in range(table.n_columns))
    if names == reader.traits.feature_names:
        return dict(groups)
    number = {name: j for j, name in enumerate(reader.traits.feature_names)}
    return {name: tuple(number[column] for column in columns) for name, columns in groups.items()}


def _groups(reader: Reader) -> dict[str, tuple[str, ...]] | None:
    if {*map(len, reader.traits.players)} == {1}:
        return None
    return {
        name: tuple(reader.traits.feature_names[j] for j in columns)
        for name, columns in zip(reader.traits.player_names, reader.traits.players, strict=True)
        if len(columns) != 1
    }


def refuse_or_warn(reader: Reader, explanation: Explanation, on_inexact: str, changed: str) -> None:
    """Raise or warn if a residual is above its tolerance, with a possible reason; ``changed`` is the one that is known."""
    certificate = explanation.certificate()
    difference, row = certificate.mask_difference or 0.0, certificate.row
    where = f"for {reader.traits.model_name} with value_function={reader.traits.value_function!r}"
    if changed:
        text = changed
    elif certificate.adds_up:
        reason = MIXED_OVERFLOW if not np.isfinite(difference) else _reason(reader, explanation, difference, f"row {row}")
        text = message(
            f"v(S) is not what the model predicts for hybrid rows: off by {certificate.mask_difference:.3g} (tolerance {certificate.mask_tolerance:.3g})",
            f"On {certificate.n_masks} coalitions, {where}",
            f"{reason}; on_inexact='warn' returns the explanation with it",
        )
    else:
        overflows = not np.isfinite(certificate.max_residual + certificate.tolerance)
        reason = OVERFLOW if overflows else _reason(reader, explanation, certificate.max_residual, "this row")
        text = message(
            f"Values do not add up: residual {certificate.max_residual:.3g} at row {row} (tolerance {certificate.tolerance:.3g})",
            f"Of {certificate.checks}, {where}",
            f"{reason}; on_inexact='warn' returns the explanation with its residuals",
        )
    if on_inexact == "raise":
        raise ExactnessError(text)
    warn(text, ExplanationWarning)


def _reason(reader: Reader, explanation: Explanation, difference: float, called: str) -> str:
    """Return a possible reason: rounding, a model that does not repeat itself, other dtypes, a change or a wrong reading."""
    if text := _imprecise(explanation, difference) or _unsteady(reader, explanation, called):
        return text
    background = reader.traits.background
    alike = background is None or explanation.data is None or as_table(explanation.data).stacks_with(background)
    return (CHANGED if alike else OTHER_DTYPES) + BUG


def _unsteady(reader: Reader, explanation: Explanation, called: str) -> str:
    """Return a warning if predictions, of a row alone and among other rows, do not repeat; else ""."""
    row, tolerance = explanation.certificate().row, np.max(explanation.tolerance)
    if row is None:
        return ""
    # Alone: a model that looks at the other rows of its call answers differently now.
    alone = _alone(reader, as_table(explanation.data), row)
    if np.abs(alone - explanation.prediction[row]).max() > explanation.tolerance[row]:
        return UNSTEADY.format(called)
    if reader.traits.background is None:
        return ""
    # The label of one row may stay as it is: others, which the mask check compares
    some = reader.traits.background.take(slice(0, REPEATED_ROWS))
    together = np.asarray(reader.predict(some), float)
    if any(np.abs(_alone(reader, some, z) - value).max() > tolerance for z, value in enumerate(together)):
        return UNSTEADY.format("rows of the background")
    return ""


def _alone(reader: Reader, table: Table, row: int) -> np.ndarray:
    return np.asarray(reader.predict(table.take([row])), float)


def _imprecise(explanation: Explanation, difference: float) -> str:
    """Return a warning for a difference that single-precision rounding explains, else ""."""
    if difference > 1e-5 * np.abs(explanation.prediction).max(initial=0.0):
        return ""
    return (
        "The model may compute in lower precision than its float64 answers say: let a function return float32 numbers; their "
        "rounding is then allowed for. Else this is a bug: please report it with exactshap.show_versions()"
    )
