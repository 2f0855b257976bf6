"""Read models around models: pipelines, searches, scaled targets, several outputs."""

from __future__ import annotations
