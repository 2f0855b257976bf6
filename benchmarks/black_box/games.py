"""Games of networks, machines and trees on pictures, words, time series and tables, whose exact values are known.

Games of at most 20 players are tables of all their coalitions, worked out by enumeration; larger ones are sums of products of
one-column factors (kernel machines against one reference row) or forests (path-dependent), whose values follow by quadrature.
``DEVELOPMENT`` may be tuned on, as may the games of ``papers/polyshap.py``; ``HELD_OUT`` may not. Every game is built from data that
scikit-learn carries or from the folder in EXACTSHAP_DATA, and is kept in ``build/black_box_games``.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "papers"))
from polyshap import DATA, ForestGame, TableGame  # noqa: E402

INSTANCES = 6
BLOCK = 4096


class KernelGame:
    """A sum of products: v(S) = sum_l c_l prod_{j in S} a_lj prod_{j not in S} b_lj, all factors positive."""

    def __init__(self, c, a, b):
        from exactshap.games import ProductGame
        from exactshap.solvers import solve

        self.c, self.slope, self.start = c, (np.log(a) - np.log(b)).T, np.log(b).sum(axis=1)
        self.n_players = a.shape[1]
        self.exact = solve(ProductGame(c, a, b)).values

    def __call__(self, masks):
        masks = np.atleast_2d(masks).astype(float)
        blocks = (masks[k : k + BLOCK] for k in range(0, len(masks), BLOCK))
        return np.concatenate([np.exp(block @ self.slope + self.start) @ self.c for block in blocks])


@dataclass
class Masked:
    """Turns coalitions into inputs of a model: players are sets of cells, absent ones take the reference's cells."""

    players: np.ndarray  # (n_cells,), whose cell it is
    reference: np.ndarray  # (n_cells,) or (n_references, n_cells)

    def table(self, answer: Callable, row: np.ndarray) -> TableGame:
        from exactshap.games import all_masks

        masks = all_masks(int(self.players.max()) + 1)
        values = np.zeros(len(masks))
        references = np.atleast_2d(self.reference)
        for reference in references:
            for k in range(0, len(masks), BLOCK):
                inside = masks[k : k + BLOCK][:, self.players]
                values[k : k + BLOCK] += answer(np.where(inside, row, reference)) / len(references)
        return TableGame(values)


def kept(name, build):
    """Return the instances of a game, built once."""
    file = ROOT / "build" / "black_box_games" / f"{name}.pickle"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # networks that stop before they have converged
            file.write_bytes(pickle.dumps(build()))
    return pickle.loads(file.read_bytes())  # our own file


# ------------------------------------------------------------------------------------------------------------- models
def network(X, y, hidden=(64, 32), seed=0):
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), MLPClassifier(hidden, max_iter=60, random_state=seed)).fit(X, y)


def of_class(predict, row):
    """Return the probability of the class that is predicted for the row."""
    chosen = int(np.argmax(predict(row[None])[0]))
    return lambda rows: predict(rows)[:, chosen]


def convolutions(pictures, filters, pool):
    """Return features of (n, height, width, channels): filters (n_filters, h, w, channels), rectified, the largest of each field."""
    n_filters, h, w, channels = filters.shape
    windows = np.lib.stride_tricks.sliding_window_view(pictures, (h, w), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)
    rows, columns = windows.shape[1:3]
    found = np.maximum(windows.reshape(-1, h * w * channels) @ filters.reshape(n_filters, -1).T, 0.0)
    found = found.reshape(len(pictures), rows, columns, n_filters)
    rows, columns = rows // pool[0] * pool[0], columns // pool[1] * pool[1]
    fields = found[:, :rows, :columns].reshape(len(pictures), rows // pool[0], pool[0], columns // pool[1], pool[1], n_filters)
    return fields.max(axis=(2, 4)).reshape(len(pictures), -1)


# -------------------------------------------------------------------------------------------------------------- pictures
def digits():
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def squares():
    row, column = np.divmod(np.arange(64), 8)
    return row // 2 * 4 + column // 2  # 16 players of 2 x 2


def digits_network():
    X, y = digits()
    model = network(X[300:], y[300:])
    masked = Masked(squares(), X.mean(axis=0))
    return [masked.table(of_class(model.predict_proba, x), x) for x in X[:INSTANCES]]


def digits_convolutions():
    X, y = digits()
    filters = np.random.default_rng(1).normal(size=(32, 3, 3, 1))

    def features(rows):
        return convolutions(rows.reshape(-1, 8, 8, 1) / 16.0, filters, (2, 2))

    model = network(features(X[300:]), y[300:])
    masked = Masked(squares(), np.full(64, X.mean()))
    return [masked.table(of_class(lambda r: model.predict_proba(features(r)), x), x) for x in X[:INSTANCES]]


def digits_fields():
    """Filters of 4 x 4 pixels, each one's largest answer wherever it is, and a deep network."""
    X, y = digits()
    filters = np.random.default_rng(5).normal(size=(96, 4, 4, 1))
    filters -= filters.mean(axis=(1, 2, 3), keepdims=True)

    def features(rows):
        return convolutions(rows.reshape(-1, 8, 8, 1) / 16.0, filters, (5, 5))

    model = network(features(X[300:]), y[300:], (64, 64, 64))
    masked = Masked(squares(), X.mean(axis=0))
    return [masked.table(of_class(lambda r: model.predict_proba(features(r)), x), x) for x in X[10 : 10 + INSTANCES]]


def digits_machine():
    from sklearn.cluster import KMeans
    from sklearn.svm import SVC

    X, y = digits()
    model = SVC(gamma=0.001, decision_function_shape="ovr").fit(X[300:], y[300:])
    cells = np.array(np.divmod(np.arange(64), 8), float).T
    means = np.stack([X[y == label].mean(axis=0) for label in range(10)], axis=1)
    players = KMeans(12, n_init=4, random_state=0).fit_predict(np.hstack([cells, means / 8.0]))

    def soft(rows):
        return softmax(model.decision_function(rows))

    return [Masked(players, np.zeros(64)).table(of_class(soft, x), x) for x in X[:INSTANCES]]


def softmax(scores):
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


# ----------------------------------------------------------------------------------------------------------------- words
SUBJECTS = ("linear_model", "cluster", "metrics", "preprocessing", "ensemble", "datasets", "model_selection", "decomposition")


def passages(length):
    """Return passages of words from scikit-learn's own documentation, and the module that each is about."""
    import importlib
    import re

    words, subjects = [], []
    for label, subject in enumerate(SUBJECTS):
        module = importlib.import_module(f"sklearn.{subject}")
        for name in sorted(module.__all__):
            text = re.findall(r"[a-z]{2,}", (getattr(vars(module).get(name), "__doc__", "") or "").lower())
            for k in range(0, len(text) - length + 1, length):
                words.append(text[k : k + length])
                subjects.append(label)
    order = np.random.default_rng(0).permutation(len(words))
    return [words[k] for k in order], np.array(subjects)[order]


def words_in_bags():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, subjects = passages(14)
    reader = TfidfVectorizer(ngram_range=(1, 2), min_df=4, sublinear_tf=True).fit([" ".join(text) for text in texts])
    model = network_of_words(reader.transform([" ".join(text) for text in texts[50:]]), subjects[50:])

    def game(text):
        def coalition_texts(rows):
            return [" ".join(word for word, there in zip(text, row, strict=True) if there) for row in rows]

        def predict(rows):
            return model.predict_proba(reader.transform(coalition_texts(rows)))

        return Masked(np.arange(14), np.zeros(14)).table(of_class(predict, np.ones(14)), np.ones(14))

    return [game(text) for text in texts[:INSTANCES]]


def network_of_words(X, y):
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((32,), max_iter=12, random_state=0).fit(X, y)


def words_in_order():
    """Words as vectors, filters over three of them in order, the largest answer of each third of the passage."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer

    texts, subjects = passages(15)
    counter = CountVectorizer(min_df=4, analyzer=lambda text: text).fit(texts)
    counts = counter.transform(texts).astype(float)
    together = np.log1p((counts.T @ counts).toarray())
    vectors = TruncatedSVD(24, random_state=0).fit_transform(together)
    vectors = np.vstack([vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.zeros(24)])
    codes = np.array([[counter.vocabulary_.get(word, -1) for word in text] for text in texts])
    filters = np.random.default_rng(2).normal(size=(128, 3, 1, 24))

    def features(rows):
        return convolutions(vectors[rows.astype(int)][:, :, None, :], filters, (4, 1))

    model = network(features(codes[50:]), subjects[50:])
    masked = Masked(np.arange(15), np.full(15, -1))
    return [masked.table(of_class(lambda r: model.predict_proba(features(r)), x), x) for x in codes[:INSTANCES]]


# ---------------------------------------------------------------------------------------------------------- time series
def series(name):
    data = np.load(DATA / f"ucr_{name}.npz")
    return data["X_train"], data["y_train"], data["X_test"]


def hearts_network():
    X, y, test = series("ECG5000")
    model = network(X, y)
    masked = Masked(np.arange(140) * 15 // 140, X.mean(axis=0))
    return [masked.table(of_class(model.predict_proba, x), x) for x in test[40 : 40 + INSTANCES]]


def hearts_convolutions():
    X, y, test = series("ECG5000")
    filters = np.random.default_rng(4).normal(size=(48, 11, 1, 1))

    def features(rows):
        return convolutions(rows[:, :, None, None], filters - filters.mean(axis=1, keepdims=True), (130, 1))

    model = network(features(X), y)
    masked = Masked(np.arange(140) * 16 // 140, X.mean(axis=0))
    return [masked.table(of_class(lambda r: model.predict_proba(features(r)), x), x) for x in test[40 : 40 + INSTANCES]]


def faces_convolutions():
    X, y, test = series("FacesUCR")
    filters = np.random.default_rng(3).normal(size=(48, 9, 1, 1))
    filters -= filters.mean(axis=1, keepdims=True)

    def features(rows):
        return convolutions(rows[:, :, None, None], filters, (20, 1))

    model = network(features(X), y)
    masked = Masked(np.arange(131) * 14 // 131, np.zeros(131))
    return [masked.table(of_class(lambda r: model.predict_proba(features(r)), x), x) for x in test[:INSTANCES]]


# --------------------------------------------------------------------------------------------------------------- tables
def columns_of(file, target, drop=()):
    import pandas as pd

    read = pd.read_parquet if file.endswith("parquet") else pd.read_csv
    frame = read(DATA / file).dropna().sample(frac=1.0, random_state=0)
    X, y = frame.drop(columns=[target, *drop]), frame[target]
    for column in X:
        if X[column].dtype.kind not in "fiub":
            X[column] = X[column].astype("category").cat.codes
    return X.to_numpy(float), y.to_numpy()


def adult_network():
    X, y = columns_of("adult_census.parquet", "class")
    model = network(X[50:6050], y[50:6050].astype(str))
    masked = Masked(np.arange(14), X[6050:6060])
    return [masked.table(of_class(model.predict_proba, x), x) for x in X[:INSTANCES]]


def wine_network():
    X, y = columns_of("wine.csv.gz", "class")
    model = network(X[INSTANCES:], y[INSTANCES:])
    masked = Masked(np.arange(13), X[INSTANCES:].mean(axis=0))
    return [masked.table(of_class(model.predict_proba, x), x) for x in X[:INSTANCES]]


def voices_network():
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = columns_of("parkinsons_telemonitoring.parquet", "total_UPDRS", ("subject#", "motor_UPDRS"))
    model = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=60, random_state=0)).fit(
        X[50:4050], y[50:4050]
    )
    masked = Masked(np.arange(X.shape[1]), X[4051])
    return [masked.table(model.predict, x) for x in X[:INSTANCES]]


def forest(file, target, regressor):
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X, y = columns_of(file, target)
    X = X[:, :60]
    model = (RandomForestRegressor if regressor else RandomForestClassifier)(20, max_depth=10, random_state=0)
    model.fit(X[INSTANCES:3000], y[INSTANCES:3000])
    return [ForestGame(model, x) for x in X[:INSTANCES]]


def machine(file, target, regressor):
    """A support vector machine of at most 60 columns against one reference row."""
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    X, y = columns_of(file, target)
    scaled = StandardScaler().fit_transform(X[:, :60])
    spread = np.ptp(scaled, axis=0)
    scaled = scaled[:, spread > 0]
    gamma = 0.5 / scaled.shape[1]
    model = SVR(C=10.0, gamma=gamma) if regressor else SVC(C=10.0, gamma=gamma)
    model.fit(scaled[INSTANCES + 1 : 1000], (y - y.mean() if regressor else y)[INSTANCES + 1 : 1000])

    def factors(x):
        return np.exp(-gamma * (x - model.support_vectors_) ** 2)

    return [KernelGame(model.dual_coef_[0], factors(x), factors(scaled[INSTANCES])) for x in scaled[:INSTANCES]]


DEVELOPMENT = {
    "digits, network": (16, digits_network),
    "words in bags, network": (14, words_in_bags),
    "heartbeats, network": (15, hearts_network),
    "adult, network": (14, adult_network),
    "heartbeats, convolutions": (16, hearts_convolutions),
    "digits, fields": (16, digits_fields),
    "ionosphere, forest": (34, lambda: forest("ionosphere.csv.gz", "label", False)),
}
HELD_OUT = {
    "digits, convolutions": (16, digits_convolutions),
    "digits, support vectors": (12, digits_machine),
    "words in order, convolutions": (15, words_in_order),
    "faces, convolutions": (14, faces_convolutions),
    "wine, network": (13, wine_network),
    "voices, network": (19, voices_network),
    "conductivity, forest": (60, lambda: forest("conductivity_sample20.parquet", "critical_temp", True)),
    "sonar, forest": (60, lambda: forest("sonar.csv.gz", "label", False)),
    "conductivity, support vectors": (60, lambda: machine("conductivity_sample20.parquet", "critical_temp", True)),
    "ionosphere, support vectors": (33, lambda: machine("ionosphere.csv.gz", "label", False)),
}
GAMES = {**DEVELOPMENT, **HELD_OUT}


def instances(name):
    from many_players import MANY_PLAYERS  # its games are made of the functions here

    return kept(name.replace(", ", "-").replace(" ", "_"), {**GAMES, **MANY_PLAYERS}[name][1])
