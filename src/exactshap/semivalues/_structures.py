"""Read trees of players: nested groups, and stages of causes and effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from exactshap.errors import InputError, InputTypeError, message
from exactshap.semivalues._hierarchy import Branch, Hierarchy
from exactshap.semivalues._named import find
from exactshap.semivalues._semivalue import Semivalue

__all__ = ["asymmetric", "owen"]


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
        Lists of names or numbers of players, or mappings of such: nested groups. Players in none stand alone.
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
        raise InputTypeError(message("`groups` must map names to players", f"Got {type(groups).__name__}", do))
    tree = _branch(groups, "")
    return Hierarchy("owen" if tree.depth() <= 2 else "winter", tree, find(semivalue))


def asymmetric(stages: Sequence[object]) -> Hierarchy:
    r"""Return the asymmetric Shapley value for stages of causes and effects.

    Only orders that keep to the stages count:

    .. math:: \phi_j = (a_j - b_j) \prod_{i\ \mathrm{before}} a_i \prod_{i\ \mathrm{after}} b_i
              \int_0^1 \prod_{i\ \mathrm{in\ the\ same\ stage}} \bigl(t\, a_i + (1 - t)\, b_i\bigr)\, \mathrm{d}t

    for one term of a product game. A player of an early stage gets the credit that it shares with its effects; one of a later stage
    what it adds to all of the earlier ones.

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
        raise InputTypeError(message("`stages` must be a sequence", f"Got {type(stages).__name__}", do))
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
        raise InputTypeError(message(f"Group {name!r} cannot be read", f"Got {members!r}", do))
    if not parts:
        raise InputError(message(f"Group {name!r} has no players", do="Name at least one"))
    return Branch(tuple(parts), name=name)


def _is_player(member: object) -> TypeGuard[int | str]:
    return isinstance(member, str) or (hasattr(member, "__index__") and not isinstance(member, bool))
