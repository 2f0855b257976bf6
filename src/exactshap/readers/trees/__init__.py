"""Readers of trees and boosted ensembles: one file per library."""

from __future__ import annotations
