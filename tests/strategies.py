"""Strategies of hypothesis for games with difficult numbers."""

import numpy as np
from hypothesis import strategies as st

from exactshap.games import AdditiveGame, ProductGame

NASTY = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-8, 1e4]), st.floats(-2, 2, allow_subnormal=False))


@st.composite
def product_games(draw, max_players=6, max_terms=4):
    """Batches of one or two games with one or two outputs and background rows."""
    d, n, rows, background, outputs = (draw(st.integers(1, high)) for high in (max_players, max_terms, 2, 2, 2))

    def array(*shape):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(NASTY, min_size=size, max_size=size))).reshape(shape)

    return ProductGame(array(n, outputs), array(rows, n, d), array(background, n, d), constant=array(outputs))


@st.composite
def additive_games(draw, max_players=6, max_terms=4):
    """Games with overlapping terms of at most three players."""
    d = draw(st.integers(1, max_players))
    players = st.lists(st.integers(0, d - 1), min_size=0, max_size=min(3, d), unique=True)
    subsets = [tuple(draw(players)) for _ in range(draw(st.integers(1, max_terms)))]
    value = st.floats(-3, 3, allow_subnormal=False)
    tables = [draw(st.lists(value, min_size=2 ** len(term), max_size=2 ** len(term))) for term in subsets]
    return AdditiveGame(d, subsets, tables, constant=draw(value))
