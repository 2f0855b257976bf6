"""Fill the template of the interactive page: one file with its numbers, charts and scripts, which asks no network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from exactshap._runtime.types import Column
from exactshap.errors import InputError, message, printable
from exactshap.results.data import index_title, value_function_sentence
from exactshap.results.report._template import now, template
from exactshap.results.report._words import estimate, installed, limits, report_facts, reproduce, sum_words
from exactshap.results.report.interactive import charts, content_policy, own_script, pack, vega

if TYPE_CHECKING:
    from exactshap.results.data import ExplanationData

# The second one is a module: strict, and it may await
_SCRIPT_PLACES = ("@@vega@@", "@@script@@")


def render_interactive(
    explanation: ExplanationData,
    *,
    title: str | None = None,
    data_name: str | None = None,
    command: str | None = None,
    target: Column = None,
    seed: int = 0,
) -> str:
    """Return the interactive report as HTML text; see :meth:`exactshap.Explanation.report`.

    The page holds up to 20,000 rows, fewer where it would exceed 10 MB, and says which. The row with the largest error to ``target`` is shown
    first. Its policy allows the two scripts that it contains, by their hashes, and no requests. The first page of a process takes some
    seconds, in which Vega is bundled.
    """
    if explanation.n_rows == 0:
        raise InputError(message("A report needs at least one row", "Got an explanation of 0 rows"))
    library, script = vega(), own_script()
    errors = explanation.std_error is not None or explanation.covariances is not None
    page = template("interactive/page.html.jinja").render(
        title=title or f"Explanation of {explanation.model_name or 'a model'}",
        facts=report_facts(explanation, data_name),
        certificate=explanation.certificate(),
        estimate=estimate(explanation),
        explanation=explanation,
        index=index_title(explanation.index, explanation.order),
        sentence=value_function_sentence(explanation.value_function, has_background=explanation.background_size is not None),
        packed=pack(explanation, target=target, seed=seed),
        errors=errors,
        limits=limits(explanation),
        sum_words=sum_words(explanation),
        reproduce=reproduce(explanation, command=command, seed=seed, interactive=True),
        versions=installed(),
        date=now(),
        charts=json.dumps(charts()).replace("<", "\\u003c"),
        policy=content_policy(library, script),
        vega=_SCRIPT_PLACES[0],
        script=_SCRIPT_PLACES[1],
    )
    return _with_scripts(printable(page), library, script)


def _with_scripts(page: str, *scripts: str) -> str:
    """Put the scripts in as they are, to the last byte: their hashes are in the policy."""
    for place, script in zip(_SCRIPT_PLACES, scripts, strict=True):
        before, _, after = page.rpartition(f"{place}</script>")
        page = f"{before}{script}</script>{after}"
    return page
