"""What people get: explanations and decompositions, their pictures and reports."""

from __future__ import annotations
