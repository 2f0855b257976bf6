"""What a family says of its model: the formula and the own prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from exactshap._native import Handle
from exactshap.errors import UnsupportedStructureError, message
from exactshap.frames import Table
from exactshap.readers import OwnCall
from exactshap.readers.additive.terms import TermBlock

__all__ = ["AdditiveForm"]


@dataclass(frozen=True, eq=False)
class AdditiveForm:
    """Hold an additive model's formula and its own prediction.

    Attributes
    ----------
    blocks : tuple of Block
        The terms.
    intercept : array of shape (n_outputs,)
    encode : callable
        ``encode(table, what) -> (n_rows, ...)``: the rows as the terms see them, checked.
    predict : callable
        ``predict(table) -> (n_rows,) or (n_rows, n_outputs)``: the model's documented call, in the unit of the terms.
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
    has_training : bool
        Whether the blocks know a training background of their own.
    own_call : OwnCall or None
        ``predict`` as a single documented call, which a pipeline or a search answers as well.
    search : callable or None
        ``search(table) -> (numbers, Handle of Bins)``, where the solver may find the bins of rows itself, or None.
    """

    blocks: tuple[TermBlock, ...]
    intercept: np.ndarray
    encode: Callable[[Table, str], np.ndarray]
    predict: Callable[[Table], np.ndarray]
    n_columns: int
    fitted_names: tuple[str, ...] | None
    output_names: tuple[str, ...]
    unit: str
    single_output: bool
    magnitude: Callable[[np.ndarray], np.ndarray] | None = None
    floor: float = 0.0
    precision: DTypeLike = np.float64
    has_training: bool = False
    own_call: OwnCall | None = None
    search: Callable[[Table], tuple[np.ndarray, Handle] | None] | None = None

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
        """Refuse a model with predictions that are not its terms' sum. They are (n_rows, n_outputs)."""
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
