"""What the engines for trees share: the form of their answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Part"]


@dataclass(frozen=True, eq=False)
class Part:
    """What an engine answers for some rows and its trees, without the ensemble's constant.

    ``values`` (n_rows, n_sets, n_outputs), ``full`` (n_rows, n_outputs), ``scale`` (n_rows,), ``relative_bound`` on the
    quadrature error, and the method by name.
    """

    values: np.ndarray
    full: np.ndarray
    scale: np.ndarray
    relative_bound: float
    method: str
