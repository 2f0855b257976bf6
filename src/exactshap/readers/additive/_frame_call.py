"""Call models that accept only pandas frames with named columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactshap._runtime.types import Model, TableLike
from exactshap.readers import OwnCall


@dataclass(frozen=True, eq=False)
class FrameCall(OwnCall):
    """Call a method on a pandas frame with the columns of the fit, or with all columns."""

    names: tuple[str, ...] = ()

    def __call__(self, model: Model, rows: TableLike) -> np.ndarray:
        import pandas as pd

        if not isinstance(rows, pd.DataFrame):
            names = list(self.names or getattr(rows, "column_names", None) or rows.columns)
            columns = {name: np.asarray(rows[name]) for name in names} if hasattr(rows, "columns") else np.asarray(rows)
            rows = pd.DataFrame(columns, columns=names)
        return super().__call__(model, rows)
