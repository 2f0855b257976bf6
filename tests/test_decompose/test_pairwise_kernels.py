"""The compiled blocks of pairs of rows, against NumPy on whole kernel matrices."""

import functools
import itertools

import numpy as np
import pandas as pd
import pytest

from exactshap import decompose_hsic, decompose_mmd
from exactshap.decompose.pairwise import Factors
from exactshap.decompose.pairwise import _kernels as kernels
from exactshap.decompose.pairwise._panels import rule_table
from exactshap.errors import InputTypeError
from exactshap.semivalues import find
from tolerances import assert_close

RNG = np.random.default_rng(0)
N = 150
BLOCKS = [(0, N, 0, N), (10, 40, 70, 150), (60, 90, 0, 64), (N, N, N, N), (0, 0, 0, N), (3, 20, 5, 6), (100, 150, 0, 50)]
EVERY = ("rbf", "laplacian", "cauchy", "categorical", "rbf")
PLAYERS = [(("rbf",), (0, 1)), (EVERY, (0, 1, 2, 3, 4, 5)), (EVERY, (0, 2, 2, 3, 5)), (("cauchy", "categorical"), (0, 1, 2))]


def factors_of(kinds, starts):
    columns = np.stack([RNG.integers(0, 3, N) if kind == "categorical" else RNG.normal(size=N) for kind in kinds]).astype(float)
    names = tuple(f"c{j}" for j in range(len(kinds)))
    bandwidths = RNG.random(len(kinds)) + 0.5
    return Factors(columns, names, kinds, bandwidths, np.array(starts, np.int64), names[: len(starts) - 1])


CASES = [(factors_of(*players), kernels.PanelBlock(*block)) for players, block in itertools.product(PLAYERS, BLOCKS)]
CASE = pytest.mark.parametrize(("factors", "block"), CASES)


def matrices(factors):
    """Return the kernel matrices (n_players, n, n), on the whole."""
    return factors.kernel_matrices(np.arange(N), np.arange(N))


def cut(values, block, outside=0.0):
    """Return the block of (..., n, n), with the padding and the pairs that are not i' > i."""
    above = np.where(np.triu(np.ones((N, N), bool), 1), values, outside)[
        ..., block.start : block.stop, block.first : block.last
    ]
    return np.pad(above, [(0, 0)] * (values.ndim - 1) + [(0, block.padded - above.shape[-1])], constant_values=outside)


def filled(kernel, shape, *arguments):
    out = np.full(shape, 7.0)
    kernel(*arguments, out)
    return out


@CASE
def test_gaps_and_contributions(factors, block):
    d, size = factors.n_players, (block.height, block.padded)
    ones = 1.0 - matrices(factors)
    assert_close(filled(kernels.fill_gaps, (d, *size), factors.arrays, block), cut(ones, block), 1.0, n_players=5)
    rule = find("shapley").of_size(1, 1).rule(d - 1)
    wanted = np.zeros((d + 1, N, N))
    for t, weight in zip(*rule, strict=True):
        for j in range(d):
            wanted[j] -= weight * ones[j] * np.prod(1.0 - t * np.delete(ones, j, axis=0), axis=0)
    wanted[d] = np.prod(1.0 - ones, axis=0) - 1.0
    rules = rule_table(find("shapley"), d).arrays
    found = filled(kernels.fill_contributions, (d + 1, *size), factors.arrays, rules, block)
    assert_close(found, cut(wanted, block), 1.0, 20, 5)
    twice, once = np.zeros((2, 2, d + 1, N + kernels.LANES))
    for sides in (lambda sums: (sums[0], sums[1]), lambda sums: (sums[0], sums[0])):
        kernels.add_sides(found, np.ones(size), (rows := sides(twice))[0], block.start, rows[1], block.first)
        kernels.add_contributions(factors.arrays, rules, block, *sides(once))
        np.testing.assert_array_equal(once, twice)
    offset, (weighted, plain) = RNG.normal(size=N), np.zeros((2, *once[0].shape))
    weights = filled(kernels.fill_products, size, factors.arrays, offset, block)
    kernels.add_centred_contributions(factors.arrays, rules, factors.arrays, offset, block, weighted, plain)
    for sums, by in ((weighted, weights), (plain, np.ones(size))):
        kernels.add_sides(found, by, (wanted := np.zeros_like(sums)), block.start, wanted, block.first)
        np.testing.assert_array_equal(sums, wanted)


@pytest.mark.parametrize(("d", "n"), [(1, 1), (1, 2), (3, 64), (4, 66), (20, 197)])
def test_distances_of_all_pairs(d, n):
    columns, weights, block = RNG.normal(size=(d, n)), RNG.normal(size=d), kernels.PanelBlock(n // 3, n // 2, n // 4, n)
    for squared, power in ((True, 2), (False, 1)):
        wanted = np.einsum("k,kij->ij", weights, np.abs(columns[:, :, None] - columns[:, None]) ** power)
        found = filled(kernels.add_all_distances, (n * (n - 1) // 2,), columns, weights, squared)
        assert_close(found, wanted[np.triu_indices(n, 1)] + 7.0, 100.0, d, 2)
        found = filled(kernels.add_distances, (n // 2 - n // 3, n - n // 4), columns, weights, squared, block)
        assert_close(found, wanted[n // 3 : n // 2, n // 4 :] + 7.0, 100.0, d, 2)


@CASE
def test_products_and_permuted_weights(factors, block):
    size, offset = (block.height, block.padded), RNG.normal(size=N)
    centred = np.prod(matrices(factors), axis=0) - offset[:, None] - offset
    assert_close(filled(kernels.fill_products, size, factors.arrays, offset, block), cut(centred, block), 10.0, n_players=5)
    orders = np.array([RNG.permutation(N) for _ in range(2)], np.int32)
    found = filled(kernels.fill_permuted_weights, (2, *size), factors.arrays, offset, orders, block)
    for values, order in zip(found, orders, strict=True):
        wanted = centred[np.ix_(order, order)][block.start : block.stop, block.first : block.last]
        assert_close(values[:, : wanted.shape[1]], wanted, 10.0, n_players=5)


@CASE
def test_sums_over_both_sides(factors, block):
    d, size = factors.n_players, (block.height, block.padded)
    values, weights = RNG.normal(size=(d, *size)), RNG.normal(size=size)
    sums, columns = np.zeros((d, N + kernels.LANES)), np.zeros((d, N + kernels.LANES))
    kernels.add_sides(values, weights, sums, block.start, columns, block.first)
    wanted = np.zeros((2, *sums.shape))
    wanted[0][:, block.start : block.stop] = (values * weights).sum(axis=2)
    wanted[1][:, block.first : block.first + block.padded] = (values * weights).sum(axis=1)
    assert_close(np.stack([sums, columns]), wanted, 4.0 * N, N)


@CASE
def test_joint_contributions(factors, block):
    other = factors_of(("laplacian", "rbf"), (0, 1, 2))
    nodes, weights = np.array([0.2, 0.7, 1.0]), np.array([0.4, 0.6, 0.0])
    offsets, other_offsets = RNG.normal(size=(2, 3, N))
    gaps, other_gaps = 1.0 - matrices(factors), 1.0 - matrices(other)
    products = np.stack([np.prod(1.0 - t * gaps, axis=0) for t in nodes])
    size = (3, block.height, block.padded)
    assert_close(filled(kernels.fill_node_products, size, factors.arrays, block, nodes), cut(products, block), 1.0, n_players=5)
    sides = [(gaps, offsets, other_gaps, other_offsets), (other_gaps, other_offsets, gaps, offsets)]
    wanted = []
    for own, _, across, shift in sides:
        for j in range(len(own)):
            share = np.zeros((N, N))
            for q, t in enumerate(nodes):
                centred = np.prod(1.0 - t * across, axis=0) - shift[q][:, None] - shift[q]
                share -= weights[q] * own[j] * np.prod(1.0 - t * np.delete(own, j, axis=0), axis=0) * centred
            wanted.append(cut(share, block).sum())
    last = np.prod(1.0 - other_gaps, axis=0) - other_offsets[2][:, None] - other_offsets[2]
    wanted.append(cut((products[2] - 1.0) * last, block).sum())
    out = np.zeros(len(wanted))
    kernels.fill_joint_contributions(factors.arrays, offsets, other.arrays, other_offsets, block, nodes, weights, out)
    assert_close(out, wanted, 10.0 * N * N, N * N, 5)


def test_exponentials_are_within_two_units_in_the_last_place():
    distances = np.sort(RNG.random(N) * RNG.choice([1e-3, 1.0, 40.0, 700.0], N))
    factors = Factors(distances[None], ("c",), ("laplacian",), np.ones(1), np.array([0, 1]), ("c",))
    found = filled(kernels.fill_products, (1, 192), factors.arrays, np.zeros(N), kernels.PanelBlock(0, 1, 0, N))[0, 1:N]
    wanted = np.exp(distances[0] - distances[1:])
    assert (np.abs(found - wanted) <= 3 * np.spacing(wanted)).all()  # one of them NumPy's


@pytest.mark.parametrize(
    "change",
    [
        {"starts": np.array([0, 3, 2, 5])},
        {"starts": np.array([0, 2])},
        {"starts": np.array([], np.int64)},
        {"kinds": np.zeros(4, np.int64)},
        {"scales": np.ones(6)},
    ],
)
def test_factors_that_do_not_fit_are_refused(change):
    arrays = factors_of(EVERY, (0, 1, 3, 5)).arrays.value._replace(**change)
    with pytest.raises(InputTypeError, match="do not belong together"):
        kernels.fill_gaps(arrays, kernels.PanelBlock(0, N, 0, N), np.zeros((3, N, 192)))


@pytest.mark.parametrize("block", [(0, N + 1, 0, N), (-1, 5, 0, N), (5, 4, 0, N), (0, 5, 7, N + 1), (0, 5, 7, 6)])
def test_blocks_beyond_the_rows_are_refused(block):
    with pytest.raises(InputTypeError, match="do not belong together"):
        kernels.fill_gaps(factors_of(("rbf",), (0, 1)).arrays, kernels.PanelBlock(*block), np.zeros((1, 5, 192)))


@pytest.mark.parametrize("wrong", [-1, N])
def test_permutations_that_lead_outside_are_refused(wrong):
    orders = np.arange(N, dtype=np.int32)[None].copy()
    orders[0, 20] = wrong
    arguments = factors_of(("rbf",), (0, 1)).arrays, np.zeros(N), orders
    for block in ((0, N, 100, N), (0, 5, 20, 21)):
        place = kernels.PanelBlock(*block)
        with pytest.raises(InputTypeError, match="do not belong together"):
            kernels.fill_permuted_weights(*arguments, place, np.zeros((1, place.height, place.padded)))


@pytest.mark.parametrize("joint", [False, True])
def test_any_table_gives_the_bits_of_an_array(joint):
    X, Y = RNG.normal(size=(60, 4)), RNG.normal(size=(60, 4)) + 0.5
    settings = {"n_permutations": 3, "random_state": 0}
    for statistic in (decompose_mmd, functools.partial(decompose_hsic, joint=joint)):
        expected = statistic(X, Y, **settings).values
        for make in (
            np.asfortranarray,
            lambda a: np.repeat(a, 2, axis=1)[:, ::2],
            lambda a: pd.DataFrame(a, columns=list("abcd")),
        ):
            np.testing.assert_array_equal(statistic(make(X), make(Y), **settings).values, expected)
