"""Write a model card: model, data, certificate, strongest features and limits."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.files import atomic_write, check_suffix
from exactshap._runtime.optional import require
from exactshap.errors import InputError, printable
from exactshap.results.data import ExplanationData, game_sentence, importance
from exactshap.results.report._svg import number
from exactshap.results.report._words import estimate, installed, limits, now, report_facts, template, write_page

_IN_CARD = ("Model", "Output", "Question", "Method")
_OF_DATA = ("Data", "Background", "Data hash")


def write_card(
    explanation: ExplanationData,
    path: str | Path,
    *,
    title: str | None,
    data_name: str | None,
    intended_use: str,
    max_display: int,
) -> Path:
    """Write a model card as ``.md``, ``.html`` or ``.pdf``; see :meth:`exactshap.Explanation.model_card`."""
    check_suffix(path, (".md", ".html", ".htm", ".pdf"), "A model card", "Name it .md, .html or .pdf")
    if explanation.n_rows == 0:
        raise InputError("A model card needs at least one row", "Got an explanation of 0 rows")
    is_markdown = Path(path).suffix.lower() == ".md"
    page = template("card.md.jinja" if is_markdown else "card.html.jinja").render(
        title=title or f"Model card of {explanation.model_name or 'a model'}",
        sections=_sections(explanation, data_name, intended_use),
        tables=_tables(explanation, max_display),
        limits=limits(explanation),
        date=now(),
        versions=installed(),
        passed=explanation.certificate().passed,
        line=_one_line,
    )
    if not is_markdown:
        return write_page(path, printable(page), "A model card")
    with atomic_write(path) as draft:
        draft.write_text(printable(page), encoding="utf-8")
    return Path(path)


def _sections(explanation: ExplanationData, data_name: str | None, intended_use: str) -> dict[str, dict[str, str]]:
    facts = report_facts(explanation, data_name)
    certificate = explanation.certificate()
    sections = {
        "Model": {"Intended use": intended_use, **{name: facts[name] for name in _IN_CARD}},
        "Data": {name: facts[name] for name in _OF_DATA},
        "Explanation": {
            "Value function": f"{explanation.value_function}. {game_sentence(explanation)}",
            "Baseline": facts["Baseline"],
            "Certificate": str(certificate),
            "Estimate": estimate(explanation),
        },
    }
    return {heading: {name: text for name, text in body.items() if text} for heading, body in sections.items()}


def _tables(explanation: ExplanationData, max_display: int) -> list[dict[str, Any]]:
    check_count("max_display", max_display)
    names = explanation.output_names or (None,)
    tables = []
    for k, name in enumerate(names):
        view = explanation if name is None else explanation.output(k)
        found = importance(view, interval=0.95 if view.n_rows > 1 else None)
        order = np.argsort(-found.values, kind="stable")[:max_display]
        ends = None if found.lower is None or found.upper is None else np.stack([found.lower, found.upper], axis=1)
        words = ["" if ends is None else f"{number(ends[j, 0])} to {number(ends[j, 1])}" for j in order]
        rows = [(found.names[j], number(found.values[j]), interval) for j, interval in zip(order, words, strict=True)]
        tables.append({"output": name, "unit": view.unit, "rows": rows, "n_rows": view.n_rows})
    return tables


def _one_line(text: str) -> Any:
    r"""Return text as one line of a Markdown table or list, without markup.

    >>> print(_one_line("a | <b>"))
    a \| &lt;b&gt;
    """
    markup = require("markupsafe", "report", purpose="A report").Markup
    return markup(html.escape(" ".join(text.split()), quote=False).replace("|", "\\|"))
