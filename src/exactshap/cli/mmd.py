"""``exactshap mmd A B``: which columns make two samples differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactshap.cli import _options as options
from exactshap.cli import _shares as shares

__all__ = ["command"]


def command(
    first: Annotated[Path, typer.Argument(metavar="A", help="One sample: .csv or .parquet.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The other sample, with the same columns.")],
    drop: options.Drop = None,
    kernel: shares.Kernel = "rbf",
    bandwidth: shares.Bandwidth = "column-median",
    permutations: shares.Permutations = 199,
    correction: shares.Correction = "max",
    index: options.Index = "shapley",
    out: shares.Out = None,
    picture: shares.Picture = None,
    report: shares.Report = None,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
) -> None:
    """Say which columns make two samples differ (maximum mean discrepancy)."""
    from exactshap.cli._io import read_table, take_columns
    from exactshap.decompose import decompose_mmd

    names = tuple(drop or ())
    one, other = (take_columns(read_table(path), names, what=path.name) for path in (first, second))
    result = decompose_mmd(
        one,
        other,
        kernel=kernel,
        bandwidth=shares.bandwidth_choice(bandwidth),
        index=index,
        n_permutations=permutations,
        correction=correction,
        random_state=seed,
        n_jobs=jobs,
    )
    labels = (first.stem, second.stem)
    title = f"What differs between {first.name} and {second.name}"
    shares.finish(result, (one, other), labels, title=title, out=out, picture=picture, report=report)
