"""Load and write the report's templates, in which every text is escaped."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from exactshap._runtime.files import atomic_write, check_suffix
from exactshap._runtime.optional import require
from exactshap.results.plots import current_palette, dark_palette

N_SHADES = 9


def template(name: str) -> Any:
    jinja2 = require("jinja2", "report", purpose="A report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["colours"] = colour_variables
    return environment.get_template(name)


def colour_variables(*, dark: bool = False) -> str:
    """Return the colours of :func:`exactshap.results.plots.palette` as CSS variables.

    >>> colour_variables().split("; ")[:2]
    ['--plus: #c8500a', '--minus: #0b6bb3']
    """
    palette = dark_palette() if dark else current_palette()
    shades = {f"q{k}": colour for k, colour in enumerate(palette.shades(N_SHADES))}
    fields = {"plus": "positive", "minus": "negative", "accent": "neutral", "qx": "missing"}
    named = {name: palette.hexadecimal(field) for name, field in fields.items()}
    return "; ".join(f"--{name}: {colour}" for name, colour in {**named, **shades}.items())


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def write_page(path: str | Path, page: str, what: str) -> Path:
    """Write a whole page as ``.html``, or as ``.pdf`` with WeasyPrint."""
    check_suffix(path, (".html", ".htm", ".pdf"), what, "Name it .html or .pdf")
    with atomic_write(path) as draft:
        if Path(path).suffix.lower() == ".pdf":
            weasyprint = require("weasyprint", "pdf", purpose="A PDF (or print the .html with a browser)")
            weasyprint.HTML(string=page, url_fetcher=_refuse_address).write_pdf(draft)
        else:
            draft.write_text(page, encoding="utf-8")
    return Path(path)


def _refuse_address(address: str, *_: Any, **__: Any) -> Any:
    """Refuse to fetch anything for a PDF, as pages hold what they show."""
    raise ValueError(f"The page refers to {address}")
