"""
How many columns are enough?
============================

A selector inside of a pipeline, its size chosen by cross-validation. ``HSICSelector``
ranks columns by their exact Shapley shares of HSIC, a measure of dependence of any
shape, and needs no model to do so.
"""

# %%
# The search
# ----------
# The wine data of scikit-learn, with 13 columns of noise added to the 13 real ones.
# Selection is part of the pipeline, so that no held-out row is seen by it.
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from exactshap import HSICSelector

X, y = load_wine(return_X_y=True, as_frame=True)
noise = np.random.default_rng(0).normal(size=X.shape)
X[[f"noise {k}" for k in range(13)]] = noise
pipeline = make_pipeline(StandardScaler(), HSICSelector(), KNeighborsClassifier())
sizes = [1, 2, 3, 5, 8, 13, 19, 26]
search = GridSearchCV(
    pipeline, {"hsicselector__n_features_to_select": sizes}, cv=5
).fit(X, y)
print(
    "best size:",
    search.best_params_["hsicselector__n_features_to_select"],
    "accuracy:",
    round(search.best_score_, 3),
)

# %%
# What was gained
# ---------------
import matplotlib.pyplot as plt

means, spreads = (
    search.cv_results_["mean_test_score"],
    search.cv_results_["std_test_score"],
)
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.errorbar(sizes, means, spreads, marker="o", capsize=3)
ax.set(xlabel="columns kept", ylabel="accuracy, mean of five folds", xscale="log")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()

# %%
# The shares behind it
# --------------------
# v(S) is HSIC of the columns in S with the class. The shares add up to HSIC of all
# columns; ``decomposition_`` holds the check, and p-values if permutations are requested.
selector = search.best_estimator_["hsicselector"]
print(
    f"HSIC {selector.decomposition_.total:.4f}, residual {selector.decomposition_.residual:.1g}"
)
kept = search.best_estimator_[:-1].get_feature_names_out()
print("kept:", ", ".join(kept))

# %%
order = np.argsort(selector.shares_)
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
ax.barh(
    X.columns[order],
    selector.shares_[order],
    color=np.where(selector.support_[order], "tab:blue", "lightgrey"),
)
ax.set(xlabel="contribution to HSIC; the columns in blue are kept")

# %%
# To conclude
# -----------
# The noise has shares near zero, and below them where it dilutes. The selector does not
# remove redundant columns: two copies would share their credit and could both stay.
