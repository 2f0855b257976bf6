"""Decompositions as words: one line of facts, one row of text per column."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.results.decomposition._pairwise import PairwiseDecomposition
from exactshap.results.plots import Marginal, prepare_marginals

__all__ = ["facts_of", "rows_of", "strongest_marginals"]


def facts_of(shares: PairwiseDecomposition) -> list[str]:
    """Return the statistic, its error, its p-value and the certificate, as short sentences."""
    error = "" if shares.total_std_error is None else f" ± {shares.total_std_error:.2g}"
    facts = [f"{shares.statistic} = {shares.total:.6g}{error}"]
    if shares.p_value is not None and shares.null_totals is not None:
        facts.append(f"p = {shares.p_value:.4g} ({len(shares.null_totals)} permutations)")
    if shares.details["n_blocks"] > 1:
        facts.append(f"mean over {shares.details['n_blocks']} random blocks of rows")
    facts.append(f"residual {shares.residual:.1e} (tolerance {shares.tolerance:.1e})")
    return facts


def rows_of(shares: PairwiseDecomposition) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of text, by decreasing share."""
    level = f"{100 * shares.details['level']:g} % interval"
    columns = {
        "column": list(shares.feature_names),
        "contribution": [f"{v:.4g}" for v in shares.values],
        "of total": ["" if np.isnan(f) else f"{100 * f:.1f} %" for f in shares.fractions],
    }
    if shares.intervals is not None:
        columns[level] = [f"{low:.3g} to {high:.3g}" for low, high in shares.intervals]
    if shares.p_values is not None and shares.p_adjusted is not None:
        columns["p"] = [f"{p:.4g}" for p in shares.p_values]
        columns[f"p ({shares.details['correction']})"] = [f"{p:.4g}" for p in shares.p_adjusted]
    order = np.argsort(-shares.values, kind="stable")
    return list(columns), [[column[j] for column in columns.values()] for j in order]


def strongest_marginals(shares: PairwiseDecomposition, samples: tuple[Any, Any], *, most: int = 4) -> tuple[Marginal, ...]:
    """Return the marginal distributions of the columns with the largest shares in both samples, each with its share."""
    strongest = sorted(range(len(shares.values)), key=lambda j: -shares.values[j])[
        :most
    ]  # stable: ties keep the columns' order
    captions = [f"contribution {shares.values[j]:.3g}" for j in strongest]
    return prepare_marginals(*samples, [shares.feature_names[j] for j in strongest], captions)
