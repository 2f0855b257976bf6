"""R2 of boosted trees, split over 100 features: both games, against qshap's C++ backend.

Two lines for each model, told apart by where the clocks start; both end with the shares, and X and y are arrays on both sides.

"from the model as read" is how the targets were measured: ours from ``convert(model)``, qshap from its ``gazer(model)``. Ours
checks X and y, rounds X to float32, routes the rows, follows the residuals, shares out and checks the sum. qshap's ``rsq`` does the
same, and builds a shap.TreeExplainer and asks XGBoost for a prediction for each tree: part of its reading is in its clock, none
of ours in ours.

"from the fitted model" starts both at the XGBRegressor. Ours adds XGBoost's own writing of the model (``xgboost_save``), reading that
and comparing our predictions with XGBoost's own (``xgboost_predict``), ``times_both`` of these two in turn; qshap adds its constructor
and compares nothing. ``limit`` is what the ratio would be if ours did nothing but those two calls of XGBoost: what is asked of shallow models may lie above it.

One thread each. Where the whole of qshap would take too long it runs on a few evenly spaced trees of the same model, scaled
by the number of trees: ``note`` says so. ``difference`` is the largest difference of the shares where all trees were run.
"""

import time

import numpy as np
from timing import best, best_in_turn, row

from exactshap import decompose_r2
from exactshap.trees import convert

# depth, rows, trees, trees that qshap runs, the target in words
CASES = [
    (1, 1000, 100, 100, ">= 300x"),
    (2, 1000, 100, 100, ">= 300x"),
    (3, 1000, 100, 100, ">= 300x"),
    (3, 5000, 100, 100, ">= 300x"),
    (4, 1000, 100, 20, ">= 100x"),
    (6, 1000, 100, 5, ">= 250x"),
    (6, 5000, 100, 2, ">= 800x"),
    (8, 1000, 100, 2, "works"),
]


def fitted(depth, n_rows, n_trees, seed=0):
    from xgboost import XGBRegressor

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 100))
    y = X[:, :16] @ rng.normal(size=16) + X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) * X[:, 3] + rng.normal(size=n_rows)
    return XGBRegressor(n_estimators=n_trees, max_depth=depth, learning_rate=0.1, n_jobs=1).fit(X, y), X, y


def thinned(model, n_trees, n_kept):
    """Return the same kind of estimator with every (n_trees / n_kept)-th tree."""
    from xgboost import XGBRegressor

    if n_kept == n_trees:
        return model
    step = n_trees // n_kept
    some = XGBRegressor(n_jobs=1)
    some.load_model(model.get_booster()[0:n_trees:step].save_raw("json"))
    return some


def against_qshap(depth, n_rows, n_trees, n_kept, target):
    from qshap import gazer

    model, X, y = fitted(depth, n_rows, n_trees)
    read = convert(model)
    repeat = 200 if depth <= 3 else 3
    ours, whole_way, save, predict = best_in_turn(
        lambda: decompose_r2(read, X, y),
        lambda: decompose_r2(model, X, y),
        lambda: model.get_booster().save_raw("ubj"),
        lambda: model.predict(X),
        repeat=repeat,
    )
    some = thinned(model, n_trees, n_kept)
    started = time.perf_counter()
    explainer = gazer(some)
    constructor = time.perf_counter() - started
    whole = n_kept == n_trees
    peer = best(lambda: explainer.rsq(X, y, progress_bar=False), 3 if whole else 1, warm_up=1 if whole else 0)
    peer *= n_trees / n_kept
    difference = np.abs(explainer.rsq(X, y, progress_bar=False) - decompose_r2(read, X, y).values).max() if whole else None
    what = f"residual game, depth {depth}, n = {n_rows}, T = {n_trees}"
    note = None if whole else f"peer: {n_kept} of {n_trees} trees, scaled"
    peer_whole_way = peer + constructor
    return [
        row(f"{what}, from the model as read", ours, peer, target, difference=difference, note=note),
        row(
            f"{what}, from the fitted model",
            whole_way,
            peer_whole_way,
            target,
            xgboost_save=save,
            xgboost_predict=predict,
            times_both=whole_way / (save + predict),
            limit=peer_whole_way / (save + predict),
            note=note,
        ),
    ]


def reading():
    """Seconds to read fitted models of 100 trees, next to what their libraries take to predict 1000 rows."""
    import catboost
    import lightgbm
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor

    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    kinds = {
        "LightGBM, 31 leaves": lightgbm.LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1),
        "CatBoost, depth 6": catboost.CatBoostRegressor(iterations=100, depth=6, **quiet),
        "scikit-learn gradient boosting, depth 3": GradientBoostingRegressor(n_estimators=100),
        "scikit-learn histogram boosting, 31 leaves": HistGradientBoostingRegressor(max_iter=100, early_stopping=False),
        "scikit-learn forest, not pruned": RandomForestRegressor(100),
    }
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=1000)
    return [_reading(name, model.fit(X, y), X) for name, model in kinds.items()]


def _reading(name, model, X):
    own = best(lambda: model.predict(X), 3)
    ours = best(lambda: convert(model), 3)
    return row(f"reading {name}, T = 100", ours, None, "", own_predict=own, nodes=convert(model).trees.n_nodes)


def alone(what, model, X, y, target, repeat=1, **settings):
    read = convert(model)
    seconds = best(lambda: decompose_r2(read, X, y, **settings), repeat, warm_up=0)
    shares = decompose_r2(read, X[:200], y[:200], **{**settings, "per_row": False})
    return row(what, seconds, None, target, residual_of_200_rows=abs(shares.residual))


def large(depth=6, n_rows=50_000, n_trees=500):
    model, X, y = fitted(depth, n_rows, n_trees)
    return alone(f"residual game, depth {depth}, n = {n_rows}, T = {n_trees}", model, X, y, "< 30 s")


def ensemble(depth, target):
    model, X, y = fitted(depth, 1000, 100)
    repeat = 3 if depth <= 3 else 1
    return alone(f"ensemble game, depth {depth}, n = 1000, T = 100", model, X, y, target, repeat, game="ensemble")


def rows_too():
    model, X, y = fitted(6, 1000, 100)
    return alone("residual game with per_row, depth 6, n = 1000, T = 100", model, X, y, "", 1, per_row=True)


def run() -> list[dict]:
    rows = [line for case in CASES for line in against_qshap(*case)]
    rows += [ensemble(1, "< 2 s"), ensemble(3, "< 2 s"), ensemble(6, "< 60 s"), rows_too(), large()]
    rows += reading()
    return rows


if __name__ == "__main__":
    for line in run():
        print(line)
