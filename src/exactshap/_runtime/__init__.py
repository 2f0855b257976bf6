"""What a run needs beside numerics: files written whole, optional imports, progress, threads and BLAS."""

from __future__ import annotations
