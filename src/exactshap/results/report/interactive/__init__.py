"""The parts of the interactive page: the numbers as one compressed block, charts as Vega-Lite, scripts with their hashes."""

from __future__ import annotations

from exactshap.results.report.interactive._charts import charts
from exactshap.results.report.interactive._data import Packed, pack
from exactshap.results.report.interactive._scripts import content_policy, own_script, vega

__all__ = ["Packed", "charts", "content_policy", "own_script", "pack", "vega"]
