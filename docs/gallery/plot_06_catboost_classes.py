"""
Three classes: which measurement points to which wine?
=======================================================

With more than two classes every class has a score of its own, and every score has
Shapley values. CatBoost on the wine data of scikit-learn: 178 wines of three growers,
13 chemical measurements.
"""

# %%
# The model
# ---------
from catboost import CatBoostClassifier
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

wine = load_wine(as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(
    wine.data, wine.target_names[wine.target], random_state=0
)
model = CatBoostClassifier(
    iterations=100,
    depth=4,
    learning_rate=0.1,
    verbose=0,
    thread_count=1,
    random_seed=0,
    allow_writing_files=False,
)
model.fit(X_train, y_train)
print("accuracy on held-out rows:", round(model.score(X_test, y_test), 3))

# %%
# One explanation, three outputs
# ------------------------------
# The raw scores are explained, before the softmax: a sum of trees has exact values, a
# probability of three classes has not. The value function is *interventional*, the
# background is the training table. Pictures and rankings take ``output=``, by name.
from exactshap import Explainer

explanation = Explainer(model, background=X_train)(X_test)
print(explanation.values.shape, explanation.output_names)
print(explanation.certificate())

# %%
# The measurements of each class
# ------------------------------
import matplotlib.pyplot as plt
import numpy as np

figure, axes = plt.subplots(3, 1, figsize=(7, 7), sharex=True, layout="constrained")
for ax, name in zip(axes, explanation.output_names):
    top = explanation.output(name).ranking()
    names, heights = top.names[:6][::-1], top.values[:6][::-1]
    ax.barh(names, heights, color="tab:blue")
    ax.set(title=name)
axes[-1].set(xlabel="mean magnitude (score before the softmax)")

# %%
# One wine, from the view of two classes
# --------------------------------------
# The same bottle: for the class that is predicted, and for the one that comes next.
# Scores are comparable within a row, so the difference of the two explanations is the
# explanation of the difference.
scores = explanation.prediction
ranked = np.sort(scores, axis=1)
bottle = int((ranked[:, -1] - ranked[:, -2]).argmin())
first, second = (explanation.output_names[k] for k in (-scores[bottle]).argsort()[:2])
ax = explanation.plot.waterfall(bottle, output=first, max_display=7)

# %%
ax = explanation.plot.waterfall(bottle, output=second, max_display=7)

# %%
# To conclude
# -----------
# One ranking for all classes hides what they do not share. Look at each class, and name
# the unit: scores before the softmax, not probabilities.
