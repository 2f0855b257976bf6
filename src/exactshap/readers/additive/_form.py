"""What a reader of one library tells of an additive model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exactshap._native import Handle
from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table
from exactshap.readers import OwnCall, Stages
from exactshap.readers.additive.terms import Reference, TermBlock

__all__ = ["AdditiveForm", "Sizes"]


@dataclass(frozen=True, eq=False)
class Sizes:
    r"""Magnitudes :math:`c + \sum_j (|x_j| + |\mathrm{E} z_j|)\, s_j`: what cancels in a sum of linear models.

    Attributes
    ----------
    each : array of shape (n_columns,)
        s; empty: nothing cancels.
    offset : float
        c.
    absent : float
        What the background adds, once there is one (:meth:`beside`).
    """

    each: np.ndarray
    offset: float
    absent: float = 0.0

    @property
    def constant(self) -> float:
        return self.offset + self.absent

    def beside(self, reference: Reference) -> Sizes:
        return replace(self, absent=float(self.each @ np.abs(reference.weights @ reference.rows)))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("ij,j->i", np.abs(rows), self.each) + self.constant)  # of no other row, unlike BLAS


_NOTHING = Sizes(np.empty(0), 0.0)


@dataclass(frozen=True, eq=False)
class AdditiveForm:
    """An additive model's formula, with the model's own prediction beside it.

    Attributes
    ----------
    blocks : tuple of Block
        The terms.
    intercept : array of shape (n_outputs,)
    encode : callable
        ``encode(table, what) -> (n_rows, ...)``: the rows as the terms see them, checked.
    predict : callable
        ``predict(table) -> (n_rows,) or (n_rows, n_outputs)``: the model's own prediction path.
    n_columns : int
    fitted_names : tuple of str or None
    output_names : tuple of str
    unit : str
    single_output : bool
    magnitude : callable or None
        ``magnitude(encoded) -> (n_rows,)``: sizes that cancel inside the model's own arithmetic beyond its terms.
    floor : float
        Absolute magnitude of rounding in the prediction (1.0 where a logarithm undoes an exponential).
    precision : dtype
        What the model computes its predictions in.
    predict_again : callable or None
        The same of rows that the terms see as well, by a quicker call.
    has_training, predicts_row_by_row : bool
        Whether the blocks know a training background of their own; as of a reader.
    is_product : bool
        Whether ``predict_again`` is a product of arrays, which costs little to ask for.
    search : callable or None
        ``search(table) -> (numbers, Handle of Bins)``, where the solver may find the bins of rows itself, or None.
    stages : callable or None
        ``stages(table) -> Stages or None``: ``predict`` of many rows in parts that threads may share.
    own_call : OwnCall or None
        ``predict`` as a single documented call.
    """

    blocks: tuple[TermBlock, ...]
    intercept: np.ndarray
    encode: Callable[..., np.ndarray]
    predict: Callable[[Table], np.ndarray]
    n_columns: int
    fitted_names: tuple[str, ...] | None
    output_names: tuple[str, ...]
    unit: str
    single_output: bool
    magnitude: Callable[[np.ndarray], np.ndarray] | None = None
    floor: float = 0.0
    precision: Any = np.float64
    predict_again: Callable[[Table], np.ndarray] | None = None
    has_training: bool = False
    predicts_row_by_row: bool = False
    is_product: bool = False
    search: Callable[[Table], tuple[np.ndarray, Handle] | None] | None = None
    stages: Callable[[Table], Stages | None] | None = None
    own_call: OwnCall | None = None

    @property
    def sizes(self) -> Sizes | None:
        """What cancels, where that is nothing or linear in the rows; None where it is anything else."""
        if self.magnitude is None:
            return _NOTHING
        return self.magnitude if isinstance(self.magnitude, Sizes) else None

    def beside(self, reference: Reference | None) -> AdditiveForm:
        """Return the form whose magnitudes are also those of a background."""
        if reference is None or not isinstance(self.magnitude, Sizes):
            return self
        return replace(self, magnitude=self.magnitude.beside(reference))

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        """Return f(x) by the formula, of shape (n_rows, n_outputs)."""
        total = np.zeros((len(rows), len(self.intercept))) + self.intercept
        for block in self.blocks:
            if len(block.columns):
                total += block.evaluate(rows).sum(axis=1)
        return total

    def scale(self, rows: np.ndarray) -> np.ndarray:
        """Return the magnitudes (n_rows,) that are added up there: of the constant, of each term in any output, and what cancels."""
        total = np.full(len(rows), np.abs(self.intercept).max(initial=0.0)) + self.cancelled(rows)
        for block in self.blocks:
            if len(block.columns):
                total += np.abs(block.evaluate(rows)).max(axis=2).sum(axis=1)
        return total

    def cancelled(self, rows: np.ndarray) -> np.ndarray | float:
        """Return the magnitudes ([n_rows,]) that cancel inside the model's own arithmetic."""
        return 0.0 if self.magnitude is None else self.magnitude(rows)

    def check(self, rows: np.ndarray, own: np.ndarray, limit: np.ndarray, *, owner: str) -> None:
        """Refuse a model whose own predictions (n_rows, n_outputs) of some rows of the background are not the sum of the terms."""
        terms = self.evaluate(rows)
        if np.all(is_right := np.abs(own - terms).max(axis=1) <= limit):
            return
        i = int(np.argmin(is_right))
        raise UnsupportedStructureError(
            message(
                f"{owner} does not predict the sum of its terms",
                f"For background row {i} it predicts {own[i].tolist()}, its terms give {terms[i].tolist()}",
                "Explain its predict method as a black box: Explainer(model.predict, background)",
            )
        )
