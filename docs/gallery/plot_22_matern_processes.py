"""
Matern processes
================

The kernel that Gaussian processes are fitted with most is not a product over columns, and
yet its Shapley values are exact: it is a mixture of kernels that are.
"""

# %%
# A rough process
# ---------------
# A Matern kernel lets functions be as rough as they are. The smoothness ``nu`` decides
# how rough, and one length scale for each column how far each of them reaches.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from sklearn.model_selection import train_test_split

X, y = load_diabetes(return_X_y=True, as_frame=True)
X = X[["bmi", "bp", "s5", "s3", "age"]] * 20  # about unit variance
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=150, random_state=0
)
kernel = 1.0 * Matern([2.0] * 5, nu=2.5) + WhiteKernel(0.5)
model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X_train, y_train)
print(model.kernel_)

# %%
# A mixture of Gaussians
# ----------------------
# Schoenberg showed in 1938 that every isotropic kernel which is valid in all dimensions
# is a mixture of Gaussians of the distance. A few dozen of them are within 1e-13 of a
# Matern kernel at any distance, and a Gaussian is a product over columns.
import matplotlib.pyplot as plt

from exactshap.kernels import Matern as MaternKernel

r = np.linspace(0.0, 4.0, 200)[:, None]
fig, axes = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained")
gaussians = MaternKernel(nu=2.5).expand(n_features=1)
for gaussian in gaussians:
    axes[0].plot(r, gaussian.matrix(r, r[:1]), color="0.7", linewidth=0.8)
mixture = sum(gaussian.matrix(r, r[:1]) for gaussian in gaussians)
axes[0].plot(r, mixture, color="C0", linewidth=2)
axes[0].set(xlabel="distance", title=f"Matern 5/2: {len(gaussians)} Gaussians")
for nu in (0.5, 1.5, 2.5):
    matern = MaternKernel(nu=nu)
    label = f"nu = {nu}, {len(matern.expand(n_features=1))} terms"
    axes[1].plot(r, matern(r, r[:1]), label=label)
off = np.abs(mixture - MaternKernel(nu=2.5)(r, r[:1])).max()
axes[1].set(xlabel="distance", title=f"The mixture is off by {off:.0e} at most")
_ = axes[1].legend()

# %%
# Exact values with their uncertainty
# -----------------------------------
# With background rows the values are interventional: of the model's own predictions for
# hybrid rows. The explanation prints a bound of its error, which is that of the mixture, and the
# posterior's standard deviation of every value.
from exactshap import explain

explanation = explain(model, X_test[:5], background=X_train[:10], uncertainty=True)
print(explanation)
print(f"error of a value at most {np.max(explanation.error_bound):.1e}")
print(explanation.certificate())

# %%
explanation.plot.intervals(0)

# %%
# How much does the smoothness matter?
# ------------------------------------
# The same data and length scale, three processes: how the columns share the credit hardly
# depends on the smoothness here.
for nu in (0.5, 1.5, 2.5):
    rough = GaussianProcessRegressor(
        2.0 * Matern(8.0, nu=nu) + WhiteKernel(0.5), optimizer=None, normalize_y=True
    ).fit(X_train, y_train)
    values = explain(rough, X_test[:20], X_train[:10], uncertainty=False).values
    shares = np.abs(values).mean(axis=0) / np.abs(values).mean(axis=0).sum()
    named = "  ".join(f"{name} {share:.0%}" for name, share in zip(X.columns, shares))
    print(f"nu = {nu}: R2 {rough.score(X_test, y_test):.2f}, shares  {named}")
