r"""Expand functions of one number as sums of exponentials, which turn a function of a sum into a sum of products.

.. math:: g(t) \approx g_0 + \mathrm{Re} \sum_l c_l\, e^{r_l t}
    \quad\Longrightarrow\quad
    g\Bigl(\beta + \sum_j s_j\Bigr) \approx g_0 + \mathrm{Re} \sum_l c_l e^{r_l \beta} \prod_j e^{r_l s_j}

so that a probability or a rate of an additive score is a product game, which quadrature solves exactly. A radial kernel is a
function of a sum as well, of the squared distances in single columns: a mixture of Gaussians, each of which is a product. The error
is bounded uniformly, on an interval or everywhere, before anything is computed.
"""

from __future__ import annotations

from exactshap.expansions._expansion import Expansion as Expansion
from exactshap.expansions._expansion import expand as expand
from exactshap.expansions._expansion import links as links
from exactshap.expansions._radial import GaussianMixture as GaussianMixture
from exactshap.expansions._radial import matern as matern
from exactshap.expansions._radial import rational_quadratic as rational_quadratic
