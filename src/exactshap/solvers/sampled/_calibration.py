r"""Standard errors of a process over coalitions, held to what KernelSHAP can tell from the same pairs.

The posterior of a game knows nothing of games unlike its prior: where it believes that a player matters nowhere, its error for that
player is next to nothing. KernelSHAP has no prior, and says two things. What it makes of the process' left-out residuals r is an
estimate of the bias of the process' values, known up to

.. math:: e_j^2 = \sum_i (u_i^2 G_{ij} r_i)^2,

G its linear map from pairs to values, u the share of each pair's size that is not called (once for what is left to be wrong about,
once for how much better it is known). And its own jackknife error s is what the process improves upon, which it may claim the less the
fewer pairs a player its relevances were fitted to, and the less the worse it foretells pairs that are left out. The error of a value is

.. math:: \sqrt{\min\{\max\{\kappa / 5, 1\}, 4\}}\; \max\bigl\{\text{posterior},\; 0.65\, e_j,\;
          0.4 \min\{(2 d / m)^8, \sqrt 2\, q\} \max\{\sqrt g, t\}\, s_j,\; q\, g\, s_j\bigr\}, \qquad q = \sqrt{1 - d / m}

with the kurtosis :math:`\kappa` of the residuals, 3 if they are normal: a few large ones among many small ones are what jumps that
few pairs have met leave behind. g is the mean square of the process' residuals over that of KernelSHAP's, at most 1: the jackknife is
linear in residuals, so that :math:`\sqrt g\, s` is what it would say of the process' own. Residuals of games of steps are all or
nothing, and few of them tell nothing of g; t is 1 there and 0 where no two answers are alike. q takes back
what the jackknife adds where pairs are few: it divides residuals by 1 - h, h = d / m on average, where the root of it is right
(MacKinnon & White 1985). The posterior's own error follows the left-out residuals down to a hundredth: a game that they tell to be
recovered has small errors, whatever was believed before.

Where answers are few and alike, squared residuals are a count of jumps, of which :math:`m / \kappa` were met; as many and one more
(Laplace) raise the variance by :math:`1 + t\, \kappa / m`, whatever the number of pairs a player.

The constants were tuned on the families of ``benchmarks/error_games.py`` and ``error_games_development.py``, and checked on those of
``error_games_held_out.py``.
"""

from __future__ import annotations

import numpy as np

from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled._polynomial import PolynomialFit
from exactshap.solvers.sampled.process import CubeProcess

__all__ = ["held_to"]

CHECKED = 0.65  # of the error with which residuals tell of a bias: about that of the posterior where that is right
FEW_ROWS = 0.4  # of KernelSHAP's error with two pairs a player
FADES = 8  # power of 2 d / m with more of them
USUAL, MOST = 5.0, 4.0  # kurtosis up to which nothing is added, and the most by which variances are raised beyond
FITTED = 2.0  # of (d / m)^2 times what left-out rows say, for fitted relevances; without KernelSHAP beside it, d / m is added
FEW_ANSWERS = 4.0  # times the share of answers alike: from 1 on it is a game of steps
ALIKE_DIGITS = 9


def held_to(
    kernelshap: PolynomialFit,
    process: CubeProcess,
    semivalue: Semivalue,
    order: int,
    sets: tuple[tuple[int, ...], ...],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the process' Shapley values and their errors (n_players, n_outputs); ``kernelshap`` is of its pairs, in its ``unit``."""
    players_per_pair = process.points.shape[1] / len(process.points)
    asked = process.ask(semivalue, order, sets)
    values, std_error = process.answer(asked, relative_doubt=FITTED * players_per_pair**2)
    rows, residuals = process.checked()
    inner = rows > 0  # row 0 is the full coalition, which every estimate meets
    pairs, squares = rows[inner] - 1, residuals[inner] ** 2
    moves, theirs = kernelshap.moves[pairs], kernelshap.residuals[pairs] ** 2
    bias_error = np.sqrt(
        ((kernelshap.unseen[pairs][:, None] ** 2 * moves) ** 2).T @ squares * (len(kernelshap.moves) / len(moves))
    )
    gain = np.minimum(squares.sum(axis=0) / np.maximum(theirs.sum(axis=0), 1e-300), 1.0)
    steps = np.minimum(FEW_ANSWERS * _alike(process), 1.0)
    own = _share(players_per_pair, gain, steps) * kernelshap.std_error
    held = np.maximum(std_error, process.unit * np.maximum(CHECKED * bias_error, own))
    jumps = 1.0 + steps * _kurtosis(squares) / (len(kernelshap.moves))  # all pairs met jumps, not only those that were left out
    return values, _heaviness(squares) * held * np.sqrt(jumps)


def _share(players_per_pair: float, gain: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return what of KernelSHAP's jackknife errors (n_outputs,) no process is believed to be better than."""
    taken_back = np.sqrt(max(1.0 - players_per_pair, 0.0))
    few = FEW_ROWS * min((2.0 * players_per_pair) ** FADES, np.sqrt(2.0) * taken_back)
    return np.maximum(few * np.maximum(np.sqrt(gain), steps), taken_back * gain)


def _heaviness(squares: np.ndarray) -> np.ndarray:
    """Return by how much heavy tails of residuals, squared (n_rows, n_outputs), raise errors (n_outputs,)."""
    raised: np.ndarray = np.sqrt(np.clip(_kurtosis(squares) / USUAL, 1.0, MOST))
    return raised


def _kurtosis(squares: np.ndarray) -> np.ndarray:
    """Return the kurtosis (n_outputs,) of residuals of mean 0, squared (n_rows, n_outputs): 3 if they are normal."""
    shares = squares / np.maximum(squares.mean(axis=0), 1e-300)
    return np.asarray((shares**2).mean(axis=0))


def _alike(process: CubeProcess) -> np.ndarray:
    """Return the share (n_outputs,) of pairs of calls, taken two at a time, of which both have the same difference."""
    differences = process.halves[0].half.target[process.order > 0]
    rounded = np.round(differences / np.maximum(np.abs(differences).max(axis=0), 1e-300), ALIKE_DIGITS)
    counts = [np.unique(column, return_counts=True)[1] for column in rounded.T]
    n = len(differences)
    return np.array([(times * (times - 1)).sum() / (n * (n - 1)) for times in counts])
