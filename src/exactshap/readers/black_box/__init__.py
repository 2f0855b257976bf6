"""Explain functions that can only be called, by rows mixed with the background, sampled and regressed."""

from __future__ import annotations

from exactshap.readers.black_box.function import BlackBox as BlackBox
