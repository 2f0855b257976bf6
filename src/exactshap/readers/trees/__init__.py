"""Read trees and boosted ensembles of all libraries."""
