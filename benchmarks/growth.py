"""How time grows with one size while all others stay: every jump of more than three times where work doubles is named.

``python benchmarks/growth.py [words]`` prints the curves whose name holds all words, and ends with 1 where there is a jump; without
words it writes ``benchmarks/RESULTS_growth.md``. Times
are of the processor, on one thread, the best of several runs: of a new explainer's first call ("first"), or of a later one ("again").
Work is what the size counts: rows, trees, classes, background rows; of a depth, the splits of the model. A jump is measured again,
as other programs take time, too.

Functions change their way at 14 columns, from all 2^d coalitions to a sample: the choice must not depend on a clock, so a function that
costs nothing gets no more calls than one that takes a second. The curve over that change calls a function that takes what models take,
some 40 microseconds for a coalition; of a function without cost each way has a curve of its own.
"""

import itertools
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from exactshap import Explainer

JUMP = 3.0  # times, for twice the work
FLOOR = 2e-3  # seconds, below which calls cost what their Python costs
N_COLUMNS = 12


@dataclass
class Point:
    """One size of a curve: its work, and a model with what is asked of it."""

    size: int
    work: float
    model: object
    rows: np.ndarray
    background: np.ndarray | None = None
    index: str = "shapley"
    order: int = 1
    output: str = "all"
    settings: dict = field(default_factory=dict)

    def seconds(self, again, repeat=2):
        """Return the shortest time of a first call, or of one after two others."""
        times = []
        for _ in range(repeat):
            explainer = Explainer(self.model, self.background, output=self.output, **self.settings)
            for _ in range(2 if again else 0):
                explainer(self.rows, index=self.index, order=self.order)
            started = time.process_time()
            explainer(self.rows, index=self.index, order=self.order)
            times.append(time.process_time() - started)
        return min(times)


def data(n_rows=4000, seed=0):
    """Return rows, and a target with pairs of columns."""
    X = np.random.default_rng(seed).normal(size=(n_rows, N_COLUMNS))
    return X, X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + X[:, 3] * X[:, 4] + 0.3 * X[:, 5]


def boosted(depth, n_trees=100):
    """Return a boosted model."""
    import xgboost

    return xgboost.XGBRegressor(n_estimators=n_trees, max_depth=depth, n_jobs=1).fit(*data())


def n_splits(model):
    """Return how many splits a model has."""
    from exactshap.trees import convert

    return convert(model).trees.n_nodes / 2.0


def classes(n_classes):
    """Return a boosted classifier of 20 rounds."""
    import xgboost

    X, y = data()
    labels = np.argsort(np.argsort(y)) * n_classes // len(y)
    return xgboost.XGBClassifier(n_estimators=20, max_depth=4, n_jobs=1).fit(X, labels)


def forest(n_trees=20):
    """Return an unpruned forest."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_trees, random_state=0).fit(*data())


def tree_curves():
    """Yield the name of each curve, whether a later call is timed, and its points; models are fitted when they are needed."""
    X, new = data()[0], data(20_000, seed=1)[0]
    depths = (3, 4, 5, 6, 7, 8, 9, 10)
    for where, background in (("covers", None), ("background", X[:100])):
        for order, index, n_rows in ((1, "shapley", 1), (1, "shapley", 1000), (2, "k-sii", 1), (2, "k-sii", 100)):
            for again in (False, True):
                models = map(boosted, depths)
                name = f"trees, {where}: depth, order {order}, {n_rows} rows, {'again' if again else 'first'}"
                yield (
                    name,
                    again,
                    (
                        Point(d, n_splits(m), m, new[:n_rows], background, index, order)
                        for d, m in zip(depths, models, strict=True)
                    ),
                )
        deep = boosted(10)
        sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
        yield f"trees, {where}: rows, depth 10", False, (Point(n, n, deep, new[:n], background) for n in sizes)
        pairs = (Point(n, n, deep, new[:n], background, "k-sii", 2) for n in sizes[:8])
        yield f"trees, {where}: rows, depth 10, order 2", False, pairs
        rounds = (25, 50, 100, 200, 400)
        yield f"trees, {where}: trees", False, (Point(n, n, boosted(6, n), new[:1000], background) for n in rounds)
    counts = (3, 6, 12, 25, 50, 100)
    yield "trees, covers: classes", False, (Point(k, k, classes(k), new[:10_000]) for k in counts)
    unpruned = forest()
    sizes = (12, 25, 50, 100, 101, 126, 200, 400, 800)
    yield "trees, background: rows, unpruned forest", False, (Point(n, n, unpruned, new[:n], X[:200]) for n in sizes)
    sizes = (25, 50, 100, 200, 400, 800, 1600)
    shallow = boosted(6)
    yield "trees, background: background rows", False, (Point(n, n, shallow, new[:100], X[:n]) for n in sizes)


def kernel_curves():
    """Yield the curves of kernel machines: support vectors, columns, background rows, rows, order."""
    from sklearn.svm import SVR

    def svr(n_rows, n_columns):
        X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
        return SVR(C=10.0, gamma=0.5 / n_columns).fit(X, X[:, 0] * X[:, 1] + np.sin(X[:, 2])), X

    new = np.random.default_rng(1).normal(size=(4096, 128))
    for where, n_background in (("without background", 0), ("background", 50)):
        name = f"support vectors, {where}"
        counts = (100, 200, 400, 800, 1600, 3200)
        models = (svr(n, N_COLUMNS) for n in counts)
        yield (
            name,
            False,
            (
                Point(n, n, m, new[:20, :N_COLUMNS], X[:n_background] if n_background else None)
                for n, (m, X) in zip(counts, models, strict=True)
            ),
        )
        counts = (8, 10, 12, 16, 20, 24, 32, 64, 128)
        models = (svr(400, d) for d in counts)
        yield (
            f"support vector machine, {where}: columns",
            False,
            (
                Point(d, d**2, m, new[:20, :d], X[:n_background] if n_background else None)
                for d, (m, X) in zip(counts, models, strict=True)
            ),
        )
    model, X = svr(400, N_COLUMNS)
    sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 400)
    yield "support vector machine: background rows", False, (Point(n, n, model, new[:20, :N_COLUMNS], X[:n]) for n in sizes)
    sizes = (1, 4, 16, 64, 256, 1024, 4096)
    yield "support vector machine: rows", False, (Point(n, n, model, new[:n, :N_COLUMNS], X[:50]) for n in sizes)
    orders = [(1, "shapley", 12), (2, "k-sii", 78), (3, "k-sii", 298)]  # work: the sets
    yield (
        "support vector machine: order",
        False,
        (Point(order, n, model, new[:20, :N_COLUMNS], X[:50], index, order) for order, index, n in orders),
    )


def column_curves():
    """Yield the curves of linear models, of probabilities and of functions over columns and rows."""
    from sklearn.linear_model import LogisticRegression, Ridge

    X = np.random.default_rng(0).normal(size=(2000, 1024))
    y = X[:, 0] - X[:, 1] + np.sin(X[:, 2])
    sizes = (16, 32, 64, 128, 256, 512, 1024)
    yield "linear model: columns", False, (Point(d, d, Ridge().fit(X[:, :d], y), X[:500, :d], X[:50, :d]) for d in sizes)
    pairs = (Point(d, d**2, Ridge().fit(X[:, :d], y), X[:50, :d], X[:50, :d], "k-sii", 2) for d in sizes[:-1])
    yield "linear model: columns, order 2", False, pairs
    model, sizes = Ridge().fit(X[:, :20], y), tuple(2 ** np.arange(7, 18))
    many = np.random.default_rng(1).normal(size=(sizes[-1], 20))
    yield "linear model: rows", False, (Point(n, n, model, many[:n], X[:50, :20]) for n in sizes)
    counts = (4, 6, 8, 10, 11, 12, 14, 16, 24, 32, 64)
    responses = ((d, LogisticRegression().fit(X[:, :d], y > 0)) for d in counts)
    yield (
        "probability: columns",
        False,
        (Point(d, d**2, m, X[:10, :d], X[:50, :d], output="probability") for d, m in responses),
    )
    weights = np.random.default_rng(2).normal(size=(192, 64))

    def network(rows):
        return sum(np.tanh(rows @ of_unit[: rows.shape[1]]) for of_unit in weights)

    def free(rows):
        return np.tanh(rows @ weights[0, : rows.shape[1]])

    # work: the coalitions that are called for, and those that a sample's own 0.2 s are worth at 40 microseconds
    counts = range(4, 21)
    calls = ((d, float(2**d if d <= 13 else 2 * d + 2048 + 5000)) for d in counts)
    yield "function: columns", False, (Point(d, n, network, X[:2, :d], X[:50, :d], output="auto") for d, n in calls)
    every = ((d, {"budget": 2**d}) for d in range(4, 17))
    curve = (Point(d, 2**d, free, X[:2, :d], X[:50, :d], output="auto", settings=s) for d, s in every)
    yield "function without cost: columns, all coalitions", False, curve
    sample = ((d, {"budget": 2048}) for d in (12, 13, 14, 16, 20, 24, 32, 40, 64))
    curve = (Point(d, d, free, X[:2, :d], X[:50, :d], output="auto", settings=s) for d, s in sample)
    yield "function without cost: columns, 2,048 coalitions", False, curve


FAMILIES = [tree_curves, kernel_curves, column_curves]


def jumps(curve):
    """Return the steps of a curve, [(size, work, seconds)], that cost more than JUMP times for twice the work."""
    found = []
    for (small, less, before), (large, more, after) in itertools.pairwise(curve):
        if is_jump(less, before, more, after):
            found.append(f"{small} -> {large}: {before:.3g} -> {after:.3g} s for {more / less:.2g} times the work")
    return found


def is_jump(less, before, more, after):
    """Say whether time grows more than JUMP times for twice the work."""
    allowed = JUMP ** max(np.log2(more / less), 1.0)
    return after > FLOOR and after > allowed * max(before, FLOOR / JUMP)


def measured(points, again):
    """Return a curve, [(size, work, seconds)]; a point that jumps is measured again, at most twice."""
    curve = []
    for point in points:
        seconds = point.seconds(again)
        for _ in range(2):
            if curve and is_jump(*curve[-1][1:], point.work, seconds):
                seconds = min(seconds, point.seconds(again))
        curve.append((point.size, point.work, seconds))
    return curve


def main(words):
    """Print the curves and name their jumps."""
    every, lines = [], []
    for family in FAMILIES:
        for name, again, points in family():
            if not all(word in name for word in words):
                continue
            curve = measured(points, again)
            lines.append(f"| {name} | {', '.join(f'{size}: {1e3 * seconds:.3g}' for size, _, seconds in curve)} |")
            print(lines[-1], flush=True)
            every += [f"{name}: {jump}" for jump in jumps(curve)]
    ending = "\n".join(["Jumps:", "", *(f"- {jump}" for jump in every)]) if every else "No jumps."
    print(ending)
    if not words:
        text = ["# Growth", "", " ".join(__doc__.split()), "", "| curve | size: ms |", "|---|---|", *lines, "", ending, ""]
        Path(__file__).with_name("RESULTS_growth.md").write_text("\n".join(text), encoding="utf-8")
    return bool(every)


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main(sys.argv[1:]))
