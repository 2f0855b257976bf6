"""Pictures of explanations: prepared as plain data first, then drawn into an ``ax`` that comes in and goes out.

Nothing here calls ``plt.show()``, resizes a figure that was passed in, or touches the global random state.
"""

from __future__ import annotations

from exactshap.results.plots._accessor import PlotAccessor
from exactshap.results.plots._columns import as_days as as_days
from exactshap.results.plots._pyplot import displayed as displayed
from exactshap.results.plots._pyplot import escape as escape
from exactshap.results.plots._pyplot import new_axes as new_axes
from exactshap.results.plots.interactions import draw_interactions, prepare_interactions
from exactshap.results.plots.intervals import draw_intervals, prepare_intervals
from exactshap.results.plots.overview import draw_heatmap, draw_violin, prepare_heatmap, prepare_violin
from exactshap.results.plots.scatter import draw_scatter, prepare_scatter
from exactshap.results.plots.shapes import draw_shape, draw_shapes, prepare_shape
from exactshap.results.plots.shares import ShareBars as ShareBars
from exactshap.results.plots.shares import draw_shares, prepare_shares
from exactshap.results.plots.two_samples import Marginal as Marginal
from exactshap.results.plots.two_samples import draw_marginals, prepare_marginals
from exactshap.results.plots.waterfall import draw_waterfall, prepare_waterfall

__all__ = [
    "PlotAccessor",
    "draw_heatmap",
    "draw_interactions",
    "draw_intervals",
    "draw_marginals",
    "draw_scatter",
    "draw_shape",
    "draw_shapes",
    "draw_shares",
    "draw_violin",
    "draw_waterfall",
    "prepare_heatmap",
    "prepare_interactions",
    "prepare_intervals",
    "prepare_marginals",
    "prepare_scatter",
    "prepare_shape",
    "prepare_shares",
    "prepare_violin",
    "prepare_waterfall",
]
