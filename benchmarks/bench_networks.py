"""One row of a network of one hidden layer: exact values beside shap's permutations of the same predict, in processor seconds.

100 tanh units, 100 background rows. ``peer_difference`` is the largest difference of shap's values (500 evaluations for each background row)
to the exact ones, relative to the largest value; ``residual`` is ours against the network's own predict.
"""

import time

import numpy as np

from exactshap import explain
from exactshap.readers import OneLayerNetwork


def main():
    import shap

    print("d, seconds, residual, error_bound, peer_seconds, peer_difference")
    for d in (10, 20, 30):
        rng = np.random.default_rng(d)
        X = rng.normal(size=(100, d))
        network = OneLayerNetwork(rng.normal(size=(d, 100)) / np.sqrt(d), rng.normal(size=100), rng.normal(size=100))
        start = time.process_time()
        ours = explain(network, X[:1], X)
        seconds = time.process_time() - start
        peer = shap.PermutationExplainer(network.predict, shap.maskers.Independent(X, max_samples=100), seed=0)
        start = time.process_time()
        theirs = peer(X[:1], max_evals=500, silent=True).values
        peer_seconds = time.process_time() - start
        difference = np.abs(theirs - ours.values).max() / np.abs(ours.values).max()
        residual, bound = np.abs(ours.residual).max(), np.max(ours.error_bound)
        print(f"{d}, {seconds:.3g}, {residual:.1e}, {bound:.1e}, {peer_seconds:.3g}, {difference:.1e}", flush=True)


if __name__ == "__main__":
    main()
