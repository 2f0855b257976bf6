"""Fill the templates of the static report and of the model card."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.checks import check_count
from exactshap._runtime.files import atomic_write, check_suffix
from exactshap._runtime.optional import require
from exactshap._runtime.types import Column
from exactshap._runtime.words import in_words
from exactshap.errors import InputError
from exactshap.results.data import ExplanationData, game_sentence, importance, named_target, observe, response
from exactshap.results.plots import shortened_apart
from exactshap.results.report import _figures as figures
from exactshap.results.report._figures import Content, content
from exactshap.results.report._svg import decimals, fixed
from exactshap.results.report._words import estimate, limits, now, page_words, rendered, report_facts, write_page

# Dots of a page, rows that are drawn as dots, and outputs with pictures.
_MAX_DOTS, _MAX_DRAWN, _MAX_OUTPUTS = 30_000, 1000, 4
# Facts of a model card's sections on the model and on the data.
_IN_CARD = ("Model", "Output", "Question", "Method")
_OF_DATA = ("Data", "Background", "Data hash")


def write_report(
    explanation: ExplanationData,
    path: str | Path,
    *,
    interactive: bool = False,
    title: str | None = None,
    data_name: str | None = None,
    command: str | None = None,
    target: Column = None,
    max_display: int | None = None,
    n_rows: int | None = None,
    seed: int = 0,
) -> Path:
    """Write one HTML file: static, or a page that answers clicks.

    Parameters
    ----------
    path : str or Path
        Of the ``.html`` file.
    interactive : bool, default=False
        Whether the page answers clicks (with scripts, up to 10 MB).
    title, data_name, command : str or None, default=None
        Heading, name of the data, and the command that wrote the report; None for those of the explanation.
    target : array of shape (n_rows,), or of the predictions' shape, optional
        What was observed: the classes of a classifier, or numbers. Errors are in the unit of the target.
    max_display, n_rows : int or None, default=None
        Features of a picture and rows in detail of a static report; None for 10 and 5.
    seed : int, default=0
        Of the choice of rows where there are too many.
    """
    check_report_path(path)
    sizes = {name: size for name, size in (("max_display", max_display), ("n_rows", n_rows)) if size is not None}
    words: dict[str, Any] = {"title": title, "data_name": data_name, "command": command, "seed": seed}
    explanation = named_target(explanation, target)
    if interactive:
        from exactshap.results.report._interactive import render_interactive

        if sizes:
            names = " and ".join(f"`{name}`" for name in sizes)
            do = "The interactive page shows the strongest features and any row; leave them out"
            raise InputError(f"{names} are settings of a static report", "Got interactive=True", do)
        page = render_interactive(explanation, target=target, **words)
    else:
        page = render(explanation, target=target, **sizes, **words)
    return write_page(path, page, "A report")


def check_report_path(path: str | Path) -> None:
    """Refuse a file name without an HTML suffix, before the work is done."""
    do = "Name it .html; browsers print it as PDF, and explanation.save(path) keeps the numbers"
    check_suffix(path, (".html", ".htm"), "A report", do)


def render(
    explanation: ExplanationData, *, target: Column = None, max_display: int = 10, n_rows: int = 5, seed: int = 0, **words: Any
) -> str:
    """Return the static report as HTML text. See :meth:`exactshap.Explanation.report`, and ``words`` as of :func:`page_words`.

    Everything that is computed uses all rows; only what is *drawn* as dots is a sample where there are many, and the page
    says so. Text of the user (names, cells) is escaped, and its control characters are replaced.
    """
    if explanation.n_rows == 0:
        raise InputError("A report needs at least one row", "Got an explanation of 0 rows")
    _require_finite(explanation)
    check_count("max_display", max_display)
    check_count("n_rows", n_rows, 0)
    outputs = _outputs(explanation)
    shown = outputs[:_MAX_OUTPUTS]
    drawn, limit = np.arange(explanation.n_rows), min(_MAX_DRAWN, _MAX_DOTS // (2 * max_display * len(shown)))
    if len(drawn) > limit:
        drawn = np.sort(np.random.default_rng(seed).choice(len(drawn), size=limit, replace=False))
    observed = None if target is None else observe(explanation, target)
    single = observed if explanation.output_names is None else None
    name, responses = response(explanation) or ("", None)
    views = []
    for k, (output, view) in enumerate(shown):
        item = content(
            view,
            drawn=drawn,
            max_display=max_display,
            n_rows=n_rows,
            observed=single if single or observed is None else observed.output(k),
            response=None if responses is None else (name, responses if responses.ndim == 1 else responses[:, k]),
        )
        views.append({"output": output, "content": item, **_drawn(view, item, explanation.index)})
    return rendered(
        "page.html.jinja",
        **page_words(explanation, seed=seed, **words),
        additive=explanation.additive,
        views=views,
        outputs_left_out=[name for name, _ in outputs[_MAX_OUTPUTS:]],
        n_drawn=len(drawn),
        seed=seed,
        fixed=fixed,
        decimals=decimals,
        in_words=in_words,
    )


def _require_finite(explanation: ExplanationData) -> None:
    """Refuse values without a place on an axis, such as infinite ones."""
    values = explanation.values if explanation.set_values is None else explanation.set_values
    finite = np.isfinite(values).reshape(explanation.n_rows, -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError("A report needs finite values", f"Row {row} has NaN or infinity", "Select others: explanation[rows]")


def _outputs(explanation: ExplanationData) -> list[tuple[str | None, ExplanationData]]:
    if explanation.output_names is None:
        return [(None, explanation)]
    return [(name, explanation.output(k)) for k, name in enumerate(explanation.output_names)]


def _drawn(view: ExplanationData, item: Content, index: str) -> dict[str, Any]:
    """Return one output's pictures."""
    value, pairs = f"value ({view.unit})", item.pairs
    axes = shortened_apart([axis.name for axis, _ in item.dependences], 40)
    of_pairs = f"{index}, mean magnitude ({view.unit})"
    return {
        "beeswarm": figures.beeswarm(item.values, item.numbers, item.names, label=value),
        "bars": figures.bars(item.strength, item.names, item.error, label=f"mean |value| ({view.unit})"),
        "dependences": [
            figures.dependence(axis.numbers, values, name, axis.categories, label=value, dates=axis.kind == "date")
            for name, (axis, values) in zip(axes, item.dependences, strict=True)
        ],
        "rows": [(row, figures.row_bars(row, label=view.unit if row.additive else value)) for row in item.rows],
        "matrix": "" if pairs is None else figures.matrix(pairs.matrix, pairs.names, label=of_pairs),
    }


def write_card(
    explanation: ExplanationData,
    path: str | Path,
    *,
    title: str | None = None,
    data_name: str | None = None,
    intended_use: str = "",
    max_display: int = 10,
) -> Path:
    """Write a model card. It names data, value function, certificate, importances with intervals, and limits.

    Parameters
    ----------
    path : str or Path
        ``.md``, ``.html`` or, with WeasyPrint (``pip install "exactshap[pdf]"``), ``.pdf``.
    title, data_name : str or None, default=None
        Heading and name of the data; None for those of the explanation.
    intended_use : str, default=""
        What the model is for, in your words.
    max_display : int, default=10
        Features of the table of importances.
    """
    check_suffix(path, (".md", ".html", ".htm", ".pdf"), "A model card", "Name it .md, .html or .pdf")
    if explanation.n_rows == 0:
        raise InputError("A model card needs at least one row", "Got an explanation of 0 rows")
    is_markdown = Path(path).suffix.lower() == ".md"
    page = rendered(
        "card.md.jinja" if is_markdown else "card.html.jinja",
        title=title or f"Model card of {explanation.model_name or 'a model'}",
        sections=_sections(explanation, data_name, intended_use),
        tables=_tables(explanation, max_display),
        limits=limits(explanation),
        date=now(),
        passed=explanation.certificate().passed,
        line=_one_line,
    )
    if not is_markdown:
        return write_page(path, page, "A model card")
    with atomic_write(path) as draft:
        draft.write_text(page, encoding="utf-8")
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
    tables = []
    for name, view in _outputs(explanation):
        found = importance(view, interval=0.95 if view.n_rows > 1 else None)
        order = np.argsort(-found.values, kind="stable")[:max_display]
        ends = None if found.lower is None or found.upper is None else np.stack([found.lower, found.upper], axis=1)
        words = ["" if ends is None else f"{in_words(ends[j, 0])} to {in_words(ends[j, 1])}" for j in order]
        rows = [(found.names[j], in_words(found.values[j]), interval) for j, interval in zip(order, words, strict=True)]
        tables.append({"output": name, "unit": view.unit, "rows": rows, "n_rows": view.n_rows})
    return tables


def _one_line(text: str) -> Any:
    r"""Return text as one line of a Markdown table or list, without markup.

    >>> print(_one_line("a | <b>"))
    a \| &lt;b&gt;
    """
    markup = require("markupsafe", "report", purpose="A report").Markup
    return markup(html.escape(" ".join(text.split()), quote=False).replace("|", "\\|"))
