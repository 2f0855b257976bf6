"""
A network has no structure to use: how many calls are enough?
=============================================================

For a neural network nothing exact is known beyond a dozen columns, so its values are
estimated from calls. What matters then is an honest error. The standard errors below
come with the values, and more calls make them smaller.
"""

# %%
# The model
# ---------
# A multilayer perceptron of scikit-learn on the breast cancer data, 30 columns: 2^30
# coalitions.
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = make_pipeline(
    StandardScaler(), MLPClassifier((30,), max_iter=400, random_state=0)
).fit(X[:450], y[:450])
print("accuracy on held-out rows:", round(model.score(X[450:], y[450:]), 3))


def probability(rows):
    return model.predict_proba(rows)[:, 1]


# %%
# A budget
# --------
# ``budget`` counts coalitions for each row; each calls the function on the 20
# background rows. The value function is *interventional*. The certificate is honest
# about what it knows: the values add up, and they are not exact.
from exactshap import Explainer

background = X[:20]
unsure = X[450:].iloc[[int(abs(probability(X[450:]) - 0.5).argmin())]]
explainer = Explainer(probability, background, budget=300)
print(explainer.plan(unsure))
explanation = explainer(unsure)
print(explanation.certificate())

# %%
# Bars with 95 % intervals, grey where even the sign is open.
ax = explanation.plot.intervals(0, max_display=12)

# %%
# More calls, smaller errors
# --------------------------
# A run with 2,400 coalitions serves as the reference. The errors that were announced
# are compared with the errors that were made.
import numpy as np

budgets = [150, 300, 600]
runs = [Explainer(probability, background, budget=budget)(unsure) for budget in budgets]
reference = Explainer(probability, background, budget=2400)(unsure)
made = [float(np.sqrt(np.mean((run.values - reference.values) ** 2))) for run in runs]
announced = [float(np.sqrt(np.mean(run.std_error**2))) for run in runs]
for budget, error, standard_error in zip(budgets, made, announced):
    print(
        f"{budget:4d} coalitions: standard error {standard_error:.5f}, difference from the reference {error:.5f}"
    )

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.loglog(budgets, announced, marker="o", label="announced: standard error")
ax.loglog(budgets, made, marker="s", label="made: difference from the reference")
ax.set(xlabel="coalitions", ylabel="root mean square over columns (probability)")
ax.set_xticks(budgets, budgets)
ax.set_yticks([0.005, 0.01, 0.02], [0.005, 0.01, 0.02])
ax.minorticks_off()
ax.legend()

# %%
# To conclude
# -----------
# Ask for the error that you can live with, ``tol=0.002``, and the calls are made until
# every standard error is below it. If a dozen groups of columns will do, ``groups=``
# makes the values exact.
