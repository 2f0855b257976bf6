"""
Does the model treat two groups differently, and why?
=====================================================

A model that does not know a person's sex still gives women and men different scores on
average. The difference of the mean Shapley values says through which columns, exactly
for these rows; intervals say how sure that is for others.
"""

# %%
# The model
# ---------
# LightGBM on 4,000 rows of the Adult data of the UCI repository (CC BY 4.0): who earns
# more than 50,000 dollars a year. Sex, and what gives it away at once, are not among
# the columns.
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

people = pd.read_csv("../data/adult_sample.csv.gz")  # docs/data of the repository
X = people[
    [
        "age",
        "education-num",
        "occupation",
        "hours-per-week",
        "capital-gain",
        "capital-loss",
        "workclass",
    ]
].fillna("unknown")
X = X.astype({"occupation": "category", "workclass": "category"})
X_train, X_test, y_train, _, _, sex = train_test_split(
    X, people["class"] == ">50K", people["sex"], random_state=0
)
model = LGBMClassifier(n_estimators=60, num_leaves=15, n_jobs=1, verbose=-1).fit(
    X_train, y_train
)

# %%
# One explanation, two groups
# ---------------------------
# Everybody is explained against one background, or the numbers could not be compared:
# the value function is *interventional* with all training rows, in log-odds.
from exactshap import Explainer

explanation = Explainer(model, background=X_train)(X_test)
print(explanation.certificate())
groups = explanation.by(sex)
print(groups)
ax = groups.plot(max_display=7)

# %%
# The difference, with intervals and drift
# ----------------------------------------
# Differences of the means and their bootstrap intervals over rows. The drift next to it
# is each column's contribution to the MMD of the two tables: a column may differ a lot and
# hardly matter to the model, or the other way round.
women = (sex == "Female").to_numpy()
comparison = explanation[~women].compare(explanation[women], labels=("men", "women"))
print(comparison)
ax = comparison.plot()

# %%
# Adding up
# ---------
# The differences of the columns add up to the difference of the mean predictions, since
# both groups share one baseline.
print(
    "difference of the mean predictions:",
    round(float(comparison.predictions[1] - comparison.predictions[0]), 3),
)
print(
    "sum over the columns:              ", round(float(comparison.difference.sum()), 3)
)

# %%
# To conclude
# -----------
# A model without a column is not blind to it: what a group has in common comes in
# through the other columns, and these are their names. Whether that is justified is not
# a question for the model.
