"""Name the indices, families of them, and structures of players: Owen values and orders of causes."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeGuard, overload

import numpy as np

from exactshap.errors import InputError, InputTypeError, UnknownNameError, did_you_mean
from exactshap.semivalues._hierarchy import Branch, Hierarchy, Question
from exactshap.semivalues._semivalue import Atom, Beta, EndSlopes, Measure, Mixture, Moments, Semivalue, SignedDensity


def _taylor(size: int, order: int) -> Measure:
    return Beta(1, order) if size == order else Atom(0.0)


def _faithful(size: int, order: int) -> Measure:
    return Beta(order, order) if size == order else SignedDensity(_faithful_density(size, order))


@functools.lru_cache(maxsize=256)
def _faithful_density(s: int, k: int) -> tuple[Fraction, ...]:
    r"""Return the polynomial coefficients of FSII's density below its highest size (Tsai et al. 2023).

    Its moments are

    .. math:: \int t^r q(t)\, \mathrm{d}t = (-1)^{k-s} \frac{s}{k + s} \binom{k}{s} \binom{s+r-1}{k} \Big/ \binom{s+r+k-1}{k+s}

    is a constant times :math:`\prod_{i=s+1}^k (\tau - i) / \prod_{j=0}^{k-1} (\tau + j)`, :math:`\tau = s + r`. Its partial fractions
    :math:`A_j / (\tau + j)` are the moments of :math:`A_j t^{s+j-1}`.
    """
    constant = (-1) ** (k - s) * Fraction(s, k + s) * math.comb(k, s) * Fraction(math.factorial(k + s), math.factorial(k))
    # The lowest power is t^(s - 1), of j = 0
    density = [Fraction(0)] * (s - 1)
    for j in range(k):
        # Partial fractions: the residue at tau = -j is the numerator there divided by the differences to the other poles
        numerator = math.prod(-j - i for i in range(s + 1, k + 1))
        density.append(constant * Fraction(numerator, math.prod(other - j for other in range(k) if other != j)))
    return tuple(density)


def _aggregated(size: int, order: int) -> Measure:
    r"""Return k-SII's functional by the Euler-Maclaurin formula.

    It is :math:`\int f + \sum_{l=1}^{k-s} \frac{B_l}{l!} [f^{(l-1)}(1) - f^{(l-1)}(0)]`.

    Integral, ends and slopes at the ends keep their digits; third derivatives (k - s > 3, as B_3 = 0) need the moments.
    """
    if order - size > 3:
        return Moments(functools.partial(_aggregated_moment, size, order))
    parts = ((1.0, Beta(1, 1)), (0.5, Atom(0.0)), (-0.5, Atom(1.0)), (1.0 / 12.0, EndSlopes()))
    # The sum up to l = k - s: B_1 adds both ends, B_2 the slopes, and B_3 = 0 adds nothing
    return Mixture(parts[: (1, 3, 4, 4)[order - size]])


def _aggregated_moment(s: int, k: int, r: int) -> Fraction:
    tau = s + r
    # Terms beyond u = tau vanish with their binomial coefficient
    terms = (math.comb(tau - s, u - s) * bernoulli(u - s) / (tau - u + 1) for u in range(s, min(k, tau) + 1))
    return sum(terms, Fraction(0))


@functools.lru_cache(maxsize=256)
def bernoulli(n: int) -> Fraction:
    """Return the Bernoulli number B_n with B_1 = -1/2, exactly."""
    if n == 0:
        return Fraction(1)
    return -sum((math.comb(n + 1, k) * bernoulli(k) for k in range(n)), Fraction(0)) / (n + 1)


def _fourier(size: int, order: int) -> Measure:
    r"""Return the measure of the coefficient of a Walsh character: :math:`\chi_T(x) = \prod_{i \in T} x_i` with x = 2 S - 1.

    .. math:: \hat v(T) = 2^{-d} \sum_S \chi_T(S)\, v(S) = 2^{-|T|}\, I_T^\mathrm{Banzhaf}
    """
    return Mixture(((0.5**size, Atom(0.5)),))


_TABLE: dict[str, Semivalue] = {
    value.name: value
    for value in (
        Semivalue("shapley", Beta(1, 1), efficient=True),
        Semivalue("banzhaf", Atom(0.5)),
        Semivalue("leave-one-out", Atom(1.0)),
        Semivalue("moebius", Atom(0.0)),
        Semivalue("sii", Beta(1, 1), efficient=True),
        Semivalue("banzhaf-interaction", Atom(0.5)),
        Semivalue("fourier", _fourier, mass=0.5),
        Semivalue("chaining", lambda size, order: Beta(size, 1), efficient=True),
        Semivalue("stii", _taylor, efficient=True, cumulative=True),
        Semivalue("fsii", _faithful, efficient=True, cumulative=True),
        Semivalue("k-sii", _aggregated, efficient=True, cumulative=True),
    )
}

_OF_A_STRUCTURE = {
    "owen": "It needs the groups: index=semivalues.owen({'body': ['bmi', 'bp']})",
    "winter": "It needs the groups: index=semivalues.owen({'body': {'size': ['bmi'], 'blood': ['s1', 's2']}})",
    "terms": "Terms of a model are no index: exactshap.readers.additive.explain_terms(model, X) gives them, as interpret does",
    "asymmetric": "It needs the order: index=semivalues.asymmetric([['age', 'sex'], 'bmi'])",
}


def beta(alpha: float, beta: float) -> Semivalue:
    r"""Return the Beta(alpha, beta) semivalue of Kwon & Zou (2022).

    .. math:: p(s) = B(s + \beta, d - 1 - s + \alpha) / B(\alpha, \beta)

    A large ``alpha`` stresses small coalitions: Beta(16, 1) puts weight 0.76 on the empty one at d = 6.

    Parameters
    ----------
    alpha, beta : float > 0

    Returns
    -------
    semivalue : Semivalue
        Shapley for alpha = beta = 1.

    Raises
    ------
    InputError, InputTypeError
        If a parameter is not a finite number > 0.

    Examples
    --------
    >>> beta(16, 1).weights(6)[0].round(2)
    np.float64(0.76)
    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not isinstance(value, (int, float, np.number)):
            raise InputTypeError(f"The '{name}' parameter must be a float > 0", f"Got {value!r}")
    return Semivalue(f"beta({alpha:g}, {beta:g})", Beta(p=beta, q=alpha), efficient=alpha == beta == 1)


def available() -> tuple[str, ...]:
    """Return the names that ``index=`` understands.

    Returns
    -------
    names : tuple of str

    Examples
    --------
    >>> available()[:3]
    ('shapley', 'banzhaf', 'leave-one-out')
    """
    return tuple(_TABLE)


@overload
def find(index: str | Semivalue) -> Semivalue: ...
@overload
def find(index: Hierarchy) -> Hierarchy: ...
def find(index: str | Question) -> Question:
    """Return the semivalue of a name, or the object itself.

    Parameters
    ----------
    index : str, Semivalue or Hierarchy
        One of :func:`available`; case, spaces around it and ``_`` for ``-`` do not matter.

    Returns
    -------
    semivalue : Semivalue or Hierarchy

    Raises
    ------
    UnknownNameError
        For unknown names, with the closest known one.
    InputTypeError
        For other objects.

    Examples
    --------
    >>> find("K_SII").name
    'k-sii'
    """
    if isinstance(index, (Semivalue, Hierarchy)):
        return index
    if not isinstance(index, str):
        raise InputTypeError("`index` must be a name or a Semivalue", f"Got {type(index).__name__}")
    try:
        # The exact name first, as most calls use it
        return _TABLE.get(index) or _TABLE[index.strip().lower().replace("_", "-")]
    except KeyError:
        do = _OF_A_STRUCTURE.get(index.strip().lower()) or did_you_mean(index, _TABLE)
        raise UnknownNameError(f"Unknown index {index!r}", do=do) from None


def owen(groups: Mapping[str, object], semivalue: str | Semivalue = "shapley") -> Hierarchy:
    r"""Return the value of players in groups that join together.

    Owen's value for groups, Winter's for groups of groups:

    .. math:: \phi_j = (a_j - b_j) \prod_{k=1}^m \int_0^1 \prod_{B \in \mathrm{siblings}_k}
              \bigl(t\, a_B + (1 - t)\, b_B\bigr)\, \mathrm{d}t, \qquad a_B = \prod_{i \in B} a_i

    for one term of a product game: an integral for each level above the player. The values of a group add up to the Shapley value that
    the group has as one player, at every level.

    Parameters
    ----------
    groups : mapping of name to players
        Lists of names or numbers of players, or mappings of lists: nested groups. Players in no group join alone.
    semivalue : str or Semivalue, default="shapley"
        How members of one group join, at all levels; "banzhaf" gives Owen's modified Banzhaf value.

    Returns
    -------
    hierarchy : Hierarchy
        An ``index`` for :func:`exactshap.solve` and :class:`exactshap.Explainer`.

    Raises
    ------
    InputTypeError, InputError
        If the groups are not such a mapping, or a group is empty.

    References
    ----------
    .. [1] Owen, G. (1977). Values of games with a priori unions. Essays in Mathematical Economics and Game Theory, 76-88.
    .. [2] Winter, E. (1989). A value for cooperative games with levels structure of cooperation. Int. J. Game Theory 18, 227-240.

    Examples
    --------
    >>> owen({"body": ["bmi", "bp"], "blood": {"fats": ["s1", "s2"], "sugar": ["s6"]}}).name
    'winter'
    """
    if not isinstance(groups, Mapping):
        do = "Pass owen({'body': ['bmi', 'bp'], 'blood': {'fats': ['s1', 's2']}})"
        raise InputTypeError("`groups` must map names to players", f"Got {type(groups).__name__}", do)
    tree = _branch(groups, "")
    return Hierarchy("owen" if tree.depth() <= 2 else "winter", tree, find(semivalue))


def asymmetric(stages: Sequence[object]) -> Hierarchy:
    r"""Return the asymmetric Shapley value for stages of causes and effects.

    Only orders that keep to the stages count:

    .. math:: \phi_j = (a_j - b_j) \prod_{i\ \mathrm{before}} a_i \prod_{i\ \mathrm{after}} b_i
              \int_0^1 \prod_{i\ \mathrm{in\ the\ same\ stage}} \bigl(t\, a_i + (1 - t)\, b_i\bigr)\, \mathrm{d}t

    for one term of a product game. A player of an early stage gets the credit that it shares with its effects; one of a later stage
    gets what it adds to the earlier ones.

    Parameters
    ----------
    stages : sequence
        Causes first. A stage is a player, a list of players (in random order) or a mapping of groups as in :func:`owen`.

    Returns
    -------
    hierarchy : Hierarchy
        An ``index`` for :func:`exactshap.solve` and :class:`exactshap.Explainer`.

    Raises
    ------
    InputTypeError, InputError
        If ``stages`` is no sequence, or a stage is empty.

    References
    ----------
    .. [1] Frye, C., Rowat, C. and Feige, I. (2020). Asymmetric Shapley values. NeurIPS, equations 4 and 7.

    Examples
    --------
    >>> from exactshap import solve
    >>> from exactshap.games import ProductGame
    >>> game = ProductGame(c=[1.0], a=[[2.0, 3.0]], b=[[1.0, 1.0]])
    >>> solve(game, asymmetric([0, 1])).values  # 2 - 1, then 6 - 2
    array([1., 4.])
    """
    if isinstance(stages, (str, Mapping)) or not isinstance(stages, Sequence):
        do = "Pass asymmetric([['age', 'sex'], 'bmi']), causes first"
        raise InputTypeError("`stages` must be a sequence", f"Got {type(stages).__name__}", do)
    # A stage of one player needs no branch
    members = tuple(stage if _is_player(stage) else _branch(stage, "") for stage in stages)
    return Hierarchy("asymmetric", Branch(members, ordered=True), find("shapley"))


def _branch(members: object, name: str) -> Branch:
    """Return a mapping of groups, or an iterable of players, as a branch."""
    if isinstance(members, Mapping):
        parts = [inner if _is_player(inner) else _branch(inner, str(key)) for key, inner in members.items()]
    elif isinstance(members, Iterable):
        parts = [member if _is_player(member) else _branch(member, "") for member in members]
    else:
        do = "Pass names or numbers of players, lists of them or mappings of lists"
        raise InputTypeError(f"Group {name!r} cannot be read", f"Got {members!r}", do)
    if not parts:
        raise InputError(f"Group {name!r} has no players", do="Name at least one")
    return Branch(tuple(parts), name=name)


def _is_player(member: object) -> TypeGuard[int | str]:
    # ``__index__`` also accepts NumPy's integers; True would be player 1
    return isinstance(member, str) or (hasattr(member, "__index__") and not isinstance(member, bool))
