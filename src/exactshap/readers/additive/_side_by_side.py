"""Linear models side by side, one output each: they are one linear model of several outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers import Reader, Request
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._form import AdditiveForm
from exactshap.readers.additive.terms import ColumnTerms

__all__ = ["linear_side_by_side"]


def linear_side_by_side(
    model: Any,
    request: Request,
    parts: Sequence[Reader],
    own: Callable[[Sequence[Callable[[Table], Any]]], Callable[[Table], np.ndarray]],
    *,
    model_name: str,
    fitted_names: tuple[str, ...] | None,
    output_names: tuple[str, ...],
    unit: str,
    single_output: bool,
) -> AdditiveReader | None:
    r"""Return the reader of linear models that share their rows, with their coefficients beside each other; None where one is not linear.

    .. math:: f_k(x) = b_k + \sum_j x_j \beta_{jk}

    Parameters
    ----------
    model : object
        What holds them.
    request : Request
    parts : sequence of Reader
        Of one output each.
    own : callable
        ``own(predictions)`` of what each of them predicts: the model's own prediction, ``(table) -> (n_rows,) or (n_rows, n_outputs)``.
    model_name, fitted_names, output_names, unit, single_output
        As of a reader.
    """
    forms = [part.form for part in parts if isinstance(part, AdditiveReader)]
    blocks = [block for form in forms if (block := _linear_block(form)) is not None]
    if len(blocks) < len(parts):
        return None
    form = AdditiveForm(
        blocks=(blocks[0] if len(blocks) == 1 else _beside_each_other(blocks),),
        intercept=np.concatenate([form.intercept for form in forms]),
        encode=forms[0].encode,
        predict=own([part.predict for part in parts]),
        predict_again=own([part.predict_again for part in parts]),
        n_columns=forms[0].n_columns,
        fitted_names=fitted_names,
        output_names=output_names,
        unit=unit,
        single_output=single_output,
        floor=max(form.floor for form in forms),
        precision=max((form.precision for form in forms), key=lambda dtype: np.finfo(dtype).eps),
        is_product=all(form.is_product for form in forms),
    )
    reader = AdditiveReader(model, request, form)
    reader.model_name = model_name
    return reader


def _linear_block(form: AdditiveForm) -> ColumnTerms | None:
    """Return the terms of a model that is known to be the sum of its columns times coefficients, and an intercept."""
    block = form.blocks[0] if len(form.blocks) == 1 and form.magnitude is None else None
    return block if isinstance(block, ColumnTerms) and block.coefficients is not None else None


def _beside_each_other(blocks: Sequence[ColumnTerms]) -> ColumnTerms:
    coefficients = np.concatenate([block.coefficients for block in blocks if block.coefficients is not None], axis=1)
    return ColumnTerms(blocks[0].columns, partial(_scaled, coefficients), coefficients)


def _scaled(coefficients: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return rows[:, :, None] * coefficients
