"""The report's templates: every text in them is escaped."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from exactshap._runtime.files import atomic_write, check_suffix
from exactshap._runtime.optional import require

__all__ = ["now", "template", "write_page"]


def template(name: str) -> Any:
    """Return a template of this folder."""
    jinja2 = require("jinja2", "report", purpose="A report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)


def now() -> str:
    """Return the time of writing."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def write_page(path: str | Path, page: str, what: str) -> Path:
    """Write a page of HTML as ``.html``, or print it to ``.pdf`` with WeasyPrint, all of it or nothing."""
    check_suffix(path, (".html", ".htm", ".pdf"), what, "Name it .html or .pdf")
    with atomic_write(path) as draft:
        if Path(path).suffix.lower() == ".pdf":
            weasyprint = require("weasyprint", "pdf", purpose="A PDF (or print the .html with a browser)")
            weasyprint.HTML(string=page, url_fetcher=_refuse_address).write_pdf(draft)
        else:
            draft.write_text(page, encoding="utf-8")
    return Path(path)


def _refuse_address(address: str, *_: Any, **__: Any) -> Any:
    """Pages hold what they show; nothing is fetched for a PDF."""
    raise ValueError(f"The page refers to {address}")
