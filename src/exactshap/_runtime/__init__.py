"""What a run needs besides numerics: files written whole, optional imports, progress, threads and BLAS."""

from __future__ import annotations
