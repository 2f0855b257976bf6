"""Compute observational values of any model, by three named estimates of conditional means from the background."""

from __future__ import annotations

from exactshap.readers.conditional.conditional import ConditionalReader as ConditionalReader
