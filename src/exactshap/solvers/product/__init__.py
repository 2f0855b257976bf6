"""Solve product games and related ones: quadrature, folded enumeration, elimination, meeting in the middle."""

from __future__ import annotations

from exactshap.solvers.product._elimination import eliminate as eliminate
from exactshap.solvers.product._elimination import solve_factors as solve_factors
from exactshap.solvers.product._folding import MAX_FOLDED_PLAYERS as MAX_FOLDED_PLAYERS
from exactshap.solvers.product._folding import CoalitionTable as CoalitionTable
from exactshap.solvers.product._folding import Folded as Folded
from exactshap.solvers.product._folding import fold as fold
from exactshap.solvers.product._folding import folded_cost as folded_cost
from exactshap.solvers.product._folding import folded_method as folded_method
from exactshap.solvers.product._folding import folding_pays as folding_pays
from exactshap.solvers.product._folding import quadrature_cost as quadrature_cost
from exactshap.solvers.product._folding import quadrature_units as quadrature_units
from exactshap.solvers.product._folding import solve_folded as solve_folded
from exactshap.solvers.product._hinges import MAX_HINGE_PLAYERS as MAX_HINGE_PLAYERS
from exactshap.solvers.product._hinges import solve_hinges as solve_hinges
from exactshap.solvers.product._mixture import PreparedMixture as PreparedMixture
from exactshap.solvers.product._mixture import gauss_rule as gauss_rule
from exactshap.solvers.product._mixture import mixture_rules as mixture_rules
from exactshap.solvers.product._mixture import prepare_mixture as prepare_mixture
from exactshap.solvers.product._mixture import shorten_mixture as shorten_mixture
from exactshap.solvers.product._mixture import solve_mixture as solve_mixture
from exactshap.solvers.product._quadrature import ExponentialTerms as ExponentialTerms
from exactshap.solvers.product._quadrature import GradedRules as GradedRules
from exactshap.solvers.product._quadrature import fill_interactions as fill_interactions
from exactshap.solvers.product._quadrature import graded_rules as graded_rules
from exactshap.solvers.product._quadrature import set_sums as set_sums
from exactshap.solvers.product._quadrature import solve_functional as solve_functional
from exactshap.solvers.product._quadrature import solve_product as solve_product
from exactshap.solvers.product._quadrature import solve_terms as solve_terms
