"""Settings that must stand before NumPy and the libraries of models are loaded."""

import os

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # of BLAS, too: threads that wait for each other cost many times the work of small models
