"""Readers of kernel machines and Gaussian processes."""

from __future__ import annotations

from exactshap.readers.kernel_machines._expansion import expand, merge
from exactshap.readers.kernel_machines._kernel_machine import KernelReader, with_equal_shares
from exactshap.readers.kernel_machines.kernel_machine import KernelMachine

__all__ = [
    "KernelMachine",
    "KernelReader",
    "expand",
    "merge",
    "with_equal_shares",
]
