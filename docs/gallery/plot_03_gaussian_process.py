"""
How sure is a Gaussian process of its Shapley values?
=====================================================

A Gaussian process does not know its function exactly, and so it does not know the
Shapley values exactly. Both are jointly normal, and their covariance is computed, not
sampled.
"""

# %%
# A small study
# -------------
# Eighty patients of the diabetes data, four columns. With few rows the intervals are
# wide.
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["bmi", "bp", "s5", "age"]] / 0.05  # the columns' standard deviation is 0.05
kernel = ConstantKernel(1.0) * RBF([2.0, 2.0, 2.0, 2.0]) + WhiteKernel(0.5)
model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(
    X[:80], y[:80]
)
print(model.kernel_)

# %%
# Values and standard deviations
# ------------------------------
# The value function is *interventional* with the 80 training rows as background. Values
# and covariance are exact for the fitted kernel; the variances must add up to the
# process's own, and ``covariance_residual`` is what is left of that check.
from exactshap import explain

explanation = explain(model, X[80:100], background=X[:80])
print(explanation.values[0].round(1))
print(explanation.std[0].round(1))
print("covariance residual:", abs(explanation.covariance_residual).max())

# %%
# One patient: where an interval includes zero, even the sign is open.
ax = explanation.plot.intervals(0)

# %%
# Far from the data
# -----------------
# Twenty standard deviations away there are no data. The values shrink to those of the
# prior, and only the intervals tell.
far = explain(model, X[80:81] + 20.0, background=X[:80])
ax = far.plot.intervals(0)
