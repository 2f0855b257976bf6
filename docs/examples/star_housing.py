"""The pictures of STAR-SHAP's Figures 3 and 4: an EBM beside a 3-STAR weighting of ReLUs on California housing.

Beeswarms of many rows, waterfalls of one. Run it with the folder of ``california_housing.parquet``:

    python star_housing.py FOLDER [n_terms] [n_rows]

2000 terms and 200 rows by default; the paper has 5000 and 1000.
"""

import sys
from pathlib import Path

import numpy as np

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
    train, test = train_test_split(frame, random_state=0)
    parts = [(part - train.mean()) / train.std(ddof=0) for part in (train, test)]
    return [part.drop(columns="MedHouseVal") for part in parts] + [part["MedHouseVal"].to_numpy() for part in parts]


def models(train, y, n_terms):
    """Return the models by name; EBM only where interpret is installed."""
    star = RKHSWeightingRegressor(subsets=3, n_terms=n_terms, alpha=1e-7, sigma=2 * np.sqrt(0.5), random_state=0)
    found = {"3-STAR RWReLU": star.fit(train, y)}
    try:
        from interpret.glassbox import ExplainableBoostingRegressor
    except ImportError:
        print("EBM skipped: interpret is not installed")
        return found
    return {"EBM": ExplainableBoostingRegressor(interactions=0, outer_bags=2, n_jobs=1, random_state=0).fit(train, y), **found}


def main(folder=".", n_terms=2000, n_rows=200, out="."):
    data = load(folder)
    if data is None:
        return {}
    from matplotlib.figure import Figure

    train, test, y, y_test = data
    explanations = {}
    for name, model in models(train, y, int(n_terms)).items():
        explanation = Explainer(model, train[: int(n_rows)], n_jobs=2)(test[: int(n_rows)])
        print(f"{name}: test R2 {model.score(test, y_test):.3f}; {explanation.certificate()}")
        for kind in ("beeswarm", "waterfall"):
            ax = Figure(figsize=(8, 5)).add_subplot()
            getattr(explanation.plot, kind)(ax=ax)
            ax.set_title(name)
            stem = name.split()[0].lower().replace("3-", "")
            ax.figure.savefig(Path(out) / f"star_housing_{kind}_{stem}.png", dpi=100, bbox_inches="tight")
        explanations[name] = explanation
    return explanations


if __name__ == "__main__":
    main(*sys.argv[1:4])
