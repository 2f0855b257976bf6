"""The calls that a user would otherwise make: the boosters' own contributions, ``explain_local``, ``LinearExplainer.shap_values``.

Whole calls on both sides (``explainer(rows)``: checked, certified, an Explanation), in one process, one thread each, for 1 to 1000
rows. Rows where we lose are included: a ratio below 1 says by how much.
"""

import numpy as np
from timing import best, row, rows_of

from exactshap import Explainer

ROWS = (1, 10, 100, 1000)
REPEATS = {1: 100, 10: 50, 100: 20, 1000: 5}


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:10] @ rng.normal(size=7) + 0.1 * rng.normal(size=4000)


def against(what, explainer, peer, X, *, warm_up=1):
    """Return one row of the table for each number of rows; ``peer(rows)`` gives values or contributions."""
    results = []
    for n in ROWS:
        ours, theirs = (best(lambda f=f, r=X[:n]: f(r), REPEATS[n], warm_up) for f in (explainer, peer))
        results.append(row(f"{what}, n = {n}", ours, theirs, "-"))
    return results


def xgboost():
    """100 trees of depth 3, 6 and 10 against ``pred_contribs``."""
    from xgboost import DMatrix, XGBRegressor

    X, y = data()
    results = []
    for depth in (3, 6, 10):
        model = XGBRegressor(n_estimators=100, max_depth=depth, n_jobs=1).fit(X, y)
        booster = model.get_booster()
        booster.set_param({"nthread": 1})
        peer = lambda rows, booster=booster: booster.predict(DMatrix(rows, nthread=1), pred_contribs=True)  # noqa: E731
        results += against(f"XGBoost pred_contribs, depth {depth}", Explainer(model), peer, X, warm_up=20)
    return results


def lightgbm():
    """100 trees of 31 leaves against ``pred_contrib``."""
    from lightgbm import LGBMRegressor

    X, y = data()
    model = LGBMRegressor(n_jobs=1, verbose=-1).fit(X, y)
    peer = lambda rows: model.predict(rows, pred_contrib=True)  # noqa: E731
    return against("LightGBM pred_contrib, 31 leaves", Explainer(model), peer, X, warm_up=20)


def catboost():
    """100 trees of depth 6 against its ShapValues."""
    from catboost import CatBoostRegressor, Pool

    X, y = data()
    model = CatBoostRegressor(iterations=100, verbose=0, thread_count=1, allow_writing_files=False).fit(X, y)
    peer = lambda rows: model.get_feature_importance(Pool(rows), type="ShapValues", thread_count=1)  # noqa: E731
    return against("CatBoost ShapValues, depth 6", Explainer(model), peer, X, warm_up=20)


def interpret():
    """An EBM with 5 pairs against its ``explain_local``."""
    from interpret.glassbox import ExplainableBoostingRegressor

    X, y = data()
    model = ExplainableBoostingRegressor(interactions=5, outer_bags=1, max_rounds=100, n_jobs=1, random_state=0).fit(X, y)
    return against("EBM explain_local, 5 pairs", Explainer(model), model.explain_local, X)


def linear():
    """Ridge on 50 columns against shap's quick call, which returns a bare array."""
    import shap
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 50))
    model = Ridge().fit(X, X @ rng.normal(size=50))
    explainer = Explainer(model, X[:100])
    peer = shap.LinearExplainer(model, shap.maskers.Independent(X[:100], max_samples=100))
    results = against("Ridge, 50 columns, LinearExplainer.shap_values", explainer, peer.shap_values, X)
    ours, theirs = (best(lambda f=f: f(X), 20) for f in (explainer, peer.shap_values))
    return [*results, row("Ridge, 50 columns, LinearExplainer.shap_values, n = 10000", ours, theirs, ">= 1x")]


def run():
    return rows_of(xgboost, lightgbm, catboost, interpret, linear)


if __name__ == "__main__":
    for result in run():
        print(
            f"{result['what']:60} ours {result['ours'] * 1e3:9.3f} ms  peer {result['peer'] * 1e3:9.3f} ms  {result['ratio']:.2f}x",
            flush=True,
        )
