"""``exactshap compare A.npz B.npz``, or ``exactshap compare A.npz --by column``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactshap.cli import _options as options
from exactshap.cli import shares
from exactshap.errors import InputError

if TYPE_CHECKING:
    from exactshap.results.comparison import Cohorts, Comparison


def command(
    first: Annotated[Path, typer.Argument(metavar="A", help="An explanation saved as .npz.")],
    second: Annotated[Path | None, typer.Argument(metavar="B", help="Another one, of the same question.")] = None,
    *,
    by: Annotated[str | None, typer.Option(help="Column of A's data: compare its groups, instead of A and B.")] = None,
    drift: Annotated[bool, typer.Option("--drift/--no-drift", help="Also split the MMD of the data over the features.")] = True,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples of the rows for the intervals.")] = 1000,
    out: shares.Out = None,
    picture: shares.Picture = None,
    report: Annotated[Path | None, typer.Option(help="Write a page on A and B: .html, or .pdf with WeasyPrint.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="For --report: larger differences count as changed. By default a tenth of A's largest mean magnitude."
        ),
    ] = None,
    model_output: Annotated[str | None, typer.Option(help="Output that the picture shows, where there are several.")] = None,
    seed: options.Seed = 0,
) -> None:
    """Compare mean values of two explanations, or of groups within one, with intervals over rows."""
    from exactshap.cli._screen import console

    output = None if model_output is None else options.output_choice(model_output)
    result = _compared(first, second, by, {"drift": drift, "level": level, "n_bootstrap": bootstrap, "random_state": seed})
    console().print(repr(result))
    if report is not None:
        _write_report(result, report, threshold, first, second)
    shares.write_outputs(result, out, picture, lambda result: result.plot(output=output).figure)


def _write_report(
    result: Comparison | Cohorts, report: Path, threshold: float | None, first: Path, second: Path | None
) -> None:
    from exactshap.cli._screen import console
    from exactshap.results.comparison import Comparison

    if not isinstance(result, Comparison):
        raise InputError("--report compares two explanations", "Got --by", "Leave --report out, or pass A and B")
    command = f"exactshap compare {first} {second} --report {report}"
    command += "" if threshold is None else f" --threshold {threshold:g}"
    result.report(report, threshold=threshold, command=command)
    changed = ", ".join(result.changed(threshold)) or "none"
    console().print(f"report written to {report}; changed beyond the threshold: {changed}")


def _compared(first: Path, second: Path | None, by: str | None, settings: dict[str, object]) -> Comparison | Cohorts:
    from exactshap.results.explanation import Explanation

    if (second is None) == (by is None):
        got = "Got neither" if by is None else "Got both"
        raise InputError("Compare A with B, or the groups of A with --by", got, "exactshap compare a.npz b.npz")
    explanation = Explanation.load(first)
    if second is None:
        return explanation.by(by, **settings)
    return explanation.compare(Explanation.load(second), labels=(first.stem, second.stem), **settings)
