"""One HTML file about an explanation: static, with pictures as inline SVG and no scripts, or interactive; no requests in either."""

from __future__ import annotations

from exactshap.results.report._interactive import render_interactive
from exactshap.results.report._page import check_report_path as check_report_path
from exactshap.results.report._page import render, write_report
from exactshap.results.report.shares import write_shares_report as write_shares_report

__all__ = ["render", "render_interactive", "write_report"]
