"""Hold explanations: arrays, names, index, and certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use
from exactshap.results.data import Certificate
from exactshap.results.data import fingerprint as fingerprint
from exactshap.results.explanation._explanation import Explanation as Explanation

if TYPE_CHECKING:
    from exactshap.results.data import Importance

__all__ = ["Certificate", "Importance"]

__getattr__ = on_first_use(__name__, {"exactshap.results.data": "Importance"})
