"""Define values for players in nested groups or stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from exactshap.errors import InputError, UnknownNameError, UnsupportedStructureError, did_you_mean
from exactshap.semivalues._semivalue import Semivalue


@dataclass(frozen=True)
class Branch:
    """Hold a node of a tree of players; its members, players or branches, join in random or in fixed order."""

    members: tuple[Branch | int | str, ...]
    ordered: bool = False
    name: str = ""

    def players(self) -> Iterator[int | str]:
        """Yield the players below, from left to right."""
        for member in self.members:
            if isinstance(member, Branch):
                yield from member.players()
            else:
                yield member

    def depth(self) -> int:
        """Return the number of levels, 1 where all members are players."""
        return 1 + max((member.depth() for member in self.members if isinstance(member, Branch)), default=0)

    def restricted(self, kept: Mapping[int, int]) -> Branch:
        """Return the tree of some players only, renumbered, without empty branches."""
        members: list[Branch | int | str] = []
        for member in self.members:
            if isinstance(member, Branch):
                part = member.restricted(kept)
                # An empty branch must not count as a sibling that can join
                members += [part] if part.members else []
            elif member in kept:
                members.append(kept[int(member)])
        return Branch(tuple(members), self.ordered, self.name)

    def __str__(self) -> str:
        inside = (" < " if self.ordered else ", ").join(map(str, self.members))
        return f"{self.name}({inside})" if self.name else f"({inside})"


@dataclass(frozen=True)
class Hierarchy:
    r"""Define an index by random orders that never split a branch.

    .. math:: \phi_j = \sum_{(S_1, \dots, S_m)} \prod_{k=1}^m p_{n_k}(|S_k|)\,
              \bigl[v(S \cup j) - v(S)\bigr], \qquad S = \bigcup_k \bigcup_{B \in S_k} B

    where :math:`S_k` runs over the subsets of the :math:`n_k - 1` siblings of j's branch at level k. At a branch with a fixed order
    :math:`S_k` is what comes before. Made by :func:`owen` and :func:`asymmetric`.

    Parameters
    ----------
    name : str
        Shown in results.
    tree : Branch
        Players by number or by name.
    semivalue : Semivalue
        How siblings without an order join: its weights are :math:`p_n`.

    Examples
    --------
    >>> from exactshap import solve
    >>> from exactshap.games import ProductGame
    >>> from exactshap.semivalues import owen
    >>> game = ProductGame(c=[1.0], a=[[2.0, 3.0, 5.0]], b=[[1.0, 1.0, 1.0]])
    >>> solve(game, owen({"pair": [0, 1]})).values  # the pair gets (5 + 25 - 1 - 5) / 2 + ... = 15
    array([ 6.,  9., 14.])
    """

    name: str
    tree: Branch
    semivalue: Semivalue

    @property
    def efficient(self) -> bool:
        """Say whether the values add up to v(D) - v(empty)."""
        return self.semivalue.efficient

    def is_efficient(self, order: int) -> bool:
        """Say whether all values up to ``order`` sum to v(D) - v(empty)."""
        return self.efficient and order == 1

    def of_size(self, *_: object, **__: object) -> NoReturn:
        """Raise an error, as only semivalues have measures."""
        text = f"Index {self.name!r} is not a semivalue: it has no one weight for all coalitions of a size"
        raise UnsupportedStructureError(text, do="Use it in explainer(X, index=...) or solve(game, index)")

    rule = weights = of_size

    def among(self, names: Sequence[str]) -> Hierarchy:
        """Return the hierarchy with numbers for the players ``names``.

        Players in no branch join at the top level.

        Raises
        ------
        UnknownNameError, InputError
            If a player is unknown, named twice, or left out of an order.
        """
        seen: dict[int, int | str] = {}
        tree = _numbered(self.tree, names, seen)
        missing = [j for j in range(len(names)) if j not in seen]
        if missing and self.tree.ordered:
            raise InputError(
                f"Player {names[missing[0]]!r} has no place in the order", do="Put every player in one of the stages"
            )
        return Hierarchy(self.name, Branch((*tree.members, *missing), tree.ordered, tree.name), self.semivalue)


Question = Semivalue | Hierarchy


def _numbered(branch: Branch, names: Sequence[str], seen: dict[int, int | str]) -> Branch:
    members: list[Branch | int | str] = []
    for member in branch.members:
        if isinstance(member, Branch):
            members.append(_numbered(member, names, seen))
            continue
        j = _number(member, names)
        if j in seen:
            raise InputError(f"Player {names[j]!r} is in the structure twice", do="Name each player once")
        seen[j] = member
        members.append(j)
    return Branch(tuple(members), branch.ordered, branch.name)


def _number(member: int | str, names: Sequence[str]) -> int:
    if isinstance(member, str):
        if member not in names:
            raise UnknownNameError(f"No player is called {member!r}", do=did_you_mean(member, names))
        return list(names).index(member)
    if 0 <= int(member) < len(names):
        return int(member)
    raise InputError(f"There is no player {member}", f"There are {len(names)}")
