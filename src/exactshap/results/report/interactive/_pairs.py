"""The pairs of players that the page draws, and their matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap.errors import printable

if TYPE_CHECKING:
    from exactshap.results.data import ExplanationData

__all__ = ["players_of", "strongest_pairs", "tiles"]

# Players of the matrix of pairs.
_PAIRED = 12


def strongest_pairs(explanation: ExplanationData) -> list[list[int]]:
    """Return strong players' pairs as [first, second, number of the set]. The players have the largest sums of mean magnitudes."""
    if explanation.sets is None or explanation.set_values is None:
        return []
    mean = np.abs(explanation.set_values).mean(axis=0).reshape(len(explanation.sets), -1).max(axis=1)
    strength = np.zeros(explanation.n_players)
    for members, value in zip(explanation.sets, mean.tolist(), strict=True):
        if len(members) == 2:
            strength[list(members)] += value
    strongest = set(np.argsort(-strength, kind="stable")[:_PAIRED].tolist())
    return [[*members, s] for s, members in enumerate(explanation.sets) if len(members) == 2 and strongest.issuperset(members)]


def players_of(pairs: list[list[int]]) -> list[int]:
    """Return the players of some pairs, in order."""
    return sorted({j for first, second, _ in pairs for j in (first, second)})


def tiles(explanation: ExplanationData, pairs: list[list[int]]) -> list[list[dict[str, Any]]]:
    """Return the chart's matrix of mean magnitudes, output by output."""
    if not pairs or explanation.set_values is None:
        return []
    mean = np.abs(explanation.set_values[:, [s for _, _, s in pairs]]).mean(axis=0).reshape(len(pairs), -1)
    place = {j: where for where, j in enumerate(players_of(pairs))}
    names = [printable(name)[:200] for name in explanation.feature_names]
    return [
        [
            {
                "pair": p,
                "j": j,
                "k": k,
                "first": place[j],
                "second": place[k],
                "share": value / largest,
                **_written(names, j, k, value),
            }
            for p, ((first, second, _), value) in enumerate(zip(pairs, values.tolist(), strict=True))
            for j, k in ((first, second), (second, first))
        ]
        for values in mean.T
        for largest in [float(values.max()) or 1.0]
    ]


def _written(names: list[str], j: int, k: int, value: float) -> dict[str, str]:
    return {"text": f"{value:.2g}", "said": f"{names[j]} and {names[k]}: {value:.2g}"}
