r"""Functions of one number as sums of exponentials: what makes a function of a sum a sum of products.

.. math:: g(t) \approx g_0 + \mathrm{Re} \sum_l c_l\, e^{r_l t}
    \quad\Longrightarrow\quad
    g\Bigl(\beta + \sum_j s_j\Bigr) \approx g_0 + \mathrm{Re} \sum_l c_l e^{r_l \beta} \prod_j e^{r_l s_j}

so that a probability or a rate of an additive score is a product game, which quadrature solves exactly. The error is bounded
uniformly on an interval before anything is computed.
"""

from __future__ import annotations

from exactshap.expansions._expansion import Expansion, expand, links

__all__ = ["Expansion", "expand", "links"]
