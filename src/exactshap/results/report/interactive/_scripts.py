"""Scripts of the interactive page: Vega as Python packages bring it, ours from this folder, and the policy that allows no others."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from pathlib import Path

from exactshap._runtime.optional import require
from exactshap.results.data import filter_grammar


@functools.cache
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script without requests; the first call bundles them in some seconds."""
    converter = require("vl_convert", "interactive", purpose="An interactive report")
    schema = require("altair", "interactive", purpose="An interactive report").SCHEMA_VERSION
    version = ".".join(schema.removeprefix("v").split(".")[:2])
    script = converter.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return _inline(script)


@functools.cache
def own_script() -> str:
    """Return the page's own script: the language of filters, and what the page does."""
    folder = Path(__file__).parent
    filters, page = ((folder / name).read_text(encoding="utf-8") for name in ("filter.js", "page.js"))
    return _inline(f"const GRAMMAR = {filter_grammar().strip()};\n{filters}{page}")


def _inline(script: str) -> str:
    """Return a script as it can stand in a page: no end of its element, and line ends that a parser leaves as they are."""
    script = script.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\\0")
    return re.sub(r"<(?=!--|/script)", r"\\x3c", script, flags=re.IGNORECASE)


def content_policy(*scripts: str) -> str:
    """Return the page's Content-Security-Policy: these scripts by their hashes, styles of the page, and nothing else.

    >>> content_policy("alert(1)")
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    """
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{text}'" for text in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
