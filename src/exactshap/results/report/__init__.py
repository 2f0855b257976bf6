"""One static HTML file about an explanation: no scripts, no requests, pictures as inline SVG."""

from __future__ import annotations

from exactshap.results.report._page import render, write_report

__all__ = ["render", "write_report"]
