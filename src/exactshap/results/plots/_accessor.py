"""Offer the pictures of one explanation as methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from exactshap.errors import InputTypeError
from exactshap.results.data import refuse_name
from exactshap.results.plots import rows, summary
from exactshap.results.plots import scatter as cells
from exactshap.results.plots._drawing import Plotted


@dataclass(frozen=True, repr=False)
class PlotAccessor(Plotted):
    """Draw an explanation. Every method takes ``ax`` and returns it, shows nothing and resizes no figure of yours.

    Explanations need at least one row; several outputs need ``output=`` (a number or a name).

    >>> from exactshap import Explanation
    >>> explanation = Explanation(
    ...     values=[[1.0, 2.0]], baseline=[0.5], prediction=[3.5], residual=[0.0], tolerance=1e-12,
    ...     feature_names=["age", "bmi"], value_function="baseline",
    ... )
    >>> explanation.plot
    plot: waterfall(i), beeswarm(), ...
    """

    waterfall, intervals, interactions = rows.waterfall, rows.intervals, rows.interactions
    image, text = rows.image, rows.text
    bar, beeswarm, heatmap = summary.bar, summary.beeswarm, summary.heatmap
    violin, decision = summary.violin, summary.decision
    scatter, shape = cells.scatter, cells.shape

    def __repr__(self) -> str:
        return (
            "plot: waterfall(i), beeswarm(), bar(i=None), scatter(feature), shape(feature, main_effects), heatmap(), violin(), decision(), image(i, shape), text(i), interactions(i=None), intervals(i=None); "
            "each takes ax= and output="
        )

    def __call__(self, *_: object, **__: object) -> None:
        do = "Call one of them: explanation.plot.beeswarm(), explanation.plot.waterfall(0), explanation.plot.bar()"
        raise InputTypeError("`plot` holds the pictures and is none itself", do=do)

    def __getattr__(self, name: str) -> Any:
        refuse_name("plot", name)
        return object.__getattribute__(self, name)  # raises the first error again
