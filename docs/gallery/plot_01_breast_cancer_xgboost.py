"""
Which measurements speak for a malignant tumour?
================================================

Gradient boosting on the breast cancer data of scikit-learn: 569 tumours, 30
measurements. The model is XGBoost's; its Shapley values are exact, in log-odds, and
compared with the model's own predictions.
"""

# %%
# The model
# ---------
# The labels are turned around, so that larger values mean malignant.
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, 1 - benign, random_state=0)
model = XGBClassifier(n_estimators=100, max_depth=3, learning_rate=0.1, n_jobs=1).fit(
    X_train, y_train
)
print("accuracy on held-out rows:", round(model.score(X_test, y_test), 3))

# %%
# Exact values
# ------------
# The value function is *interventional*, and the background says what is usual: here
# the training rows, all of them. The cost of a row does not depend on their number.
from exactshap import Explainer

explainer = Explainer(model, background=X_train)
explanation = explainer(X_test)
print(explanation)

# %%
# All rows, and one
# -----------------
# Each dot is a tumour. Its place is the value of the measurement, its colour the
# measurement itself.
ax = explanation.plot.beeswarm(max_display=8)

# %%
# The tumour that the model is least sure about: baseline and bars add up to its
# prediction.
least_sure = int(abs(explanation.prediction).argmin())
ax = explanation.plot.waterfall(least_sure)

# %%
# Measurements that belong together
# ---------------------------------
# Ten quantities come three times: as mean, as standard error and as worst value. Groups
# are players of the game itself, not sums that are made afterwards.
groups = {}
for column in X.columns:
    groups.setdefault(
        column.replace("mean ", "").replace("worst ", "").replace(" error", ""), []
    ).append(column)
grouped = Explainer(model, background=X_train, groups=groups)(X_test)
ax = grouped.plot.bar()
