r"""Fit the odd half of a game by a few sigmoid units, each of which learns a direction in which the game jumps or bends.

.. math:: f(x) = \sum_h o_h\, \tfrac12 \bigl[\tanh(\beta_h + w_h^\top x) - \tanh(\beta_h - w_h^\top x)\bigr], \qquad x = 2 S - 1

A quota, a threshold or a ripple of a weighted sum has interactions of every order, which a process over coalitions takes for white
noise. It is one or two such units. Symmetric values see odd halves only, so that those of f are those of :math:`\sum_h o_h \tanh(\beta_h + w_h^\top x)`,
where a sum of exponentials in place of tanh makes each unit a product game (:mod:`exactshap.expansions`): they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from exactshap.expansions import expand
from exactshap.games import ProductGame
from exactshap.semivalues import Semivalue
from exactshap.solvers.sampled._polynomial import TINIEST
from exactshap.solvers.sampled._surrogate import game_values

UNITS = 4
DECAY = 1e-3  # of squared weights, over the number of pairs
# From one start, units often stay where they tell little; all starts but one have their units turned to the game
STARTS, TURNED = 3, 2
# Share of random weights that is kept when units are turned, and how many times as long they become, from flat to steep
KEPT, LENGTHS = 0.2, np.linspace(1.0, 4.0, UNITS)[:, None]
# Steps from each start, and of the best of them; those that L-BFGS remembers: with scipy's 10 it needs half as many again
FIRST_STEPS, MORE_STEPS, REMEMBERED = 40, 160, 30
# How much of the process' mean squared residuals of left-out pairs may be left after the first steps and in the end
HOPELESS, GOOD_ENOUGH = 4.0, 0.5
LONGEST = 1000.0  # sum of a unit's weights: half of what expansions go to


@dataclass(frozen=True, eq=False)
class Network:
    """Hold units (n_units, n_players), biases (n_units, 1) and outputs (n_outputs, n_units).

    Numbers of one unit at all points lie side by side: sums over points are the quicker the longer such runs are.
    """

    weights: np.ndarray
    bias: np.ndarray
    out: np.ndarray

    @classmethod
    def starts(cls, n_players: int, n_outputs: int) -> list[Network]:
        """Return units in random directions, the same for every game (Glorot & Bengio 2010)."""
        reach = np.sqrt(6.0 / (n_players + UNITS))
        shapes = (n_players, UNITS), (1, UNITS), (UNITS, n_outputs)
        rngs = map(np.random.default_rng, range(STARTS))
        return [cls(*(rng.uniform(-reach, reach, shape).T for shape in shapes)) for rng in rngs]

    def turned(self, points: np.ndarray, target: np.ndarray) -> Network:
        r"""Return the network with units turned to where squares fall fastest.

        The fall is that from weights of 0: most jumps and bends are there.

        .. math:: w_h \leftarrow 0.2\, w_h + \ell_h \lVert w_h \rVert\, g_h / \lVert g_h \rVert, \qquad g_h = \sum_{i,k} o_{kh}\, y_{ik}\, x_i
        """
        slopes = self.out.T @ (target.T @ points)
        norms = [np.linalg.norm(each, axis=1, keepdims=True) for each in (self.weights, slopes)]
        return replace(self, weights=KEPT * self.weights + LENGTHS * norms[0] / np.maximum(norms[1], TINIEST) * slopes)

    def predict(self, points: np.ndarray) -> np.ndarray:
        """Return f (n_points, n_outputs)."""
        return np.asarray((self.out @ self._units(points.T)[0]).T)

    def squares(self, points: np.ndarray, target: np.ndarray) -> float:
        """Return the sum of squares of what it misses."""
        return float(((self.predict(points) - target) ** 2).sum())

    def _units(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each unit's odd half (n_units, n_points) at ``points`` (n_players, n_points). Its slopes in the sum and in the bias follow."""
        sums = self.weights @ points
        inside, outside = np.tanh(self.bias + sums), np.tanh(self.bias - sums)
        rise, fall = 1.0 - inside**2, 1.0 - outside**2
        return 0.5 * (inside - outside), 0.5 * (rise + fall), 0.5 * (rise - fall)

    def fitted(self, points: np.ndarray, target: np.ndarray, n_steps: int) -> Network:
        """Return the network after some steps of L-BFGS. They minimise squares of what it misses of ``target`` (n_points, n_outputs)."""
        from scipy.optimize import minimize

        # Single precision takes a third of the time, and values are exact for any weights
        n, points, target = len(points), np.ascontiguousarray(points.T, np.float32), np.ascontiguousarray(target.T, np.float32)

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            network = self._at(parameters.astype(np.float32))
            units, by_sum, by_bias = network._units(points)
            missed = network.out @ units - target
            back = network.out.T @ missed
            slopes = (back * by_sum) @ points.T + DECAY * network.weights, (back * by_bias).sum(axis=1), missed @ units.T
            value = 0.5 * ((missed**2).sum() + DECAY * (network.weights**2).sum())
            return float(value) / n, np.concatenate([slope.ravel() for slope in slopes]) / n

        start = np.concatenate([part.ravel() for part in (self.weights, self.bias, self.out)])
        options = {"maxiter": n_steps, "maxfun": 2 * n_steps, "maxcor": REMEMBERED}
        return self._at(minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x)

    def _at(self, parameters: np.ndarray) -> Network:
        first, last = self.weights.size, self.weights.size + self.bias.size
        weights, bias, out = parameters[:first], parameters[first:last], parameters[last:]
        return Network(weights.reshape(self.weights.shape), bias[:, None], out.reshape(self.out.shape))

    @property
    def limits(self) -> np.ndarray:
        """Return how far from zero the sum of each unit may be, (n_units,)."""
        return np.asarray(np.abs(self.bias[:, 0]) + np.abs(self.weights).sum(axis=1))

    def game(self) -> ProductGame:
        """Return a game with the same odd half, up to a constant."""
        coefficients, inside = [], []
        # tanh(t) = 2 sigma(2 t) - 1
        for weights, bias, out, limit in zip(self.weights, self.bias, self.out.T, self.limits, strict=True):
            wave = expand("logistic", 2.0 * float(limit))
            coefficients.append((wave.coefficients * np.exp(wave.rates * 2.0 * bias))[:, None] * (2.0 * out))
            inside.append(np.exp(wave.rates[:, None] * (2.0 * weights)))
        factors = np.concatenate(inside)
        return ProductGame(np.concatenate(coefficients), factors, 1.0 / factors)

    def values(self, semivalue: Semivalue) -> np.ndarray:
        """Return exact values (n_players, n_outputs) of a symmetric index."""
        return game_values(self.game(), semivalue, 1)


def cross_fit(
    starts: list[Network], points: np.ndarray, target: np.ndarray, folds: np.ndarray, missed: np.ndarray
) -> list[Network] | None:
    """Return a network for each of the ``folds`` (n_points,), fitted to the others; None if the first one is not good enough.

    It is if it misses its own fold by less than half of ``missed`` (n_outputs,), mean squares, in one output.
    """

    def misses(network: Network, most: float) -> bool:
        own = folds == 0
        return bool(np.all(((network.predict(points[own]) - target[own]) ** 2).mean(axis=0) > most * missed))

    networks: list[Network] = []
    for fold in range(folds.max() + 1):
        known = points[folds != fold], target[folds != fold]
        first, *others = [start.turned(*known) for start in starts[:TURNED]] + starts[TURNED:]
        tried = [first.fitted(*known, FIRST_STEPS)]
        if fold == 0 and misses(tried[0], HOPELESS):
            return None
        tried += [start.fitted(*known, FIRST_STEPS) for start in others]
        networks.append(min(tried, key=lambda each: each.squares(*known)).fitted(*known, MORE_STEPS))
        if fold == 0 and misses(networks[0], GOOD_ENOUGH):
            return None
    return networks if max(each.limits.max() for each in networks) <= LONGEST else None
