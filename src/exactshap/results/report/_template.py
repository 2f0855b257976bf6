"""The report's templates: every text in them is escaped."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from exactshap._runtime.optional import require

__all__ = ["now", "template"]


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
