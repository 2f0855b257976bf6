"""What the compiled blocks of pairs of rows refuse, their exponentials, and the memory order of what they get."""

import functools

import numpy as np
import pandas as pd
import pytest

from exactshap import decompose_hsic, decompose_mmd
from exactshap.decompose.pairwise import Factors
from exactshap.decompose.pairwise import _factors as kernels
from exactshap.errors import InputTypeError

RNG = np.random.default_rng(0)
N = 150
EVERY = ("rbf", "laplacian", "cauchy", "categorical", "rbf")


def factors_of(kinds, starts):
    columns = np.stack([RNG.integers(0, 3, N) if kind == "categorical" else RNG.normal(size=N) for kind in kinds]).astype(float)
    names = tuple(f"c{j}" for j in range(len(kinds)))
    bandwidths = RNG.random(len(kinds)) + 0.5
    return Factors(columns, names, kinds, bandwidths, np.array(starts, np.int64), names[: len(starts) - 1])


def test_exponentials_are_within_two_units_in_the_last_place():
    distances = np.sort(RNG.random(N) * RNG.choice([1e-3, 1.0, 40.0, 700.0], N))
    factors = Factors(distances[None], ("c",), ("laplacian",), np.ones(1), np.array([0, 1]), ("c",))
    found = np.full((1, 192), 7.0)
    kernels.fill_products(factors.arrays, np.zeros(N), kernels.PanelBlock(0, 1, 0, N), found)
    wanted = np.exp(distances[0] - distances[1:])
    assert (np.abs(found[0, 1:N] - wanted) <= 3 * np.spacing(wanted)).all()  # one of them NumPy's


def gaps(block, **changes):
    arrays = factors_of(EVERY, (0, 1, 3, 5)).arrays.value._replace(**changes)
    kernels.fill_gaps(arrays, kernels.PanelBlock(*block), np.zeros((3, abs(block[1] - block[0]), 192)))


def permuted(block, wrong):
    orders, place = np.arange(N, dtype=np.int32)[None].copy(), kernels.PanelBlock(*block)
    orders[0, 20] = wrong
    arrays = factors_of(("rbf",), (0, 1)).arrays
    kernels.fill_permuted_weights(arrays, np.zeros(N), orders, place, np.zeros((1, place.height, place.padded)))


FACTORS = [{"starts": np.array(starts, np.int64)} for starts in ([0, 3, 2, 5], [0, 2], [])]
FACTORS += [{"kinds": np.zeros(4, np.int64)}, {"scales": np.ones(6)}]
BLOCKS = [(0, N + 1, 0, N), (-1, 5, 0, N), (5, 4, 0, N), (0, 5, 7, N + 1), (0, 5, 7, 6)]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        *((gaps, {"block": (0, N, 0, N), **change}) for change in FACTORS),
        *((gaps, {"block": block}) for block in BLOCKS),
        *((permuted, {"block": block, "wrong": wrong}) for block in ((0, N, 100, N), (0, 5, 20, 21)) for wrong in (-1, N)),
    ],
)
def test_what_does_not_belong_together_is_refused(call, arguments):
    with pytest.raises(InputTypeError, match="do not belong together"):
        call(**arguments)


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
