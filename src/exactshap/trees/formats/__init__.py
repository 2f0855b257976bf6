"""Model files and live models of each library become ensembles; files are parsed as untrusted data."""

from __future__ import annotations

from exactshap.trees.formats._convert import convert, flatten
from exactshap.trees.formats._load import load, loads
from exactshap.trees.formats.sklearn import average_path_length

__all__ = [
    "average_path_length",
    "convert",
    "flatten",
    "load",
    "loads",
]
