"""
Can a service explain every request?
====================================

Requests come one at a time and are answered with a score and its reasons. The explainer
is made once; a row then takes a few milliseconds, checked against the model's own
prediction each time.
"""

# %%
# Before the service starts
# -------------------------
# Model and background are read once. An ``Explainer`` can be pickled and sent to
# workers.
import json
import time

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from exactshap import Explainer

X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, _ = train_test_split(X, 1 - benign, random_state=0)
model = XGBClassifier(n_estimators=100, max_depth=3, n_jobs=1).fit(X_train, y_train)
explainer = Explainer(model, background=X_train)
print(explainer.plan(X_test[:1]))

# %%
# One request
# -----------
# A row comes as JSON, the three strongest reasons go back. What does not add up to the
# model's own prediction raises ``ExactnessError``; what the model was not fitted for, a
# missing column or text for a number, is an ``InputError``, and both messages say what
# to do.
import pandas as pd

from exactshap.errors import InputError


def answer(request):
    row = pd.DataFrame([json.loads(request)])
    explanation = explainer(row)
    reasons = sorted(
        zip(explanation.feature_names, explanation.values[0]),
        key=lambda pair: -abs(pair[1]),
    )[:3]
    return {
        "score": round(float(explanation.prediction[0]), 3),
        "baseline": round(float(explanation.baseline[0]), 3),
        "reasons": {name: round(float(value), 3) for name, value in reasons},
    }


print(json.dumps(answer(X_test.iloc[0].to_json()), indent=2))
try:
    answer(X_test.iloc[0].drop("mean radius").to_json())
except InputError as error:
    print(error)

# %%
# All requests of a morning
# -------------------------
# Seconds are those of the machine that built this page; the first request pays for what
# is prepared on first use.
requests = [row.to_json() for _, row in X_test.iterrows()]
milliseconds = []
answers = []
for request in requests:
    start = time.perf_counter()
    answers.append(answer(request))
    milliseconds.append(1000 * (time.perf_counter() - start))
median = sorted(milliseconds)[len(milliseconds) // 2]
print(f"{len(requests)} requests, median {median:.1f} ms")

# %%
# How often each column was the first reason, which is what people on the other side
# will hear.
import matplotlib.pyplot as plt

first = pd.Series([next(iter(one["reasons"])) for one in answers]).value_counts()[::-1]
figure, ax = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
ax.barh(first.index, first.values, color="tab:blue")
ax.set(xlabel=f"first reason, of {len(answers)} requests")

# %%
# One batch gives the same bits
# -----------------------------
# Values of a row depend on that row alone. What was answered during the day can be
# audited at night, all rows at once.
batch = explainer(X_test)
same = all(
    answer["score"] == round(float(score), 3)
    for answer, score in zip(answers, batch.prediction)
)
alone = explainer(X_test.iloc[[5]])
print("same scores:", same, "| same bits:", (alone.values[0] == batch.values[5]).all())

# %%
# To conclude
# -----------
# The value function is *interventional* with the training rows as background, in
# log-odds; say so to the people who read the reasons. ``explanation.certificate()`` of the
# nightly batch is the line for the log.
