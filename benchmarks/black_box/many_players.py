"""Networks and forests of 24 to 60 players, whose values are known all the same.

Deep rectified networks of 24 players are enumerated, 2^24 passes. Networks of one layer of hyperbolic tangents and a linear output are sums of
functions of sums of players, and those sums of waves, which are products of one-player factors:

    tanh(b + sum_j a_j m_j) = Re sum_k c_k exp(i w_k b) prod_j exp(i w_k a_j m_j)

on the range that it can take, to ten digits and more (least squares on twice that range), so that values follow by quadrature. Networks
are kept as their matrices, the columns of a player put together in the first of them.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from games import columns_of, digits, passages
from polyshap import ForestGame

ROWS = 3
WAVES = 24.0  # the highest frequency: tanh has its poles at i pi / 2, so that what is left is some exp(-24 pi / 2)
DIGITS = 1e-9  # of the network's answers, in which the sum of waves must agree with it


@dataclass(eq=False)
class NetworkGame:
    """A network on one row: of memberships, or of ``counted`` words and pairs of neighbours among them."""

    layers: list[tuple[np.ndarray, np.ndarray]]
    rectified: bool
    output: int | None = None  # the class whose softmax it gives
    counted: tuple[np.ndarray, np.ndarray] | None = None
    exact: np.ndarray = field(init=False)

    def __post_init__(self):
        self.exact = enumerated(self) if self.rectified else by_waves(self)

    @property
    def n_players(self):
        return len(self.layers[0][0]) if self.counted is None else len(self.counted[0])

    def __call__(self, masks):
        rows = np.atleast_2d(masks).astype(float)
        if self.counted is not None:
            words, pairs = self.counted
            rows = np.log1p(rows @ words + (rows[:, :-1] * rows[:, 1:]) @ pairs)
        for weights, bias in self.layers[:-1]:
            rows = rows @ weights + bias
            rows = np.maximum(rows, 0.0) if self.rectified else np.tanh(rows)
        rows = rows @ self.layers[-1][0] + self.layers[-1][1]
        if self.output is None:
            return rows[:, 0]
        rows = np.exp(rows - rows.max(axis=1, keepdims=True))
        return rows[:, self.output] / rows.sum(axis=1)


def enumerated(game):
    """Return the values from all coalitions, sum_S (s - 1)! (d - s)! / d! v(S) over those with j, less s! (d - s - 1)! / d! over others."""
    d = game.n_players
    low, high = (np.arange(2**n)[:, None] >> np.arange(n) & 1 for n in (d // 2, d - d // 2))
    p = np.array([1.0 / (d * math.comb(d - 1, s)) for s in range(d)])
    values = np.zeros(d)
    for rest in high:
        masks = np.hstack([low, np.broadcast_to(rest, (len(low), len(rest)))])
        found, sizes = game(masks), masks.sum(axis=1)
        with_it, without = p[np.maximum(sizes - 1, 0)] * found, p[np.minimum(sizes, d - 1)] * found
        values += masks.T @ with_it - (1 - masks).T @ without
    return values


def by_waves(game):
    """Return the values of one layer of tanh and a linear output, by quadrature over products of exp(i w a_j)."""
    (slopes, bias), (outer, _) = game.layers
    d = len(slopes)
    lowest, highest = bias + np.minimum(slopes, 0.0).sum(axis=0), bias + np.maximum(slopes, 0.0).sum(axis=0)
    center, width = (lowest + highest) / 2.0, float((highest - lowest).max()) * 1.01
    frequencies = np.arange(0.0, WAVES, np.pi / width)  # of twice the range
    grid = np.cos(np.linspace(0.0, np.pi, 4 * len(frequencies))) * width / 2.0
    waves = np.exp(1j * np.outer(grid, frequencies))
    found = np.linalg.lstsq(np.hstack([waves.real, -waves.imag]), np.tanh(grid[:, None] + center), rcond=1e-14)[0]
    coefficients = (found[: len(frequencies)] + 1j * found[len(frequencies) :]) * outer[:, 0]
    terms = (coefficients * np.exp(1j * np.outer(frequencies, bias - center))).ravel()
    steps = np.exp(1j * frequencies[:, None, None] * slopes.T).reshape(len(terms), d)
    check = np.random.default_rng(0).random((200, d)) < 0.5
    sums = np.array([(terms * np.prod(steps[:, mask], axis=1)).sum().real for mask in check])
    apart = np.ptp(sums - game(check))
    if not apart < DIGITS * np.abs(outer).sum():
        raise ArithmeticError(f"Waves miss the network by {apart:.1e}")
    nodes, weights = np.polynomial.legendre.leggauss(d // 2 + 1)
    values = np.zeros(d)
    for t, weight in zip((nodes + 1.0) / 2.0, weights / 2.0, strict=True):
        factors = 1.0 - t + t * steps
        before, after = np.ones_like(factors), np.ones_like(factors)
        before[:, 1:] = np.cumprod(factors[:, :-1], axis=1)
        after[:, :-1] = np.cumprod(factors[:, :0:-1], axis=1)[:, ::-1]
        values += weight * (terms @ ((steps - 1.0) * before * after)).real
    return values


def of_rows(X, y, model, players):
    """Return the games of the first rows of a network trained on the others; absent players take the others' mean."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler, net = make_pipeline(StandardScaler(), model).fit(X[ROWS:], y[ROWS:])
    rows, start = scaler.transform(X[:ROWS]), scaler.transform(X[ROWS:].mean(axis=0)[None])[0]
    games = []
    for x in rows:
        step = np.zeros((players.max() + 1, len(x)))
        step[players, np.arange(len(x))] = x - start
        weights, biases = net.coefs_, net.intercepts_
        layers = [(step @ weights[0], start @ weights[0] + biases[0]), *zip(weights[1:], biases[1:], strict=True)]
        output = int(np.argmax(net.predict_proba(x[None])[0])) if net.out_activation_ == "softmax" else None
        games.append(NetworkGame(layers, net.activation == "relu", output))
    return games


def tangents(X, y):
    """Return the games of a network of one layer, before the logistic function if there are classes."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPRegressor if y.dtype.kind == "f" else MLPClassifier
    return of_rows(X, y, kind(hidden_layer_sizes=(64,), activation="tanh", max_iter=100, random_state=0), np.arange(X.shape[1]))


def cancer():
    from sklearn.datasets import load_breast_cancer
    from sklearn.utils import shuffle

    return shuffle(*load_breast_cancer(return_X_y=True), random_state=0)


def conductivity():
    X, y = columns_of("conductivity_sample20.parquet", "critical_temp")
    return X[:, :60], y


def digits_in_fields():
    """24 fields of digits: rows of pictures in three parts, of 3, 2 and 3 pixels."""
    from sklearn.neural_network import MLPClassifier

    row, column = np.divmod(np.arange(64), 8)
    return of_rows(
        *digits(), MLPClassifier((64, 32), max_iter=60, random_state=0), row * 3 + np.repeat([0, 1, 2], [3, 2, 3])[column]
    )


def words_with_gaps():
    """A bag of words and of pairs of neighbours, a deep network; a word that is absent leaves a gap, over which no pair reaches."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.neural_network import MLPClassifier

    def terms_of(text):
        return [*text, *(f"{a} {b}" for a, b in itertools.pairwise(text))]

    texts, subjects = passages(24)
    reader = CountVectorizer(min_df=3, analyzer=terms_of)
    counts = reader.fit(texts).transform(texts).astype(float).log1p()
    model = MLPClassifier((32, 32), max_iter=12, random_state=0).fit(counts[ROWS:], subjects[ROWS:])

    def game(text, row):
        known = [term for term in Counter(terms_of(text)) if term in reader.vocabulary_]
        words = np.array([[float(word == term) for term in known] for word in text])
        pairs = np.array([[float(pair == term) for term in known] for pair in terms_of(text)[len(text) :]])
        layers = list(zip(model.coefs_, model.intercepts_, strict=True))
        layers[0] = (layers[0][0][[reader.vocabulary_[term] for term in known]], layers[0][1])
        return NetworkGame(layers, True, int(np.argmax(model.predict_proba(row)[0])), (words, pairs))

    return [game(text, counts[k]) for k, text in enumerate(texts[:ROWS])]


def forest_of(X, y):
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(20, max_depth=10, random_state=0).fit(X[ROWS:], y[ROWS:])
    return [ForestGame(forest, x) for x in X[:ROWS]]


MANY_PLAYERS = {
    "words with gaps, network": (24, words_with_gaps),
    "digits in fields, network": (24, digits_in_fields),
    "breast cancer, tangents": (30, lambda: tangents(*cancer())),
    "ionosphere, tangents": (34, lambda: tangents(*columns_of("ionosphere.csv.gz", "label"))),
    "sonar, tangents": (60, lambda: tangents(*columns_of("sonar.csv.gz", "label"))),
    "conductivity, tangents": (60, lambda: tangents(*conductivity())),
    "breast cancer, forest": (30, lambda: forest_of(*cancer())),
    "digits, forest": (60, lambda: forest_of(digits()[0][:, :60], digits()[1])),
}
