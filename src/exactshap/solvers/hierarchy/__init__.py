"""Values for players in nested groups or stages: exact for products, sums of small terms and whatever has few such coalitions."""

from __future__ import annotations

from exactshap.solvers.hierarchy._solve import solve_hierarchy

__all__ = ["solve_hierarchy"]
