"""Draw the plots that users know from shap, with the value function in their titles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactshap._runtime.types import Axes
from exactshap.errors import InputError, InputTypeError
from exactshap.results.data import (
    ExplanationData,
    counted,
    game_title,
    index_title,
    picture,
    place_of,
    readable,
    refuse_name,
    row_name,
)
from exactshap.results.plots._drawing import fitted
from exactshap.results.plots.rows import (
    draw_image,
    draw_interactions,
    draw_intervals,
    draw_text,
    draw_waterfall,
    prepare_intervals,
    prepare_waterfall,
)
from exactshap.results.plots.scatter import (
    check_main_effects,
    draw_scatter,
    draw_shape,
    prepare_scatter,
    prepare_shape,
    strongest_colour,
)
from exactshap.results.plots.summary import (
    MAX_DOTS,
    MAX_LINES,
    draw_bars,
    draw_heatmap,
    draw_paths,
    draw_swarm,
    draw_violin,
    prepare_bars,
    prepare_swarm,
)


@dataclass(frozen=True, repr=False)
class PlotAccessor:
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

    explanation: ExplanationData

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

    @picture
    def waterfall(self, i: int = 0, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
        """Draw the path from the baseline to row ``i``'s prediction."""
        rows = self._single(output)
        ax = draw_waterfall(prepare_waterfall(readable(rows), i, max_display=max_display), ax)
        return fitted(ax, title=_game(rows))

    @picture
    def beeswarm(self, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
        """Draw a dot per row and feature, coloured by cell. Text and missing cells are grey."""
        rows = self._single(output)
        ax = draw_swarm(prepare_swarm(readable(rows), max_display=max_display), ax)
        sample = f"; {MAX_DOTS:,} of {rows.n_rows:,} rows drawn" if rows.n_rows > MAX_DOTS else ""
        return fitted(ax, xlabel=f"{index_title(rows.index)} ({_unit(rows)}{sample})\n{_game(rows)}")

    @picture
    def bar(
        self,
        i: int | None = None,
        *,
        interval: float | None = None,
        background_values: np.ndarray | None = None,
        max_display: int = 10,
        output: int | str | None = None,
        ax: Axes = None,
    ) -> Any:
        """Draw each feature's mean magnitude, or the values of row ``i``.

        ``interval=0.95`` adds whiskers to the means, as of :meth:`exactshap.Explanation.importance`.
        """
        rows = self._single(output)
        if i is not None and interval is not None:
            do = "Draw plot.bar(interval=0.95) of all rows, or plot.intervals(i)"
            raise InputError("Intervals are of means over rows", f"Got row {i!r}", do)
        settings = {} if background_values is None else {"background_values": background_values}
        # Intervals are estimated for the values themselves
        shown = readable(rows) if interval is None else rows
        prepared = prepare_bars(shown, i, max_display=max_display, interval=interval, **settings)
        ax = draw_bars(prepared, ax)
        return fitted(ax, xlabel=f"{prepared.what} ({_unit(rows)})\n{_game(rows)}")

    @picture
    def scatter(
        self, feature: int | str, *, color: int | str | None = None, output: int | str | None = None, ax: Axes = None
    ) -> Any:
        """Draw a feature's values against its own numbers. Another feature may colour them.

        ``color="auto"`` takes the feature with values of its own that correlates most with the values at similar cells of ``feature``.
        """
        rows = self._single(output)
        player = self._player(feature)
        is_auto = color == "auto" and "auto" not in rows.feature_names
        other = strongest_colour(rows, player) if is_auto else None if color is None else self._player(color)
        ax = draw_scatter(prepare_scatter(readable(rows), player, other), ax)
        return fitted(ax, title=_game(rows))

    @picture
    def shape(
        self, feature: int | str, main_effects: ExplanationData, *, output: int | str | None = None, ax: Axes = None
    ) -> Any:
        r"""Draw a feature's values over its shape function.

        .. math:: \text{curve}(x_j) = v_x(\{j\}) - v(\emptyset)

        ``main_effects`` are of the same model with ``index="moebius"``, on the same rows or on a grid of them. For an additive model
        without interactions the points lie on the curve; with interactions their distance is the feature's share of those.
        """
        rows = self._single(output)
        check_main_effects(main_effects)
        curve = main_effects if output is None else main_effects.output(output)
        return draw_shape(prepare_shape(rows, curve, feature), ax)

    @picture
    def heatmap(self, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
        """Draw every row as a column of colours, similar rows together."""
        rows = self._single(output)
        ax = draw_heatmap(readable(rows), max_display=max_display, ax=ax)
        return fitted(ax, title=_game(rows))

    @picture
    def violin(self, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
        """Draw the distributions of the strongest features' values over rows."""
        rows = self._single(output)
        ax = draw_violin(readable(rows), max_display=max_display, ax=ax)
        return fitted(ax, xlabel=f"{index_title(rows.index)} ({_unit(rows)})\n{_game(rows)}")

    @picture
    def intervals(
        self,
        i: int | None = None,
        *,
        level: float = 0.95,
        max_display: int = 10,
        output: int | str | None = None,
        ax: Axes = None,
    ) -> Any:
        """Draw values with credible intervals (Gaussian processes) or confidence intervals (sampled values)."""
        prepared = prepare_intervals(readable(self._single(output)), i, level=level, max_display=max_display)
        return fitted(draw_intervals(prepared, ax))

    @picture
    def decision(self, *, max_display: int = 10, output: int | str | None = None, ax: Axes = None) -> Any:
        """Draw each row's path from baseline to prediction, weakest feature first."""
        rows = self._single(output)
        ax = draw_paths(readable(rows), max_display=max_display, ax=ax)
        drawn = counted(rows.n_rows, "row") if rows.n_rows <= MAX_LINES else f"{MAX_LINES} of {rows.n_rows:,} rows"
        return fitted(ax, xlabel=f"{_unit(rows)}, {drawn}\n{_game(rows)}")

    @picture
    def image(
        self,
        i: int = 0,
        shape: tuple[int, int] | None = None,
        *,
        image: np.ndarray | None = None,
        output: int | str | None = None,
        ax: Axes = None,
    ) -> Any:
        """Draw row ``i``'s values as patches of a picture. ``shape`` is (lines, columns); None for a square."""
        rows = self._single(output)
        side = int(np.sqrt(rows.n_players))
        ax = draw_image(readable(rows), i, (side, side) if shape is None else shape, image, ax)
        return fitted(ax, title=f"{row_name(rows, i)}\n{_game(rows)}", size=10)

    @picture
    def text(self, i: int = 0, words: Sequence[str] | None = None, *, output: int | str | None = None, ax: Axes = None) -> Any:
        """Draw row ``i``'s values as colours behind words, one word per player."""
        rows = self._single(output)
        ax = draw_text(readable(rows), i, words, ax)
        return fitted(ax, title=f"{row_name(rows, i)}, {_unit(rows)}\n{_game(rows)}", size=10)

    @picture
    def interactions(
        self, i: int | None = None, *, max_display: int = 12, output: int | str | None = None, ax: Axes = None
    ) -> Any:
        """Draw row ``i``'s matrix of pairs, or all rows' mean magnitudes."""
        return fitted(draw_interactions(readable(self._single(output)), i, max_display=max_display, ax=ax))

    def _single(self, output: int | str | None) -> ExplanationData:
        if self.explanation.n_rows == 0:
            raise InputError("A plot needs at least one row", "Got an explanation of 0 rows")
        if output is not None:
            return self.explanation.output(output)
        if self.explanation.output_names is not None:
            raise InputError(
                "A plot shows one output",
                f"This explanation has {list(self.explanation.output_names)}",
                "Pass output= (a number or a name)",
            )
        return self.explanation

    def _player(self, feature: int | str) -> int:
        do = "Pass a name or a number: plot.scatter('age', color='sex')"
        return place_of(feature, self.explanation.feature_names, "feature", do)


def _unit(rows: ExplanationData) -> str:
    return f"model output: {rows.unit}" if rows.unit else "model output"


def _game(rows: ExplanationData) -> str:
    certificate = rows.certificate()
    warning = "" if certificate.passed else f"; residual {certificate.max_residual:.2g} is ABOVE its tolerance"
    model = f" of {rows.model_name}" if rows.model_name and len(rows.model_name) <= 40 else ""
    return f"{rows.kind} {index_title(rows.index)}{model}, {game_title(rows)}{warning}"
