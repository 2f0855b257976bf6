"""One static HTML file about an explanation: no scripts, no requests, pictures as inline SVG."""

from __future__ import annotations

from exactshap.results.report._page import check_report_path as check_report_path
from exactshap.results.report._page import render, write_report
from exactshap.results.report.shares import write_shares_report as write_shares_report

__all__ = ["render", "write_report"]
