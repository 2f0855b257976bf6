"""Write one HTML file about an explanation, static (inline SVG, no scripts) or interactive, without requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exactshap._runtime.optional import on_first_use

if TYPE_CHECKING:
    from exactshap.results.report._card import write_card as write_card
    from exactshap.results.report._figures import difference_bars as difference_bars
    from exactshap.results.report._interactive import render_interactive as render_interactive
    from exactshap.results.report._page import check_report_path as check_report_path
    from exactshap.results.report._page import render as render
    from exactshap.results.report._page import write_report as write_report
    from exactshap.results.report._svg import Scale as Scale
    from exactshap.results.report._svg import minus_signs as minus_signs
    from exactshap.results.report._svg import number as number
    from exactshap.results.report._template import colour_variables as colour_variables
    from exactshap.results.report._template import now as now
    from exactshap.results.report._template import template as template
    from exactshap.results.report._template import write_page as write_page
    from exactshap.results.report.shares import marginal_panel as marginal_panel
    from exactshap.results.report.shares import write_shares_report as write_shares_report

# A static report loads neither the interactive page nor the plots
__getattr__ = on_first_use(
    __name__,
    {
        "_card": "write_card",
        "_figures": "difference_bars",
        "_interactive": "render_interactive",
        "_page": "check_report_path render write_report",
        "_svg": "Scale minus_signs number",
        "_template": "colour_variables now template write_page",
        "shares": "marginal_panel write_shares_report",
    },
)
