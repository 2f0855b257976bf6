"""Write one HTML file about an explanation, which makes no requests.

It is static (inline SVG, no scripts) or interactive.
"""

from __future__ import annotations

from exactshap.results.report._figures import difference_bars as difference_bars
from exactshap.results.report._page import check_report_path as check_report_path
from exactshap.results.report._page import render as render
from exactshap.results.report._page import write_card as write_card
from exactshap.results.report._page import write_report as write_report
from exactshap.results.report._svg import Scale as Scale
from exactshap.results.report._svg import minus_signs as minus_signs
from exactshap.results.report._words import colour_variables as colour_variables
from exactshap.results.report._words import now as now
from exactshap.results.report._words import rendered as rendered
from exactshap.results.report._words import write_page as write_page
from exactshap.results.report.shares import marginal_panel as marginal_panel
from exactshap.results.report.shares import write_shares_report as write_shares_report
