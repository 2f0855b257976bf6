"""
Which training rows is my classifier built on? A game of your own
=================================================================

Anything that maps coalitions to numbers is a game. Here the players are batches of
training rows, and the value of a coalition is the accuracy of a classifier that is
fitted to those batches alone.
"""

# %%
# The game
# --------
# The iris data of scikit-learn in ten batches; in one of them the labels are wrong.
# The classifier returns the class with the nearest centroid. ``masks`` is boolean, one
# line for each coalition.
import functools

import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.4, stratify=y, random_state=0
)
batches = np.arange(len(X_train)) % 10
y_train = np.where(batches == 7, (y_train + 1) % 3, y_train)  # batch 7 is mislabelled


@functools.cache
def accuracy_of(chosen):
    rows = np.isin(batches, chosen)
    if not rows.any():
        return 1 / 3  # a guess
    classes = np.unique(y_train[rows])
    centroids = [X_train[rows & (y_train == k)].mean(axis=0) for k in classes]
    distances = ((X_test[:, None] - centroids) ** 2).sum(axis=2)
    return (classes[distances.argmin(axis=1)] == y_test).mean()


def accuracy(masks):
    return np.array([accuracy_of(tuple(np.flatnonzero(mask))) for mask in masks])


# %%
# Exact, by enumeration
# ---------------------
# Ten players have 1,024 coalitions: all of them are called, the values are exact and
# add up to the accuracy of the full classifier less that of a guess.
from exactshap import solve
from exactshap.games import OracleGame

game = OracleGame(accuracy, n_players=10)
shapley = solve(game)
print(
    shapley.method,
    "| sum of values:",
    round(float(shapley.values.sum()), 3),
    "| residual:",
    shapley.residual,
)

# %%
# Another question: Banzhaf's value asks what a batch adds to a coalition drawn by coin
# tosses, Beta(16, 1) what it adds while there are few others. The cache has the answers
# already.
from exactshap.semivalues import beta

others = {
    "Shapley": shapley,
    "Banzhaf": solve(game, "banzhaf"),
    "Beta(16, 1)": solve(game, beta(16, 1)),
}

# %%
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7.5, 3.8), layout="constrained")
for k, (name, solution) in enumerate(others.items()):
    ax.bar(np.arange(10) + 0.27 * (k - 1), solution.values.ravel(), 0.27, label=name)
ax.axhline(0.0, color="grey", linewidth=0.8)
ax.set_xticks(range(10))
ax.set(xlabel="batch of training rows (7 is mislabelled)", ylabel="value (accuracy)")
ax.legend(ncols=3)

# %%
# When there are too many players to list
# ---------------------------------------
# With a budget the same game is estimated, and every value has a standard error. A
# tenth of the coalitions is enough to find the batch.
some = solve(game, budget=102, random_state=0)
print(
    "lowest batch:",
    int(some.values.argmin()),
    "| largest standard error:",
    round(float(some.std_error.max()), 4),
)
print(
    "largest error in standard errors:",
    round(float((abs(some.values - shapley.values) / some.std_error).max()), 1),
)

# %%
# The batch is found, but its standard error is several times too small: the estimate
# learns from what the batches have in common, and this one is unlike all others. Where
# one player may be odd, enumerate, or repeat with a larger budget.

# %%
# To conclude
# -----------
# A batch with a negative value makes the classifier worse. The index decides which
# coalitions count; state it with the numbers.
