"""Send expensive calls of functions through any ordered map, and keep finished ones."""

from __future__ import annotations

from exactshap.scale.calls._mapped import MappedFunction as MappedFunction
