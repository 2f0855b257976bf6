"""
My columns are correlated: which value function?
================================================

"Unknown" can mean two things. *Interventional*: the column is set to what others have,
whatever the rest of the row says. *Observational*: it is what one would expect from the
columns that are known. With correlated columns the answers differ, and neither is
wrong.
"""

# %%
# Two columns that say nearly the same
# ------------------------------------
# Four columns of the diabetes data. Total cholesterol (s1) and LDL (s2) have a
# correlation of 0.9.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["bmi", "s1", "s2", "s5"]] / 0.05  # the columns' standard deviation is 0.05
y = y - y.mean()
model = KernelRidge(kernel="rbf", gamma=0.05, alpha=1.0).fit(X, y)
print(np.corrcoef(X["s1"], X["s2"])[0, 1].round(2), round(model.score(X, y), 3))

# %%
# The same model, three games
# ---------------------------
# ``observational`` is the conditional mean embedding in the kernel's own space;
# ``functional`` needs no rows at all: kernel factors of absent columns are one. All are
# exact for the game that they name, and each certificate compares with the model's own
# predictions.
from exactshap import Explainer

background = X[:150]
rows = X[150:250]
games = {
    "interventional": Explainer(model, background),
    "observational": Explainer(model, background, value_function="observational"),
    "functional": Explainer(model, value_function="functional"),
}
explanations = {name: explainer(rows) for name, explainer in games.items()}
for name, explanation in explanations.items():
    print(
        f"{name:15s} baseline {explanation.baseline[0]:7.2f}, adds up: {explanation.certificate().passed}"
    )

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for k, (name, explanation) in enumerate(explanations.items()):
    ax.bar(
        np.arange(4) + 0.27 * (k - 1),
        abs(explanation.values).mean(axis=0),
        0.27,
        label=name,
    )
ax.set_xticks(range(4), X.columns)
ax.set(ylabel="mean magnitude (disease progression)")
ax.legend()

# %%
# Row by row
# ----------
# The values of LDL under both readings. What LDL tells about the total cholesterol
# counts for it only in the observational game.
figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
pair = [explanations[name].values[:, 2] for name in ("interventional", "observational")]
ax.scatter(*pair, s=14)
low, high = min(map(np.min, pair)), max(map(np.max, pair))
ax.plot([low, high], [low, high], color="grey", linewidth=0.8)
ax.set(xlabel="value of s2, interventional", ylabel="value of s2, observational")

# %%
# To conclude
# -----------
# To describe what the *model* does with its inputs, take the interventional game; to
# describe what the *columns* tell about the prediction, the observational one. A
# picture without the name of its game says neither.
