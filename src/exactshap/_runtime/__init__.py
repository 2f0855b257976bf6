"""Provide tools besides numerics: atomic files, optional imports, progress, threads and BLAS."""

from __future__ import annotations
