"""
Which columns act together?
===========================

A Shapley value divides what two columns do jointly between them, and so hides it. An
interaction index of order two shows it: one number for each pair, exact like the values
themselves.
"""

# %%
# The model
# ---------
# Gradient boosting of scikit-learn on the diabetes data.
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = GradientBoostingRegressor(
    n_estimators=100, max_depth=3, learning_rate=0.1, subsample=0.5, random_state=0
).fit(X, y)

# %%
# Pairs that add up
# -----------------
# With ``index="k-sii"`` single columns and pairs together add up to the prediction.
# ``sii`` measures the same pairs, but its singles are Shapley values, which contain
# them already. The value function is *interventional* with 100 background rows. The
# ensemble is a sum of trees, so pairs are solved leaf by leaf.
from exactshap import Explainer

explainer = Explainer(model, background=X[:100])
pairs = explainer(X, index="k-sii", order=2)
print(pairs)

# %%
# All rows: mean magnitudes, singles on the diagonal.
ax = pairs.plot.interactions()

# %%
# The strongest pair
# ------------------
# Each patient's number for the strongest pair, against one of its columns and coloured
# by the other. An additive model would have a flat line here.
import matplotlib.pyplot as plt
import numpy as np

strength = abs(pairs.interactions).mean(axis=0)
np.fill_diagonal(strength, 0.0)
first, second = np.unravel_index(strength.argmax(), strength.shape)
names = pairs.feature_names
figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
dots = ax.scatter(
    X[names[first]], pairs.interactions[:, first, second], c=X[names[second]], s=14
)
ax.axhline(0.0, color="grey", linewidth=0.8)
ax.set(xlabel=names[first], ylabel=f"interaction of {names[first]} and {names[second]}")
figure.colorbar(dots, label=names[second])
print(names[first], "and", names[second])

# %%
# One patient
# -----------
# The same matrix for the patient with the strongest interaction of that pair.
ax = pairs.plot.interactions(int(abs(pairs.interactions[:, first, second]).argmax()))

# %%
# To conclude
# -----------
# Off the diagonal is the index itself, not half of it: both triangles show the same
# number. Where pairs are small next to the diagonal, the plain values tell all there is.
