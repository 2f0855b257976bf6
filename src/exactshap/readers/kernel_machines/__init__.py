"""Readers of kernel machines and Gaussian processes."""

from __future__ import annotations

from exactshap.readers.kernel_machines._kernel_machine import KernelReader
from exactshap.readers.kernel_machines.kernel_machine import KernelMachine
from exactshap.readers.kernel_machines.machine import expand, merge, with_equal_shares
from exactshap.readers.kernel_machines.sklearn_feature_map import read as read_feature_map

__all__ = [
    "KernelMachine",
    "KernelReader",
    "expand",
    "merge",
    "read_feature_map",
    "with_equal_shares",
]
