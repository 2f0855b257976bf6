"""Run ``r2``, ``mmd`` and ``hsic``, which split statistics, and ``compare``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

import exactshap
from exactshap._runtime.files import atomic_write
from exactshap._runtime.optional import require
from exactshap._runtime.types import Foreign
from exactshap.cli import _options as options
from exactshap.cli._io import TABLES, check_target, column_names, load_model, read_table, say, take_columns, write_table
from exactshap.cli._work import command_line
from exactshap.errors import InputError

if TYPE_CHECKING:
    from exactshap.results.comparison import Cohorts, Comparison
    from exactshap.results.decomposition import PairwiseDecomposition

_PICTURES = (".png", ".svg", ".pdf")

Kernel = Annotated[str, typer.Option(help="Kernel of numeric columns: rbf, laplacian or cauchy. Text columns are categorical.")]
Bandwidth = Annotated[
    str, typer.Option(help="Of the kernels: column-median (each column counts, whatever its unit), median, or a number.")
]
Method = Annotated[
    str, typer.Option(help="exact, blocks (the mean over random blocks of rows), or auto: blocks beyond half a minute of work.")
]
Permutations = Annotated[int, typer.Option(min=0, help="Permutations for p-values; 0 for none.")]
Correction = Annotated[
    str, typer.Option(help="Correction of p-values for the number of columns: max, holm, fdr_bh, fdr_by or none.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the table: .csv or .parquet.")]
Picture = Annotated[Path | None, typer.Option(help="Write the picture: .png, .svg or .pdf.")]
Report = Annotated[Path | None, typer.Option(help="Write a static HTML file with table and picture.")]
Game = Annotated[
    str,
    typer.Option(
        help="residual: tree by tree, each against what is left; ensemble: all at once; refit: a linear regression on every subset."
    ),
]
Background = Annotated[Path | None, typer.Option(help="Reference rows, for linear, additive and kernel models.")]
Bootstrap = Annotated[int, typer.Option(min=0, help="Resamples of the rows for intervals, with --game refit.")]
Weights = Annotated[str | None, typer.Option("--sample-weight", help="Column of the data that holds row weights.")]

# Options that MMD and HSIC share
_OF_SAMPLES: options.Shared = {
    "drop": (options.Drop, None),
    "kernel": (Kernel, "rbf"),
    "bandwidth": (Bandwidth, "column-median"),
    "permutations": (Permutations, 199),
    "correction": (Correction, "max"),
    "index": (options.Index, "shapley"),
    "out": (Out, None),
    "picture": (Picture, None),
    "report": (Report, None),
    "method": (Method, "auto"),
    "jobs": (options.Jobs, None),
    "seed": (options.Seed, 0),
}


def r2(
    model: options.Model,
    data: options.Data,
    *,
    target: Annotated[str, typer.Option(help="Column of the data that is the target.")],
    drop: options.Drop = None,
    game: Game = "residual",
    background: Background = None,
    bootstrap: Bootstrap = 0,
    seed: options.Seed = 0,
    sample_weight: Weights = None,
    out: Out = None,
    picture: Picture = None,
    allow_pickle: options.AllowPickle = False,
    trust: options.Trust = False,
    n_stages: options.Stages = None,
    jobs: options.Jobs = None,
) -> None:
    """Split the R2 of a model exactly over its features."""
    from exactshap.frames import as_table

    _check_targets(out, picture)
    out_of_X = options.dropped(target, drop) + (() if sample_weight is None else (sample_weight,))
    table = read_table(data, out_of_X)
    X = take_columns(table, out_of_X, what=data.name)
    wide = as_table(table, what=data.name)
    y, weights = (None if name is None else wide.column((wide.names or ()).index(name)) for name in (target, sample_weight))
    fitted = load_model(model, allow_pickle=allow_pickle, trust=trust, n_stages=n_stages)
    reference = None if background is None else read_table(background, out_of_X)
    if background is not None:
        there = column_names(reference)
        reference = take_columns(reference, tuple(name for name in out_of_X if name in there), what=background.name)
    shares = exactshap.decompose_r2(
        fitted,
        X,
        y,
        game=game,  # type: ignore[arg-type]
        background=reference,
        sample_weight=weights,
        n_bootstrap=bootstrap,
        random_state=seed,
        n_jobs=jobs,
    )
    say(repr(shares))
    write_outputs(shares, out, picture, _figure)


@options.takes("chosen", _OF_SAMPLES, SimpleNamespace)
def mmd(
    first: Annotated[Path, typer.Argument(metavar="A", help="One sample: .csv or .parquet.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The other sample, with the same columns.")],
    *,
    chosen: SimpleNamespace,
) -> None:
    """Say which columns make two samples differ (maximum mean discrepancy)."""
    _check_targets(chosen.out, chosen.picture, chosen.report)
    names = tuple(chosen.drop or ())
    one, other = (take_columns(read_table(path, names), names, what=path.name) for path in (first, second))
    result = exactshap.decompose_mmd(one, other, kernel=chosen.kernel, **_settings(chosen))
    _finish(result, chosen, f"What differs between {first.name} and {second.name}", (one, other), (first.stem, second.stem))


@options.takes("chosen", _OF_SAMPLES, SimpleNamespace)
def hsic(
    data: Annotated[Path, typer.Argument(help="Rows: .csv or .parquet.")],
    *,
    chosen: SimpleNamespace,
    target: Annotated[str, typer.Option(help="Column that the others may depend on.")],
    kernel_target: Annotated[str, typer.Option(help="Kernel of the target: rbf, laplacian, cauchy or categorical.")] = "rbf",
) -> None:
    """Say which columns a target depends on (Hilbert-Schmidt independence criterion, unbiased)."""
    _check_targets(chosen.out, chosen.picture, chosen.report)
    table = read_table(data, tuple(chosen.drop or ()))
    features = take_columns(table, options.dropped(target, chosen.drop), what=data.name)
    others = tuple(name for name in column_names(table) if name != target)
    result = exactshap.decompose_hsic(
        features,
        take_columns(table, others, what=data.name),
        kernel_x=chosen.kernel,
        kernel_y=kernel_target,
        estimator="unbiased",
        **_settings(chosen),
    )
    _finish(result, chosen, f"What {target} depends on in {data.name}")


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="An explanation saved as .npz.")],
    second: Annotated[Path | None, typer.Argument(metavar="B", help="Another one, of the same question.")] = None,
    *,
    by: Annotated[str | None, typer.Option(help="Column of A's data: compare its groups, instead of A and B.")] = None,
    drift: Annotated[bool, typer.Option("--drift/--no-drift", help="Also split the MMD of the data over the features.")] = True,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples of the rows for the intervals.")] = 1000,
    out: Out = None,
    picture: Picture = None,
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
    """Compare mean values of two explanations, or of groups within one."""
    _check_targets(out, picture, report)
    output = None if model_output is None else options.output_choice(model_output)
    result = _compared(first, second, by, {"drift": drift, "level": level, "n_bootstrap": bootstrap, "random_state": seed})
    say(repr(result))
    if report is not None:
        from exactshap.results.comparison import Comparison

        if not isinstance(result, Comparison):
            raise InputError("--report compares two explanations", "Got --by", "Leave --report out, or pass A and B")
        result.report(report, threshold=threshold, command=command_line())
        changed = ", ".join(result.changed(threshold)) or "none"
        say(f"report written to {report}; changed beyond the threshold: {changed}")
    write_outputs(result, out, picture, lambda result: result.plot(output=output).figure)


def _compared(first: Path, second: Path | None, by: str | None, settings: dict[str, Any]) -> Comparison | Cohorts:
    if (second is None) == (by is None):
        got = "Got neither" if by is None else "Got both"
        raise InputError("Compare A with B, or the groups of A with --by", got, "exactshap compare a.npz b.npz")
    explanation = exactshap.Explanation.load(first)
    if second is None:
        return explanation.by(by, **settings)
    return explanation.compare(exactshap.Explanation.load(second), labels=(first.stem, second.stem), **settings)


def _settings(chosen: SimpleNamespace) -> dict[str, Any]:
    from exactshap.decompose import PairwiseSettings

    return {
        "bandwidth": _bandwidth_choice(chosen.bandwidth),
        "index": chosen.index,
        "n_permutations": chosen.permutations,
        "random_state": chosen.seed,
        "n_jobs": chosen.jobs,
        "settings": PairwiseSettings(correction=chosen.correction, method=chosen.method),
    }


def _bandwidth_choice(text: str) -> str | float:
    """Return a number if the text is one, else the text.

    >>> _bandwidth_choice("0.5"), _bandwidth_choice("median")
    (0.5, 'median')
    """
    try:
        return float(text)
    except ValueError:
        return text


def _finish(
    shares: PairwiseDecomposition,
    chosen: SimpleNamespace,
    title: str,
    samples: tuple[Any, Any] | None = None,
    labels: tuple[str, str] = ("", ""),
) -> None:
    say(repr(shares))
    write_outputs(shares, chosen.out, chosen.picture, lambda shares: _figure(shares, samples, labels))
    if chosen.report is not None:
        from exactshap.results.report import write_shares_report

        write_shares_report(shares, chosen.report, title=title, samples=samples, labels=labels, command=command_line())
        say(f"report written to {chosen.report}")


def _check_targets(out: Path | None, picture: Path | None, report: Path | None = None) -> None:
    check_target(out, TABLES)
    check_target(picture, _PICTURES, "Pictures")
    check_target(report, (".html", ".htm", ".pdf"), "Reports")


def write_outputs(result: Foreign, out: Path | None, picture: Path | None, draw: Callable[[Any], Any]) -> None:
    """Write the table and the picture that the options ask for."""
    if out is not None:
        write_table(result.to_frame(), out)
        say(f"table written to {out}")
    if picture is not None:
        with atomic_write(picture) as draft:
            draw(result).savefig(draft, format=picture.suffix.lower().removeprefix("."), dpi=150)
        say(f"picture written to {picture}")


def _figure(shares: Foreign, samples: tuple[Any, Any] | None = None, labels: tuple[str, str] = ("", "")) -> Any:
    """Return a figure: the shares with their intervals and, for two samples, the marginals of the top columns."""
    figures = require("matplotlib.figure", "plots", purpose="Plotting")
    figure = figures.Figure(figsize=(12 if samples else 7, 5), layout="constrained")
    if samples is None:
        shares.plot.bar(ax=figure.subplots())
        return figure
    from exactshap.results.decomposition import strongest_marginals
    from exactshap.results.plots import draw_prepared

    left, right = figure.subfigures(1, 2, width_ratios=(1.2, 1.0))
    shares.plot.bar(ax=left.subplots())
    marginals = strongest_marginals(shares, samples)
    panels = right.subplots(2, 2, squeeze=False).ravel()
    for ax in panels[len(marginals) :]:
        ax.remove()
    draw_prepared(marginals, labels, panels[: len(marginals)])
    return figure
