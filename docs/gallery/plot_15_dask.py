"""
My table is on a cluster: where does the explainer go?
======================================================

Into a function that the cluster maps over its parts. The values of a row depend on that
row alone, so nothing has to be gathered first. Here with Dask; Spark, Ray and pools of
processes take the same function.
"""

# %%
# A model and a partitioned table
# -------------------------------
# The digits data of scikit-learn stand for a large table: 1,797 rows of 64 columns, in
# eight parts. The model tells even digits from odd ones.
import numpy as np
import pandas as pd
from dask import dataframe
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits

digits = load_digits(as_frame=True)
X, even = digits.data, digits.target % 2 == 0
model = LGBMClassifier(n_estimators=50, num_leaves=15, n_jobs=1, verbose=-1).fit(
    X, even
)
table = dataframe.from_pandas(X.assign(id=np.arange(len(X))), npartitions=8)
print(table.npartitions, "partitions")

# %%
# One function for every engine
# -----------------------------
# ``Partition`` is picklable and imports no engine. ``keep`` names what passes through:
# keys, not features. On a cluster the last line is ``values.to_parquet(...)``; the
# threaded scheduler needs none. The value function is *interventional*, the background
# 200 rows.
from exactshap import Explainer
from exactshap.scale import Partition

explainer = Explainer(model, background=X[:200])
part = Partition(explainer, keep={"id": "int64"})
values = table.map_partitions(part, meta=part.meta)
result = values.compute(scheduler="threads")
print(result.iloc[:3, :4])

# %%
# The certificate comes with the rows
# -----------------------------------
# Every row carries baseline, prediction, residual and whether it is exact. Parts and
# the whole have the same bits.
whole = explainer(X)
columns = [f"phi_{name}" for name in X.columns]
print(
    "all exact:",
    bool(result["exact"].all()),
    "| largest residual:",
    float(result["residual"].abs().max()),
)
print(
    "same bits as one call:", bool((result[columns].to_numpy() == whole.values).all())
)

# %%
# Importances that add up
# -----------------------
# Global importances are sums over rows. They are added without rounding, so that their
# bits do not depend on the parts either.
import functools
import operator

from exactshap.scale import GlobalImportance

parts = [GlobalImportance.of(result[result["id"] % 8 == k]) for k in range(8)]
importance = functools.reduce(operator.add, parts)
print(importance)

# %%
# The pixels that tell even from odd.
import matplotlib.pyplot as plt

image = np.array(pd.DataFrame(result[columns]).abs().mean()).reshape(8, 8)
figure, ax = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
heat = ax.imshow(image, cmap="viridis")
ax.set_xticks([])
ax.set_yticks([])
figure.colorbar(heat, label="mean magnitude (log-odds)")

# %%
# To conclude
# -----------
# Move the function, not the table. For files without an engine,
# ``exactshap.scale.explain_dataset`` does the same in bounded memory and goes on where
# it was stopped.
