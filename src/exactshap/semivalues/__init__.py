r"""Every question is one measure on [0, 1] per set size: nodes and weights, nothing else.

Let :math:`V(t)` be the multilinear extension of a game on the diagonal: each player joins with probability ``t``. With
:math:`I_T(t) = \partial_T V(t, \dots, t)`, a polynomial of degree ``d - |T|``, every semivalue and interaction index is

.. math:: \phi_T = \int_0^1 I_T(t)\, \mathrm{d}\mu_{|T|}(t),

so that an index *is* its measure :math:`\mu`. A measure answers one question, ``rule``: nodes and weights that
integrate every polynomial up to a degree exactly. A new semivalue is one line::

    optimist = Semivalue("optimist", Atom(0.9))

===================== =========================================== ==========================
index                 measure for sets of size s (of order k)     source
===================== =========================================== ==========================
shapley, sii          uniform = Beta(1, 1)                        Owen 1972; Grabisch 1999
banzhaf               atom at 1/2                                 Banzhaf 1965; Grabisch 1999
leave-one-out         atom at 1                                   v(D) - v(D minus T)
moebius               atom at 0                                   Harsanyi dividends
stii                  Beta(1, k) at s = k, atom 0 below           Sundararajan et al. 2020
fsii                  Beta(k, k) at s = k, signed density below   Tsai et al. 2023
k-sii                 uniform, ends and slopes at the ends        Bordt & von Luxburg 2023
chaining              Beta(s, 1)                                  Marichal & Roubens 1999
===================== =========================================== ==========================
"""

from __future__ import annotations

from exactshap.semivalues._hierarchy import Branch as Branch
from exactshap.semivalues._hierarchy import Hierarchy as Hierarchy
from exactshap.semivalues._hierarchy import Question as Question
from exactshap.semivalues._named import asymmetric, available, beta, find, owen
from exactshap.semivalues._semivalue import Atom, Beta, Density, Mixture, Semivalue
from exactshap.semivalues._semivalue import EndSlopes as EndSlopes
from exactshap.semivalues._semivalue import Measure as Measure
from exactshap.semivalues._semivalue import Moments as Moments
from exactshap.semivalues._semivalue import Rule as Rule
from exactshap.semivalues._semivalue import SignedDensity as SignedDensity
from exactshap.semivalues._semivalue import gauss_jacobi as gauss_jacobi

__all__ = [
    "Atom",
    "Beta",
    "Density",
    "Mixture",
    "Semivalue",
    "asymmetric",
    "available",
    "beta",
    "find",
    "owen",
]
