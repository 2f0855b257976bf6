"""One row of a network of one hidden layer: exact values next to shap's samplers of the same predict, in processor seconds.

100 units, 100 background rows. ``error`` is the largest difference to the exact values relative to the largest of them, for ours the residual
against the network's own predict; shap's Permutation has 500 evaluations for each background row, its Kernel 2,048.

python benchmarks/bench_networks.py [tanh | relu]
"""

import sys
import time

import numpy as np

from exactshap import Explainer
from exactshap.readers import OneLayerNetwork

COLUMNS = {"tanh": (10, 20, 30), "relu": (10, 20, 30)}
N_UNITS, N_BACKGROUND = 100, 100


def ours(network, X):
    explainer = Explainer(network, X)
    return lambda row: explainer(row).values[0]


def permutation(network, X):
    import shap

    explainer = shap.PermutationExplainer(network.predict, shap.maskers.Independent(X, max_samples=N_BACKGROUND), seed=0)
    return lambda row: explainer(row, max_evals=500, silent=True).values[0]


def kernel(network, X):
    import shap

    explainer = shap.KernelExplainer(network.predict, X)
    return lambda row: np.asarray(explainer.shap_values(row, silent=True, nsamples=2048))[0]


METHODS = {"exactshap": ours, "shap Permutation": permutation, "shap Kernel": kernel}


def main(activations):
    for activation in activations:
        for d in COLUMNS[activation]:
            rng = np.random.default_rng(d)
            X = rng.normal(size=(N_BACKGROUND, d))
            arrays = rng.normal(size=(d, N_UNITS)) / np.sqrt(d), rng.normal(size=N_UNITS), rng.normal(size=N_UNITS)
            network, row = OneLayerNetwork(*arrays, activation=activation), rng.normal(size=(1, d))
            exact = ours(network, X)(row)
            missing = exact.sum() + network.predict(X).mean() - network.predict(row)[0]
            for name, make in METHODS.items():
                call = make(network, X)
                if name != "exactshap":
                    call(row)  # compiles
                start = time.process_time()
                values = call(row)
                seconds = time.process_time() - start
                error = abs(missing) if name == "exactshap" else np.abs(values - exact).max()
                print(
                    f"{activation:5} {d:3} columns  {name:17} error {error / np.abs(exact).max():.1e}  {seconds:8.3f} s a row",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(COLUMNS))
