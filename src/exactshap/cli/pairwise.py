"""``exactshap mmd A B``: what makes two samples differ; ``exactshap hsic DATA --target y``: what the target depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactshap.cli import _options as options
from exactshap.cli import _shares as shares

__all__ = ["hsic", "mmd"]


def mmd(
    first: Annotated[Path, typer.Argument(metavar="A", help="One sample: .csv or .parquet.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The other sample, with the same columns.")],
    *,
    drop: options.Drop = None,
    kernel: shares.Kernel = "rbf",
    bandwidth: shares.Bandwidth = "column-median",
    permutations: shares.Permutations = 199,
    correction: shares.Correction = "max",
    index: options.Index = "shapley",
    out: shares.Out = None,
    picture: shares.Picture = None,
    report: shares.Report = None,
    method: shares.Method = "auto",
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
) -> None:
    """Say which columns make two samples differ (maximum mean discrepancy)."""
    from exactshap.cli._io import read_table, take_columns
    from exactshap.decompose import PairwiseSettings, decompose_mmd

    names = tuple(drop or ())
    one, other = (take_columns(read_table(path), names, what=path.name) for path in (first, second))
    result = decompose_mmd(
        one,
        other,
        kernel=kernel,
        bandwidth=shares.bandwidth_choice(bandwidth),
        index=index,
        n_permutations=permutations,
        random_state=seed,
        n_jobs=jobs,
        settings=PairwiseSettings(correction=correction, method=method),
    )
    labels = (first.stem, second.stem)
    title = f"What differs between {first.name} and {second.name}"
    shares.finish(result, (one, other), labels, title=title, out=out, picture=picture, report=report)


def hsic(
    data: Annotated[Path, typer.Argument(help="Rows: .csv or .parquet.")],
    *,
    target: Annotated[str, typer.Option(help="Column that the others are held against.")],
    drop: options.Drop = None,
    kernel: shares.Kernel = "rbf",
    kernel_target: Annotated[str, typer.Option(help="Of the target: rbf, laplacian, cauchy or categorical.")] = "rbf",
    bandwidth: shares.Bandwidth = "column-median",
    permutations: shares.Permutations = 199,
    correction: shares.Correction = "max",
    index: options.Index = "shapley",
    out: shares.Out = None,
    picture: shares.Picture = None,
    report: shares.Report = None,
    method: shares.Method = "auto",
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
) -> None:
    """Say which columns a target depends on (Hilbert-Schmidt independence criterion, unbiased)."""
    from exactshap.cli._io import read_table, take_columns
    from exactshap.decompose import PairwiseSettings, decompose_hsic
    from exactshap.frames import as_table

    table = read_table(data)
    features = take_columns(table, options.dropped(target, drop), what=data.name)
    others = tuple(name for name in as_table(table).names or () if name != target)
    result = decompose_hsic(
        features,
        take_columns(table, others, what=data.name),
        kernel_x=kernel,
        kernel_y=kernel_target,
        bandwidth=shares.bandwidth_choice(bandwidth),
        estimator="unbiased",
        index=index,
        n_permutations=permutations,
        random_state=seed,
        n_jobs=jobs,
        settings=PairwiseSettings(correction=correction, method=method),
    )
    title = f"What {target} depends on in {data.name}"
    shares.finish(result, None, ("", ""), title=title, out=out, picture=picture, report=report)
