"""
Why does interpret show other bars for my EBM?
==============================================

An explainable boosting machine is a sum of functions of one column and of pairs. The
package interpret draws one bar for each *term*; a Shapley value is one bar for each
*column*. Both pictures are right.
"""

# %%
# A model with pairs
# ------------------
import numpy as np
from interpret.glassbox import ExplainableBoostingRegressor
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = ExplainableBoostingRegressor(
    interactions=5, outer_bags=2, max_rounds=300, n_jobs=1, random_state=0
).fit(X, y)
print(model.term_names_[10:])

# %%
# Columns instead of terms
# ------------------------
# The value function is *interventional* with the training rows as background, of which
# the model itself remembers enough. Each term is solved on its own coalitions, so the
# values are exact for any number of columns.
from exactshap import Explainer

explainer = Explainer(model, background=X)
explanation = explainer(X)
print(explanation.certificate())

# %%
# The same patient twice: interpret's terms on the left, ours on the right. The score of
# a pair has no owner on the left. On the right it is shared by its two columns, and
# every bar is measured from the mean over the patients.
import matplotlib.pyplot as plt

all_scores = model.eval_terms(X)
pair_scores = abs(all_scores[:, X.shape[1] :]).max(axis=1)
row = int(pair_scores.argmax())  # the patient with the largest score of a pair
scores = all_scores[row]
largest = np.argsort(-abs(scores))[:9][::-1]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.barh(
    [model.term_names_[k] for k in largest],
    scores[largest],
    color=np.where(scores[largest] > 0, "tab:orange", "tab:blue"),
)
left.set(title="interpret: scores of terms", xlabel="score (disease progression)")
columns = np.argsort(-abs(explanation.values[row]))[:9][::-1]
values = explanation.values[row][columns]
right.barh(
    [X.columns[j] for j in columns],
    values,
    color=np.where(values > 0, "tab:orange", "tab:blue"),
)
right.set(
    title="exactshap: Shapley values of columns", xlabel="value (disease progression)"
)

# %%
# Half of a pair for each?
# ------------------------
# A common short cut gives each column its main term and half of each of its pairs. It
# adds up, too, but it is not the Shapley value: averaged over one of its columns, a
# pair still varies with the other, and that part belongs to the other alone.
halves = np.zeros(X.shape[1])
for score, term in zip(scores, model.term_features_):
    halves[list(term)] += score / len(term)
print(
    "largest difference:", round(float(abs(halves - explanation.values[row]).max()), 2)
)

# %%
# What a column does alone, and what it does with others
# ------------------------------------------------------
# The curve is the effect of a column by itself, the dots are its Shapley values. Where
# they leave the curve, a pair is at work.
ax = explanation.plot.shape("s2", explainer(X, index="moebius"))

# %%
# To conclude
# -----------
# Read interpret's terms to understand how the model is built, and Shapley values to
# compare it with a model of another kind, column by column.
