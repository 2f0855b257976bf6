"""
A survival curve over time
==========================

A random survival forest predicts a curve for each patient: the chance of being without
relapse at each time. Every point of the curve has its own Shapley values, so that what a
column contributes is a curve as well.
"""

# %%
# A forest of survival trees
# --------------------------
import matplotlib.pyplot as plt
import numpy as np
from sksurv.datasets import load_gbsg2
from sksurv.ensemble import RandomSurvivalForest

from exactshap import explain

patients, survival = load_gbsg2()
patients = patients.select_dtypes("number").astype(float)
train, test = patients[:400], patients[400:]
forest = RandomSurvivalForest(n_estimators=50, min_samples_leaf=15, random_state=0)
forest.fit(train, survival[:400])

# %%
# All times at once
# -----------------
# Survival at each time is a mean over the trees, so that all fifty times are exact and
# cost one walk through the forest. v(S) is *interventional*: the mean survival over 100
# background patients when the columns in S are the patient's own.
times = np.linspace(200, 2200, 50)
curves = explain(forest, test[:5], train[:100], output="survival", times=times)
print(curves.values.shape)  # patients, columns, times
print(f"largest residual {np.abs(curves.residual).max():.1e}, exact: {curves.exact}")

# %%
# What moves one patient's curve
# ------------------------------
# At each time the lines on the right add up to the gap on the left, between the patient's
# curve and the mean curve of the background.
patient = 0
own, mean = (
    curves.prediction[patient],
    np.broadcast_to(curves.baseline, (5, 50))[patient],
)
fig, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
axes[0].plot(times, mean, color="0.6", label="mean of the background")
axes[0].plot(times, own, color="C0", label="this patient")
axes[0].fill_between(times, mean, own, color="C0", alpha=0.15)
axes[0].set(xlabel="days", ylabel="survival", ylim=(0, 1))
axes[0].legend()

values = curves.values[patient]
for j in np.argsort(-np.abs(values).max(axis=1)):
    cell = f"{curves.feature_names[j]} = {test.iloc[patient, j]:.0f}"
    axes[1].plot(times, values[j], label=cell)
axes[1].axhline(0, color="0.6", linewidth=0.8)
axes[1].set(xlabel="days", ylabel="contribution to survival")
_ = axes[1].legend()

# %%
# Which columns matter early, which late?
# ---------------------------------------
# The mean size of the contributions over patients, at each time.
many = explain(forest, test[:100], train[:50], output="survival", times=times)
sizes = np.abs(many.values).mean(axis=0)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.stackplot(times, sizes, labels=many.feature_names)
ax.set(xlabel="days", ylabel="mean |contribution| to survival")
_ = ax.legend(loc="upper left")
assert np.abs(many.residual).max() < 1e-12
