"""One static HTML file about a decomposition of a pairwise statistic: certificate, picture, table, limits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactshap._runtime.files import atomic_write
from exactshap._runtime.optional import require
from exactshap.errors import printable
from exactshap.results.decomposition import facts_of, rows_of, strongest_marginals
from exactshap.results.report._share_figures import marginal_panel, share_bars
from exactshap.results.report._template import now, template

if TYPE_CHECKING:
    from exactshap.results.decomposition import PairwiseDecomposition

__all__ = ["render_shares", "write_shares_report"]

_LIMITS = {
    "MMD2": (
        "Every p-value, that of a column too, tests one hypothesis: both samples come from one distribution. The size of the "
        "shares says where they differ.",
        "Columns outside a coalition have kernel value 1. A column that does not differ makes the kernel smaller and hides part "
        "of the difference: its share is around or below 0.",
    ),
    "HSIC": (
        "Every p-value, that of a column too, tests one hypothesis: the columns and the target are independent.",
        "Dependence is not cause, and columns that repeat each other share their credit.",
    ),
}
_BOTH = (
    "The numbers depend on kernel and bandwidth, which are listed above.",
    "Intervals are normal, from jackknife standard errors (from the spread of blocks where rows were cut into blocks); where "
    "the total is not significant they are not reliable.",
)


def write_shares_report(shares: PairwiseDecomposition, path: str | Path, **settings: Any) -> Path:
    """Write the report, all of it or nothing, and return its path.

    Parameters
    ----------
    shares : PairwiseDecomposition
    path : str or Path
        Of the ``.html`` file.
    **settings
        Of :func:`render_shares`.
    """
    page = render_shares(shares, **settings)
    with atomic_write(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return Path(path)


def render_shares(
    shares: PairwiseDecomposition,
    *,
    title: str,
    samples: tuple[Any, Any] | None = None,
    labels: tuple[str, str] = ("X", "Z"),
    command: str | None = None,
) -> str:
    """Return the report as HTML text; names of columns are escaped, and their control characters replaced.

    Parameters
    ----------
    shares : PairwiseDecomposition
    title : str
    samples : pair of tables, optional
        The strongest columns are drawn in both of them.
    labels : pair of str, default=("X", "Z")
        Names of the samples.
    command : str, optional
        The command that wrote this report.
    """
    markup = require("markupsafe", "report", purpose="A report").Markup
    headings, rows = rows_of(shares)
    page = template("shares.html.jinja").render(
        title=title,
        facts=facts_of(shares),
        details=_settings(shares),
        headings=headings,
        rows=rows,
        figure=markup(share_bars(shares.plot.prepare())),
        whiskers=shares.intervals is not None or shares.std_error is not None,
        panels=[markup(marginal_panel(marginal, labels)) for marginal in strongest_marginals(shares, samples)]
        if samples
        else [],
        labels=labels,
        limits=(*_LIMITS[shares.statistic], *_BOTH),
        command=command,
        date=now(),
        version=_version(),
    )
    return printable(page)


def _settings(shares: PairwiseDecomposition) -> dict[str, str]:
    """Return the settings as text; long lists per column as one line."""
    hidden = ("error_bound", "n_blocks")
    words = {name.replace("_", " "): _words(value) for name, value in shares.details.items() if name not in hidden}
    return {"index": shares.index, **words}


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_words(inner)}" for name, inner in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _version() -> str:
    from exactshap import __version__

    return __version__
