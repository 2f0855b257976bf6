"""Make what the README shows, so that it cannot go stale: its two tables of figures and its pictures.

    pip install -e ".[test]" shapiq interpret-core       (newest releases of the peers)
    python tools/readme.py [--figures] [--wrong] [--pictures]    without any: all three

Figures are processor times of whole calls on one thread, the shortest of three (peers of more than ten seconds: of one).
"""

import argparse
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import numpy as np  # noqa: E402

import exactshap  # noqa: E402


def diabetes():
    """Return the README's own data and model."""
    from sklearn.datasets import load_diabetes
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X, y, make_pipeline(StandardScaler(), SVR(C=100)).fit(X, y)


def support_vectors():
    """Explain the model of the README."""
    import pandas as pd
    import shap

    X, _, model = diabetes()
    predict = lambda rows: model.predict(pd.DataFrame(rows, columns=X.columns))  # noqa: E731
    peer = lambda: shap.KernelExplainer(predict, X[:50]).shap_values(X, silent=True)  # noqa: E731
    return "KernelExplainer", lambda: exactshap.explain(model, X, X[:50]).values, peer


def boosted_trees():
    """Explain XGBoost by the cover of its trees, as its own contributions do."""
    from xgboost import DMatrix, XGBRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:10] @ rng.normal(size=7)
    model = XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1).fit(X, y)
    booster, rows = model.get_booster(), X[:1000]
    booster.set_param({"nthread": 1})
    explainer = exactshap.Explainer(model)
    peer = lambda: booster.predict(DMatrix(rows, nthread=1), pred_contribs=True)[:, :-1]  # noqa: E731
    return "`pred_contribs`", lambda: explainer(rows).values, peer


def additive_with_pairs():
    """Explain an additive model with interactions."""
    import shap
    from interpret.glassbox import ExplainableBoostingRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 4] * X[:, 5]
    model = ExplainableBoostingRegressor(interactions=10, n_jobs=1, outer_bags=1).fit(X, y)
    background = X[:100]
    explainer = exactshap.Explainer(model, background)
    peer = shap.PermutationExplainer(model.predict, shap.maskers.Independent(background, max_samples=100), seed=0)
    return "PermutationExplainer", lambda: explainer(X[:20]).values, lambda: peer(X[:20], max_evals=410, silent=True).values


def probabilities():
    """Explain probabilities of a logistic regression."""
    import shap
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 30))
    model = LogisticRegression().fit(X, X @ rng.normal(size=30) + rng.normal(size=500) > 0)
    background, predict = X[:100], lambda rows: model.predict_proba(rows)[:, 1]
    explainer = exactshap.Explainer(model, background, output="probability")
    peer = shap.KernelExplainer(predict, background)
    return "KernelExplainer", lambda: explainer(X[:20]).values, lambda: peer.shap_values(X[:20], silent=True)


def calibrated():
    """Explain probabilities of a calibrated support vector machine."""
    import shap
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.datasets import load_breast_cancer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :10]
    model = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False).fit(X[:400], y[:400])
    background, predict = X[:100], lambda rows: model.predict_proba(rows)[:, 1]
    explainer = exactshap.Explainer(model, background)
    peer = shap.KernelExplainer(predict, background)
    return "KernelExplainer", lambda: explainer(X[400:420]).values, lambda: peer.shap_values(X[400:420], silent=True)


def matern():
    """Explain a kernel that is no product."""
    import shap
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    X, y, _ = diabetes()
    X, y = 20 * X.to_numpy()[:320], y.to_numpy()[:320]
    model = GaussianProcessRegressor(Matern(3.0, nu=1.5), alpha=1.0, optimizer=None).fit(X[:300], y[:300] - y[:300].mean())
    background = X[:50]
    explainer = exactshap.Explainer(model, background)
    peer = shap.KernelExplainer(model.predict, background)
    return "KernelExplainer", lambda: explainer(X[300:]).values, lambda: peer.shap_values(X[300:], silent=True)


CASES = {
    support_vectors: "The support vector machine above, 442 rows, 50 background rows",
    boosted_trees: "XGBoost, 100 trees of depth 6, 1,000 rows of 20 columns",
    additive_with_pairs: "An EBM with 10 pairs, 20 rows of 20 columns, 100 background rows",
    matern: "A Gaussian process with a *Matern* kernel, 300 training rows, 20 rows of 10 columns",
    calibrated: "*Probabilities* of a calibrated support vector machine, 20 rows of 10 columns, 100 background rows",
    probabilities: "*Probabilities* of a logistic regression, 20 rows of 30 columns, 100 background rows",
}


def seconds(number):
    """Return a duration in two digits, as people say it."""
    return f"{float(f'{number:.2g}'):g} s" if number >= 0.1 else f"{1e3 * number:.2g} ms"


def clocked(call):
    """Return the processor seconds of a call, which other work on the machine does not change much, and its answer."""
    started = time.process_time()
    answer = call()
    return time.process_time() - started, answer


def figures():
    """Yield a line of Markdown for each model: ours, the peer, and how far the peer's values are from the exact ones."""
    yield from ("| | exactshap | a usual call | | its largest error |", "|---|--:|---|--:|--:|")
    for case, label in CASES.items():
        name, ours, peer = case()
        ours()  # warm
        mine, right = min((clocked(ours) for _ in range(3)), key=lambda pair: pair[0])
        theirs, found = clocked(peer)
        if theirs < 10:
            theirs = min(clocked(peer)[0] for _ in range(3))
        error = np.abs(np.asarray(found).reshape(right.shape) - right).max() / np.abs(right).max()
        said = "same values" if error < 1e-5 else f"{100 * error:.2g} %"
        yield f"| {label} | **{seconds(mine)}** | {name} | {seconds(theirs)} | {said} |"
    peers = ", ".join(f"{package} {metadata.version(package)}" for package in ("shap", "xgboost-cpu", "interpret-core"))
    yield f"\n<sub>Processor time, one thread of {processor()}; {peers}; made by `python tools/readme.py`.</sub>"


def processor():
    """Return the name of this machine's processor."""
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.*)", path.read_text()) if path.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def put(part, lines):
    """Write lines between the README's two marks of a part."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    marks = f"<!-- {part} -->", f"<!-- /{part} -->"
    before, after = text.split(marks[0])[0], text.split(marks[1])[1]
    readme.write_text(before + marks[0] + "\n" + "\n".join(lines) + "\n" + marks[1] + after, encoding="utf-8")


IMAGES = ROOT / "docs" / "img"


def pictures():
    """Draw the beeswarm of the README's model, and photograph the pages that the docs show."""
    import matplotlib.pyplot as plt
    from playwright.sync_api import sync_playwright

    X, y, model = diabetes()
    explanation = exactshap.explain(model, X, X[:50])
    plt.figure(figsize=(8, 4.5))
    explanation.plot.beeswarm()
    plt.savefig(IMAGES / "beeswarm.png", dpi=110, bbox_inches="tight")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")  # None: the one that Playwright downloaded
        browser = engine.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        pages = {
            "report": explanation.report(Path(folder) / "report.html"),
            "interactive": interactive(Path(folder) / "interactive.html"),
            "comparison": explanation[:200]
            .compare(explanation[200:], labels=("spring", "autumn"))
            .report(Path(folder) / "c.html"),
        }
        for name, path in pages.items():
            photograph(browser, path.as_uri(), name)
        photograph(browser, live(X, y), "app", ready="#prediction", move=True)


def photograph(browser, address, name, ready="main", move=False):
    """Save the first screen of a page; of the app with one slider moved."""
    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.goto(address)
    page.wait_for_selector(ready)
    page.wait_for_timeout(1500)
    if move:
        page.locator(".irs-line").nth(2).click(position={"x": 40, "y": 4}, force=True)
        page.wait_for_selector("#was")
        page.wait_for_timeout(500)
    page.screenshot(path=IMAGES / f"{name}.png")


def interactive(path):
    """Write the page of docs/interactive.md."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = HistGradientBoostingRegressor(max_iter=100, max_depth=3).fit(X[:300], y[:300])
    explanation = exactshap.Explainer(model, background=X[:100])(X[300:])
    return explanation.report(path, interactive=True, target=y[300:], data_name="the last 142 patients")


def live(X, y):
    """Serve the app for a classifier, and return its address."""
    import queue
    import threading

    from sklearn.ensemble import HistGradientBoostingClassifier

    from exactshap.app import WhatIf, run_app

    model = HistGradientBoostingClassifier(max_iter=60).fit(X[:300], y[:300] > 150)
    addresses = queue.Queue()
    settings = {"open_browser": False, "ready": addresses.put}
    what_if = WhatIf(model, X[300:].reset_index(drop=True), X[:100])
    threading.Thread(target=run_app, args=(what_if,), kwargs=settings, daemon=True).start()
    return addresses.get(timeout=60)


def main():
    """Make the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part in ("figures", "wrong", "pictures"):
        parser.add_argument(f"--{part}", action="store_true")
    wanted = parser.parse_args()
    everything = not any(vars(wanted).values())
    if wanted.figures or everything:
        put("figures", figures())
    if wanted.wrong or everything:
        import silent_errors

        put("wrong", silent_errors.table())
    if wanted.pictures or everything:
        pictures()


if __name__ == "__main__":
    main()
