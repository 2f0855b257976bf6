"""Two threads next to one, for every engine: the same call, the same bits, work of 50 ms and more.

``ours`` is with ``n_jobs=2``, ``peer`` with one thread: the ratio is what the second core brings. Linear models wait for memory, and for
the pages of their result more than for anything else, so that memory is touched before. The first lines are of the machine itself: what its
second core brings to numbers that stay in its caches, to rows that are scaled into fresh memory, and to a copy.

Run ``python benchmarks/bench_threads.py linear additive`` for some of the table.
"""

import functools
import sys

import numpy as np
from timing import best, best_in_turn, row, rows_of, touch_memory

from exactshap import Explainer, decompose_hsic, decompose_mmd, decompose_r2

RNG = np.random.default_rng(0)
COLUMNS = 14
SECONDS = 5.0  # of a call on one thread, for the best of which it is made again


def data(n=3000):
    X = RNG.normal(size=(n, COLUMNS))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:8].sum(axis=1) + 0.1 * RNG.normal(size=n)


X, Y = data()
MANY = RNG.normal(size=(150_000, COLUMNS))


def machine():
    from concurrent.futures import ThreadPoolExecutor

    small, large, copied = np.full((2, 2**13), 0.5), np.full((2, 2**23), 0.5), np.zeros((2, 2**23))
    workers = ThreadPoolExecutor(2)

    def shared(work):
        def call(n):
            halves = np.empty_like(large)
            list((workers.map if n == 2 else map)(lambda half: work(half, halves), (0, 1)))

        return call

    def arithmetic(half, _):
        for _ in range(1000):
            np.sin(small[half], out=small[half])

    yield "the machine: sines in its caches", shared(arithmetic)
    yield (
        "the machine: 128 MiB scaled into fresh memory",
        shared(lambda half, out: np.multiply(large[half], 0.5, out=out[half])),
    )
    yield "the machine: 128 MiB copied", shared(lambda half, _: np.copyto(copied[half], large[half]))


def kernel_machines():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.svm import SVR

    svr, process = SVR().fit(X[:1000], Y[:1000]), GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(X[:300], Y[:300])
    yield "SVR, functional", explained(svr, MANY[:3000])
    yield "SVR, 100 background rows", explained(svr, X[:30], X[-100:])
    yield "SVR, observational, 500 background rows", explained(svr, X[:20], X[-500:], value_function="observational")
    yield "Gaussian process with covariances", explained(process, X[:30], X[-50:])


def trees():
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from xgboost import XGBRegressor

    for depth in (6, 10):
        booster = XGBRegressor(n_estimators=100, max_depth=depth, n_jobs=1).fit(X, Y)
        yield f"XGBoost, depth {depth}", explained(booster, MANY[:40_000])
        if depth == 6:
            yield "XGBoost, depth 6, 100 background rows", explained(booster, MANY[:40_000], X[-100:])
            yield "R2 of XGBoost, depth 6", functools.partial(r2, booster)
    yield "LightGBM, 31 leaves", explained(LGBMRegressor(n_jobs=1, verbose=-1).fit(X, Y), MANY[:20_000])
    boosting, forest = GradientBoostingRegressor(random_state=0), RandomForestRegressor(30, max_depth=8, random_state=0)
    yield "gradient boosting of scikit-learn, 80,000 rows", explained(boosting.fit(X, Y), MANY[:80_000])
    yield "random forest, 30 trees of depth 8, 20,000 rows", explained(forest.fit(X, Y), MANY[:20_000])


def linear():
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = RNG.normal(size=(500_000, 50))
    yield "Ridge, 500,000 rows of 50", explained(Ridge().fit(rows[:3000], Y), rows, rows[:100])
    scaled = make_pipeline(StandardScaler(), Ridge()).fit(rows[:3000], Y)
    yield "StandardScaler and Ridge, 500,000 rows of 50", explained(scaled, rows, rows[:100])
    classes = LogisticRegression().fit(rows[:3000], np.digitize(Y, [-1.0, 1.0]))
    yield "logistic regression, 3 classes, 200,000 rows of 50", explained(classes, rows[:200_000], rows[:100])
    many = RNG.normal(size=(2_000_000, 10))
    yield "Ridge, 2,000,000 rows of 10", explained(Ridge().fit(many[:3000], Y), many, many[:100])


def additive():
    from interpret.glassbox import ExplainableBoostingRegressor

    model = ExplainableBoostingRegressor(interactions=5, outer_bags=1, max_rounds=100, n_jobs=1, random_state=0).fit(X, Y)
    for n in (80_000, 100_000, len(MANY)):
        yield f"EBM, 5 pairs, {n} rows", explained(model, MANY[:n])
    wide, target = RNG.normal(size=(8191, 100)), RNG.normal(size=8191)
    large = ExplainableBoostingRegressor(interactions=100, outer_bags=1, max_rounds=20, n_jobs=1, random_state=0)
    yield "EBM of 100 columns and 100 pairs, 8,191 rows", explained(large.fit(wide, target), wide)


def bases():
    from sklearn.linear_model import Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

    rows = RNG.normal(size=(300_000, COLUMNS))
    yield (
        "polynomials of degree 2, 300,000 rows",
        explained(make_pipeline(PolynomialFeatures(2), Ridge()).fit(X, Y), rows, X[:100]),
    )
    yield "splines, 60,000 rows", explained(make_pipeline(SplineTransformer(), Ridge()).fit(X, Y), rows[:60_000], X[:100])
    classes = GaussianNB().fit(X, np.digitize(Y, [-1.0, 1.0]))
    yield "naive Bayes, 3 classes, 200,000 rows", explained(classes, rows[:200_000], X[:100])


def sums():
    from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, StackingRegressor, VotingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.multioutput import MultiOutputRegressor

    models = [("linear", Ridge()), ("boosting", GradientBoostingRegressor(n_estimators=50, random_state=0))]
    rows = RNG.normal(size=(1_200_000, COLUMNS))
    yield "a vote of Ridge and boosting, 120,000 rows", explained(VotingRegressor(models).fit(X, Y), rows[:120_000], X[:50])
    yield "a stack of them, 120,000 rows", explained(StackingRegressor(models, Ridge()).fit(X, Y), rows[:120_000], X[:50])
    yield (
        "a bag of 5 Ridges, 1,200,000 rows",
        explained(BaggingRegressor(Ridge(), 5, random_state=0).fit(X, Y), rows, X[:50]),
    )
    two = MultiOutputRegressor(Ridge()).fit(X, np.stack([Y, Y**2], axis=1))
    yield "Ridge for each of 2 targets, 1,200,000 rows", explained(two, rows, X[:50])


def statistics():
    other = RNG.normal(size=(2000, COLUMNS)) + 0.1
    yield "MMD, 2000 and 2000 rows", lambda n: decompose_mmd(X[:2000], other, n_jobs=n)
    yield "HSIC, 3000 rows", lambda n: decompose_hsic(X, Y, n_jobs=n)


def black_boxes():
    weights = RNG.normal(size=(COLUMNS, 6))
    yield (
        "a function, 12 rows, 2076 coalitions each",
        explained(lambda rows: np.tanh(rows @ weights).sum(axis=1), X[:12], X[-1:]),
    )


def r2(model, n):
    return decompose_r2(model, MANY[:20_000], MANY[:20_000, 0], n_jobs=n)


def explained(model, rows, background=None, **settings):
    """Return a call of an explainer with some threads, which is made once for each number."""
    explainers = {n: Explainer(model, background, n_jobs=n, **settings) for n in (1, 2)}
    return lambda n: explainers[n](rows)


def timed(part):
    """Return one line for each call of a part."""
    touch_memory()
    return [
        row(what, *best_in_turn(lambda f=call: f(2), lambda f=call: f(1), repeat=turns(call)), goal(what))
        for what, call in part()
    ]


def goal(what):
    return "-" if what.startswith("the machine") else ">= 1.7x"


def turns(call):
    """Return how often a call is made in turn: other guests of a host take the caches and the memory for some time."""
    return int(np.clip(SECONDS / best(lambda: call(1), 1, 0), 4, 40))


PARTS = {
    part.__name__: part for part in (machine, kernel_machines, trees, linear, additive, bases, sums, statistics, black_boxes)
}


def run(chosen=PARTS):
    return rows_of(*(functools.partial(timed, PARTS[name]) for name in chosen))


if __name__ == "__main__":
    for result in run(sys.argv[1:] or PARTS):
        print(
            f"{result['what']:45} one {result['peer'] * 1e3:8.1f} ms  two {result['ours'] * 1e3:8.1f} ms  {result['ratio']:.2f}x"
        )
