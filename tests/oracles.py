"""Brute force over coalitions from the textbook definitions, in exact fractions. Imports nothing from the package."""

import itertools
import math
from fractions import Fraction

import numpy as np


def subsets(players):
    players = tuple(players)
    return (frozenset(s) for r in range(len(players) + 1) for s in itertools.combinations(players, r))


def table_of(game):
    """All values of a single-output game as {frozenset: Fraction}: floats are fractions, so nothing is lost."""
    coalitions = list(subsets(range(game.n_players)))
    masks = np.array([[j in S for j in range(game.n_players)] for S in coalitions])
    return {S: Fraction(float(value)) for S, value in zip(coalitions, game.value(masks), strict=True)}


def shapley(v, d):
    """Average marginal contribution over all d! orders of arrival."""
    totals = [Fraction(0)] * d
    for order in itertools.permutations(range(d)):
        before = frozenset()
        for j in order:
            totals[j] += v[before | {j}] - v[before]
            before = before | {j}
    return [total / math.factorial(d) for total in totals]


def difference(v, T, S):
    """The discrete derivative of v with respect to T at S."""
    return sum((-1) ** (len(T) - len(L)) * v[S | L] for L in subsets(T))


def weighted(v, d, T, weight):
    """Sum over S outside T of weight(|S|) times the discrete derivative."""
    rest = [j for j in range(d) if j not in T]
    return sum(weight(len(S)) * difference(v, frozenset(T), S) for S in subsets(rest))


def sii(v, d, T):
    t = len(T)
    return weighted(v, d, T, lambda s: Fraction(math.factorial(d - s - t) * math.factorial(s), math.factorial(d - t + 1)))


def fourier(v, d, T):
    """The coefficient of a Walsh character: the mean of chi_T(S) v(S) over all coalitions."""
    return sum((-1) ** len(frozenset(T) - S) * v[S] for S in subsets(range(d))) / 2**d


def banzhaf(v, d, T):
    return weighted(v, d, T, lambda s: Fraction(1, 2 ** (d - len(T))))


def moebius(v, d, T):
    return difference(v, frozenset(T), frozenset())


def leave_one_out(v, d, T):
    rest = frozenset(range(d)) - frozenset(T)
    return difference(v, frozenset(T), rest)


def stii(v, d, T, order):
    """Sundararajan et al. 2020, Definition 3: Taylor at the top order, Moebius below."""
    if len(T) < order:
        return moebius(v, d, T)
    return weighted(v, d, T, lambda s: Fraction(order, d) / math.comb(d - 1, s))


def beta_weight(d, s, alpha, beta):
    """Kwon & Zou 2022: n B(j + beta - 1, n - j + alpha) / B(alpha, beta) / n per subset, j = s + 1."""
    log_b = lambda x, y: math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)  # noqa: E731
    return math.exp(log_b(s + beta, d - 1 - s + alpha) - log_b(alpha, beta))


def fsii(v, d, order):
    """Tsai et al. 2023, Definition: weighted least squares fit of all sets up to the order, exact at both ends (floats)."""
    sets = [T for T in subsets(range(d)) if len(T) <= order]
    inner = [S for S in subsets(range(d)) if 0 < len(S) < d]
    weights = np.array([(d - 1) / (math.comb(d, len(S)) * len(S) * (d - len(S))) for S in inner])
    design = np.array([[float(T <= S) for T in sets] for S in inner])
    ends = np.array([[float(T <= S) for T in sets] for S in (frozenset(), frozenset(range(d)))])
    target = np.array([float(v[S]) for S in inner])
    top = np.array([float(v[frozenset()]), float(v[frozenset(range(d))])])
    normal = design.T @ (weights[:, None] * design)
    system = np.block([[normal, ends.T], [ends, np.zeros((2, 2))]])
    solution = np.linalg.lstsq(system, np.concatenate([design.T @ (weights * target), top]), rcond=None)[0]
    return {tuple(sorted(T)): value for T, value in zip(sets, solution, strict=False)}


def bernoulli(n):
    values = []
    for m in range(n + 1):
        values.append(Fraction(1) if m == 0 else -sum(math.comb(m + 1, k) * values[k] for k in range(m)) / (m + 1))
    return values[n]


def k_sii(v, d, T, order):
    """Bordt & von Luxburg 2023: n-Shapley values by aggregation of Shapley interaction indices."""
    rest = [j for j in range(d) if j not in T]
    return sum(
        bernoulli(r) * sii(v, d, tuple(sorted((*T, *extra))))
        for r in range(order - len(T) + 1)
        for extra in itertools.combinations(rest, r)
    )


def product_polynomial(inside, outside):
    """Coefficients of the product of (1 - t) outside + t inside, factors of size one; cut to far below what cancels, 2^d."""
    bits = 128 + len(inside)
    found = np.array([2**bits], object)
    for a, b in zip(inside, outside, strict=True):
        base, slope = (int(x * 2**bits) for x in (Fraction(float(b)), Fraction(float(a)) - Fraction(float(b))))
        found = (np.append(found * base, 0) + np.append(0, found * slope)) >> bits
    return [Fraction(x, 2**bits) for x in found]


def shapley_of(value, d):
    """Shapley values (d, ...) in floats of a game of any outputs; ``value`` takes sorted tuples of players, each once."""
    v = {S: np.asarray(value(tuple(sorted(S))), float) for S in subsets(range(d))}
    weight = [1.0 / (d * math.comb(d - 1, s)) for s in range(d)]
    return np.array([sum(weight[len(S)] * (v[S | {j}] - v[S]) for S in v if j not in S) for j in range(d)])


def interventional_values(predict, rows, background):
    """Shapley values (n_rows, d, ...) of v(S): mean prediction of the background, columns of S from a row; frames or arrays.

    All coalitions of a row are predicted at once: a call of a pipeline on a frame takes milliseconds.
    """
    d, is_frame = rows.shape[1], hasattr(rows, "iloc")
    coalitions = list(subsets(range(d)))

    def mixed(i, S):
        table = background.copy()
        for j in sorted(S):
            if is_frame:
                table[rows.columns[j]] = rows.iloc[i, j]
            else:
                table[:, j] = rows[i, j]
        return table

    def joined(tables):
        if not is_frame:
            return np.concatenate(tables)
        import pandas as pd  # wheels are tested without it

        return pd.concat(tables, ignore_index=True)

    def values(i):
        tables = [mixed(i, S) for S in coalitions]
        predictions = np.asarray(predict(joined(tables)), float)
        means = predictions.reshape(len(tables), len(background), *predictions.shape[1:]).mean(axis=1)
        v = dict(zip(coalitions, means, strict=True))
        return shapley_of(lambda S: v[frozenset(S)], d)

    return np.array([values(i) for i in range(len(rows))])
