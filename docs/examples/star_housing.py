"""The pictures of STAR-SHAP's Figures 3 and 4: an EBM next to a 3-STAR weighting of ReLUs on California housing.

Beeswarms of many rows, waterfalls of one. Run it with the folder of ``california_housing.parquet``:

    python star_housing.py FOLDER [--terms 5000] [--rows 1000] [--train-rows 15480] [--out .]

The defaults are the paper's: T = 5000, max_theta = 0.5, alpha = 1e-9; EBM with 512 bins, learning rate 0.01 and at least two rows in
a leaf; 1000 test rows against 1000 training rows. Targets are standardised as in the paper.
"""

import argparse
from pathlib import Path

from exactshap import Explainer, RKHSWeightingRegressor


def load(folder):
    """Return standardised frames and targets, (train, test, y_train, y_test), or None with a line that says what is absent."""
    import pandas as pd
    from sklearn.model_selection import train_test_split

    path = Path(folder) / "california_housing.parquet"
    if not path.exists():
        print(f"skipped: {path.name} is not in {folder}")
        return None
    frame = pd.read_parquet(path)
    train, test = train_test_split(frame, train_size=0.75, random_state=0)
    parts = [(part - train.mean()) / train.std(ddof=0) for part in (train, test)]
    return [part.drop(columns="MedHouseVal") for part in parts] + [part["MedHouseVal"].to_numpy() for part in parts]


def models(train, y, n_terms, max_rounds):
    """Return the fitted models by name; EBM only where interpret is installed."""
    star = RKHSWeightingRegressor(subsets=3, n_terms=n_terms, alpha=1e-9, sigma=2**0.5, max_theta=0.5, random_state=0)
    found = {"3-STAR RWReLU": star.fit(train, y)}
    try:
        from interpret.glassbox import ExplainableBoostingRegressor
    except ImportError:
        print("EBM skipped: interpret is not installed")
        return found
    boosting = ExplainableBoostingRegressor(
        learning_rate=0.01, max_bins=512, max_rounds=max_rounds, min_samples_leaf=2, outer_bags=4, n_jobs=1, random_state=0
    )
    return {"EBM": boosting.fit(train, y), **found}


def draw(explanations, kind, title, path):
    """Draw one panel for each model, side by side, and save the figure."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(7.0 * len(explanations), 5.0), layout="constrained")
    for ax, (name, explanation) in zip(
        figure.subplots(1, len(explanations), squeeze=False)[0], explanations.items(), strict=True
    ):
        getattr(explanation.plot, kind)(ax=ax)
        ax.set_title(name)
    figure.suptitle(title)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main(folder, n_terms=5000, n_rows=1000, n_train=None, max_rounds=15000, out="."):
    """Fit, explain and draw; return the explanations by model."""
    data = load(folder)
    if data is None:
        return {}
    train, test, y, y_test = data
    explanations = {}
    for name, model in models(train[:n_train], y[:n_train], n_terms, max_rounds).items():
        explanations[name] = Explainer(model, train[:n_rows], n_jobs=2)(test[:n_rows])
        print(f"{name}: test R2 {model.score(test, y_test):.3f}; {explanations[name].certificate()}")
    title = (
        f"Shapley values of {n_rows} test rows against {min(n_rows, len(train))} training rows (in deviations of the target)"
    )
    draw(explanations, "beeswarm", title, Path(out) / "star_housing_beeswarm.png")
    draw(explanations, "waterfall", f"One test row, true value {y_test[0]:.4f}", Path(out) / "star_housing_waterfall.png")
    return explanations


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--terms", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--train-rows", type=int, default=None)
    parser.add_argument("--max-rounds", type=int, default=15000)
    parser.add_argument("--out", default=".")
    arguments = parser.parse_args()
    main(arguments.folder, arguments.terms, arguments.rows, arguments.train_rows, arguments.max_rounds, arguments.out)
