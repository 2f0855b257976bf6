"""MMD and HSIC: statistics of pairs of rows, split exactly over the columns."""

from __future__ import annotations
