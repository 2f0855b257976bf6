"""Compute v(S) as a conditional expectation in the kernel's own space, by conditional mean embeddings."""

from __future__ import annotations

from exactshap.readers.kernel_machines.observational._observational import ConditionalGames as ConditionalGames
from exactshap.readers.kernel_machines.observational._observational import bind as bind
