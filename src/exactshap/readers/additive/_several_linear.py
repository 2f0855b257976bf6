"""Several linear models that are one: side by side, as its outputs, or added up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers import Reader, Request, finite_numbers
from exactshap.readers.additive._additive import AdditiveReader
from exactshap.readers.additive._form import AdditiveForm, Sizes
from exactshap.readers.additive.sklearn_linear import scaled
from exactshap.readers.additive.terms import ColumnTerms
from exactshap.solvers import player_sets

__all__ = ["linear_side_by_side", "sum_of_linear"]


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
    forms = _linear_forms(parts)
    if len(forms) < len(parts):
        return None
    form = AdditiveForm(
        blocks=(forms[0].blocks[0] if len(forms) == 1 else _terms(np.concatenate([*map(_coefficients, forms)], axis=1)),),
        intercept=np.concatenate([form.intercept for form in forms]),
        encode=forms[0].encode,
        predict=own([part.predict for part in parts]),
        predict_again=own([part.predict_again for part in parts]),
        n_columns=forms[0].n_columns,
        fitted_names=fitted_names,
        output_names=output_names,
        unit=unit,
        single_output=single_output,
        **_of_all(forms),
    )
    reader = AdditiveReader(model, request, form)
    reader.model_name = model_name
    return reader


def sum_of_linear(
    model: Any,
    request: Request,
    parts: Sequence[Reader],
    weights: Sequence[np.ndarray],
    columns: Sequence[tuple[int, ...] | None],
    constant: np.ndarray,
    *,
    model_name: str,
    n_columns: int,
    **facts: Any,
) -> AdditiveReader | None:
    r"""Return the reader of a weighted sum of linear models; None where one is not linear.

    .. math:: f(x) = c + \sum_m W_m^\top (b_m + \beta_m^\top x_{C_m})

    The model itself asks each of them and adds up what may cancel: the scale is that of the terms and the predictions of all of them,
    of the row and of the background, and of the M numbers that are added up, one after the other.

    .. math:: \Bigl(1 + \frac{\sqrt M}{16}\Bigr) \sum_m \Bigl(|b_m|^\top + 2 \sum_j (|x_j| + |\mathrm{E} z_j|)\, |\beta_{mj}|^\top\Bigr) |W_m|

    Parameters
    ----------
    model : object
        What holds them.
    request : Request
        With a background.
    parts : sequence of Reader
    weights : sequence of arrays of shape (n_part_outputs, n_outputs)
        W_m.
    columns : sequence of tuple of int, or None
        C_m; None: all of them.
    constant : array of shape (n_outputs,)
        c.
    model_name : str
    n_columns : int
    **facts
        Of :class:`AdditiveForm`: the model's own prediction, names, unit.
    """
    forms = _linear_forms(parts)
    if len(forms) < len(parts) or request.background is None:
        return None
    places = [np.arange(n_columns) if some is None else np.array(some, int) for some in columns]
    whole, sizes = np.zeros((2, n_columns, len(constant)))
    for form, weight, place in zip(forms, weights, places, strict=True):
        np.add.at(whole, place, _coefficients(form) @ weight)  # a column may be drawn twice
        np.add.at(sizes, place, np.abs(_coefficients(form)) @ np.abs(weight))
    pairs = list(zip(forms, weights, strict=True))
    offset = np.sum([np.abs(form.intercept) @ np.abs(weight) for form, weight in pairs], axis=0).max()
    share = 1.0 + np.sqrt(len(parts)) / 16.0  # 4 eps sqrt(M) beside a growth of 64 eps at least: AdditiveReader.tolerance
    form = AdditiveForm(
        blocks=(_terms(whole),),
        intercept=constant + np.sum([form.intercept @ weight for form, weight in pairs], axis=0),
        encode=partial(finite_numbers, owner=model_name, names=request.feature_names),
        n_columns=n_columns,
        magnitude=Sizes(2.0 * share * sizes.max(axis=1), float(share * offset)),
        **{**_of_all(forms), "is_product": False},  # the ensemble's own code adds up what they predict
        **facts,
    )
    reader = AdditiveReader(model, request, form)
    reader.model_name = model_name
    return reader


def _linear_forms(parts: Sequence[Reader]) -> list[AdditiveForm]:
    """Return the forms of those that are known to be the sum of their columns times coefficients, and an intercept."""
    return [part.form for part in parts if isinstance(part, AdditiveReader) and _is_linear(part.form)]


def _is_linear(form: AdditiveForm) -> bool:
    block = form.blocks[0] if len(form.blocks) == 1 and form.magnitude is None else None
    return isinstance(block, ColumnTerms) and block.coefficients is not None


def _coefficients(form: AdditiveForm) -> np.ndarray:
    block = form.blocks[0]
    assert isinstance(block, ColumnTerms)
    assert block.coefficients is not None
    return block.coefficients


def _of_all(forms: Sequence[AdditiveForm]) -> dict[str, Any]:
    """Return what is true of models that are asked together."""
    return {
        "floor": max(form.floor for form in forms),
        "precision": max((form.precision for form in forms), key=lambda dtype: np.finfo(dtype).eps),
        "is_product": all(form.is_product for form in forms),
    }


def _terms(coefficients: np.ndarray) -> ColumnTerms:
    return ColumnTerms(player_sets(len(coefficients), 1), partial(scaled, coefficients), coefficients)
