"""Hold explanations: arrays, names, index, and certificate."""

from __future__ import annotations

from exactshap.results.data import Certificate, Importance
from exactshap.results.data import fingerprint as fingerprint
from exactshap.results.explanation._explanation import Explanation as Explanation

__all__ = ["Certificate", "Importance"]
