"""Compiled scan of Universal Binary JSON (``src/native/trees/ubj.cpp``): where each value lies, without making any."""

from __future__ import annotations

from exactshap._native import kernel

__all__ = ["copy_pieces", "fill_children", "scan"]

scan = kernel("trees.scan_ubj(data, marker, key_start, key_length, start, count, after)")
fill_children = kernel("trees.fill_ubj_children(data, key_start, key_length, after, objects, name, out)")
copy_pieces = kernel("trees.copy_pieces(data, start, n_bytes, out)")
