"""Sparse rows: what a matrix leaves out is zero to most models, and missing to XGBoost."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactshap._runtime.types import TableLike

__all__ = ["is_sparse", "sparse_hybrid", "stored_mask", "to_csr"]


def is_sparse(data: TableLike) -> bool:
    """Say whether rows are a sparse matrix or array of SciPy."""
    return type(data).__module__.startswith("scipy.sparse")


def to_csr(matrix: TableLike) -> Any:
    """Return the matrix by rows, its explicit zeros kept."""
    return matrix if matrix.format == "csr" else matrix.tocsr()


def stored_mask(matrix: TableLike) -> np.ndarray:
    """Return which cells of a CSR matrix are stored, explicit zeros included. The mask has shape (n_rows, n_columns)."""
    stored = np.zeros(matrix.shape, bool)
    stored[np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices] = True
    return stored


def sparse_hybrid(here: TableLike, other: TableLike, columns: np.ndarray) -> Any:
    """Return CSR rows that mix cells of ``here`` and ``other``.

    Those of ``here`` stand where ``columns`` (n_rows, n_columns) is True.

    A cell keeps whether it is stored, which decides what XGBoost makes of it.
    """
    from scipy import sparse

    parts = []
    for matrix, wanted in ((here, columns), (other, ~columns)):
        entries = matrix.tocoo()
        keep = wanted[entries.row, entries.col]
        parts.append((entries.data[keep], entries.row[keep], entries.col[keep]))
    data, rows, cols = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    # by way of the entries: the constructor adds up duplicates, of which there are none, and keeps explicit zeros
    return sparse.csr_matrix((data, (rows, cols)), shape=here.shape)
