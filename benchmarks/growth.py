"""How time grows with one size while all others stay: every jump of more than three times where work doubles is named.

``python benchmarks/growth.py [words]`` prints the curves whose name holds all words, and ends with 1 where there is a jump. Times
are of the processor, on one thread, the best of several runs: of a new explainer's first call ("first"), or of a later one ("again").
Work is what the size counts: rows, trees, classes, background rows; of a depth, the splits of the model.
"""

import itertools
import sys
import time
from dataclasses import dataclass

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

    def seconds(self, again, repeat=2):
        """Return the shortest time of a first call, or of one after two others."""
        times = []
        for _ in range(repeat):
            explainer = Explainer(self.model, self.background, output="all")
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
    from exactshap.trees import flatten

    return flatten(model).n_nodes / 2.0


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


FAMILIES = [tree_curves]


def jumps(curve):
    """Return the steps of a curve, [(size, work, seconds)], that cost more than JUMP times for twice the work."""
    found = []
    for (small, less, before), (large, more, after) in itertools.pairwise(curve):
        allowed = JUMP ** max(np.log2(more / less), 1.0)
        if after > FLOOR and after > allowed * max(before, FLOOR / JUMP):
            found.append(f"{small} -> {large}: {before:.3g} -> {after:.3g} s for {more / less:.2g} times the work")
    return found


def main(words):
    """Print the curves and name their jumps."""
    every = []
    for family in FAMILIES:
        for name, again, points in family():
            if not all(word in name for word in words):
                continue
            curve = [(point.size, point.work, point.seconds(again)) for point in points]
            print(name, "|", ", ".join(f"{size}: {1e3 * seconds:.3g} ms" for size, _, seconds in curve), flush=True)
            every += [f"{name}: {jump}" for jump in jumps(curve)]
    print("\n".join(["jumps:", *every]) if every else "no jumps")
    return bool(every)


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main(sys.argv[1:]))
