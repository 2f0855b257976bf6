"""Pictures of explanations: prepared as plain data first, then drawn into an ``ax`` that comes in and goes out.

Nothing here calls ``plt.show()``, resizes a figure that was passed in, or touches the global random state.
"""

from __future__ import annotations

from exactshap.plots._accessor import PlotAccessor
from exactshap.plots.interactions import draw_interactions, prepare_interactions

__all__ = ["PlotAccessor", "draw_interactions", "prepare_interactions"]
