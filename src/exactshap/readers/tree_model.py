"""Tree models that were read from files (:func:`exactshap.trees.load`): their own prediction is our routing of their trees."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from exactshap.frames import Table
from exactshap.readers._base import Request
from exactshap.readers._trees import TreeReader

__all__ = ["read"]


def read(model: Any, request: Request) -> TreeReader:
    """Read f(x) = constant + sum of trees."""
    return TreeReader(model, request, model, functools.partial(_own_margin, model))


def _own_margin(model: Any, X: Table) -> np.ndarray:
    return model.predict(X.native)
