"""One HTML file about an explanation: static, with pictures as inline SVG and no scripts, or interactive; no requests in either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "Scale": "exactshap.results.report._svg",
    "check_report_path": "exactshap.results.report._page",
    "colour_variables": "exactshap.results.report._template",
    "difference_bars": "exactshap.results.report._figures",
    "marginal_panel": "exactshap.results.report.shares",
    "minus_signs": "exactshap.results.report._svg",
    "now": "exactshap.results.report._template",
    "render": "exactshap.results.report._page",
    "render_interactive": "exactshap.results.report._interactive",
    "template": "exactshap.results.report._template",
    "write_card": "exactshap.results.report._card",
    "write_page": "exactshap.results.report._template",
    "write_report": "exactshap.results.report._page",
    "write_shares_report": "exactshap.results.report.shares",
}

if TYPE_CHECKING:
    from exactshap.results.report._card import write_card as write_card
    from exactshap.results.report._figures import difference_bars as difference_bars
    from exactshap.results.report._interactive import render_interactive as render_interactive
    from exactshap.results.report._page import check_report_path as check_report_path
    from exactshap.results.report._page import render as render
    from exactshap.results.report._page import write_report as write_report
    from exactshap.results.report._svg import Scale as Scale
    from exactshap.results.report._svg import minus_signs as minus_signs
    from exactshap.results.report._template import colour_variables as colour_variables
    from exactshap.results.report._template import now as now
    from exactshap.results.report._template import template as template
    from exactshap.results.report._template import write_page as write_page
    from exactshap.results.report.shares import marginal_panel as marginal_panel
    from exactshap.results.report.shares import write_shares_report as write_shares_report


def __getattr__(name: str) -> Any:
    """Import a kind of report on first use: a static one needs neither the interactive one's parts nor the plots."""
    import importlib

    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'exactshap.results.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
