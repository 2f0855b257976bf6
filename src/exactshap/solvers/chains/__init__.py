"""Chains of matrices by quadrature over products from the left and from the right."""

from __future__ import annotations

from exactshap.solvers.chains._tensor_train import chain_bytes, solve_chain

__all__ = ["chain_bytes", "solve_chain"]
