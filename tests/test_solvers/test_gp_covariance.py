"""The covariance of Shapley values, entry by entry against the covariance of all coalition values."""

import functools
import itertools
import math

import numpy as np
import pytest

from exactshap.errors import InputError
from exactshap.kernels import RBF, Laplacian, Linear
from exactshap.semivalues import beta, find
from exactshap.solvers.rkhs import KernelFactors, MonomialFactors, interaction_variance, shapley_covariance
from tolerances import EPS, HALF_THE_DIGITS, posterior, roundings

NOISE = 0.3


class Setting:
    """A small Gaussian process with explained rows and a background, and its slow, obvious twin."""

    def __init__(self, kernel, d, n_background=3, n_train=6, n_rows=2, seed=0, weights=None):
        rng = np.random.default_rng(seed)
        self.train, self.rows, self.background = (rng.normal(size=(m, d)) for m in (n_train, n_rows, n_background))
        self.kernel, self.d = kernel, d
        self.weights = np.full(n_background, 1 / n_background) if weights is None else np.asarray(weights)
        self.covariance = kernel(self.train) + NOISE * np.eye(n_train)
        self.cholesky = np.linalg.cholesky(self.covariance)

    @functools.cached_property
    def masks(self):
        return np.array(list(itertools.product([False, True], repeat=self.d)))

    @property
    def components(self):
        return [self._factors(part) for part in self.kernel.expand(self.d)]

    def _factors(self, part):
        if part.is_monomial:
            psi = [part.monomial(rows) for rows in (self.rows, self.background, self.train)]
            return MonomialFactors(part.amplitude, psi[0], psi[1], psi[2].prod(axis=1))
        between = lambda a, b: part.factors(a, np.ascontiguousarray(b.T))  # noqa: E731
        own = np.stack([between(x[None], x[None])[0, :, 0] for x in self.rows])
        x, z, t = self.rows, self.background, self.train
        return KernelFactors(part.amplitude, own, between(x, z), between(z, z), between(x, t), between(z, t))

    def hybrids(self, i):
        """All points (x_S, z), coalition by coalition: (2^d, n_background, d)."""
        return np.where(self.masks[:, None, :], self.rows[i], self.background[None])

    def value_covariance(self, i):
        """Posterior covariance (2^d, 2^d) of all coalition values of row i, by the definition."""
        points = self.hybrids(i).reshape(-1, self.d)
        sections = self.kernel(points, self.train)
        posterior = self.kernel(points) - sections @ np.linalg.solve(self.covariance, sections.T)
        m = len(self.weights)
        return np.einsum("azby,z,y->ab", posterior.reshape(len(self.masks), m, len(self.masks), m), self.weights, self.weights)

    def operator(self, sets, semivalue):
        """The matrix (n_sets, 2^d) that takes coalition values to values of sets."""
        result = np.zeros((len(sets), len(self.masks)))
        for row, players in enumerate(sets):
            p = semivalue.weights(self.d, len(players), len(players))
            for column, mask in enumerate(self.masks):
                inside = sum(mask[j] for j in players)
                result[row, column] = (-1) ** (len(players) - inside) * p[mask.sum() - inside]
        return result


def tolerance(setting):
    points = setting.hybrids(0).reshape(-1, setting.d)
    return posterior(setting.covariance, np.abs(setting.kernel(points)).max(), 2**setting.d)


KERNELS = {
    "rbf": RBF(1.2),
    "ard": RBF([0.5, 1.0, 2.0, 4.0, 1e9]),
    "laplacian": 2.0 * Laplacian(1.5),
    "sum": RBF(1.0) + 0.5 * Laplacian(2.0),
    "linear": RBF(1.5) + Linear(offset=0.3),
    "signed": RBF(2.0) * Linear(offset=0.1),
}


def small(kernel, d):
    return RBF(kernel.bandwidth[:d]) if isinstance(kernel, RBF) and np.ndim(kernel.bandwidth) else kernel


def assert_enumerated(setting, found, sets, semivalue, *, diagonal=False, factor=1):
    """Compare a row's covariance, or its diagonal, with that of all its coalition values."""
    operator = setting.operator(sets, find(semivalue))
    for i in range(len(setting.rows)):
        expected = operator @ setting.value_covariance(i) @ operator.T
        expected = np.diag(expected) if diagonal else expected
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=factor * tolerance(setting))


QUESTIONS = [(name, d, "shapley") for name in KERNELS for d in range(1, 6)]
QUESTIONS += [("rbf", 4, semivalue) for semivalue in ("banzhaf", "leave-one-out", beta(4, 1))]


@pytest.mark.parametrize(("name", "d", "semivalue"), QUESTIONS, ids=str)
def test_covariance_equals_enumeration(name, d, semivalue):
    setting = Setting(small(KERNELS[name], d), d, seed=d, weights=[0.5, 0.2, 0.3])
    found = shapley_covariance(setting.components, setting.cholesky, setting.weights, semivalue=semivalue)
    assert_enumerated(setting, found.covariance, [(j,) for j in range(d)], semivalue)
    if semivalue == "shapley":
        np.testing.assert_allclose(found.residual, 0, atol=tolerance(setting))
    else:
        assert found.residual is None


@pytest.mark.parametrize("name", ["rbf", "sum", "linear", "signed"])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_variance_of_pairs_equals_enumeration(name, d):
    setting = Setting(small(KERNELS[name], d), d, seed=10 + d)
    found = interaction_variance(setting.components, setting.cholesky)
    assert_enumerated(setting, found, list(itertools.combinations(range(d), 2)), "sii", diagonal=True, factor=4)


def test_independent_background_is_the_background_of_all_combinations():
    setting = Setting(RBF(1.1), 3, seed=5)
    z = setting.background
    combinations = np.array(list(itertools.product(*z.T)))
    full = Setting(RBF(1.1), 3, seed=5)
    full.background, full.weights = combinations, np.full(27, 1 / 27)
    expected = shapley_covariance(full.components, full.cholesky, full.weights)
    parts = [part.independent(setting.weights) for part in setting.components]
    found = shapley_covariance(parts, setting.cholesky)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=0, atol=tolerance(full))
    np.testing.assert_allclose(found.total, expected.total, rtol=0, atol=tolerance(full))


def test_many_players_use_fewer_nodes_within_the_reported_bound():
    d = 40
    setting = Setting(RBF(8.0), d, seed=1)
    found = shapley_covariance(setting.components, setting.cholesky)
    exact_nodes = shapley_covariance(setting.components, setting.cholesky, semivalue=_uniform_by_nodes(d))
    assert 0 < found.error_bound < roundings(50)
    np.testing.assert_allclose(
        found.covariance, exact_nodes.covariance, rtol=0, atol=found.error_bound + 64 * d * EPS * found.scale.max()
    )
    np.testing.assert_allclose(found.residual, 0, atol=64 * d * EPS * found.scale.max())


def _uniform_by_nodes(d):
    from exactshap.semivalues import Atom, Mixture, Semivalue

    nodes, weights = find("shapley").rule(1, degree=2 * d)
    atoms = Mixture(tuple((weight, Atom(node)) for node, weight in zip(nodes, weights / weights.sum(), strict=True)))
    return Semivalue("uniform, all nodes", atoms)


def test_a_row_of_the_background_has_no_uncertainty():
    setting = Setting(RBF(1.0), 3, n_background=1, n_rows=1, seed=2)
    setting.rows = setting.background.copy()
    found = shapley_covariance(setting.components, setting.cholesky)
    np.testing.assert_array_equal(found.covariance, 0)
    assert found.clipped == 0


def test_symmetric_and_positive_semi_definite_when_the_kernel_is_singular():
    setting = Setting(RBF(1.0), 3, seed=6, n_train=8)
    setting.train[4:] = setting.train[:4]
    covariance = setting.kernel(setting.train) + 1e-10 * np.eye(8)
    found = shapley_covariance(setting.components, np.linalg.cholesky(covariance))
    np.testing.assert_array_equal(found.covariance, found.covariance.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(found.covariance).min() >= -EPS * found.scale.max()
    assert math.isfinite(found.clipped)


def test_scale_and_blocks(monkeypatch):
    from exactshap.solvers.rkhs import _gp_covariance

    setting = Setting(RBF(1.0), 3, n_rows=5, seed=7)
    whole = shapley_covariance(setting.components, setting.cholesky)
    monkeypatch.setattr(_gp_covariance, "BLOCK_VALUES", 1)
    single = shapley_covariance(setting.components, setting.cholesky, scale=4.0)
    np.testing.assert_allclose(single.covariance, 4 * whole.covariance, rtol=0, atol=4 * tolerance(setting))
    np.testing.assert_allclose(single.std, 2 * whole.std, rtol=HALF_THE_DIGITS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"components": []}, "at least one kernel component"),
        ({"weights": np.ones(2) / 2}, r"Background weights must have shape \(3,\)"),
        ({"cholesky": np.ones((2, 3))}, "square lower triangular"),
        ({"cholesky": np.zeros((6, 6))}, "singular.*Add noise"),
    ],
)
def test_bad_input(arguments, text):
    setting = Setting(RBF(1.0), 2)
    defaults = {"components": setting.components, "cholesky": setting.cholesky}
    with pytest.raises(InputError, match=text):
        shapley_covariance(**{**defaults, **arguments})
