r"""Estimate the values of games that can only be called.

1. *Which coalitions* (``_sampling``, ``_placement``, ``_adaptive``). Pairs of complements, as Shapley values see the odd half
   :math:`g(x) = (v(S) - v(D \setminus S)) / 2` of a game only. Each is placed where it lowers the summed variance of the values most,

   .. math:: \max_x \sum_T \mathrm{cov}(\phi_T, g(x))^2 / \mathrm{var}(g(x)),

   few pairs before any call, more in stages under the process fitted to the calls so far.
2. *Between them* (``process``). A Gaussian process with the kernel :math:`\exp(-\sum_j \theta_j [x_j \ne x'_j])`, one relevance
   :math:`\theta_j` per player, found by its likelihood. Its mean m is a product game, with exact values :math:`\phi_j(m)`.
3. *What it misses* (``_correction``). KernelSHAP of the leave-one-out residuals of pairs, :math:`c_j` with variance :math:`V_j`, whatever
   the process believes:

   .. math:: \phi_j(m) + \lambda c_j, \qquad \mathrm{error}^2 = (1 - w - h)\, \sigma_j^2 + w V_j + h \max\{\sigma_j^2, V_j\}.

4. *Or without it* (``_estimators``): polynomials (``_polynomial``, ``_frontier``), or an unbiased estimate of what a cross-fitted
   surrogate misses (``_surrogate``). "auto" takes the values of few terms if these predict all calls left out to rounding (``_support``), and those of
   five cross-fitted polynomials or networks (``_support``, ``_network``) where their errors are smaller.
5. *Many rows of one function* (``_pooled``). One process over rows and coalitions.
"""

from __future__ import annotations

from exactshap.solvers.sampled._pooled import pooled_work as pooled_work
from exactshap.solvers.sampled._pooled import solve_pooled as solve_pooled
from exactshap.solvers.sampled._problem import MAX_FITTED as MAX_FITTED
from exactshap.solvers.sampled._regression import most_calls as most_calls
from exactshap.solvers.sampled._regression import solve_regression as solve_regression
from exactshap.solvers.sampled.process import MAX_ROWS as MAX_ROWS
