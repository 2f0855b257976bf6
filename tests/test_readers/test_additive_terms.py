"""Every kind of term against its own definition: the mean over background rows of the term on hybrid rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactshap.errors import BudgetError
from exactshap.readers.additive.terms import ColumnTerms, MonomialTerms, Reference, coalitions
from exactshap.readers.additive.terms._binned import BinnedTerms
from exactshap.readers.additive.terms._functions import FunctionTerm, FunctionTerms, ProductTerm, ProductTerms
from tolerances import assert_close

D = 5
some = settings(max_examples=15, deadline=None)


def drawn(seed):
    """Rows, background with repeated rows, weights (one of them zero), and the players of the columns."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(4, D)), rng.normal(size=(6, D)).round(1)
    Z[4] = Z[1]
    weights = rng.random(6)
    weights[2] = 0.0
    owner = [0, 1, 2, 3, 4] if seed % 2 else [int(p) for p in rng.integers(0, 3, D)]
    owner = [sorted(set(owner)).index(p) for p in owner]
    return rng, X, Reference(Z, weights / weights.sum()), owner


def columns_of(rng, repeats=False):
    return tuple(
        int(j) for j in (rng.integers(0, D, rng.integers(1, 4)) if repeats else rng.permutation(D)[: rng.integers(1, 4)])
    )


def column_terms(rng, n_outputs):
    slopes = rng.normal(size=(D, n_outputs))
    return ColumnTerms(tuple((j,) for j in range(D)), lambda rows: np.sin(rows)[:, :, None] * slopes)


def monomial_terms(rng, n_outputs):
    powers = np.zeros((6, D), int)
    for term in powers:
        term[list(columns_of(rng))] = rng.integers(1, 4)
    return MonomialTerms(powers, rng.normal(size=(6, n_outputs)))


def product_terms(rng, n_outputs):
    basis = {1: lambda x: x[:, None], 2: lambda x: np.stack([np.cos(x), x**2], axis=1)}
    terms = []
    for _ in range(4):
        columns = columns_of(rng, repeats=True)
        sizes = rng.integers(1, 3, len(columns))
        terms.append(ProductTerm(columns, tuple(basis[s] for s in sizes), rng.normal(size=(*sizes, n_outputs))))
    return ProductTerms(tuple(terms))


def function_terms(rng, n_outputs):
    terms = []
    for _ in range(4):
        columns = columns_of(rng)
        w = rng.normal(size=(len(columns), n_outputs))
        terms.append(FunctionTerm(columns, lambda v, w=w: np.tanh(v @ w) + v.prod(axis=1)[:, None], "term", n_outputs))
    return FunctionTerms(tuple(terms))


def by_definition(evaluate, block, X, reference, owner):
    """{term: (players, table)} with one hybrid at a time."""
    tables = {}
    for l, columns in enumerate(block.columns):
        own = coalitions(columns, owner)
        table = np.zeros((len(X), 2 ** len(own.players), evaluate(X[:1]).shape[2]))
        for code in range(table.shape[1]):
            inside = [p for place, p in enumerate(own.players) if (code >> place) & 1]
            for i, x in enumerate(X):
                for z, weight in zip(reference.rows, reference.weights, strict=True):
                    hybrid = np.array([x[j] if owner[j] in inside else z[j] for j in range(D)])
                    table[i, code] += weight * evaluate(hybrid[None])[0, l]
        tables[l] = own.players, table
    return tables


def compare(stacks, expected):
    """Stacks hold the terms by their number of players, in order within each."""
    ordered = sorted(expected, key=lambda l: (len(expected[l][0]), l))
    found = [(players, table) for stack in stacks for players, table in zip(stack.subsets, stack.tables, strict=True)]
    assert [players for players, _ in found] == [expected[l][0] for l in ordered]
    for (_, table), l in zip(found, ordered, strict=True):
        assert_close(table, expected[l][1], 64 * max(1.0, np.abs(expected[l][1]).max()), 40, 4)


@pytest.mark.parametrize("kind", [column_terms, monomial_terms, product_terms, function_terms])
@pytest.mark.parametrize("n_outputs", [1, 3])
@given(seed=st.integers(0, 10_000))
@some
def test_coalition_values_by_definition(kind, n_outputs, seed):
    rng, X, reference, owner = drawn(seed)
    block = kind(rng, n_outputs)
    compare(block.bind(reference, owner).stacks(X), by_definition(block.evaluate, block, X, reference, owner))


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("from_training", [False, True])
@given(seed=st.integers(0, 10_000))
@some
def test_binned_coalition_values_by_definition(n_outputs, from_training, seed):
    rng, _, reference, owner = drawn(seed)
    n_bins = rng.integers(1, 5, D)
    X, Z = (rng.integers(0, n_bins, (n, D)) for n in (4, 6))
    columns = tuple(columns_of(rng) for _ in range(4))
    scores = tuple(rng.normal(size=(*n_bins[list(term)], n_outputs)) for term in columns)

    def cells(bins):
        return np.stack([np.ravel_multi_index(tuple(bins[:, list(t)].T), tuple(n_bins[list(t)])) for t in columns], axis=1)

    counts = tuple(np.bincount(cells(Z)[:, l], reference.weights, minlength=scores[l][..., 0].size) for l in range(4))
    training = tuple(3.0 * c.reshape(s.shape[:-1]) for c, s in zip(counts, scores, strict=True)) if from_training else None
    block = BinnedTerms(columns, scores, training)
    background = None if from_training else Reference(cells(Z), reference.weights)
    expected = by_definition(lambda rows: block.evaluate(cells(rows)), block, X, Reference(Z, reference.weights), owner)
    compare(block.bind(background, owner).stacks(cells(X)), expected)


def test_the_chunks_of_large_backgrounds_add_up():
    rng = np.random.default_rng(0)
    rows, X = rng.normal(size=(700, D)), rng.normal(size=(3, D))
    block = function_terms(rng, 2)
    owner = list(range(D))
    whole = list(block.bind(Reference(rows, np.full(700, 1 / 700)), owner).stacks(X))
    halves = [list(block.bind(Reference(part, np.full(350, 1 / 350)), owner).stacks(X)) for part in (rows[:350], rows[350:])]
    for stack, first, second in zip(whole, *halves, strict=True):
        assert_close(stack.tables, (first.tables + second.tables) / 2, 64 * np.abs(stack.tables).max(), 700, 4)


def test_players_of_terms():
    own = coalitions((4, 2, 3), owner=[0, 0, 1, 1, 2])
    assert own.players == (2, 1)
    assert own.inside.astype(int).tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]]
    with pytest.raises(BudgetError, match=r"It has 2\^21 = 2.1e\+06 coalitions for each row; the limit is 20 players"):
        coalitions(range(21), owner=list(range(21)))
