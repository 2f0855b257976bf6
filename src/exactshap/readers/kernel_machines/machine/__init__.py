"""A kernel machine's formula bound to players, a value function and a background, and what every way of solving it offers."""

from __future__ import annotations

from exactshap.readers.kernel_machines.machine._bound import BoundMachine, with_equal_shares
from exactshap.readers.kernel_machines.machine._expansion import Expansion, ExpansionPart, Monomials, cut_terms, expand, merge
from exactshap.readers.kernel_machines.machine._strategy import Strategy

__all__ = [
    "BoundMachine",
    "Expansion",
    "ExpansionPart",
    "Monomials",
    "Strategy",
    "cut_terms",
    "expand",
    "merge",
    "with_equal_shares",
]
