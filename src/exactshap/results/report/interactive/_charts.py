"""Write the charts of the interactive page in Vega-Lite with Altair; the page's script supplies the numbers.

Charts contain no names or cells of the user: fields have fixed names, and texts arrive as signals or contents of fields.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from exactshap._runtime.optional import require
from exactshap._runtime.types import Axes, Foreign

_SHADES = list(range(-1, 9))
_SHADE_COLOURS = ["var(--qx)", *(f"var(--q{k})" for k in range(9))]
_WORDS = "words[datum.value]"
_SHADE = "isValid(datum.colour) ? round(8 * clamp((datum.colour - range[0]) / (range[1] - range[0] || 1), 0, 1)) : -1"
# Without eval, as the page's policy requires.
_EMBED = {"ast": True, "actions": False, "renderer": "svg", "logLevel": 1}
_LABEL_LIMIT = "windowSize()[0] < 600 ? 140 : 190"
_AXIS = {
    "labelColor": "var(--soft)",
    "titleColor": "var(--soft)",
    "gridColor": "var(--line)",
    "domainColor": "var(--soft)",
    "tickColor": "var(--soft)",
    "titleFontWeight": "normal",
    "labelFontSize": 11,
    "titleFontSize": 12,
}


def charts() -> dict[str, dict[str, Any]]:
    """Return the charts of the page by name, as Vega-Lite.

    >>> sorted(charts())
    ['date', 'features', 'number', 'pairs', 'row', 'text']
    """
    alt = require("altair", "interactive", purpose="An interactive report")
    return {
        name: chart.to_dict()
        for name, chart in (
            ("features", _features(alt)),
            ("row", _row(alt)),
            ("pairs", _pairs(alt)),
            ("number", _scatter(alt, "quantitative", {"zero": False})),
            ("date", _scatter(alt, "temporal", {"type": "utc"})),
            (
                "text",
                _scatter(
                    alt,
                    "quantitative",
                    {"zero": False},
                    {"values": alt.ExprRef("sequence(length(words))"), "labelExpr": _WORDS},
                ),
            ),
        )
    }


def _places(alt: ModuleType, data: str, **extent: Any) -> Any:
    """Return the vertical axis of bars, with places 0, 1, 2, ... for the rows of ``data``."""
    axis = alt.Axis(
        **extent, title=None, labelExpr=f"data('{data}')[datum.value].word", domain=False, ticks=False, labelPadding=8
    )
    return alt.Y("place:O", axis=axis, scale=alt.Scale(paddingInner=0.35, paddingOuter=0.2))


def _rooted(alt: ModuleType, chart: Foreign, *params: Any) -> Any:
    words = alt.param(name="words", value=[])
    fitted = chart.properties(width="container", height=300, usermeta={"embedOptions": _EMBED})
    return fitted.add_params(words, *params).configure(
        background="transparent",
        font="system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=_AXIS,
        axisXBand={"labelColor": "var(--ink)"},
        axisYBand={"labelColor": "var(--ink)", "labelFontSize": 12, "labelLimit": alt.ExprRef(_LABEL_LIMIT)},
    )


def _features(alt: ModuleType) -> Any:
    """Draw mean magnitudes of filtered rows as bars, of all rows as marks."""
    base = (
        alt.Chart(alt.NamedData(name="features"))
        .transform_calculate(said="datum.name + ': ' + datum.text")
        .encode(y=_places(alt, "features"))
    )
    zero = alt.Scale(zero=True, nice=True)
    apart = alt.Axis(tickCount=5, labelOverlap="greedy", labelSeparation=6)
    bars = base.mark_bar(color="var(--accent)", cursor="pointer", cornerRadius=1).encode(
        description="said:N",
        x=alt.X("strength:Q", title="mean |value|", scale=zero, axis=apart),
        opacity=alt.condition("datum.chosen", alt.value(1), alt.value(0.72)),
    )
    marks = (
        base.transform_filter("isValid(datum.every)")
        .mark_tick(aria=False, color="var(--ink)", thickness=2, bandSize=14)
        .encode(x="every:Q")
    )
    words = base.mark_text(aria=False, align="left", dx=5, color="var(--ink)", fontSize=11).encode(
        x=alt.value("width"), text="text:N"
    )
    return _rooted(
        alt,
        alt.layer(bars, marks, words).properties(padding={"left": 2, "top": 4, "bottom": 2, "right": 4}),
    )


def _row(alt: ModuleType) -> Any:
    """Draw the path from baseline to prediction, one bar per feature."""
    sign = "datum.end ? 'end' : datum.stop < datum.start ? 'down' : 'up'"
    base = (
        alt.Chart(alt.NamedData(name="row"))
        .transform_calculate(sign=sign, said="datum.word + ': ' + datum.text")
        .encode(y=_places(alt, "row", minExtent=alt.ExprRef("extent")))
    )
    limits = alt.param(name="limits", value=[0, 1])
    same = (alt.param(name="extent", value=0), alt.param(name="widest", value=""))  # room for A and B at either side
    across = alt.Scale(domain=alt.ExprRef("limits"), nice=False, zero=False)
    colour = alt.Color("sign:N", legend=None, scale=alt.Scale(domain=["up", "down"], range=["var(--plus)", "var(--minus)"]))
    bars = (
        base.transform_filter("!datum.end")
        .mark_bar(cursor="pointer", cornerRadius=1)
        .encode(
            description="said:N",
            x=alt.X("start:Q", scale=across, title=None, axis=alt.Axis(tickCount=4)),
            x2="stop:Q",
            color=colour,
        )
    )
    ends = (
        base.transform_filter("datum.end")
        .mark_tick(aria=False, color="var(--ink)", thickness=3, bandSize=16)
        .encode(x=alt.X("stop:Q", scale=across))
    )
    whiskers = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(aria=False, color="var(--ink)", strokeWidth=1.5)
        .encode(x="low:Q", x2="high:Q")
    )
    words = base.mark_text(aria=False, align="left", dx=8, color="var(--ink)", fontSize=11).encode(
        x=alt.value("width"), text="text:N"
    )
    room = base.mark_text(aria=False, align="left", dx=8, fontSize=11, opacity=0).encode(
        x=alt.value("width"), text=alt.value(alt.ExprRef("widest"))
    )
    chart = alt.layer(bars, ends, whiskers, words, room).properties(padding={"left": 2, "top": 4, "bottom": 2, "right": 4})
    return _rooted(alt, chart, limits, *same)


def _scatter(alt: ModuleType, kind: str, scale: dict[str, Any], axis: Axes = None) -> Any:
    """Draw values of a feature or pair against the feature's cells; a brush selects rows."""
    brush = alt.selection_interval(
        name="brush", mark=alt.BrushConfig(fill="var(--soft)", fillOpacity=0.15, stroke="var(--soft)")
    )
    shade = alt.Color("shade:O", legend=None, scale=alt.Scale(domain=_SHADES, range=_SHADE_COLOURS))
    across = {
        "scale": alt.Scale(nice=False, padding=12, **scale),
        "axis": alt.Axis(title=None, labelOverlap="greedy", labelLimit=120, tickCount=6, **(axis or {})),
    }
    x, up = (
        alt.X("x", type=kind),
        alt.Y("y:Q", scale=alt.Scale(nice=False, padding=10), axis=alt.Axis(tickCount=5), title="value"),
    )
    zero = alt.Chart(alt.InlineData([{"y": 0}])).mark_rule(color="var(--soft)", aria=False).encode(y="y:Q")
    points = (
        alt.Chart(
            alt.NamedData(name="points"), name="scatter"
        )  # else Altair 5 numbers the views, and every page has other bytes
        .transform_calculate(shade=_SHADE)
        .mark_circle(size=26, cursor="pointer", aria=False)
        .encode(
            x=alt.X("x", type=kind, **across), y=up, color=shade, opacity=alt.condition(brush, alt.value(0.75), alt.value(0.15))
        )
        .add_params(brush)
    )
    chosen = alt.Chart(alt.NamedData(name="chosen")).encode(x=x, y="y:Q")
    rings = chosen.mark_point(size=110, color="var(--ink)", strokeWidth=2, filled=False, aria=False)
    letters = chosen.mark_text(dy=-13, color="var(--ink)", fontWeight="bold", fontSize=13, aria=False).encode(text="slot:N")
    below = {
        "orient": "bottom",
        "anchor": "middle",
        "frame": "group",
        "fontSize": 12,
        "fontWeight": "normal",
        "color": "var(--soft)",
    }
    # The title of an axis cannot be a signal
    title = alt.TitleParams(text=alt.ExprRef("title"), **below)
    spans = (alt.param(name="range", value=[0, 0]), alt.param(name="title", value=""))
    return _rooted(alt, alt.layer(zero, points, rings, letters).properties(title=title), *spans)


def _pairs(alt: ModuleType) -> Any:
    """Draw mean magnitudes of pairs; a click opens the scatter of the pair."""
    base = alt.Chart(alt.NamedData(name="pairs"))
    axis = {"title": None, "labelExpr": _WORDS, "domain": False, "ticks": False}
    across = alt.X(
        "first:O", axis=alt.Axis(**axis, labelAngle=-40, labelLimit=110, orient="top"), scale=alt.Scale(padding=0.04)
    )
    down = alt.Y("second:O", axis=alt.Axis(**axis), scale=alt.Scale(padding=0.04))
    tiles = base.mark_rect(color="var(--accent)", cursor="pointer", stroke="var(--line)").encode(
        x=across,
        y=down,
        description="said:N",
        opacity=alt.Opacity("share:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[0.06, 1])),
    )
    words = base.mark_text(aria=False, fontSize=10).encode(
        x="first:O",
        y="second:O",
        text="text:N",
        color=alt.condition("datum.share > 0.6", alt.value("var(--on)"), alt.value("var(--ink)")),
    )
    return _rooted(alt, alt.layer(tiles, words))
