"""Read trees and boosted ensembles, one file per library."""
