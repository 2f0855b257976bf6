"""Compare the data of two explanations by MMD, with the contribution of each player."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap.errors import ExactshapError
from exactshap.frames import Table, as_table
from exactshap.results.data import ExplanationData, as_days, cell_text, player_columns
from exactshap.results.decomposition import PairwiseDecomposition

# Rows of both samples together: the statistic is quadratic in them.
MAX_EXACT_ROWS = 5000


def data_drift(
    first: ExplanationData, second: ExplanationData, n_permutations: int, seed: Any
) -> tuple[PairwiseDecomposition | None, tuple[str, ...]]:
    """Return the data's MMD split over the players, or None. Sentences on the method come with it."""
    if first.data is None or second.data is None:
        return None, ("The data are not compared: an explanation holds none.",)
    if min(first.n_rows, second.n_rows) < 2:
        return None, ("The data are not compared: a sample needs two rows.",)
    from exactshap.decompose import PairwiseSettings, decompose_mmd

    try:
        samples, groups, kernels, gaps = _coded(first, second)
        (one, other), choice, notes = _thinned(samples, np.random.default_rng(seed))
        drift = decompose_mmd(
            one,
            other,
            bandwidth="column-median",
            kernel=kernels,
            groups=groups,
            n_permutations=n_permutations,
            random_state=seed,
            settings=PairwiseSettings(**choice),
        )
    except ExactshapError as error:
        return None, (f"The data are not compared: {error}",)
    missing = f"Missing numbers of {', '.join(gaps)} count as a category of their own." if gaps else ""
    return drift, tuple(text for text in (*notes, missing) if text)


def _coded(first: ExplanationData, second: ExplanationData) -> tuple[Any, dict[str, list[int]], dict[int, str], list[str]]:
    """Return both samples as numbers, with columns, categories and gaps by player.

    They are the columns of each player, which columns are categories, and the players with gaps.
    """
    tables = as_table(first.data), as_table(second.data)
    if tables[0].names and tables[1].names and set(tables[0].names) == set(tables[1].names):
        # Functions may take the columns of a frame in any order.
        tables = tables[0], tables[1].select([tables[1].names.index(name) for name in tables[0].names])
    columns: list[np.ndarray] = []
    groups: dict[str, list[int]] = {}
    kernels: dict[int, str] = {}
    for name, members in zip(first.feature_names, player_columns(first, tables[0]), strict=True):
        groups[name] = list(range(len(columns), len(columns) + len(members)))
        for j in members:
            cells, is_category = _column(tables, j)
            kernels |= {len(columns): "categorical"} if is_category else {}
            columns.append(cells)
    gaps = [name for name, places in groups.items() if any(np.isnan(columns[place]).any() for place in places)]
    pooled = np.stack(columns, axis=1)
    return (pooled[: first.n_rows], pooled[first.n_rows :]), groups, kernels, gaps


def _column(tables: tuple[Table, Table], j: int) -> tuple[np.ndarray, bool]:
    """Return a column of both tables as numbers, and whether these are categories."""
    first, second = (table.numbers([j]) for table in tables)
    if first is not None and second is not None:
        return np.concatenate([first, second])[:, 0], False
    texts = [cell_text(value) for table in tables for value in table.column(j)]
    days = as_days(np.array(texts, object))
    return (np.unique(texts, return_inverse=True)[1].astype(float), True) if days is None else (days, False)


def _thinned(samples: tuple[np.ndarray, np.ndarray], generator: np.random.Generator) -> tuple[Any, dict[str, Any], list[str]]:
    """Return samples, a method and a sentence on it: blocks of rows beyond 5,000, of which both samples need enough."""
    sizes = [len(sample) for sample in samples]
    if sum(sizes) <= MAX_EXACT_ROWS:
        return samples, {"method": "exact"}, []
    if min(sizes) >= 100 * (sum(sizes) // 2000):
        return (
            samples,
            {"method": "blocks", "block_size": 1000},
            ["The MMD is the mean over random blocks of about 2,000 rows."],
        )
    keep = MAX_EXACT_ROWS - min(min(sizes), MAX_EXACT_ROWS // 2)
    chosen = [sample[np.sort(generator.permutation(len(sample))[:keep])] for sample in samples]
    return chosen, {"method": "exact"}, [f"The MMD is that of a random choice of {keep:,} rows of the larger sample."]
