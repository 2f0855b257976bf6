"""Bind a kernel machine's formula to players, value function and background, for all ways of solving it."""

from __future__ import annotations

from exactshap.readers.kernel_machines.machine._bound import BoundMachine as BoundMachine
from exactshap.readers.kernel_machines.machine._bound import Strategy as Strategy
from exactshap.readers.kernel_machines.machine._expansion import Expansion as Expansion
from exactshap.readers.kernel_machines.machine._expansion import ExpansionPart as ExpansionPart
from exactshap.readers.kernel_machines.machine._expansion import Monomials as Monomials
from exactshap.readers.kernel_machines.machine._expansion import RadialTerms as RadialTerms
from exactshap.readers.kernel_machines.machine._expansion import cut_terms as cut_terms
from exactshap.readers.kernel_machines.machine._expansion import expand as expand
from exactshap.readers.kernel_machines.machine._expansion import merge as merge
