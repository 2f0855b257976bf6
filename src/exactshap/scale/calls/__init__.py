"""Functions with expensive calls: calls go through any ordered map, and finished ones are kept."""

from __future__ import annotations

from exactshap.scale.calls._mapped import MappedFunction as MappedFunction
