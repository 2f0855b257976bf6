r"""Standard errors of a process over coalitions, held to what KernelSHAP can tell from the same pairs.

The posterior of a game knows nothing of games unlike its prior: where it believes that a player matters nowhere, its error for that
player is next to nothing. KernelSHAP has no prior, and says two things. What it makes of the process' left-out residuals r is an
estimate of the bias of the process' values, known up to

.. math:: e_j^2 = \sum_i (u_i G_{ij} r_i)^2,

G its linear map from pairs to values, u the share of each pair's size that is not called. And its own jackknife error s is what the
relevances improve upon, which they may claim the less the fewer pairs a player they were fitted to. The error of a value is

.. math:: \max\bigl\{\text{posterior},\; 0.8\, e_j,\; 4 (d / m)^4 s_j\bigr\}.

The constants were tuned on the families of ``benchmarks/coverage_games.py`` and checked on those of ``benchmarks/coverage_held_out.py``.
"""

from __future__ import annotations

import numpy as np

from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled._polynomial import PolynomialFit, unseen_shares
from exactshap.solvers.sampled.process import CubeProcess

__all__ = ["held_to"]

CHECKED = 0.8  # of the error with which residuals tell of a bias: 1.1 to 1.4 of the posterior's where that is right
FEW_ROWS = 4.0  # of KernelSHAP's error times (d / m)^4: a quarter of it with two pairs a player
FITTED = 2.0  # of (d / m)^2, for fitted relevances; without KernelSHAP beside it, d / m is needed


def held_to(
    kernelshap: PolynomialFit,
    masks: np.ndarray,
    process: CubeProcess,
    semivalue: Semivalue,
    order: int,
    sets: tuple[tuple[int, ...], ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the process' Shapley values and their errors (n_players, n_outputs); ``kernelshap`` is of its pairs ``masks``."""
    players_per_pair = masks.shape[1] / len(process.points)
    values, std_error = process.solve(semivalue, order, sets, doubt=FITTED * players_per_pair**2)
    few = FEW_ROWS * players_per_pair**4 * kernelshap.std_error
    return values, np.maximum(std_error, np.maximum(CHECKED * _bias_error(kernelshap, masks, process), few))


def _bias_error(kernelshap: PolynomialFit, masks: np.ndarray, process: CubeProcess) -> np.ndarray:
    """Return e (n_players, n_outputs), from the rows that calibrate the process."""
    rows, residuals = process.checked()
    inner = rows > 0  # row 0 is the full coalition, which every estimate meets
    rows, residuals = rows[inner] - 1, residuals[inner]
    weighted = kernelshap.moves[rows] * unseen_shares(masks, paired=True)[rows, None]
    total: np.ndarray = (weighted**2).T @ residuals**2
    return np.sqrt(total * (len(masks) / len(rows)))
