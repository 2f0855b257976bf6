"""``exactshap r2 MODEL DATA --target y``: the R2 of a tree ensemble, split over its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from exactshap.cli import _options as options
from exactshap.cli import _shares as shares_of
from exactshap.results.data import counted

if TYPE_CHECKING:
    from exactshap.decompose.r2 import R2Decomposition

__all__ = ["command", "r2"]

Game = Annotated[str, typer.Option(help="residual: tree by tree, each against what is left; ensemble: all trees at once.")]
Weights = Annotated[str | None, typer.Option("--sample-weight", help="Column of the data that holds row weights.")]


def r2(
    model: options.Model,
    data: options.Data,
    *,
    target: Annotated[str, typer.Option(help="Column of the data that is the target.")],
    drop: options.Drop = None,
    game: Game = "residual",
    sample_weight: Weights = None,
    out: shares_of.Out = None,
    picture: shares_of.Picture = None,
    allow_pickle: options.AllowPickle = False,
    trust: options.Trust = False,
    n_stages: options.Stages = None,
    jobs: options.Jobs = None,
) -> None:
    """Split the R2 of a tree ensemble exactly over its features."""
    from exactshap.cli._io import load_model, read_table, take_columns, write_table
    from exactshap.cli._screen import console
    from exactshap.decompose import decompose_r2
    from exactshap.frames import as_table

    table = read_table(data)
    out_of_X = options.dropped(target, drop) + (() if sample_weight is None else (sample_weight,))
    X = take_columns(table, out_of_X, what=data.name)
    wide = as_table(table, what=data.name)
    y, weights = (None if name is None else wide.column((wide.names or ()).index(name)) for name in (target, sample_weight))
    fitted = load_model(model, allow_pickle=allow_pickle, trust=trust, n_stages=n_stages)
    shares = decompose_r2(fitted, X, y, game=game, sample_weight=weights, n_jobs=jobs)  # type: ignore[arg-type]
    show(shares)
    if out is not None:
        write_table(shares.to_frame(), out)
        console().print(f"table written to {out}")
    if picture is not None:
        shares_of.write_picture(_figure(shares), picture)
        console().print(f"picture written to {picture}")


command = r2


def show(shares: R2Decomposition, *, max_display: int = 15) -> None:
    """Print the total, the drift and the certificate, and a table of the features by decreasing share."""
    from rich.table import Table

    from exactshap.cli._screen import console

    screen = console()
    facts = f"{shares.statistic} = {shares.total:.6g} ({shares.game} game); shares sum to {shares.values.sum():.6g}"
    screen.print(f"{facts}, drift {shares.drift:.2g}; residual {shares.residual:.1e} (tolerance {shares.tolerance:.1e})")
    table = Table(title=f"shares of {len(shares)} features", title_justify="left")
    for k, heading in enumerate(("feature", "contribution", "of total")):
        table.add_column(heading, justify="right" if k else "left")
    order = np.argsort(-shares.values, kind="stable")
    for j in order[:max_display]:
        table.add_row(shares.feature_names[j], f"{shares.values[j]:.4g}", f"{100 * shares.fractions[j]:.1f} %")
    screen.print(table)
    if len(order) > max_display:
        screen.print(f"{counted(len(order) - max_display, 'feature')} with smaller shares not shown")


def _figure(shares: R2Decomposition) -> object:
    from exactshap._runtime.optional import require

    figures = require("matplotlib.figure", "plots", purpose="Plotting")
    figure = figures.Figure(figsize=(7, 5), layout="constrained")
    shares.plot.bar(ax=figure.subplots())
    return figure
