"""What an explanation holds: arrays, names, the question asked, and how far off the answer can be."""

from __future__ import annotations

from exactshap.results.explanation._certificate import Certificate
from exactshap.results.explanation._explanation import Explanation
from exactshap.results.explanation._fingerprint import fingerprint
from exactshap.results.explanation._words import value_function_sentence

__all__ = ["Certificate", "Explanation", "fingerprint", "value_function_sentence"]
