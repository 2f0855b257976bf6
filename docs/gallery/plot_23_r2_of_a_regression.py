"""
R2 of a regression
==================

Three columns of the diabetes data are blood values that say nearly the same. Their
coefficients are large and of opposite signs, and say little about what each explains.
Shares of R2 do, in two ways that answer two questions.
"""

# %%
# Refits: what would each column explain?
# ---------------------------------------
# v(S) = the R2 of least squares fitted to the columns in S alone, averaged over all
# orders in which columns may enter (LMG, Shapley regression). All 1,024 subsets are
# visited, and again for each of 300 resamples of the rows.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from exactshap import decompose_r2

X, y = load_diabetes(return_X_y=True, as_frame=True)
refits = decompose_r2(
    LinearRegression(), X, y, game="refit", n_bootstrap=300, random_state=0
)
print(refits)
print(f"residual {refits.residual:.1e} against LinearRegression's own score")

# %%
ax = refits.plot.bar()
ax.set_title("R2 of refits (LMG), 95 % bootstrap intervals")

# %%
# One fitted model: what does it use?
# -----------------------------------
# Here the coefficients stay. v(S) = the R2 of the fitted model when the columns outside
# S come from the background (*interventional*). A column may lose R2: s1 and s2 have
# large coefficients of opposite signs, and one without the other is harmful.
import matplotlib.pyplot as plt

model = LinearRegression().fit(X, y)
fixed = decompose_r2(model, X, y, background=X)

order = np.argsort(refits.values)
places = np.arange(len(order))
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.barh(places + 0.2, refits.values[order], 0.4, label="refits", color="tab:blue")
ax.barh(places - 0.2, fixed.values[order], 0.4, label="fitted model", color="lightgrey")
ax.set_yticks(places, [refits.feature_names[j] for j in order])
ax.set(xlabel="contribution to R2")
ax.legend(loc="lower right")

# %%
# Both add up to the same R2
# --------------------------
print(round(refits.values.sum(), 6), round(fixed.values.sum(), 6))

# %%
# To conclude
# -----------
# Ask refits which columns are worth measuring, and the fitted model which columns its
# predictions rest on.
