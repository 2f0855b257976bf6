"""Games of many shapes whose Shapley values are known by structure: functions of rows, explained at one row against one other.

Every family is a function with fixed parameters; each run draws the explained row x and the background row z, and coalition S is
called as f(x_S, z_rest). Families are written as sums of products over columns or of functions of few columns, whose values follow
exactly from their own formula or from 2^k coalitions; ``tests`` hold both against enumeration.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, field

import numpy as np

ROUNDING = 1e-12  # of the largest value of a function of a sum: its transform leaves players who change nothing as much


@dataclass
class KnownGame:
    """v(S) = Re sum_l c_l prod_{j in S} a_lj prod_{j not in S} b_lj + sum over tables of their own columns + values at integer sums."""

    n_players: int
    products: list = field(default_factory=list)  # (c, a, b), complex or real
    tables: list = field(default_factory=list)  # (columns, values of the 2^k coalitions of them)
    sums: list = field(default_factory=list)  # (values at 0, 1, ..., integers x, integers z)

    def value(self, masks):
        return sum(
            [_products(masks, *terms) for terms in self.products]
            + [table[masks[:, list(columns)] @ (1 << np.arange(len(columns)))] for columns, table in self.tables]
            + [values[np.where(masks, x, z).sum(axis=1).astype(int)] for values, x, z in self.sums]
        )

    def exact(self):
        phi = np.zeros(self.n_players)
        for terms in self.products:
            phi += _product_values(*terms)
        for values, x, z in self.sums:
            found = _product_values(*fourier(values, x, z))
            phi += np.where(np.abs(found) > ROUNDING * np.abs(values).max(), found, 0.0)
        for columns, table in self.tables:
            phi[list(columns)] += _table_values(table, len(columns))
        return phi


def _products(masks, c, a, b):
    inside = masks.astype(float)
    dead = inside @ (a == 0).T + (1.0 - inside) @ (b == 0).T > 0
    log_a, log_b = (np.log(np.where(side == 0, 1.0, side).astype(complex)) for side in (a, b))
    whole = np.exp(inside @ (log_a - log_b).T + log_b.sum(axis=1))
    return (np.where(dead, 0.0, whole) @ c).real


def _product_values(c, a, b):
    """The integral over t of every player's difference times the others' mixture, by Gauss-Legendre."""
    d = a.shape[1]
    nodes, weights = np.polynomial.legendre.leggauss(d // 2 + 1)
    t = ((nodes + 1.0) / 2.0)[:, None, None]
    mixed = t * a + (1.0 - t) * b
    one = np.ones_like(mixed[:, :, :1])
    before = np.concatenate([one, np.cumprod(mixed, axis=2)[:, :, :-1]], axis=2)
    after = np.concatenate([np.cumprod(mixed[:, :, ::-1], axis=2)[:, :, ::-1][:, :, 1:], one], axis=2)
    return np.einsum("q,l,lj,qlj->j", weights / 2.0, c, a - b, before * after, optimize=True).real


@functools.lru_cache
def _subsets(k):
    masks = (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(bool)
    sizes = masks.sum(axis=1)
    return masks, sizes, np.array([1.0 / (k * math.comb(k - 1, s)) for s in range(k)])


def _table_values(table, k):
    _, sizes, weights = _subsets(k)
    codes = np.arange(2**k)
    without = [codes[(codes >> j & 1) == 0] for j in range(k)]
    return np.array([weights[sizes[some]] @ (table[some | 1 << j] - table[some]) for j, some in enumerate(without)])


def local(function, columns, x, z):
    """Return the table of a function of few columns."""
    columns = list(columns)
    return columns, function(np.where(_subsets(len(columns))[0], x[columns], z[columns]))


def boxes(low, high, leaf, x, z):
    """Return the products of leaves: boxes low < x <= high, (n_leaves, d)."""
    a, b = (x > low) & (x <= high), (z > low) & (z <= high)
    alive = (a | b).all(axis=1)
    return leaf[alive], a[alive].astype(float), b[alive].astype(float)


def fourier(values, x, z):
    """Return products for a function of the integer sum of columns, from its values at 0, 1, ..., by a discrete Fourier transform."""
    n = len(values)
    turns = 2j * np.pi * np.fft.fftfreq(n)[:, None]
    return np.fft.fft(values) / n, np.exp(turns * x), np.exp(turns * z)


def blocks(rng, d, size, n):
    """Return ``n`` sets of ``size`` columns that together hold every column about as often."""
    order = np.concatenate([rng.permutation(d) for _ in range(-(-n * size // d) + 1)])
    return [np.unique(order[i * size : (i + 1) * size]) for i in range(n)]


def row_pair(rng, d):
    return rng.normal(size=d), rng.normal(size=d)


# --- families that the errors were tuned on ------------------------------------------------------------------------------------


def steps(rng, d):
    """Thresholds of sums of five columns."""
    parts = [(block, rng.normal(size=len(block)), rng.normal(), rng.normal()) for block in blocks(rng, d, 5, d)]

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [], [local(lambda r, w=w, t=t, h=h: h * (r @ w > t), J, x, z) for J, w, t, h in parts])

    return game


def random_boxes(rng, d, depth):
    """Return the boxes and values of one random tree."""
    leaves = [(np.full(d, -np.inf), np.full(d, np.inf))]
    for _ in range(depth):
        split = []
        for low, high in leaves:
            j, t = rng.integers(d), 0.7 * rng.normal()
            left, right = high.copy(), low.copy()
            left[j], right[j] = min(t, high[j]), max(t, low[j])
            split += [(low, left), (right, high)]
        leaves = split
    return np.array([low for low, _ in leaves]), np.array([high for _, high in leaves]), rng.normal(size=len(leaves))


def random_trees(rng, d):
    """Forty random trees of depth five."""
    low, high, leaf = (np.concatenate(part) for part in zip(*(random_boxes(rng, d, 5) for _ in range(40)), strict=True))

    def game(run):
        return KnownGame(d, [boxes(low, high, leaf, *row_pair(run, d))])

    return game


def quadratic_rare_and(rng, d):
    """A quadratic form, and a bonus where all of five columns are those of the explained row."""
    quadratic, chosen = rng.normal(size=(d, d)) / d, rng.permutation(d)[:5]

    def game(run):
        x, z = row_pair(run, d)
        inside = np.isin(np.arange(d), chosen).astype(float)
        pairs = [
            local(lambda r, w=quadratic[i, j]: w * r.prod(axis=1), (i, j), x, z) for i, j in itertools.combinations(range(d), 2)
        ]
        return KnownGame(d, [(np.ones(1), np.ones((1, d)), 1.0 - inside[None])], pairs)

    return game


def cauchy_pairs(rng, d):
    """Pairs and triples of columns with Cauchy coefficients."""
    parts = [(rng.permutation(d)[:k], rng.standard_cauchy()) for k in (2, 3) for _ in range(d)]

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [], [local(lambda r, w=w: w * r.prod(axis=1), J, x, z) for J, w in parts])

    return game


def parity_of_three(rng, d):
    """Signs of three columns multiplied, for d / 4 such sets, and a small linear part."""
    parts, linear = [(rng.permutation(d)[:3], rng.normal()) for _ in range(d // 4)], 0.3 * rng.normal(size=d)

    def game(run):
        x, z = row_pair(run, d)
        parities = [local(lambda r, w=w: w * np.sign(r).prod(axis=1), J, x, z) for J, w in parts]
        return KnownGame(d, [], parities + [local(lambda r, w=linear[j]: w * r[:, 0], (j,), x, z) for j in range(d)])

    return game


def additive_smooth(rng, d):
    """A sum of sines of one column each."""
    amplitude, frequency = rng.normal(size=d), rng.exponential(size=d)

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(
            d, [], [local(lambda r, j=j: amplitude[j] * np.sin(frequency[j] * r[:, 0]), (j,), x, z) for j in range(d)]
        )

    return game


def bumps(rng, d):
    """An expansion in sixty Gaussian bumps."""
    c, centres, scale = rng.normal(size=60), rng.normal(size=(60, d)), np.sqrt(d) * rng.uniform(0.6, 2.0, size=d)

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [(c, *(np.exp(-0.5 * ((row - centres) / scale) ** 2) for row in (x, z)))])

    return game


def tanh_units(rng, d):
    """A layer of hyperbolic tangents of seven columns each."""
    parts = [(J, rng.normal(size=len(J)), rng.normal(), rng.normal()) for J in blocks(rng, d, 7, d)]

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [], [local(lambda r, w=w, t=t, h=h: h * np.tanh(r @ w + t), J, x, z) for J, w, t, h in parts])

    return game


def largest(rng, d):
    """The largest of all columns, each shifted: a sum over thresholds of products of indicators."""
    shift = 0.5 * rng.normal(size=d)

    def game(run):
        x, z = (row + shift for row in row_pair(run, d))
        steps = np.unique(np.concatenate([x, z]))
        below_x, below_z = (row <= steps[:-1, None] for row in (x, z))
        return KnownGame(d, [(-np.diff(steps), below_x.astype(float), below_z.astype(float))])

    return game


def sparse_products(rng, d):
    """Products of four to six columns."""
    parts = [(rng.permutation(d)[: rng.integers(4, 7)], rng.normal()) for _ in range(d)]

    def game(run):
        x, z = row_pair(run, d)
        return KnownGame(d, [], [local(lambda r, w=w: w * r.prod(axis=1), J, x, z) for J, w in parts])

    return game


def series_parallel(rng, d):
    """Whether some block of two to five columns is above zero as a whole: an or of ands, by inclusion and exclusion."""
    cuts = np.cumsum(rng.integers(2, 6, size=8) if d > 14 else rng.integers(2, 4, size=4))
    parts = np.split(rng.permutation(d), cuts[cuts < d])
    chosen = _subsets(len(parts))[0][1:]
    member = np.array([[j in set(part) for j in range(d)] for part in parts])
    covered = (chosen.astype(int) @ member) > 0
    sign = 1.0 - 2.0 * (chosen.sum(axis=1) % 2 == 0)

    def game(run):
        x, z = (row > -0.3 for row in row_pair(run, d))
        return KnownGame(d, [(sign, np.where(covered, x, 1.0), np.where(covered, z, 1.0))])

    return game


def decision_list(rng, d):
    """The answer of the first condition that holds: one column each, in an order of their own."""
    order, threshold, answer = rng.permutation(d), rng.uniform(0.0, 1.5, size=d), rng.laplace(size=d + 1)
    low, high = np.full((d + 1, d), -np.inf), np.full((d + 1, d), np.inf)
    for place, j in enumerate(order):
        low[place, j], high[place + 1 :, j] = threshold[j], threshold[j]

    def game(run):
        return KnownGame(d, [boxes(low, high, answer, *row_pair(run, d))])

    return game


TUNING = {
    "steps of five": steps,
    "random trees": random_trees,
    "quadratic, rare AND": quadratic_rare_and,
    "Cauchy pairs": cauchy_pairs,
    "parity of three": parity_of_three,
    "additive": additive_smooth,
    "Gaussian bumps": bumps,
    "tanh units": tanh_units,
    "maximum": largest,
    "sparse products": sparse_products,
    "series-parallel": series_parallel,
    "decision list": decision_list,
}
