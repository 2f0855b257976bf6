"""Draw explanations: pictures are prepared as plain data, then drawn into an ``ax``, which is returned.

Nothing here calls ``plt.show()``, resizes a figure that was passed, or touches the global random state. :func:`palette` sets all colours.
Explanations have one output; features beyond ``max_display`` are shown as one; without an ``ax`` there is a new figure.
"""

from __future__ import annotations

from exactshap.results.plots._accessor import PlotAccessor
from exactshap.results.plots._columns import Shown as Shown
from exactshap.results.plots._palette import Palette, palette
from exactshap.results.plots._palette import current_palette as current_palette
from exactshap.results.plots._palette import dark_palette as dark_palette
from exactshap.results.plots._pyplot import escape as escape
from exactshap.results.plots._pyplot import name_lines as name_lines
from exactshap.results.plots._pyplot import new_axes as new_axes
from exactshap.results.plots._pyplot import without_frame as without_frame
from exactshap.results.plots.interactions import draw_interactions as draw_interactions
from exactshap.results.plots.interactions import prepare_interactions as prepare_interactions
from exactshap.results.plots.intervals import draw_intervals as draw_intervals
from exactshap.results.plots.intervals import prepare_intervals as prepare_intervals
from exactshap.results.plots.overview import draw_heatmap as draw_heatmap
from exactshap.results.plots.overview import draw_violin as draw_violin
from exactshap.results.plots.overview import prepare_heatmap as prepare_heatmap
from exactshap.results.plots.overview import prepare_paths as prepare_paths
from exactshap.results.plots.overview import prepare_violin as prepare_violin
from exactshap.results.plots.scatter import draw_scatter as draw_scatter
from exactshap.results.plots.scatter import prepare_scatter as prepare_scatter
from exactshap.results.plots.shapes import draw_shape, prepare_shape
from exactshap.results.plots.shares import ShareBars as ShareBars
from exactshap.results.plots.shares import draw_shares as draw_shares
from exactshap.results.plots.shares import prepare_shares as prepare_shares
from exactshap.results.plots.summary import places_of as places_of
from exactshap.results.plots.summary import prepare_bars as prepare_bars
from exactshap.results.plots.summary import prepare_swarm as prepare_swarm
from exactshap.results.plots.summary import swarm_offsets as swarm_offsets
from exactshap.results.plots.two_samples import Marginal as Marginal
from exactshap.results.plots.two_samples import draw_marginals, prepare_marginals
from exactshap.results.plots.waterfall import draw_waterfall as draw_waterfall
from exactshap.results.plots.waterfall import prepare_waterfall as prepare_waterfall

__all__ = ["Palette", "PlotAccessor", "draw_marginals", "draw_shape", "palette", "prepare_marginals", "prepare_shape"]
