"""Pack the numbers of the interactive page in one compressed block."""

from __future__ import annotations

from exactshap.results.report.interactive._data import pack as pack
