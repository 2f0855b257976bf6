"""
Which columns hold the R2 of a forest on new rows?
==================================================

A forest reaches some R2 on held-out patients. The number can be split over the columns
exactly, on those very rows: a column on which the forest has only overfitted gets
nothing, or less.
"""

# %%
# The model, and a column of noise
# --------------------------------
# The diabetes data of scikit-learn, and one column that tells nothing, to see what
# happens to it.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

X, y = load_diabetes(return_X_y=True, as_frame=True)
X["noise"] = np.random.default_rng(0).normal(size=len(X))
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
model = RandomForestRegressor(
    n_estimators=50, min_samples_leaf=5, n_jobs=1, random_state=0
).fit(X_train, y_train)
print(
    "R2 on training rows:",
    round(model.score(X_train, y_train), 3),
    "on held-out rows:",
    round(model.score(X_test, y_test), 3),
)

# %%
# The split
# ---------
# The game is v(S) = the R2 that the trees reach when only the columns in S are known
# and the others are averaged over the trees' own covers (*path-dependent*).
# ``sum(values) = total + drift``: the drift is there because the mean of new rows is
# not the mean of the training rows. ``residual`` is the check, and is rounding.
from exactshap import decompose_r2

training = decompose_r2(model, X_train, y_train)
held_out = decompose_r2(model, X_test, y_test)
print(held_out)
print(f"drift {held_out.drift:.2g}, residual {held_out.residual:.2g}")

# %%
ax = held_out.plot.bar()

# %%
# Training rows flatter
# ---------------------
# The same trees, the same columns, other rows. What a bar loses between left and right
# is what the forest learnt about the training patients only.
import matplotlib.pyplot as plt

order = np.argsort(held_out.values)
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
places = np.arange(len(order))
ax.barh(
    places + 0.2, training.values[order], 0.4, label="training rows", color="lightgrey"
)
ax.barh(
    places - 0.2, held_out.values[order], 0.4, label="held-out rows", color="tab:blue"
)
ax.set_yticks(places, [held_out.feature_names[j] for j in order])
ax.set(xlabel="contribution to R2")
ax.legend(loc="lower right")
noise = held_out.feature_names.index("noise")
print(
    "noise:",
    round(training.values[noise], 3),
    "on training rows,",
    round(held_out.values[noise], 3),
    "on held-out rows",
)

# %%
# To conclude
# -----------
# Importance on training rows rewards overfitting. The held-out split says what a column
# is worth where the model will be used.
