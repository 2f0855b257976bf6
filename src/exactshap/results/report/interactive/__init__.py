"""The parts of the interactive page: the numbers as one compressed block, charts as Vega-Lite, scripts with their hashes."""

from __future__ import annotations

from exactshap.results.report.interactive._charts import charts as charts
from exactshap.results.report.interactive._data import pack as pack
from exactshap.results.report.interactive._scripts import content_policy as content_policy
from exactshap.results.report.interactive._scripts import own_script as own_script
from exactshap.results.report.interactive._scripts import vega as vega
