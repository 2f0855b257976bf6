"""What ``mmd`` and ``hsic`` share: options, the table on the screen, the picture, the files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactshap.results.data import counted

if TYPE_CHECKING:
    from exactshap.results.decomposition import PairwiseDecomposition

__all__ = [
    "Bandwidth",
    "Correction",
    "Kernel",
    "Method",
    "Out",
    "Permutations",
    "Picture",
    "Report",
    "bandwidth_choice",
    "finish",
    "write_picture",
]

Kernel = Annotated[str, typer.Option(help="Of numeric columns: rbf, laplacian or cauchy. Text columns are categorical.")]
Bandwidth = Annotated[str, typer.Option(help="column-median (each column counts, whatever its unit), median, or a number.")]
Method = Annotated[
    str, typer.Option(help="exact, blocks (the mean over random blocks of rows), or auto: blocks beyond half a minute of work.")
]
Permutations = Annotated[int, typer.Option(min=0, help="For p-values; 0 for none.")]
Correction = Annotated[str, typer.Option(help="Of p-values for the number of columns: max, holm, fdr_bh, fdr_by or none.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the table: .csv or .parquet.")]
Picture = Annotated[Path | None, typer.Option(help="Write the picture: .png, .svg or .pdf.")]
Report = Annotated[Path | None, typer.Option(help="Write a static HTML file with table and picture.")]


def bandwidth_choice(text: str) -> str | float:
    """Return a number where the text is one.

    >>> bandwidth_choice("0.5"), bandwidth_choice("median")
    (0.5, 'median')
    """
    try:
        return float(text)
    except ValueError:
        return text


def finish(
    shares: PairwiseDecomposition,
    samples: tuple[Any, Any] | None,
    labels: tuple[str, str],
    *,
    title: str,
    out: Path | None,
    picture: Path | None,
    report: Path | None,
) -> None:
    """Print the shares and write what was asked for."""
    from exactshap.cli._io import write_table
    from exactshap.cli._screen import console

    show(shares)
    if out is not None:
        write_table(shares.to_frame(), out)
        console().print(f"table written to {out}")
    if picture is not None:
        write_picture(draw(shares, samples, labels), picture)
        console().print(f"picture written to {picture}")
    if report is not None:
        from exactshap.cli._work import command_line
        from exactshap.results.report import write_shares_report

        write_shares_report(shares, report, title=title, samples=samples, labels=labels, command=command_line())
        console().print(f"report written to {report}")


def show(shares: PairwiseDecomposition, *, max_display: int = 15) -> None:
    """Print one line of facts and a table of the columns by decreasing share."""
    from exactshap.cli._screen import console
    from exactshap.results.decomposition import facts_of, rows_of

    screen = console()
    screen.print("; ".join(facts_of(shares)))
    from rich.table import Table

    headings, rows = rows_of(shares)
    table = Table(title=f"shares of {len(shares)} columns", title_justify="left")
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k else "left")
    for row in rows[:max_display]:
        table.add_row(*row)
    screen.print(table)
    if len(rows) > max_display:
        screen.print(f"{counted(len(rows) - max_display, 'column')} with smaller shares not shown")


def draw(shares: PairwiseDecomposition, samples: tuple[Any, Any] | None, labels: tuple[str, str]) -> Any:
    """Return a figure: the shares with their intervals and, for two samples, the marginals of the top columns."""
    from exactshap._runtime.optional import require

    figures = require("matplotlib.figure", "plots", purpose="Plotting")
    figure = figures.Figure(figsize=(12 if samples else 7, 5), layout="constrained")
    if samples is None:
        shares.plot.bar(ax=figure.subplots())
        return figure
    from exactshap.results.decomposition import strongest_marginals
    from exactshap.results.plots import draw_marginals

    left, right = figure.subfigures(1, 2, width_ratios=(1.2, 1.0))
    shares.plot.bar(ax=left.subplots())
    marginals = strongest_marginals(shares, samples)
    panels = right.subplots(2, 2, squeeze=False).ravel()
    for ax in panels[len(marginals) :]:
        ax.remove()
    draw_marginals(marginals, labels, panels[: len(marginals)])
    return figure


def write_picture(figure: Any, path: Path) -> None:
    from exactshap._runtime.files import atomic_write
    from exactshap.errors import InputError, message

    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise InputError(message(f"Pictures are written to .png, .svg or .pdf, not to {path.name}", do="Choose one of these"))
    with atomic_write(path) as draft:
        figure.savefig(draft, format=kind, dpi=150)
