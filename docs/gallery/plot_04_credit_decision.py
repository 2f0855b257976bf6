"""
Why was this person turned down, and compared with whom?
========================================================

A score of the kind that banks use: XGBoost on numbers, categories and gaps. Free credit
data of a fitting size are hard to come by, so the table is a sample of 4,000 rows of
the Adult data of the UCI repository (CC BY 4.0): who earns more than 50,000 dollars a
year. The questions are the same.
"""

# %%
# The model
# ---------
# XGBoost takes categories and missing cells as they are. Its raw output is the log-odds
# of a high income. Sex, race, origin and family are not among the columns: a lender may
# not use them.
import pandas as pd
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

people = pd.read_csv("../data/adult_sample.csv.gz")  # docs/data of the repository
columns = [
    "age",
    "workclass",
    "education-num",
    "occupation",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
]
X, y = people[columns], people["class"] == ">50K"
texts = X.select_dtypes(exclude="number").columns
X = X.astype(dict.fromkeys(texts, "category"))
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = XGBClassifier(
    n_estimators=100, max_depth=4, learning_rate=0.1, enable_categorical=True, n_jobs=1
).fit(X_train, y_train)
print("accuracy on held-out rows:", round(model.score(X_test, y_test), 3))
print("missing cells:", int(X.isna().sum().sum()))

# %%
# What usually counts
# -------------------
# The value function is *interventional*: what is unknown about a person is filled in
# from all 3,000 training rows, none left out. The values are exact; the certificate
# compares them with the model's own predictions, and mixtures of rows with the model
# itself.
from exactshap import Explainer

explainer = Explainer(model, background=X_train)
explanation = explainer(X_test)
print(explanation.certificate())
ax = explanation.plot.bar(max_display=8)

# %%
# One decision
# ------------
# A person just below the line, with the reasons in the unit of the score: what pulls to
# the left is what would have to be said in a letter.
refused = int(abs(explanation.prediction + 0.3).argmin())
ax = explanation.plot.waterfall(refused, max_display=8)

# %%
# Compared with one other person
# ------------------------------
# "Why not me, if she got it?" is another question, and another game: with one
# background row the value function is *baseline*, and the bars lead from the score of
# that person to one's own. A column in which both are the same has the value zero.
accepted = int(abs(explanation.prediction - 1.5).argmin())
between_two = Explainer(model, X_test.iloc[[accepted]], value_function="baseline")(
    X_test.iloc[[refused]]
)
print(
    pd.DataFrame({"refused": X_test.iloc[refused], "accepted": X_test.iloc[accepted]})
)
ax = between_two.plot.waterfall(0, max_display=8)

# %%
# To conclude
# -----------
# Both pictures are exact, and they differ, because they answer different questions. Say
# which background was used whenever such a number leaves the house. That a column has a
# large value does not say that changing it would change a person's income: the values
# describe the model.
