"""
Probabilities, exactly
======================

Log-odds add up, so that is what libraries explain. People read probabilities. Here both
are exact, and they do not tell the same story.
"""

# %%
# A logistic regression
# ---------------------
# The score is a sum over the columns; its probability is not.
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[
    ["mean radius", "mean texture", "mean smoothness", "worst area", "worst concavity"]
]
benign = y.map({0: "malignant", 1: "benign"})
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, benign)
print(model.classes_)

# %%
# The same row in two units
# -------------------------
# ``output="probability"`` explains ``predict_proba``: the interventional values are
# percentages that add up to the difference between this row and the background's mean.
from exactshap import Explainer

background = X[:100]
row = X[20:21]
odds = Explainer(model, background)(row)
chance = Explainer(model, background, output="probability")(row)
print(odds.unit, odds.prediction, "|", chance.unit, chance.prediction)
print(chance.certificate())

# %%
import matplotlib.pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(13, 3.6), layout="constrained")
odds.plot.waterfall(0, ax=axes[0])
chance.plot.waterfall(0, ax=axes[1])

# %%
# What a saturated row hides
# --------------------------
# Of a row whose probability is nearly 0 or 1, the log-odds still differ by columns that
# no longer matter: the ranking of columns over a population depends on the unit.
rows = X[100:160]
by_odds = np.abs(Explainer(model, background)(rows).values).mean(axis=0)
by_chance = np.abs(
    Explainer(model, background, output="probability")(rows).values
).mean(axis=0)
for name, share, percent in zip(X.columns, by_odds / by_odds.sum(), by_chance):
    print(
        f"{name:18s} {share:6.1%} of the log-odds   {100 * percent:5.1f} points of probability"
    )

# %%
# Interactions of a model without any
# -----------------------------------
# The log-odds of this model have no interactions. Its probabilities do, because the
# curve is steep in the middle and flat at the ends.
pairs = Explainer(model, background, output="probability")(row, index="k-sii", order=2)
print(
    np.abs(pairs.interactions[0] - np.diag(np.diag(pairs.interactions[0])))
    .max()
    .round(4)
)

# %%
# Boosted trees
# -------------
# Trees join columns, so that no expansion of one sum holds. All coalitions of up to 12
# columns are visited, by one walk through each tree; of more columns some are sampled,
# with the exact values of the margin as control variate and a standard error.
from sklearn.ensemble import HistGradientBoostingClassifier

boosted = HistGradientBoostingClassifier(max_iter=60, max_depth=3).fit(X, benign)
exact = Explainer(boosted, background, output="probability")(row)
sampled = Explainer(boosted, background, output="probability", budget=20)(row)
print(exact.method)
print(sampled.method)
for name, value, estimate, error in zip(
    X.columns, exact.values[0], sampled.values[0], sampled.std_error[0]
):
    print(f"{name:18s} {value:+.4f}   {estimate:+.4f} +- {error:.4f}")
