"""
Can a model be taught to rely less on one column?
=================================================

Leaving a column out is one way. Another is to keep it, and to make its Shapley values
small while the model is fitted: a penalty with an exact, closed form for kernel ridge
regression.
"""

# %%
# The column to rely on less
# --------------------------
# The diabetes data of scikit-learn. The blood value ``s5`` (the logarithm of
# triglycerides) carries much of the prediction; suppose that another laboratory will
# measure it from now on, and that you trust it less.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from exactshap import Explainer, ShapleyKernelRidge

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X / 0.05  # the columns' standard deviation is 0.05
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
centre = y_train.mean()

# %%
# From free to held back
# ----------------------
# ``shapley_penalty=0`` is kernel ridge regression as scikit-learn has it. The penalty
# uses the *interventional* values with the training rows as background; they are linear
# in the model, so the fit stays one linear system.
penalties = [0.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e5]
models, sizes, scores = [], [], []
for penalty in penalties:
    model = ShapleyKernelRidge(
        gamma=0.01, alpha=1.0, shapley_penalty=penalty, features=["s5"]
    ).fit(X_train, y_train - centre)
    models.append(model)
    sizes.append(float(np.sqrt(model.mean_squared_values_)))
    scores.append(model.score(X_test, y_test - centre))
    print(
        f"penalty {penalty:8.0f}: values of s5 {sizes[-1]:5.2f}, R2 on held-out rows {scores[-1]:.3f}"
    )

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.plot(sizes, scores, marker="o")
ax.annotate(
    "no penalty",
    (sizes[0], scores[0]),
    textcoords="offset points",
    xytext=(-8, -16),
    ha="right",
)
ax.set(
    xlabel="size of the values of s5 (root mean square over training rows)",
    ylabel="R2 on held-out rows",
)

# %%
# Who takes over
# --------------
# Both models are explained exactly. What s5 loses goes partly to columns that tell
# something similar.
free = Explainer(models[0], background=X_train)(X_test)
held = Explainer(models[-1], background=X_train)(X_test)
print(held.certificate())
before, after = (abs(one.values).mean(axis=0) for one in (free, held))
places = np.arange(X.shape[1])
figure, ax = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
ax.barh(places - 0.2, before, 0.4, label="no penalty", color="lightgrey")
ax.barh(places + 0.2, after, 0.4, label="largest penalty", color="tab:blue")
ax.set_yticks(places, X.columns)
ax.invert_yaxis()
ax.set(xlabel="mean magnitude (disease progression)")
ax.legend(loc="lower right")

# %%
# To conclude
# -----------
# The curve is the price, step by step. A moderate penalty costs nothing here; without
# the column the score is a little lower. Small *interventional* values protect against
# changes of the column itself; they do not remove what other columns tell about it
# (``value_function="observational"`` penalises that, too).
