"""
My columns come in groups: what changes?
========================================

Thirty columns, but three kinds of measurement of ten quantities. There are two ways to
respect that: one player for each group, or the columns as players that join group by
group (Owen's value). They fit together.
"""

# %%
# The model
# ---------
# A support vector machine on the breast cancer data. The groups are the three kinds:
# means, standard errors and worst values.
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
model = make_pipeline(StandardScaler(), SVC()).fit(X, 1 - benign)
kinds = {
    "mean": [name for name in X.columns if name.startswith("mean")],
    "error": [name for name in X.columns if name.endswith("error")],
    "worst": [name for name in X.columns if name.startswith("worst")],
}

# %%
# Groups as players
# -----------------
# Three players. The value function is *interventional*, the background 50 rows;
# positive values speak for a malignant tumour.
from exactshap import Explainer

background = X[:50]
rows = X[50:150]
together = Explainer(model, background, groups=kinds)(rows)
print(together.certificate())
ax = together.plot.bar()

# %%
# Columns within groups
# ---------------------
# Owen's value averages over those orders in which no group is broken up. Within a group
# the values add up to what the group has as one player. The plain Shapley values of the
# same columns do not.
import numpy as np

from exactshap.semivalues import owen

explainer = Explainer(model, background)
nested = explainer(rows, index=owen(kinds))
plain = explainer(rows)
for name, columns in kinds.items():
    inside = [X.columns.get_loc(column) for column in columns]
    as_one = together.values[:, together.feature_names.index(name)]
    off = [
        float(abs(one.values[:, inside].sum(axis=1) - as_one).max())
        for one in (nested, plain)
    ]
    print(
        f"{name}: largest difference from the group {off[0]:.1e} (Owen), {off[1]:.3f} (Shapley)"
    )

# %%
# The same columns, by both indices: mean magnitudes over 100 tumours.
import matplotlib.pyplot as plt

order = np.argsort(abs(nested.values).mean(axis=0))[-12:]
places = np.arange(len(order))
figure, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
ax.barh(
    places + 0.2,
    abs(nested.values).mean(axis=0)[order],
    0.4,
    label="Owen",
    color="tab:blue",
)
ax.barh(
    places - 0.2,
    abs(plain.values).mean(axis=0)[order],
    0.4,
    label="Shapley",
    color="lightgrey",
)
ax.set_yticks(places, X.columns[order])
ax.set(xlabel="mean magnitude (decision value)")
ax.legend(loc="lower right")

# %%
# To conclude
# -----------
# If the report is about groups, make them the players. If it is about columns, but must
# agree with the groups, take Owen's value. Both are exact; sums of plain Shapley values
# over a group are the answer to neither.
