"""
Which pixels make a three out of an eight?
==========================================

An image is 64 players: 2^64 coalitions of pixels. A support vector machine with a
Gaussian kernel is a sum of products over pixels, so its Shapley values are exact all
the same, in milliseconds.
"""

# %%
# The model
# ---------
# Threes and eights of the digits data of scikit-learn, 8 x 8 pixels each.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

digits = load_digits()
chosen = (digits.target == 3) | (digits.target == 8)
X_train, X_test, y_train, y_test = train_test_split(
    digits.data[chosen], digits.target[chosen], random_state=0
)
model = SVC(gamma=0.001).fit(X_train, y_train)
print("accuracy on held-out images:", round(model.score(X_test, y_test), 3))

# %%
# Exact values of every pixel
# ---------------------------
# The background is one hundred training images: an absent pixel takes the values that
# it has there (*interventional*). Positive values speak for the eight.
from exactshap import Explainer

explainer = Explainer(model, background=X_train[:100])
images = [
    int((y_test == 3).argmax()),
    int((y_test == 8).argmax()),
    int(abs(model.decision_function(X_test)).argmin()),
]
explanation = explainer(X_test[images])
print(explanation)

# %%
# A clear three, a clear eight, and the image that the machine is least sure about. Orange
# pixels speak for the eight, blue ones for the three.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for k, ax in enumerate(axes):
    pixels = X_test[images[k]].reshape(8, 8)
    explanation.plot.image(k, (8, 8), image=pixels, ax=ax)
    ax.set_title(
        f"a {y_test[images[k]]}, decision value {explanation.prediction[k]:+.2f}",
        fontsize=10,
    )

# %%
# Strokes instead of pixels
# -------------------------
# Sixteen squares of 2 x 2 pixels as players. Their values are those of a game with 16
# players, not sums of pixel values, and they are exact as well.
import numpy as np

square = np.add.outer(4 * (np.arange(8) // 2), np.arange(8) // 2).ravel()
groups = {f"square {k}": np.flatnonzero(square == k).tolist() for k in range(16)}
by_square = Explainer(model, background=X_train[:100], groups=groups)(X_test[images])
sums = np.stack(
    [explanation.values[:, square == k].sum(axis=1) for k in range(16)], axis=1
)
order = [by_square.feature_names.index(f"square {k}") for k in range(16)]
print(
    "largest difference from sums of pixels:",
    round(float(abs(by_square.values[:, order] - sums).max()), 4),
)

# %%
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for k, ax in enumerate(axes):
    pixels = X_test[images[k]].reshape(8, 8)
    by_square.plot.image(k, (4, 4), image=pixels, ax=ax)

# %%
# To conclude
# -----------
# What decides lies in the left half, where the eight is closed and the three is open;
# of the image in doubt, some of those pixels speak for each. An absent pixel is not a
# white pixel here: it is one of the usual ones.
