"""Read kernel machines and Gaussian processes."""

from __future__ import annotations

from exactshap.readers.kernel_machines._expansion import merge as merge
from exactshap.readers.kernel_machines._kernel_machine import KernelReader as KernelReader
from exactshap.readers.kernel_machines._kernel_machine import read_arrays as read_arrays
from exactshap.readers.kernel_machines.kernel_machine import KernelMachine as KernelMachine
from exactshap.readers.kernel_machines.sklearn_feature_map import read as read_feature_map

__all__ = ["read_feature_map"]
