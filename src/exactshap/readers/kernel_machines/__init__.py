"""Readers of kernel machines and Gaussian processes."""

from __future__ import annotations

from exactshap.readers.kernel_machines._kernel_machine import KernelReader
from exactshap.readers.kernel_machines.kernel_machine import KernelMachine
from exactshap.readers.kernel_machines.machine import expand, merge, with_equal_shares

__all__ = [
    "KernelMachine",
    "KernelReader",
    "expand",
    "merge",
    "with_equal_shares",
]
