"""Draw explanations.

Pictures are prepared as plain data, then drawn into an ``ax``, which is returned. Nothing here calls ``plt.show()``, resizes a figure that was passed, or touches the global random state. :func:`palette` sets all colours.
Explanations have one output; features beyond ``max_display`` are shown as one; without an ``ax`` there is a new figure.
"""

from __future__ import annotations

from exactshap.results.plots._accessor import PlotAccessor as PlotAccessor
from exactshap.results.plots._drawing import Shown as Shown
from exactshap.results.plots._drawing import cell_words as cell_words
from exactshap.results.plots._drawing import current_palette as current_palette
from exactshap.results.plots._drawing import dark_palette as dark_palette
from exactshap.results.plots._drawing import draw_bars as draw_bars
from exactshap.results.plots._drawing import escape as escape
from exactshap.results.plots._drawing import name_lines as name_lines
from exactshap.results.plots._drawing import new_axes as new_axes
from exactshap.results.plots._drawing import palette
from exactshap.results.plots._drawing import player_labels as player_labels
from exactshap.results.plots._drawing import shortened as shortened
from exactshap.results.plots._drawing import shortened_apart as shortened_apart
from exactshap.results.plots._drawing import without_frame as without_frame
from exactshap.results.plots.summary import places_of as places_of
from exactshap.results.plots.summary import swarm_offsets as swarm_offsets
from exactshap.results.plots.two_samples import Marginal as Marginal
from exactshap.results.plots.two_samples import draw_marginals
from exactshap.results.plots.two_samples import draw_prepared as draw_prepared
from exactshap.results.plots.two_samples import prepare_marginals as prepare_marginals

__all__ = ["draw_marginals", "palette"]
