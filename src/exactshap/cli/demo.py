"""Run ``exactshap demo``, from bundled data to a report, and ``exactshap show-versions``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from exactshap.results.explanation import Explanation


def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The report to write.")] = Path("report.html"),
    background_rows: Annotated[int, typer.Option(min=0, max=442, help="Reference rows; 0 for the functional game.")] = 50,
) -> None:
    """Explain a support vector machine on scikit-learn's sample data and write report.html."""
    from exactshap.cli._screen import console, show_explanation
    from exactshap.cli._work import command_line

    explanation = explained(background_rows)
    show_explanation(explanation)
    explanation.report(out, data_name="diabetes (scikit-learn)", command=command_line())
    console().print(f"\nreport written to {out}: open it in a browser\nyour own model: exactshap explain model.skops data.csv")


def explained(background_rows: int) -> Explanation:
    """Fit a pipeline with an SVR on the diabetes data and explain all 442 rows."""
    from exactshap._runtime.process_settings import without_collection

    with without_collection:
        from sklearn.datasets import load_diabetes
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR

        from exactshap.explainer import Explainer

    data = load_diabetes(scaled=False)
    model = make_pipeline(StandardScaler(), SVR(C=100.0)).fit(data.data, data.target)
    background = data.data[:background_rows] if background_rows else None
    return Explainer(model, background, feature_names=data.feature_names, n_jobs=-1)(data.data)


def versions() -> None:
    """Print the versions of Python, the system and all packages concerned."""
    from exactshap.versions import show_versions

    show_versions()
