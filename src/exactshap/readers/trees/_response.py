r"""Read responses of boosted trees: probabilities, rates, hazard ratios.

Where every tree splits on the columns of one player, the margin is a sum over players and its response exact. Of other ensembles
all coalitions of few players are visited, of many some: margins of the hybrids of a row and the background come from one walk of all these
coalitions through each tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, UnsupportedStructureError, no_output
from exactshap.frames import Table
from exactshap.games import player_of_columns
from exactshap.readers import Offset, OwnCall, Reader, Request, choose_value_function, outputs_of
from exactshap.readers.responses import HybridScores, Response, ResponseReader, RowScores, SampledResponse, no_response
from exactshap.readers.trees._tree_reader import TreeReader
from exactshap.trees import FlatTrees, TreeModel, apply
from exactshap.trees.ensemble import HybridRow, Hybrids, encode, readable

CHEAP_PLAYERS = 10  # as of ``HybridScores`` (benchmarks/bench_probabilities.py)
MOST_PLAYERS = 20  # bits of a coalition's number in the kernel
# Link, call and slope; None: no known response
Described = tuple[str, OwnCall, float] | None
# What makes a response of a score in each unit
LINKS = {
    "log-odds": "logistic",
    "score before the softmax": "softmax",
    **dict.fromkeys(("log hazard", "log of the survival time", "log of the target"), "exponential"),
}


def by_unit(ensemble: TreeModel, call: OwnCall | None = None) -> Described:
    """Return the link of the score's unit, the documented call of the response, and the slope; None for other units."""
    unit, _, slope = ensemble.unit.partition(" / ")
    return (LINKS[unit], call or OwnCall("predict_proba"), float(slope or 1.0)) if unit in LINKS else None


def read_trees(
    model: Model,
    request: Request,
    ensemble: TreeModel,
    own_call: OwnCall,
    known: Described | UnsupportedStructureError,
    refuse: Callable[[Table], None] | None = None,
    offset: Offset | None = None,
) -> Reader:
    """Read an ensemble's margin or, by ``output=``, its response, which is ``known`` or refused by an error."""
    # Forests add up probabilities themselves: there the margin is the response, and exact.
    adds_up = ensemble.unit == "probability" or (request.output, ensemble.unit) == ("response", "target")
    outer: Response | None = request.outer_response
    # Of a target that was transformed, or of the score or probability of a classifier
    if outer is not None and (outer.call.method == "predict") != (ensemble.unit == "target"):
        outer = None
    if outer is None and (not request.asks_response or adds_up):
        return TreeReader(model, request, ensemble, own_call, refuse, offset)
    if outer is not None and (ensemble.unit == "probability" or not outer.is_of_probability):
        response, output = outer, "auto"
    else:
        # The margin of all classes, as a softmax of one class needs the scores of the others.
        response, output = _known_response(model, request, ensemble, known), "all"
        response = response if outer is None else outer.after(response)
    choose_value_function(request, owner=f"The {response.unit} of {ensemble.name}")
    margin = TreeReader(model, replace(request, output=output, options={}), ensemble, own_call, refuse)
    if outer is not None and margin.traits.single_output == outer.takes_several:
        raise UnknownNameError(no_output(ensemble.name, request.output, ensemble.output_names))
    return _of_margin(margin, replace(response, rows=partial(readable, margin.ensemble)), request)


def _known_response(
    model: Model, request: Request, ensemble: TreeModel, known: Described | UnsupportedStructureError
) -> Response:
    """Return the response that the ensemble's own link makes of its margin."""
    no_such_output = UnknownNameError(no_output(ensemble.name, request.output, ensemble.output_names))
    if request.output == "probability" and ensemble.unit == "target":
        raise no_such_output
    if isinstance(known, UnsupportedStructureError):
        raise known
    if known is None and request.output == "probability" and not hasattr(model, "predict_proba"):
        raise no_such_output
    if known is None:
        raise no_response(model, f"Its objective is {ensemble.objective or 'unknown'}, the unit of its score: {ensemble.unit}")
    link, call, slope = known
    unit = _unit(ensemble, link)
    if request.output == "probability" and not unit.startswith("probability"):
        raise no_such_output
    finish = partial(_finished, call.finish, len(ensemble.output_names), ensemble.single_output)
    return Response(link, replace(call, finish=finish), unit, slope)


def _of_margin(margin: TreeReader, response: Response, request: Request) -> Reader:
    """Read the response of a margin."""
    owners = _owners(margin)
    # Every tree belongs to one player: the margin is a sum over players, and its response needs no sampling.
    if owners is not None and response.function is None and response.link in ("exponential", "logistic"):
        request.refuse_options(owner=f"The {response.unit} of {margin.traits.model_name}")
        return ResponseReader(margin, _StumpScores(margin, owners), response)
    why = "trees join players" if owners is None else f"the {response.link} joins the scores of all classes"
    ensemble, owner = margin.ensemble, _player_of_column(margin)
    background = encode(ensemble, margin.traits.reference, "background")
    hybrids = Hybrids(ensemble.trees, owner, margin.traits.n_players, background, ensemble.tree_output)
    # Leaves are numbers, so that a walk knows all margins on its way
    has_orders = ensemble.trees.linear is None
    scores = HybridScores(partial(_scores_of_row, ensemble, hybrids), CHEAP_PLAYERS, has_orders=has_orders)
    return SampledResponse(margin, scores, response, request, why)


def _finished(finish: Callable[[np.ndarray], np.ndarray], n_outputs: int, single: bool, values: np.ndarray) -> np.ndarray:
    """Return the responses of all outputs; of two classes that have one score, of the second."""
    values = finish(values)
    return (
        outputs_of([values.size // max(len(values), 1) - 1], True, values) if single else values.reshape(len(values), n_outputs)
    )


def _unit(ensemble: TreeModel, link: str) -> str:
    """Return the unit of the response."""
    if link == "exponential":
        return "hazard ratio" if "hazard" in ensemble.unit else "survival time" if "survival" in ensemble.unit else "target"
    names = ensemble.output_names
    if not ensemble.single_output or names == ("output",):
        return "probability"
    return f"probability of class {names[0]}"


def _owners(margin: TreeReader) -> np.ndarray | None:
    """Return the player (n_trees,) of each tree, or None. A tree with several players or outputs has none."""
    trees = margin.ensemble.trees
    # A linear leaf may hold columns that its path does not split on.
    if not margin.traits.single_output or trees.linear is not None:
        return None
    player_of_column, owners = _player_of_column(margin), np.zeros(trees.n_trees, int)
    for k in range(trees.n_trees):
        column = trees.feature[trees.tree_start[k] : trees.tree_start[k + 1]]
        members = np.unique(player_of_column[column[column >= 0]])
        if len(members) > 1:
            return None
        # A tree that is one leaf is a constant: any player may own it, as it does not differ between coalitions.
        owners[k] = members[0] if len(members) else 0
    return owners


def _player_of_column(margin: TreeReader) -> np.ndarray:
    return player_of_columns(margin.tree_players, margin.ensemble.trees.n_features)


class _StumpScores:
    """Evaluate trees of one player each."""

    def __init__(self, margin: TreeReader, owners: np.ndarray) -> None:
        self._ensemble, self._owners, self._n_players = margin.ensemble, owners, margin.traits.n_players
        self.intercept = float(margin.ensemble.trees.constant[0])

    def _leaves(self, X: Table) -> np.ndarray:
        trees: FlatTrees = self._ensemble.trees
        return trees.value[apply(trees, encode(self._ensemble, X)), 0]

    def of(self, X: Table, what: str = "X") -> np.ndarray:
        """Return the leaves of each player's trees. They are added up in the order of the trees."""
        leaves, scores = self._leaves(X), np.zeros((X.n_rows, self._n_players))
        for k, player in enumerate(self._owners):
            scores[:, player] += leaves[:, k]
        return scores

    def sizes(self, X: Table) -> np.ndarray:
        """Return the magnitudes that are added up in the margin."""
        return np.asarray(np.abs(self._leaves(X)).sum(axis=1) + abs(self.intercept))


def _scores_of_row(ensemble: TreeModel, hybrids: Hybrids, X: Table) -> RowScores:
    """Return the margins of one row's hybrids; players matter that send it another way than some background row."""
    row = hybrids.row(encode(ensemble, X))
    return _TreeRow(partial(hybrids.margins, row), hybrids.moving(row), hybrids, row, ensemble.trees.linear is None)


@dataclass(frozen=True, eq=False)
class _TreeRow(RowScores):
    """Compute margins of one row's hybrids."""

    hybrids: Hybrids
    row: HybridRow
    has_paths: bool

    def along(self, orders: np.ndarray) -> np.ndarray:
        """Return the margins along orders: a walk through a tree has all prefixes of an order."""
        return self.hybrids.along_orders(self.row, orders, self.players)

    def every(self) -> tuple[list[int], Iterable[np.ndarray]] | None:
        """Return the margins of all coalitions.

        Players with few nodes come first, so that most leaves hold all of these or none.
        """
        if not self.has_paths or not 2 <= len(self.players) <= MOST_PLAYERS:
            return None
        players = self.hybrids.by_use(self.players)
        return players, self.hybrids.all_margins(self.row, players)
