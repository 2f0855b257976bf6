"""Readers of trees and boosted ensembles: one file per library."""

from __future__ import annotations

from exactshap.readers.trees.xgboost import prediction as xgboost_prediction

__all__ = ["xgboost_prediction"]
