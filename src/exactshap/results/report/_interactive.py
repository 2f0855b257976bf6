"""Fill the template of the interactive page: one file with its numbers, charts and scripts, without requests.

The scripts are Vega as a Python package brings it, and ours; a policy allows no others.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from pathlib import Path
from typing import Any

from exactshap._runtime.optional import require
from exactshap._runtime.types import Column
from exactshap.errors import InputError, printable
from exactshap.results.data import ExplanationData, filter_grammar
from exactshap.results.report._template import template
from exactshap.results.report._words import page_words
from exactshap.results.report.interactive import pack

# The second script is a module, which is strict and may await
_SCRIPT_PLACES = ("@@vega@@", "@@script@@")


def render_interactive(explanation: ExplanationData, *, target: Column = None, seed: int = 0, **words: Any) -> str:
    """Return the interactive report as HTML text; see :meth:`exactshap.Explanation.report`.

    The page holds up to 20,000 rows, fewer where it would exceed 10 MB, and says which. The row with the largest error to ``target`` is shown
    first. Its policy allows the two scripts that it contains, by their hashes, and no requests. The first page of a process takes some
    seconds, in which Vega is bundled.
    """
    if explanation.n_rows == 0:
        raise InputError("A report needs at least one row", "Got an explanation of 0 rows")
    library, script = vega(), own_script()
    errors = explanation.std_error is not None or explanation.covariances is not None
    page = template("interactive/page.html.jinja").render(
        **page_words(explanation, seed=seed, interactive=True, **words),
        packed=pack(explanation, target=target, seed=seed),
        errors=errors,
        policy=content_policy(library, script),
        vega=_SCRIPT_PLACES[0],
        script=_SCRIPT_PLACES[1],
    )
    page = printable(page)
    # Byte for byte, as their hashes are in the policy
    for place, content in zip(_SCRIPT_PLACES, (library, script), strict=True):
        before, _, after = page.rpartition(f"{place}</script>")
        page = f"{before}{content}</script>{after}"
    return page


@functools.cache
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script without requests; the first call bundles them in some seconds."""
    converter = require("vl_convert", "interactive", purpose="An interactive report")
    return _inline(converter.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


@functools.cache
def own_script() -> str:
    """Return the page's own script: the filter language, the charts and the page's behaviour."""
    folder = Path(__file__).parent / "interactive"
    parts = ((folder / name).read_text(encoding="utf-8") for name in ("filter.js", "charts.js", "page.js"))
    return _inline(f"const GRAMMAR = {filter_grammar().strip()};\n{''.join(parts)}")


def _inline(script: str) -> str:
    """Return a script that can be embedded: no closing tag, and line ends that a parser keeps."""
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
