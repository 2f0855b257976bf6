"""Conditional mean embeddings: v(S) as a conditional expectation in the kernel's own space."""

from __future__ import annotations
