"""Build the parts of the interactive page: numbers in one compressed block, and charts in Vega-Lite."""

from __future__ import annotations

from exactshap.results.report.interactive._charts import charts as charts
from exactshap.results.report.interactive._data import pack as pack
