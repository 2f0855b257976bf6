r"""Define kernels as sums of products of one-column factors.

They make kernel machines product games:

.. math:: k(x, x') = \sum_p s_p \prod_j k_{pj}(x_j, x'_j)

Every kernel here *expands* into such :class:`Component` objects; ``+`` and ``*`` of kernels are sums and products of their
expansions. A radial kernel that is valid in all dimensions is a mixture of Gaussians (Schoenberg), so Matern and RationalQuadratic
are sums of products as well, with a proven bound. Kernels that mix columns in another way (sigmoid, cosine) are refused by name.
"""

from exactshap.kernels._algebra import Constant, Custom, Kernel, White
from exactshap.kernels._algebra import Product as Product
from exactshap.kernels._algebra import Sum as Sum
from exactshap.kernels._component import Component
from exactshap.kernels._component import ScaledMixture as ScaledMixture
from exactshap.kernels._families import RBF, Cauchy, Chi2, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from exactshap.kernels._families import Radial as Radial
from exactshap.kernels._sklearn import from_sklearn
from exactshap.kernels._sklearn import takes_differences as takes_differences

__all__ = [
    "RBF",
    "Cauchy",
    "Chi2",
    "Component",
    "Constant",
    "Custom",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "RationalQuadratic",
    "White",
    "from_sklearn",
]
