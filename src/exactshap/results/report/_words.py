"""Load the reports' templates, write their paragraphs, and write whole pages."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np

from exactshap import __version__
from exactshap._runtime.files import atomic_write, check_suffix
from exactshap._runtime.optional import require
from exactshap._runtime.words import MINUS
from exactshap.errors import printable
from exactshap.results.data import ExplanationData, counted, facts, fingerprint, game_sentence, index_title, readable
from exactshap.results.plots import current_palette, dark_palette

N_SHADES = 9


def rendered(name: str, **content: Any) -> str:
    """Fill a template. Text is escaped and control characters are replaced."""
    jinja2 = require("jinja2", "report", purpose="A report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals |= {"colours": colour_variables, "own_version": __version__}
    environment.filters["breakable"] = breakable
    return printable(environment.get_template(name).render(**content))


def breakable(name: str) -> Any:
    """Return a name that may be broken after underscores. Browsers know the other places themselves.

    >>> breakable("age_of <b>")
    Markup('age_<wbr>of &lt;b&gt;')
    """
    return require("markupsafe", "report", purpose="A report").Markup("<wbr>").join(re.split("(?<=_)(?=[^_])", name))


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


def limits(explanation: ExplanationData) -> list[str]:
    """Return the limits of this explanation: what must not be concluded from it."""
    certificate = explanation.certificate()
    checked = (
        f"The certificate says that {certificate.checks} is at most {certificate.max_residual:.2g} on the rows in this report,"
        " against the model's own prediction. It cannot see credit given to the wrong feature; 'exactshap check' also compares"
        " the game with the model on rows masked by hand."
    )
    kind = {
        "exact": "The values are exact up to floating-point rounding for the value function named above; another value function gives"
        " other numbers, just as exactly.",
        "approximate": "The game was approximated, by low-rank embeddings: the values are exact for the approximated game only, and"
        " the approximation error above estimates how far it is off.",
        "sampled": "The values were sampled: each has a standard error, shown as whiskers and after the sign ±, and another seed gives"
        " other numbers within them.",
    }[explanation.kind]
    title = index_title(explanation.index, explanation.order)
    pairs = (
        f"Pairs are the {title}, not halved: one number per unordered pair. The diagonal holds the values of single features."
    )
    return [
        "These numbers describe the model, not the world: they are not effects of changing a feature in reality, and a model"
        " that is wrong is explained as it is.",
        kind,
        checked,
        "Features that carry the same information may share credit in ways that depend on how the model was fitted. Dependence"
        " plots show the model's behaviour on these rows, not outside their range.",
        *([] if explanation.additive else [_not_additive(explanation, title)]),
        *([] if explanation.order < 2 else [pairs]),
    ]


def estimate(explanation: ExplanationData) -> str:
    """Describe the errors of sampled values, or return "" for exact ones."""
    errors = readable(explanation).std_error
    if errors is None or not errors.size:
        return ""
    a_row = _calls_a_row(explanation)
    calls = f" from {counted(a_row, 'coalition')} a row" if a_row else ""
    if not errors.any():
        return f"Sampled{calls}: all standard errors are zero up to rounding, as the method represents this function without an error."
    return (
        f"Sampled{calls}: standard errors of {np.median(errors):.2g} typically and {errors.max():.2g} at most;"
        " two of them on either side cover about 95 % of the exact values."
    )


def _calls_a_row(explanation: ExplanationData) -> int:
    return round(explanation.n_evaluations / max(explanation.n_rows, 1))


def _not_additive(explanation: ExplanationData, title: str) -> str:
    if explanation.sets_add_up:
        return (
            f"The {title} of single features and of sets add up to the prediction together; those of single features are shown, as bars"
            " around zero instead of a path from the baseline."
        )
    return (
        f"The {title} shown for single features do not add up to the prediction, so that rows are drawn as bars around zero"
        " instead of a path from the baseline."
    )


def sum_words(explanation: ExplanationData) -> str:
    """Say what a row's values add up to, for the note below its picture."""
    if explanation.additive:
        return "From the baseline, v(∅), to the model's own prediction"
    if explanation.sets_add_up:
        return "Values of single features; with those of the sets they add up from the baseline to the prediction"
    return "The values of this index do not add up to the prediction"


def reproduce(explanation: ExplanationData, *, command: str | None, seed: int, interactive: bool) -> str:
    """Return the command or the Python calls that reproduce this report."""
    if command is not None:
        return command
    background = "" if explanation.background_size is None else ", background"
    groups = "" if explanation.groups is None else ", groups=groups"
    calls = f", budget={_calls_a_row(explanation)}" if explanation.kind == "sampled" and explanation.n_evaluations else ""
    return "\n".join(
        [
            "import exactshap",
            "",
            "# with the other settings that were passed, such as output= and random_state=",
            f"explainer = exactshap.Explainer(model{background}, value_function={explanation.value_function!r}{groups}{calls})",
            f"explanation = explainer(X, index={explanation.index!r}, order={explanation.order})",
            f'explanation.report("report.html", {"interactive=True, " * interactive}seed={seed})',
        ]
    )


def page_words(
    explanation: ExplanationData,
    *,
    title: str | None = None,
    data_name: str | None = None,
    command: str | None = None,
    seed: int = 0,
    interactive: bool = False,
) -> dict[str, Any]:
    """Return the texts of every page about an explanation, by their names in the template."""
    return {
        "title": title or f"Explanation of {explanation.model_name or 'a model'}",
        "facts": report_facts(explanation, data_name),
        "certificate": explanation.certificate(),
        "estimate": estimate(explanation),
        "explanation": explanation,
        "index": index_title(explanation.index, explanation.order),
        "sentence": game_sentence(explanation),
        "limits": limits(explanation),
        "sum_words": sum_words(explanation),
        "reproduce": reproduce(explanation, command=command, seed=seed, interactive=interactive),
        "versions": installed(),
        "date": now(),
    }


def report_facts(explanation: ExplanationData, data_name: str | None) -> dict[str, str]:
    """Return short texts by name: what was explained, how, with what; "" where unknown."""
    player = "feature" if explanation.groups is None else "player"
    digest = "" if explanation.data is None else f"SHA-256 {fingerprint(explanation.data)}"
    known = facts(explanation)
    return {
        "Model": known["model"],
        "Output": f"{', '.join(explanation.output_names)} ({explanation.unit})"
        if explanation.output_names
        else explanation.unit,
        "Data": f"{f'{data_name}, ' if data_name else ''}{counted(explanation.n_rows, 'row')} x {counted(explanation.n_players, player)}",
        "Background": known.get("background", ""),
        "Question": index_title(explanation.index, explanation.order),
        "Value function": explanation.value_function,
        "Baseline": known["baseline"].replace("-", MINUS),
        "Method": explanation.method,
        "Error bound": known.get("error bound", ""),
        "Standard error": known.get("std error", ""),
        "Approximation": known.get("approximation", ""),
        "Coalitions called": known.get("evaluations", ""),
        "Computed in": f"{known['seconds']} s" if "seconds" in known else "",
        "Data hash": digest,
    }


def installed() -> dict[str, str]:
    from exactshap.versions import system, versions

    return {name: text for name, text in {"python": system()["python"].split()[0], **versions()}.items() if text}
