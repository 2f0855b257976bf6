"""Observational values of any model: conditional means estimated from the background, in three ways that are named."""

from __future__ import annotations

from exactshap.readers.conditional.conditional import ConditionalReader as ConditionalReader
