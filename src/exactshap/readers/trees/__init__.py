"""Readers of trees and boosted ensembles: one file per library."""
