"""The parts of the interactive page: the numbers as one compressed block, and charts as Vega-Lite."""

from __future__ import annotations

from exactshap.results.report.interactive._charts import charts as charts
from exactshap.results.report.interactive._data import pack as pack
