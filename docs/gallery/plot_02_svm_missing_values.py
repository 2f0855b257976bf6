"""
My pipeline takes text and missing values: in which columns is it explained?
============================================================================

A support vector machine behind a pipeline is explained in the columns that go into the
pipeline: a text column stays one player although it becomes several columns inside, and
a missing value is a value like any other.
"""

# %%
# Patients with gaps
# ------------------
# The diabetes data of scikit-learn, with two changes: every seventh body mass index is
# missing, and the sex is written out.
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X["sex"] = X["sex"].map({1.0: "female", 2.0: "male"}).astype(str)
X.loc[::7, "bmi"] = np.nan
numbers = [name for name in X.columns if name != "sex"]

# %%
# The model
# ---------
columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    (OneHotEncoder(), ["sex"]),
)
model = make_pipeline(columns, SVR(C=100)).fit(X, y)

# %%
# Exact values in the input columns
# ---------------------------------
# The value function is *interventional*: what is unknown about a patient is taken from
# 100 background rows. ``plan`` forecasts what it will cost.
from exactshap import Explainer

explainer = Explainer(model, background=X[:100])
print(explainer.plan(X))
explanation = explainer(X)
print(explanation.certificate())

# %%
# The first patient has no body mass index; the bar shows what that absence does to the
# prediction.
ax = explanation.plot.waterfall(0)

# %%
# The body mass index against its values. Rows without one stand at a place of their own.
ax = explanation.plot.scatter("bmi")
