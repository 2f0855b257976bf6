"""Terms over bins: the search for a bin, what is looked up there and added up, and what is refused."""

import numpy as np
import pytest

from exactshap._native import Handle
from exactshap.errors import InputTypeError
from exactshap.semivalues import find
from exactshap.solvers.additive import LookedUp, Stack, solve_stacks
from exactshap.solvers.additive import _stacks as terms

RNG = np.random.default_rng(0)
STRIDES = np.array([[0, 0, 0], [1, 1, 0], [4, 0, 1], [9, 5, 1]])  # of tables of 1, 3, 5 and 15 cells


def lookups(cells, **changes):
    """Return arguments: two terms, of 3 x 5 bins and of 4, whose tables lie behind each other."""
    strides = np.zeros((2, 4, 3), np.int64)
    strides[0], strides[1, :, 0] = STRIDES, 24
    strides[1, 1::2, 1] = 1
    given = {
        "term": np.array([0, 1]),
        "shape": np.array([[3, 5], [4, 1]]),
        "strides": strides,
        "folded": RNG.normal(size=(28, 2)),
    }
    return cells, terms.Lookups(**given | changes), np.empty((2, len(cells), 4, 2))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("n_rows", [0, 1, 20])
def test_lookups(n_rows, dtype):
    cells = np.stack([RNG.integers(0, 15, n_rows), RNG.integers(0, 4, n_rows)], axis=1).astype(dtype)
    given = lookups(cells)
    terms.fill_lookups(*given)
    _, (_, shape, strides, folded), out = given
    for term in range(2):
        bins = np.stack(np.unravel_index(cells[:, term], shape[term]), axis=1)
        np.testing.assert_array_equal(out[term], folded[strides[term, :, 0] + bins @ strides[term, :, 1:].T])


def bins(**changes):
    """Return columns 0 and 2 cut into bins, column 0 in two ways; terms of column 0, of 2 and of both."""
    given = {
        "cuts": np.array([-1.0, 0.0, 0.0, 2.0, 0.5]),
        "cut_start": np.array([0, 4, 4, 5]),
        "column": np.array([0, 2, 0]),
        "way_start": np.array([0, 1, 2, 4]),
        "way": np.array([0, 1, 2, 1]),
        "stride": np.array([1, 1, 3, 1]),
    } | changes
    return terms.Bins(**given)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_cells_of_bins(dtype):
    column = np.tile([np.nan, -np.inf, -1.5, -1.0, -0.0, 0.0, 0.3, 0.5, 2.0, 1e300, np.inf], 13)  # more than a tile of rows
    X = np.stack([column, np.zeros(len(column)), column[::-1]], axis=1)
    out = np.empty((len(X), 3), dtype)
    terms.fill_cells(X, bins(), out)
    fine = np.where(np.isnan(X[:, 0]), 0, 1 + np.searchsorted([-1.0, 0.0, 0.0, 2.0], X[:, 0], side="right"))
    coarse = np.where(np.isnan(X[:, 0]), 0, 1 + (X[:, 0] >= 0.5))
    other = np.where(np.isnan(X[:, 2]), 0, 1)
    np.testing.assert_array_equal(out, np.stack([fine, other, 3 * coarse + other], axis=1))


@pytest.mark.parametrize("n_cuts", range(1, 18))
def test_every_number_of_cuts_is_searched_to_its_end(n_cuts):
    x, out = np.arange(-0.5, n_cuts, 0.5)[:, None], np.empty((2 * n_cuts + 1, 1), np.int64)
    one = {"column": np.zeros(1, int), "way_start": np.array([0, 1]), "way": np.zeros(1, int), "stride": np.ones(1, int)}
    terms.fill_cells(x, bins(cuts=np.arange(float(n_cuts)), cut_start=np.array([0, n_cuts]), **one), out)
    np.testing.assert_array_equal(out[:, 0], 1 + np.searchsorted(np.arange(n_cuts), x[:, 0], side="right"))


SPREADS = {
    "even": np.arange(40.0),
    "random": np.sort(RNG.normal(size=300)),
    "equal": np.repeat([-1.0, 2.0], 9),
    "all equal": np.full(5, 3.0),
    "heavy tails": np.sort(RNG.standard_cauchy(500) ** 3),
    "one far away": np.append(np.arange(30.0), 1e300),
    "beyond what a difference holds": np.array([-1.7e308, 0.0, 1.0, 1.7e308]),
    "smallest numbers": np.arange(6) * 5e-324,
    "close neighbours": 1e15 + 0.125 * np.arange(50),
    "one": np.array([0.25]),
    "none": np.empty(0),
}


@pytest.mark.parametrize("name", SPREADS)
def test_numbers_on_cuts_next_to_them_and_beyond_are_found(name):
    cuts = SPREADS[name]
    ends = [np.nan, -np.inf, np.inf, -0.0, 1e-300, -1.79e308, 1.79e308]
    x = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), RNG.normal(size=200), ends])
    one = {"column": np.zeros(1, int), "way_start": np.array([0, 1]), "way": np.zeros(1, int), "stride": np.ones(1, int)}
    out = np.empty((len(x), 1), np.int64)
    terms.fill_cells(x[:, None], bins(cuts=cuts, cut_start=np.array([0, len(cuts)]), **one), out)
    np.testing.assert_array_equal(out[:, 0], np.where(np.isnan(x), 0, 1 + np.searchsorted(cuts, x, side="right")))


UNFIT = {"cut_start": ([0, 4, 3, 5], [0, 4, 4, 6]), "column": ([0, 3, 0], [0, -1, 0]), "way": ([0, 1, 3, 1], [0, 1, -1, 1])}
UNFIT |= {"way_start": ([0, 1, 2, 5], []), "stride": ([1, 1, 3],)}


@pytest.mark.parametrize("change", [{name: np.array(one, int)} for name, wrong in UNFIT.items() for one in wrong])
def test_bins_that_lead_outside_are_refused(change):
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.fill_cells(np.zeros((2, 3)), bins(**change), np.empty((2, 3), np.int64))


OUTSIDE = [{"shape": np.array([one, [4, 1]])} for one in ([0, 5], [3, 16])] + [
    {"term": np.array(one)} for one in ([0, 2], [-1, 1])
]
OUTSIDE += [{"strides": np.full((2, 4, 3), one)} for one in (30, -1, 2**62)]


@pytest.mark.parametrize(("cell", "change"), [(-1, {}), *((0, change) for change in OUTSIDE)])
def test_lookups_that_lead_outside_are_refused(cell, change):
    cells, wrong, out = lookups(np.array([[cell, 0]]), **change)
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.fill_lookups(cells, wrong, out)
    sets, ends = terms.Sets(np.array([[0], [1]]), np.ones(2, int), np.ones((2, 4))), [np.zeros((1, 2)), np.zeros((1, 2))]
    with pytest.raises(InputTypeError, match="do not belong together"):
        terms.add_lookups(cells, wrong, sets, np.array([[0, 1], [1, 2]]), np.zeros((1, 3, 2)), *ends, np.zeros(1))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    ("subsets", "width"),
    [(((), ()), 1), (((2,), (0,)), 1), (((2,), (0,)), 2), (((0, 2), (1, 0)), 2), (((0, 3, 1), (1, 2, 3)), 3)],
)
@pytest.mark.parametrize("n_rows", [0, 1, 150])
def test_values_that_are_looked_up_have_the_bits_of_their_tables(n_rows, subsets, width, n_outputs, order, dtype):
    shape, n_codes = RNG.integers(2, 5, (2, width)), 2 ** len(subsets[0])
    strides = np.zeros((2, n_codes, 1 + width), np.int64)
    strides[:, :, 0] = np.arange(2 * n_codes).reshape(2, n_codes)
    strides[:, :, 1:] = RNG.integers(0, 20, (2, n_codes, width)) * (np.arange(n_codes) > 0)[:, None]
    cells = RNG.integers(0, shape.prod(axis=1), (n_rows, 2)).astype(dtype)
    folded = RNG.normal(size=(300, n_outputs))
    stack = LookedUp(subsets, cells, Handle(terms.Lookups(np.array([0, 1]), shape, strides, folded)), n_outputs)
    parts = (
        solve_stacks([part], 4, n_rows, n_outputs, find("k-sii" if order > 1 else "banzhaf"), order)
        for part in (stack, Stack(subsets, stack.tables))
    )
    quick, slow = parts
    for name in ("values", "empty", "full", "scale"):
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name))
