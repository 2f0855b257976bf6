"""Numbers that other libraries return without a word though they are wrong, and what exactshap does with the same call.

    pip install exactshap shap shapiq xgboost-cpu lightgbm interpret-core
    python benchmarks/silent_errors.py

Each case gives a fitted model and rows to a peer as its documentation says, and holds the answer against what the values must add up
to, or against enumeration of all coalitions with the model's own predictions. A case whose peer is not installed is left out, and one
that its newest release has mended says so.
"""

import contextlib
import io
import itertools
import math
import warnings
from importlib import metadata

import numpy as np

import exactshap
from exactshap.errors import ExactnessError

RNG = np.random.default_rng(0)


def enumerated(predict, x, background):
    """Return Shapley values of one row from all coalitions: Shapley (1953), with the model's own predictions."""
    d = len(x)

    def value(coalition):
        rows = background.copy()
        rows[:, list(coalition)] = x[list(coalition)]
        return predict(rows).mean()

    values = {s: value(s) for k in range(d + 1) for s in itertools.combinations(range(d), k)}
    return np.array(
        [
            sum(
                (values[tuple(sorted((*s, j)))] - values[s]) / (d * math.comb(d - 1, len(s)))
                for k in range(d)
                for s in itertools.combinations([i for i in range(d) if i != j], k)
            )
            for j in range(d)
        ]
    )


def off(found, right):
    """Return the largest error, and the largest right number to judge it by."""
    return f"off by up to {np.abs(np.asarray(found) - right).max():.2g}, where the right ones reach {np.abs(right).max():.2g}"


def ours(call):
    """Return what exactshap says to the same: its residual, or the beginning of its error."""
    try:
        certificate = call().certificate()
    except (ValueError, ExactnessError) as error:
        return "refused: " + str(error).split(":")[0].split(". ")[0]
    return f"exact, residual {certificate.max_residual:.0e}" if certificate.max_residual else "exact, residual 0"


def categories():
    """`shap.TreeExplainer`: HistGradientBoosting with categorical columns."""
    import shap
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = np.column_stack([RNG.integers(0, 8, 500), RNG.normal(size=(500, 2))]).astype(float)
    y = np.array([5, -3, 8, 0, -6, 2, 9, -8])[X[:, 0].astype(int)] + X[:, 1]
    model = HistGradientBoostingRegressor(categorical_features=[0], random_state=0).fit(X, y)
    explanation = shap.TreeExplainer(model)(X[:50])
    error = off(explanation.values.sum(axis=1) + explanation.base_values, model.predict(X[:50]))
    return f"sums {error}", ours(lambda: exactshap.explain(model, X[:50]))


def reversed_columns():
    """`shap.TreeExplainer`: a forest, a frame with its columns in another order."""
    import pandas as pd
    import shap
    from sklearn.ensemble import RandomForestRegressor

    X = pd.DataFrame(RNG.normal(size=(300, 4)), columns=list("abcd"))
    model = RandomForestRegressor(random_state=0).fit(X, 3 * X.a + X.b)
    explainer, turned = shap.TreeExplainer(model), X[list("dcba")]
    right = explainer.shap_values(X[:20])
    error = off(explainer.shap_values(turned[:20])[:, ::-1], right)
    return f"values {error}", ours(lambda: exactshap.explain(model, turned[:20]))


def surplus_column():
    """`shapiq.ProductKernelExplainer`: an SVR, a row with a column too many."""
    from shapiq.explainer.product_kernel import ProductKernelExplainer
    from sklearn.svm import SVR

    X = RNG.normal(size=(100, 5))
    model = SVR().fit(X, X[:, 0])
    wide = np.column_stack([RNG.normal(size=100), X])
    found = ProductKernelExplainer(model=model, max_order=1, index="SV").explain(wide[0])
    return f"{len(found.get_n_order_values(1))} values for a row of 6 columns, no error", ours(
        lambda: exactshap.explain(model, wide[:1])
    )


def probabilities():
    """`shap.TreeExplainer`: probabilities of XGBoost, `model_output="probability"`."""
    import shap
    from xgboost import XGBClassifier

    X = RNG.normal(size=(500, 5))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    model = XGBClassifier(n_estimators=50, max_depth=4, n_jobs=1).fit(X, y)
    rows, background = X[:20], X[100:200]
    predict = lambda rows: model.predict_proba(rows)[:, 1]  # noqa: E731
    found = shap.TreeExplainer(model, background, model_output="probability").shap_values(rows)
    right = np.array([enumerated(predict, x, background) for x in rows])
    factors = (found / right)[np.abs(right) > 0.01]  # of values above one per cent of probability
    said = ours(lambda: exactshap.explain(predict, rows, background))
    return f"values are {factors.min():.2g} to {factors.max():.2g} times the right ones", said


def pairs_of_an_ebm():
    """`shap.explainers.Additive`: an explainable boosting machine with pairs."""
    import shap
    from interpret.glassbox import ExplainableBoostingRegressor

    X = RNG.normal(size=(500, 5))
    model = ExplainableBoostingRegressor(interactions=5, n_jobs=1, outer_bags=1).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    x, background = X[:1], X[100:200]
    found = shap.explainers.Additive(model.predict, background)(x).values[0]
    return f"values {off(found, enumerated(model.predict, x[0], background))}", ours(
        lambda: exactshap.explain(model, x, background)
    )


def normalized_target():
    """`shapiq.ProductKernelExplainer`: a Gaussian process with `normalize_y=True`."""
    from shapiq.explainer.product_kernel import ProductKernelExplainer
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    X = RNG.normal(size=(60, 4))
    model = GaussianProcessRegressor(RBF(2.0), alpha=0.1, normalize_y=True).fit(X, 3 * X[:, 0] + 20)
    found = ProductKernelExplainer(model=model, max_order=1, index="SV").explain(X[0])
    total = found.baseline_value + found.get_n_order_values(1).sum()
    return f"sum {total:.3g}, prediction {model.predict(X[:1])[0]:.3g}", ours(lambda: exactshap.explain(model, X[:1]))


CASES = (
    ("shap", categories),
    ("shap", reversed_columns),
    ("shap", probabilities),
    ("shap", pairs_of_an_ebm),
    ("shapiq", normalized_target),
    ("shapiq", surplus_column),
)


def table():
    """Yield a line of Markdown for each case: the call, what comes back, and what exactshap says."""
    yield from ("| call | what comes back, without a warning | exactshap |", "|---|---|---|")
    for package, case in CASES:
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("always")
            try:
                theirs, answer = case()
            except ImportError as error:
                theirs, answer = f"not run: {error}", ""
            except Exception as error:  # a peer that refuses is what we hope for
                theirs, answer = f"refused by now: {type(error).__name__}", ""
        # A peer's own use of what another library will drop says nothing of its numbers
        spoken = [one for one in caught if not issubclass(one.category, (DeprecationWarning, PendingDeprecationWarning))]
        if any(package in str(one.filename) for one in spoken):
            theirs += ", and a warning by now"
        version = metadata.version(package)
        yield f"| {case.__doc__.rstrip('.')} ({package} {version}) | {theirs} | {answer} |"


if __name__ == "__main__":
    print(*table(), sep="\n")
