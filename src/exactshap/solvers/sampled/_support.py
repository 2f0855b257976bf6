r"""Find the support of a game of few interactions, by left-out pairs that it predicts to rounding.

The odd half of a game is a sum of characters, :math:`g(x) = \sum_{|T|\ \text{odd}} c_T \prod_{j \in T} x_j` with x of -1 and 1. One fast
Walsh-Hadamard transform of what is left of g at the called pairs is its correlation with all of them, of every order. Those that
correlate most join the support, all coefficients are fitted anew, and so on (orthogonal matching pursuit: Pati, Rezaiifar & Krishnaprasad 1993).

One of five pairs takes no part in that. A support is returned only if it predicts all m of them to rounding: one that errs on a share p of all
pairs passes with probability :math:`(1 - p)^m`, and some twenty are tried. Errors state what that leaves open (``by_best``).
"""

from __future__ import annotations

import numpy as np

from exactshap._runtime.linear_algebra import factorise_lower, solve_factored
from exactshap.solvers.sampled._frontier import Sets, character_columns
from exactshap.solvers.sampled._polynomial import TINIEST

# Players that may interact, the most relevant ones: a transform of 2^19 values takes 8 ms
MAX_TRANSFORMED = 20
LEFT_OUT = 5  # one of so many pairs
AXES = 2**7  # values that one product of a transform mixes
# Characters that join at once, for each one known: fewer are more exact and slower
STEP, MIN_STEP = 0.2, 4
# Characters for each fitted pair, beyond which many supports fit; left-out residuals over fitted ones, as soon as some are only fitted
MOST_CHARACTERS, OVERFITTED = 0.35, 2.0


def find_support(masks: np.ndarray, target: np.ndarray, relevances: np.ndarray, tolerance: float) -> Sets | None:
    """Return the sets that make up the odd half of a game, or None.

    ``target`` (n_pairs, n_outputs) is that half; single players come first. ``tolerance`` is the residual, in units of the largest value, that counts as rounding.
    """
    n_players = masks.shape[1]
    first, *others = np.sort(np.argsort(-relevances, kind="stable")[:MAX_TRANSFORMED]).tolist()
    # A mixture of the outputs has the characters of all of them
    answers = (target / np.maximum(np.abs(target).max(axis=0), TINIEST)) @ np.random.default_rng(0).normal(size=target.shape[1])
    left_out = np.arange(len(masks)) % LEFT_OUT == 0
    # A pair is named by its half with the first player, so that characters of the others tell all odd ones apart
    side = np.where(masks[:, first], 1.0, -1.0)
    names = (masks[:, others] != masks[:, [first]]) @ (1 << np.arange(len(others)))
    sets: Sets = tuple((j,) for j in range(n_players))
    columns = character_columns(masks, sets)
    while len(sets) <= MOST_CHARACTERS * len(masks):
        coefficients = _coefficients(columns[~left_out], answers[~left_out])
        if coefficients is None:
            return None
        residual = answers - columns @ coefficients
        missed, fitted = np.abs(residual[left_out]), residual[~left_out]
        if missed.max() <= tolerance * np.abs(answers).max():
            return tuple(sorted(sets, key=len))
        if np.mean(missed**2) > OVERFITTED**2 * np.mean(fitted**2):
            return None
        sums = np.bincount(names[~left_out], side[~left_out] * fitted, 2 ** len(others))
        n_more = min(max(round(STEP * len(sets)), MIN_STEP), len(sums))
        strongest = np.argpartition(-np.abs(_transformed(sums)), n_more - 1)[:n_more]
        members = np.zeros((len(strongest), n_players), bool)
        members[:, others] = strongest[:, None] >> np.arange(len(others)) & 1
        members[:, first] = members.sum(axis=1) % 2 == 0
        more = tuple(tuple(np.flatnonzero(row).tolist()) for row in members)
        sets, columns = sets + more, np.concatenate([columns, character_columns(masks, more)], axis=1)
    return None


def _coefficients(columns: np.ndarray, answers: np.ndarray) -> np.ndarray | None:
    """Return least-squares coefficients (n_columns,), or None if the rows do not determine them."""
    gram = np.asfortranarray(columns.T @ columns)
    return None if factorise_lower(gram) else solve_factored(gram, (answers @ columns)[:, None])[:, 0]


def _transformed(values: np.ndarray) -> np.ndarray:
    """Return the Walsh-Hadamard transform of 2^k values, in single precision: a product with a small matrix for each few of the k axes."""
    from scipy.linalg import hadamard

    values, done = values.astype(np.float32), 1
    while done < len(values):
        size = min(AXES, len(values) // done)
        matrix = hadamard(size, np.float32)
        rows = values.reshape(-1, size, done)
        values = (rows[:, :, 0] @ matrix if done == 1 else matrix @ rows).ravel()
        done *= size
    return values
