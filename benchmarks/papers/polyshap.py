"""PolySHAP's protocol: mean squared error against calls, on its games, next to the published estimators.

    python benchmarks/papers/polyshap.py --games Estate,ViT9 --instances 10 --max-budget 4200 --seconds 600

Games (MATHS.md, section 5): path-dependent values of a random forest (10 trees, depth 10, 80/20 split, rows of the test set) on Housing
8, Bike 12, Adult 14, Estate 15, Cancer 30, CG60 and IL60 60, and the precomputed image games ViT9 and ResNet14. Budgets: 10,
log-spaced from d + 1 to min(2^d, 20000). Every run is appended to ``results/polyshap_runs.csv``: the script can be stopped, resumed and
limited; ``--report`` only rewrites the table and the figure from it. Data: the folder in EXACTSHAP_DATA.
"""

from __future__ import annotations

import argparse
import csv
import functools
import itertools
import json
import math
import pathlib
import time
import warnings

import numpy as np
from paper_data import DATA, say_missing

RESULTS = pathlib.Path(__file__).parent / "results"
RUNS = RESULTS / "polyshap_runs.csv"
CALIBRATION = RESULTS / "polyshap_calibration.csv"
PLAYERS = {"Housing": 8, "ViT9": 9, "Bike": 12, "Adult": 14, "ResNet14": 14, "Estate": 15, "Cancer": 30, "CG60": 60, "IL60": 60}
FILES = {  # in the folder of data; Forest to ViT16 are needed for the published table only
    "Housing": "california_housing.parquet",
    "Bike": "bike_sharing.csv.gz",
    "Adult": "adult_census.parquet",
    "Estate": "real_estate_d15.csv.gz",
    "Cancer": "breast_cancer_wdbc.csv.gz",
    "ViT9": "game_vit9.npz",
    "ResNet14": "game_resnet14.npz",
    "Forest": "forest_fires.csv.gz",
    "Crime": "communities_unnormalized.csv.gz",
    "DistilBERT": "game_distilbert14.npz",
    "ViT16": "game_vit16.npz",
}
NUMBERS_FIRST = {  # the authors' order of columns, which decides between splits of equal gain
    "Adult": (
        *("age", "capital-gain", "capital-loss", "hours-per-week", "fnlwgt", "workclass", "education", "marital-status"),
        *("occupation", "relationship", "race", "sex", "native-country", "education-num"),
    ),
    "Bike": ("hour", "temp", "feel_temp", "humidity", "windspeed", "year", "month", "holiday", "weekday", "workingday"),
}
OURS = "exactshap auto"
ROWS = 10  # rows of each game: instances beyond them are the same rows with other seeds


# ---------------------------------------------------------------------------------------------------------------- games
def fill_forest(left, right, feature, share, goes_left, value, roots, masks, out):
    """Set ``out`` to the path-dependent value of every mask: both children, weighted by cover, where a player is absent."""
    for start in range(0, len(masks), 4096):
        present = masks[start : start + 4096].T
        total = np.zeros(present.shape[1])
        for root, end in zip(roots, [*roots[1:], len(left)], strict=True):
            of_node = np.empty((end - root, len(total)))
            for node in range(end - 1, root - 1, -1):  # children come after their parents
                if left[node] < 0:
                    of_node[node - root] = value[node]
                    continue
                a, b = of_node[left[node] - root], of_node[right[node] - root]
                mixed = share[node] * a + (1.0 - share[node]) * b
                of_node[node - root] = np.where(present[feature[node]], a if goes_left[node] else b, mixed)
            total += of_node[0]
        out[start : start + 4096] = total / len(roots)


class ForestGame:
    """One row of a random forest, path-dependent; ``exact`` by quadrature over its leaves."""

    def __init__(self, forest, x):
        from exactshap.games import ProductGame
        from exactshap.solvers import solve

        x = np.asarray(x, np.float32)
        parts, roots, leaves, offset = [], [], [], 0
        for estimator in forest.estimators_:
            tree = estimator.tree_
            left, right, feature = tree.children_left, tree.children_right, np.maximum(tree.feature, 0)
            cover = tree.weighted_n_node_samples
            share = np.where(left >= 0, cover[np.maximum(left, 0)] / cover, 0.0)
            value = tree.value[:, 0, :]
            value = value[:, 1] / value.sum(axis=1) if hasattr(forest, "classes_") else value[:, 0]
            goes_left = x[feature] <= tree.threshold
            moved = (np.where(left >= 0, left + offset, -1), np.where(right >= 0, right + offset, -1))
            parts.append((*moved, feature, share, goes_left, np.ascontiguousarray(value)))
            roots.append(offset)
            leaves += _leaves(left, right, feature, share, goes_left, value / len(forest.estimators_), len(x))
            offset += tree.node_count
        self.arrays = [np.concatenate(part) for part in zip(*parts, strict=True)]
        self.roots = np.array(roots)
        c, a, b = (np.array(part) for part in zip(*leaves, strict=True))
        self.exact = solve(ProductGame(c, a, b)).values
        self.n_players = len(x)
        self.table = None
        if self.n_players <= 16:
            from exactshap.games import all_masks

            self.table = self(all_masks(self.n_players))

    def __call__(self, masks):
        masks = np.ascontiguousarray(np.atleast_2d(masks), dtype=bool)
        if self.table is not None:
            return self.table[masks @ (1 << np.arange(self.n_players))]
        out = np.empty(len(masks))
        fill_forest(*self.arrays, self.roots, masks, out)
        return out


def _leaves(left, right, feature, share, goes_left, value, d):
    leaves, stack = [], [(0, np.ones(d), np.ones(d))]
    while stack:
        node, a, b = stack.pop()
        if left[node] < 0:
            leaves.append((value[node], a, b))
            continue
        for child, taken, part in (
            (left[node], goes_left[node], share[node]),
            (right[node], not goes_left[node], 1 - share[node]),
        ):
            inside, outside = a.copy(), b.copy()
            inside[feature[node]] *= float(taken)
            outside[feature[node]] *= part
            stack.append((child, inside, outside))
    return leaves


class TableGame:
    """A precomputed game: the value of a coalition is at the bit mask sum of 2^i."""

    def __init__(self, table):
        from exactshap.games import OracleGame
        from exactshap.solvers import solve

        self.table, self.n_players = table, int(np.log2(len(table)))
        self.exact = solve(OracleGame(self, self.n_players), method="enumeration").values

    def __call__(self, masks):
        return self.table[np.atleast_2d(masks).astype(bool) @ (1 << np.arange(self.n_players))]


def correlated_groups(independent):
    """Return X, y of shap's corrgroups60 (or independentlinear60), from their definition."""
    rng = np.random.RandomState(0)
    n, d = 1000, 60
    beta = np.zeros(d)
    beta[0:30:3] = 1.0
    X = rng.randn(n, d)
    X -= X.mean(axis=0)
    if not independent:
        covariance = np.eye(d)
        for first in range(0, 30, 3):
            covariance[first : first + 3, first : first + 3] = 0.99 + 0.01 * np.eye(3)
        X = X @ np.linalg.inv(np.linalg.cholesky(X.T @ X / n)).T @ np.linalg.cholesky(covariance).T
    return X, X @ beta + 0.01 * rng.randn(n), False


def table(name):
    """Return X, y and whether y is a class."""
    import pandas as pd

    if name in ("CG60", "IL60"):
        return correlated_groups(name == "IL60")
    path = DATA / FILES[name]
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, na_values="?")
    if name == "Crime":
        return communities(frame)
    frame = frame.dropna()
    target = {"Housing": "MedHouseVal", "Bike": "count", "Adult": "class", "Cancer": "target"}.get(name, frame.columns[-1])
    X, y = frame.drop(columns=target), frame[target]
    if name == "Forest":  # seasons instead of months, as published
        season = (pd.to_datetime(X["month"], format="%b").dt.month % 12 // 3).map(
            ["winter", "spring", "summer", "fall"].__getitem__
        )
        X = pd.get_dummies(X.drop(columns=["day", "month"]).assign(season=season), drop_first=True, dtype=float)
    X = X[[*NUMBERS_FIRST.get(name, ()), *(column for column in X if column not in NUMBERS_FIRST.get(name, ()))]]
    for column in X:
        if X[column].dtype.kind not in "fiub":
            X[column] = X[column].astype("category").cat.codes
    if name == "Adult":
        y = y.astype(str).str.contains(">50K").astype(int)
    return X.to_numpy(float), y.to_numpy(), name in ("Adult", "Cancer")


def communities(frame):
    """Return X, y of shap's communitiesandcrime: its columns without gaps against violent crimes by population."""
    frame = frame[frame["ViolentCrimesPerPop"].notna()]
    return frame.iloc[:, 5:-18].dropna(axis=1).to_numpy(float), frame["ViolentCrimesPerPop"].to_numpy(), False


def available(name):
    return name in ("CG60", "IL60") or (name in FILES and (DATA / FILES[name]).exists())


def split(X, y):
    """Return training rows, test rows and training targets of another split than the authors', on which our method was tuned."""
    from sklearn.model_selection import train_test_split

    return train_test_split(X, y, test_size=0.2, random_state=40)[:3]


def published_split(X, y):
    """Return training rows, test rows and training targets of the authors' split: shuffled with their seed, the last fifth for tests."""
    order = np.arange(len(X))
    np.random.default_rng(40).shuffle(order)
    train, test = np.split(order, [len(X) - int(0.2 * len(X))])
    return X[train], X[test], y[train]


@functools.lru_cache(maxsize=2)
def games(name, n, split=split):
    """Return the first ``n`` instances of a game."""
    if FILES.get(name, "").endswith("npz"):
        return [TableGame(values) for values in np.load(DATA / FILES[name])["values"][:n]]
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X, y, is_class = table(name)
    train, test, y_train = split(X, y)
    forest = (RandomForestClassifier if is_class else RandomForestRegressor)(n_estimators=10, max_depth=10, random_state=40)
    forest.fit(train, y_train)
    return [ForestGame(forest, x) for x in test[:n]]


def budgets(d):
    """Return the published protocol's budgets."""
    return np.unique(np.logspace(np.log10(d + 1), np.log10(min(2**d, 20000)), 10).round().astype(int))


# ------------------------------------------------------------------------------------- published estimators, plainly
def sample_pairs(d, n_pairs, rng):
    """Return pairs and inverse rates: order-1 leverage, border sizes enumerated, then sizes at random without replacement."""
    sizes = np.arange(1, d // 2 + 1)
    counts = np.array([math.comb(d, int(s)) / (2 if 2 * s == d else 1) for s in sizes])
    weights, open_ = np.where(2 * sizes == d, 1.0, 2.0), np.ones(len(sizes), bool)
    rows, rates, left = [], [], int(min(n_pairs, counts.sum()))
    while open_.any():
        share = np.where(open_, weights, 0.0) / weights[open_].sum()
        full = np.flatnonzero(open_ & (left * share >= counts * (1 - 1e-9)))
        if not len(full):
            break
        size = int(sizes[full[0]])
        for players in itertools.combinations(range(d), size):
            if 2 * size == d and players[0] != 0:
                break
            rows.append(np.isin(np.arange(d), players))
            rates.append(1.0)
        left -= int(counts[full[0]])
        open_[full[0]] = False
    drawn = {}
    while left > len(drawn) and open_.any():
        k = rng.choice(len(sizes), p=share)
        mask = np.isin(np.arange(d), rng.choice(d, int(sizes[k]), replace=False))
        mask = ~mask if 2 * sizes[k] == d and not mask[0] else mask
        drawn.setdefault(mask.tobytes(), (mask, counts[k] / share[k]))
    rows += [mask for mask, _ in drawn.values()]
    rates += [rate / len(drawn) for _, rate in drawn.values()]
    return np.array(rows).reshape(-1, d), np.array(rates)


def kernel(d, sizes):
    return np.array([1.0 / ((d - 1) * math.comb(d - 2, int(s) - 1)) for s in sizes])


def shortest_solution(matrix, target):
    """Return the least-squares solution of least norm of a matrix whose rows sum to zero: by SVD as published.

    Large ones by a factorisation that has the same solution: QR where (1, ..., 1) is all that the rows leave open, else a complete
    orthogonal one.
    """
    from scipy.linalg import lstsq, qr, solve_triangular

    n_rows, n_columns = matrix.shape
    if n_columns <= 1000:
        return np.linalg.lstsq(matrix, target, rcond=None)[0]
    if n_rows >= n_columns:
        open_row = np.append(np.ones(n_columns), 0.0)  # met exactly: the solution sums to zero, so that it is the shortest
        r = qr(np.vstack([np.column_stack([matrix, target]), open_row]), mode="r", overwrite_a=True, check_finite=False)[0]
        diagonal = np.abs(np.diag(r)[:n_columns])
        if diagonal.min() > 1e-10 * diagonal.max():
            return solve_triangular(r[:n_columns, :n_columns], r[:n_columns, n_columns])
    return lstsq(matrix, target, cond=1e-12, lapack_driver="gelsy", overwrite_a=True, check_finite=False)[0]


def polyshap(game, budget, seed, order):
    """Return k-PolySHAP on paired samples (order 1: Leverage SHAP), in the equivalent odd form where the rows determine it.

    None where published runs skip.
    """
    d = game.n_players
    if order == 3 and (sum(math.comb(d, k) for k in (1, 2, 3)) > budget or d > 30):
        return None
    masks, rates = sample_pairs(d, (budget - 2) // 2, np.random.default_rng(seed))
    if not len(masks):
        return None
    half = (game(masks) - game(~masks)) / 2
    total = float(game(np.ones(d, bool))[0] - game(np.zeros(d, bool))[0]) / 2
    sets = [players for size in range(1, order + 1, 2) for players in itertools.combinations(range(d), size)]
    root = np.sqrt(kernel(d, masks.sum(axis=1)) * rates)[:, None]
    if len(masks) >= len(sets):
        rows, factor = 2.0 * masks - 1, 2.0
    else:  # too few rows: the published shortest solution is that of the unanimity form, on both halves of the pairs
        rows, factor = np.concatenate([masks, ~masks]).astype(float), 1.0
        sets = [players for size in range(1, order + 1) for players in itertools.combinations(range(d), size)]
        half, total = game(rows > 0) - game(np.zeros(d, bool))[0], 2 * total
        root = np.concatenate([root, root])
    columns = np.stack([rows[:, players].prod(axis=1) for players in map(list, sets)], axis=1)
    share = total / len(sets)
    z = shortest_solution(
        root * (columns - columns.mean(axis=1, keepdims=True)), root[:, 0] * (half - columns.sum(axis=1) * share)
    )
    phi = np.zeros(d)
    for players, c in zip(sets, z - z.mean() + share, strict=True):
        phi[list(players)] += factor * c / len(players)
    return phi


def regression_msr(game, budget, seed):
    """Return RegressionMSR with its residuals on the same coalitions: default XGBoost, its exact values, residuals by UKSHAP."""
    import xgboost

    from exactshap.games import ProductGame
    from exactshap.solvers import solve

    d = game.n_players
    masks, rates = sample_pairs(d, (budget - 2) // 2, np.random.default_rng(seed))
    ends = np.array([[False] * d, [True] * d])
    rows = np.concatenate([ends, masks, ~masks])
    values = game(rows)
    model = xgboost.XGBRegressor(n_jobs=1, random_state=seed).fit(rows.astype(float), values)
    document = json.loads(model.get_booster().save_raw("json"))
    c, a, b = [], [], []
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        stack = [(0, np.ones(d), np.ones(d))]
        while stack:
            node, inside, outside = stack.pop()
            if tree["left_children"][node] < 0:
                c.append(tree["split_conditions"][node])
                a.append(inside)
                b.append(outside)
                continue
            player = tree["split_indices"][node]
            without, with_ = inside.copy(), outside.copy()
            without[player], with_[player] = 0.0, 0.0
            stack.append((tree["left_children"][node], without, outside))
            stack.append((tree["right_children"][node], inside, with_))
    phi = solve(ProductGame(np.array(c), np.array(a), np.array(b))).values
    residual = values - model.predict(rows.astype(float))
    n = len(masks)
    return phi + by_pairs(masks, rates, residual[2 : 2 + n] - residual[2 + n :], residual[:2])


def by_pairs(masks, rates, differences, ends):
    """Return MSR (unbiased KernelSHAP) from v(S) - v(not S) of pairs: sum_S rate (s-1)! (d-s-1)! / (d-1)! difference (1_S - s / d)."""
    d = masks.shape[1]
    sizes = masks.sum(axis=1)
    kappa = np.array([math.exp(math.lgamma(s) + math.lgamma(d - s) - math.lgamma(d)) for s in sizes])
    return (ends[1] - ends[0]) / d + (rates * kappa * differences) @ (masks - sizes[:, None] / d)


def from_shapiq(name, **settings):
    def estimate(game, budget, seed):
        from shapiq import approximator

        values = getattr(approximator, name)(game.n_players, random_state=seed, **settings).approximate(int(budget), game)
        return np.array([values.dict_values.get((i,), 0.0) for i in range(game.n_players)])

    return estimate


def from_shap(game, budget, seed):
    """Return shap's KernelExplainer without its l1 selection (the better of the two settings)."""
    import shap

    np.random.seed(seed)  # noqa: NPY002 - shap draws from the global generator
    explainer = shap.KernelExplainer(lambda rows: game(rows > 0.5), np.zeros((1, game.n_players)))
    return explainer.shap_values(np.ones((1, game.n_players)), nsamples=int(budget) - 2, l1_reg=False, silent=True)[0]


def ours(game, budget, seed, **settings):
    from exactshap.games import OracleGame
    from exactshap.solvers import solve

    return solve(OracleGame(game, game.n_players), budget=int(budget), random_state=seed, **settings).values


METHODS = {
    OURS: ours,
    "PolySHAP-3": functools.partial(polyshap, order=3),
    "Leverage SHAP": functools.partial(polyshap, order=1),
    "RegressionMSR": regression_msr,
    "kADD-SHAP(2)": from_shapiq("kADDSHAP", max_order=2),
    "shapiq KernelSHAP, paired": from_shapiq("KernelSHAP", pairing_trick=True),
    "shap KernelExplainer": from_shap,
    "permutation": from_shapiq("PermutationSamplingSV"),
    "SVARM": from_shapiq("SVARM"),
    "MSR": from_shapiq("UnbiasedKernelSHAP"),
}


# ---------------------------------------------------------------------------------------------------------- the runs
def load_runs(path=RUNS):
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def run_missing(names, methods, n_instances, max_budget, seconds, path=RUNS):
    """Run what is not in the file yet, cheapest budgets first, until the time is spent."""
    done = {(r["game"], int(r["budget"]), r["method"], int(r["instance"])) for r in load_runs(path)}
    end = time.perf_counter() + seconds
    path.parent.mkdir(exist_ok=True)
    new_file = not path.exists()
    with path.open("a") as file:
        writer = csv.writer(file)
        if new_file:
            writer.writerow(["game", "budget", "method", "instance", "mse", "seconds"])
        for rank, name in itertools.product(range(10), names):
            budget = int(budgets(PLAYERS[name])[rank])
            for method, instance in itertools.product(methods, range(n_instances)):
                if budget > max_budget or (name, budget, method, instance) in done:
                    continue
                if time.perf_counter() > end:
                    return
                game = games(name, min(n_instances, ROWS))[instance % ROWS]
                start = time.perf_counter()
                values = attempt(METHODS[method], game, budget, instance)
                took = time.perf_counter() - start
                error = math.nan if values is None else float(np.mean((values - game.exact) ** 2))
                writer.writerow([name, budget, method, instance, f"{error:.6e}", f"{took:.4f}"])
                file.flush()


def run_calibration(names, n_instances, max_budget, path=CALIBRATION):
    """Write the squared z-scores of our values, each run's mean over players, of what is not in the file yet."""
    from exactshap.games import OracleGame
    from exactshap.solvers import solve

    done = {(r["game"], int(r["budget"]), int(r["instance"])) for r in load_runs(path)}
    with path.open("a") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(["game", "budget", "instance", "z2"])
        for name in names:
            for budget, instance in itertools.product(map(int, budgets(PLAYERS[name])), range(n_instances)):
                if budget > max_budget or budget >= 2 ** PLAYERS[name] or (name, budget, instance) in done:
                    continue
                game = games(name, min(n_instances, ROWS))[instance % ROWS]
                found = solve(OracleGame(game, game.n_players), budget=budget, random_state=instance)
                z2 = np.mean(((found.values - game.exact) / found.std_error) ** 2)
                writer.writerow([name, budget, instance, f"{z2:.4e}"])
                file.flush()


def calibration_table(runs):
    """Return the lines of a table: mean squared z-score of every game and budget."""
    cells = {}
    for run in runs:
        cells.setdefault(run["game"], {}).setdefault(int(run["budget"]), []).append(float(run["z2"]))
    lines = []
    for name in PLAYERS:
        found = cells.get(name, {})
        texts = [f"{budget}: {np.mean(found[budget]):.2f}" for budget in sorted(found)]
        lines.append(f"| {name} | {PLAYERS[name]} | " + ", ".join(texts) + " |")
    enough = {(g, b): np.mean(z) for g, row in cells.items() for b, z in row.items() if b >= 4 * PLAYERS[g]}
    few = {(g, b): np.mean(z) for g, row in cells.items() for b, z in row.items() if b < 4 * PLAYERS[g]}
    values = np.array(list(enough.values()))
    return [
        "",
        "## Are the standard errors honest?",
        "",
        "Mean squared z-score, `(value - exact)^2 / std_error^2`, over players, ten rows and their seeds; 1 is perfect, below 1 cautious.",
        f"From four calls a player on ({len(values)} pairs of game and budget) it lies between {values.min():.2f} and {values.max():.2f}, median",
        f"{np.median(values):.2f}, {np.mean((values >= 0.5) & (values <= 1.5)):.0%} of them within 0.5 and 1.5; with fewer calls between {min(few.values()):.2f} and {max(few.values()):.2f}.",
        "Far below 1 is Housing where nearly all coalitions are known.",
        "",
        "| game | d | calls: mean squared z-score |",
        "|---|---|---|",
        *lines,
    ]


def attempt(method, game, budget, seed):
    """Return the method's values, or None where it refuses such a budget."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return method(game, budget, seed)
        except Exception as error:  # a peer's refusal is a result: "no value at this budget"
            print(f"{game.n_players} players, budget {budget}: {type(error).__name__}: {error}")
            return None


def summary(runs):
    """Return {(game, budget): {method: (mean, standard error, n)}}; refusals count as no value."""
    cells = {}
    for run in runs:
        cells.setdefault((run["game"], int(run["budget"])), {}).setdefault(run["method"], []).append(float(run["mse"]))
    result = {}
    for key, methods in cells.items():
        result[key] = {}
        for method, errors in methods.items():
            errors = np.array(errors)
            if np.isfinite(errors).all():
                result[key][method] = (
                    errors.mean(),
                    errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else math.nan,
                    len(errors),
                )
    return result


def verdicts(runs):
    """Return per pair the best peer and its mean error over ours: the lowest such ratio, each over the instances that both ran."""
    errors = {}
    for run in runs:
        cell = errors.setdefault((run["game"], int(run["budget"])), {})
        cell.setdefault(run["method"], {})[int(run["instance"])] = float(run["mse"])
    rows = {}
    for key, methods in errors.items():
        ours = methods.get(OURS, {})
        ratios = {}
        for method, found in methods.items():
            shared = sorted(ours.keys() & found.keys())
            if method != OURS and shared and np.isfinite(list(found.values())).all():
                mine, theirs = (np.mean([side[i] for i in shared]) for side in (ours, found))
                ratios[method] = theirs / mine if mine > 1e-25 else math.inf
        if ratios:
            best = min(ratios, key=ratios.get)
            rows[key] = (best, ratios[best])
    return rows


def report(runs):
    cells = summary(runs)
    order = sorted(cells, key=lambda key: (list(PLAYERS).index(key[0]), key[1]))
    compared = verdicts(runs)
    sampled = {k: v for k, v in compared.items() if k[1] < 2 ** PLAYERS[k[0]]}
    won = sum(row[1] >= 1.0 for row in sampled.values())
    twice = sum(row[1] >= 2.0 for row in sampled.values())
    lines = [
        "# Mean squared error against calls, PolySHAP's protocol",
        "",
        f"Mean over n instances (ten rows; instances beyond them are the same rows with other seeds), standard error in brackets; of {len(sampled)}",
        f"pairs of game and budget below 2^d, `{OURS}` is at or below the best peer on {won} and at least 2x below on {twice}. A ratio takes the",
        "instances that both ran, and the peer with the lowest one. At 2^d calls every coalition is known: ours enumerates, errors are rounding.",
        "",
        "`-`: the method gives no value there. PolySHAP-3 needs a call for each of its terms, and is skipped beyond d = 30 as published; at",
        "Cancer's 4750 calls its rows are fewer than its odd terms, so that it takes the shortest solution of all 4525 terms, as published.",
        "The design, the weak priors and the search of the process were tuned on these games, with the same seeds.",
        "",
        "| game | calls | n | " + " | ".join(METHODS) + " | best peer / ours |",
        "|---|---|---|" + "---|" * (len(METHODS) + 1),
    ]
    for key in order:
        cell = cells[key]
        n = max(v[2] for v in cell.values())
        texts = [cell_text(cell[m], n) if m in cell else "-" for m in METHODS]
        ratio = f"{compared[key][1]:.3g} ({compared[key][0]})" if key in compared else ""
        lines.append(f"| {key[0]} | {key[1]} | {n} | " + " | ".join(texts) + f" | {ratio} |")
    lines += calibration_table(load_runs(CALIBRATION)) if CALIBRATION.exists() else []
    (RESULTS / "polyshap.md").write_text("\n".join(lines) + "\n")
    draw_figure(cells)
    print("\n".join(lines[2:5]))


def cell_text(found, n):
    """Return mean (standard error), and the number of instances where it is not the row's."""
    mean, error, n_runs = found
    return f"{mean:.2e} ({error:.0e})" + ("" if n_runs == n else f", n = {n_runs}")


def draw_figure(cells):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, 3, figsize=(13, 11), sharex=False)
    for ax, name in zip(axes.flat, PLAYERS, strict=False):
        highest = 0.0
        for method in METHODS:
            points = sorted(
                (b, cell[method][0]) for (g, b), cell in cells.items() if g == name and method in cell and b < 2 ** PLAYERS[g]
            )
            if points:
                highest = max(highest, points[0][1] if method == OURS else 0.0)
                ours_style = (
                    {"color": "black", "linewidth": 2.5, "zorder": 5}
                    if method == OURS
                    else {"linewidth": 1.0, "color": f"C{list(METHODS).index(method)}"}
                )
                ax.loglog(*zip(*points, strict=True), marker="o", markersize=3, label=method, **ours_style)
        ax.set_ylim(top=1e3 * highest)  # some peers leave the page when rows are missing
        ax.set_title(f"{name} (d = {PLAYERS[name]})")
        ax.set_xlabel("calls of the model")
        ax.set_ylabel("mean squared error")
    axes.flat[-2].legend(*axes.flat[0].get_legend_handles_labels(), fontsize=6, loc="lower left")
    figure.tight_layout()
    figure.savefig(RESULTS / "polyshap.png", dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", default=",".join(PLAYERS))
    parser.add_argument("--methods", default="|".join(METHODS))
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--max-budget", type=int, default=20000)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--calibration", action="store_true", help="only the z-scores of our standard errors")
    chosen = parser.parse_args()
    if not DATA.exists():
        say_missing(list(FILES.values()))
        return
    if chosen.calibration:
        run_calibration(chosen.games.split(","), chosen.instances, chosen.max_budget)
    elif not chosen.report:
        run_missing(chosen.games.split(","), chosen.methods.split("|"), chosen.instances, chosen.max_budget, chosen.seconds)
    report(load_runs())


if __name__ == "__main__":
    main()
