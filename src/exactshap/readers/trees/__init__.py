"""Readers of trees and boosted ensembles: one file per library."""

from __future__ import annotations

from exactshap.readers.trees.xgboost import xgboost_margin

__all__ = ["xgboost_margin"]
