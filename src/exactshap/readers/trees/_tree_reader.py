"""Read ensembles of trees as games, for all libraries.

A reader file makes a :class:`~exactshap.trees.TreeModel` and a function for the library's own margin; :class:`TreeReader`
does the rest: ``prepare_trees`` of :mod:`exactshap.solvers.trees` once at construction (the background's tables are its state),
``solve_trees`` for each block of rows. ``game`` is the reference implementation: one term for each leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from exactshap._runtime.types import Model
from exactshap._runtime.words import unit_of_statistic
from exactshap.errors import BudgetError, ExactnessError, UnknownNameError, UnsupportedStructureError, no_output
from exactshap.frames import Table
from exactshap.games import ProductGame, player_of_columns
from exactshap.readers import Offset, OwnCall, Reader, Request, Rounding, SecondReading, Traits
from exactshap.readers.trees._dump import Node, dump_difference, own_trees, walked_values
from exactshap.semivalues import Semivalue
from exactshap.solvers import Cost, Solution, count_sets
from exactshap.solvers.trees import check_cells, no_path_dependent, prepare_trees, solve_trees
from exactshap.trees import FlatTrees, TreeModel, inside, margin, paths, prepared
from exactshap.trees.ensemble import LinearLeaves, encode, function_sizes, largest_sum, readable

# Bytes of the game written out; beyond, ``game`` refuses.
MAX_GAME_BYTES = 2.0**32
# Rows of a block, and its rows times nodes: a call of a booster with a frame costs what some 4,000 rows of shallow trees cost, so that
# 200,000 rows of 100 trees of depth 3 take 0.22 s in place of 0.30 s; deeper trees keep a second's work in a block (benchmarks/bench_trees.py).
BLOCK_ROWS, BLOCK_VISITS = (4096, 2**14), 2**27
VALUE_FUNCTIONS = ("path_dependent", "interventional", "baseline")


class TreeReader(Reader):
    r"""Read a tree ensemble bound to a value function.

    .. math:: v(S) = c + \sum_l v_l \prod_{j \in S} a_{lj}(x) \prod_{j \notin S} b_{lj}

    ``own_call`` is the library's documented call for all outputs of the margin; ``refuse(table)`` names the cell for which that raised a
    ValueError; ``offset`` says how it takes an offset of each row.
    """

    def __init__(
        self,
        model: Model,
        request: Request,
        ensemble: TreeModel,
        own_call: OwnCall,
        refuse: Callable[[Table], None] | None = None,
        offset: Offset | None = None,
    ) -> None:
        request.refuse_options(owner=ensemble.name)
        request = _of_trees(request, ensemble)
        # Before ``pick``, which forgets the other outputs: the library's own call still answers all of them.
        self._column = ensemble.output_number(request.output)
        unit = _unit(ensemble, self._column)
        n_model_outputs = len(ensemble.output_names)
        self.ensemble = ensemble = ensemble.pick(request.output)
        self._refuse, self._dump = refuse, _Dump(model, ensemble, self._column, n_model_outputs)
        traits = Traits.of(
            model,
            request,
            model_name=ensemble.name,
            fitted_names=ensemble.feature_names,
            n_columns=ensemble.n_features,
            value_functions=VALUE_FUNCTIONS,
            default="path_dependent",
            output_names=ensemble.output_names,
            single_output=ensemble.single_output,
            unit=unit,
            rounding=Rounding(float(max(len(ensemble.trees.tree_start) - 1, 1)), ensemble.epsilon),
            own_call=own_call if self._column is None else replace(own_call, finish=partial(_finished, own_call, self._column)),
            offset=offset or Offset(),
            offset_note=ensemble.offset_note,
            absent=ensemble.absent,
            second_reading=self._dump.compared,
            block_rows=int(np.clip(BLOCK_VISITS // max(ensemble.trees.n_nodes, 1), *BLOCK_ROWS)),
        )
        if traits.value_function == "path_dependent":
            # Covers of the nodes stand in for a background: one that was passed is not part of this value function.
            traits = replace(traits, background=None, weights=None)
            if ensemble.trees.linear is not None:
                raise UnsupportedStructureError(no_path_dependent(f"The trees of {ensemble.name}"))
        self.traits = traits
        self.tree_players = ensemble.tree_players(self.traits.players, self.traits.feature_names)
        rows, self._largest_sum = None, largest_sum(ensemble.trees)
        if self.traits.value_function == "path_dependent":
            ensemble.require_covers("value function", "Pass background=X_reference for the interventional one")
        else:
            rows = encode(ensemble, self.traits.reference, "background", self.traits.feature_names)
            check_cells(ensemble.trees, rows, "background")
            # Here, as v(empty) is the sum of our own routing: a misread split would move every value without a sign.
            self._check_background(self.predict(self.traits.reference), rows)
        self._prepared = prepare_trees(
            ensemble.trees, self.tree_players, rows, self.traits.weights, memory_limit=request.memory_limit
        )

    def predict(self, X: Table) -> np.ndarray:
        assert self.traits.own_call is not None
        # What was read from a file predicts whatever it encodes, texts too
        rows = X if isinstance(self.traits.model, TreeModel) else readable(self.ensemble, X)
        try:
            with np.errstate(over="ignore"):
                return self.traits.own_call(self.traits.model, rows.native)
        except ValueError:
            if self._refuse is not None:
                self._refuse(X)
            raise

    def solve(self, X: Table, semivalue: Semivalue, order: int) -> Solution:
        solution = solve_trees(self._prepared, self._encoded(X), semivalue, order)
        reading = self.ensemble.reading
        return solution.renamed(f"{solution.method}; {reading}") if reading else solution

    def _encoded(self, X: Table) -> np.ndarray:
        """Encode rows; what is refused is named by its column, also in arrays that a pipeline makes."""
        return encode(self.ensemble, X, names=self.traits.feature_names)

    def game(self, X: Table) -> ProductGame:
        rows = None if self.traits.background is None else encode(self.ensemble, self.traits.background, "background")
        return _leaf_game(self.ensemble.trees, self.tree_players, encode(self.ensemble, X), rows, self.traits.weights)

    def bind(self, row: Table) -> TreeReader | None:
        """Bind without tables, which do not pay for one reference row."""
        if self.traits.background is None:
            return None
        bound = self._rebound(row)
        # memory_limit=0 leaves no room for tables, which pay only for many rows.
        bound._prepared = prepare_trees(self.ensemble.trees, self.tree_players, encode(self.ensemble, row), memory_limit=0.0)
        return bound

    def masked_predictions(self, X: Table, masks: np.ndarray) -> np.ndarray | None:
        """Mask rows by hand; for the path-dependent game, walk over the library's own dump."""
        if self.traits.value_function != "path_dependent":
            return super().masked_predictions(X, masks)
        own = self._dump.trees()
        if own is None:
            return None
        trees, outputs = self.ensemble.trees, self.ensemble.tree_output
        present = np.zeros((len(masks) + 1, trees.n_features), bool)
        for player, columns in enumerate(self.traits.players):
            present[:-1, list(columns)] = np.asarray(masks)[:, player : player + 1]
        # One coalition more, of all columns: what the model predicts beyond it is the constant.
        present[-1] = True
        # As the library compares: thresholds and cells may be equal in float32 only.
        rows = prepared(trees, X.numeric(absent=self.traits.absent))
        rows = np.where(rows == self.ensemble.missing_value, np.nan, rows)
        sums = walked_values(own, rows, present, self.traits.n_outputs, outputs)
        # The dump may not tell the constant; the median over the rows keeps one odd row from moving it.
        constant = np.median(self.predict(X).reshape(X.n_rows, -1) - sums[:, -1], axis=0)
        values = sums[:, :-1] + constant
        return values[:, :, 0] if self.traits.single_output else values

    def _check_background(self, predicted: np.ndarray, rows: np.ndarray) -> None:
        """Compare our routing of the background, which gives v(empty), with the library's own predictions."""
        own = predicted.reshape(len(rows), -1)
        ours = margin(self.ensemble.trees, rows)
        # Rounding is relative to what is added up, the largest leaf of every tree, not to a sum that may cancel.
        sizes = self._largest_sum + function_sizes(self.ensemble.trees, rows)
        allowed = 64.0 * self.traits.rounding.precision * (np.sqrt(self.traits.rounding.n_terms) + 1.0) * sizes
        worst = np.abs(own - ours).max(axis=1)
        # ``not <=``, so that NaN is refused as well.
        if (i := int(np.argmax(worst - allowed))) >= 0 and not worst[i] <= allowed[i]:
            raise ExactnessError(
                f"The trees of {self.traits.model_name} were not read as the library reads them",
                f"Background row {i}: {ours[i].tolist()} against its own {own[i].tolist()}",
                "Please report this with exactshap.show_versions()",
            )

    def memory(self, n_rows: int, order: int) -> float:
        return n_rows * self._row_bytes(order) + self._prepared.memory(n_rows, order)

    def cost(self, few: Table, n_rows: int, semivalue: Semivalue, order: int, block_rows: int) -> Cost:
        # What a call refuses, with its error and not that of the library
        self._encoded(few)
        solving = self._prepared.cost(n_rows, -(-n_rows // block_rows), order)
        return solving + Cost(bytes=block_rows * self._row_bytes(order))

    def _row_bytes(self, order: int) -> float:
        sets = count_sets(self.traits.n_players, order) * self.traits.n_outputs
        return 8.0 * (3.0 * sets + 4.0 * self.ensemble.trees.n_features)


def _of_trees(request: Request, ensemble: TreeModel) -> Request:
    """Return the request for what the trees add up. It may be the response; other responses are refused."""
    if not request.asks_response:
        return request
    if ensemble.unit != "probability" and (request.output, ensemble.unit) != ("response", "target"):
        raise UnknownNameError(no_output(ensemble.name, request.output, ensemble.output_names))
    return replace(request, output="auto")


@dataclass(frozen=True, eq=False)
class _Dump:
    """Read the explained outputs' trees a second time, from the library's own dump."""

    model: Model
    ensemble: TreeModel
    column: int | None  # the one output of several that is explained
    n_model_outputs: int

    def trees(self) -> list[Node] | None:
        """Return the trees, or None where the dump does not hold them."""
        ensemble, column, every = self.ensemble, self.column, self.n_model_outputs
        own = None if ensemble.hashed is not None or any(ensemble.categories) else own_trees(self.model, ensemble.library)
        if own is None:
            return None
        # Boosters have one tree for each class and stage, in turn: every K-th is of the one output.
        if column is not None and len(own) == every * ensemble.trees.n_trees and every > 1:
            return own[column::every]
        # Dumps hold all trees, also those after an early stop, which do not predict.
        own = own[: ensemble.trees.n_trees]
        if column is not None:
            for node in _leaves(own):
                node.value = node.value[[column]] if len(node.value) > 1 else node.value
        return own

    def compared(self) -> SecondReading:
        """Compare the trees, node by node."""
        own = self.trees()
        if own is None:
            return SecondReading(gap=self._gap())
        return SecondReading(dump_difference(self.ensemble.trees, own, self.ensemble.tree_output))

    def _gap(self) -> str:
        """Return why the trees cannot be compared with a dump."""
        name = self.ensemble.name
        if self.ensemble.hashed is not None or any(self.ensemble.categories):
            return f"{name} splits on categories, which its dump writes in another form"
        if isinstance(self.model, TreeModel):
            return "they come from a file, without the library that could dump them"
        if self.ensemble.library == "treelite":
            return "they are read from treelite's dump itself"
        return f"the library has no dump of {name} with every number that it predicts by"


def _leaves(own: list[Node]) -> Iterator[Node]:
    stack = list(own)
    while stack:
        node = stack.pop()
        if node.below is None or node.above is None:
            yield node
        else:
            stack += [node.below, node.above]


def _unit(ensemble: TreeModel, column: int | None) -> str:
    """Return the unit, with class or statistic where one output is explained."""
    names, unit = ensemble.output_names, ensemble.unit
    if names == ("output",) or (column is None and not ensemble.single_output):
        return unit
    # A single output has no number, and is the first.
    name = names[column or 0]
    if unit.partition(" / ")[0] in ("log-odds", "probability", "score before the softmax"):
        # As one of several outputs is called that is picked from an explanation
        is_called = len(names) > 2 or name.startswith(("class ", "label ", "target "))
        return f"{unit} of {name}" if is_called else f"{unit} of class {name}"
    return unit_of_statistic(unit, name) or unit


def _leaf_game(
    trees: FlatTrees,
    players: Sequence[Sequence[int]],
    X: np.ndarray,
    background: np.ndarray | None,
    weights: np.ndarray | None,
) -> ProductGame:
    r"""Return the games of some rows.

    .. math:: v(S) = c + \sum_l v_l \prod_{j \in S} a_{lj} \prod_{j \notin S} b_{lj}

    a says whether the row satisfies every split on player j on the path to leaf l; b is the product of the cover ratios of
    those splits (path-dependent), or the same as a for the background rows (interventional, baseline). A linear leaf has one term more for
    its offset, and one for each coefficient: all its factors are 0 where a column of its function is missing, and the column's own player
    has the column itself as another factor, x in a and z in b.
    """
    # From here on the game counts players, not columns: a player's splits on all of its columns are one factor.
    owner = player_of_columns(players, trees.n_features)
    where = paths(trees, owner)
    n_leaves, n_players = len(where.node), len(players)
    _check_size(n_leaves, n_players, len(X) + (1 if background is None else len(background)))
    if background is None:
        b = np.ones((1, n_leaves, n_players))
        leaf = np.repeat(np.arange(n_leaves), np.diff(where.start))
        # Players that are not on the path to a leaf keep their factor 1, in a and in b.
        b[0, leaf, where.player] = where.ratio
    else:
        b = inside(trees, where, background, n_players)
    a = inside(trees, where, X, n_players)
    value = trees.value[where.node]
    if trees.linear is not None:
        assert background is not None
        functions = trees.linear.take(where.node)
        value = np.concatenate([value, functions.offset, functions.coefficient])
        _check_size(len(value), n_players, len(X) + len(background))
        a = _with_linear_terms(functions, owner, a, prepared(trees, X))
        b = _with_linear_terms(functions, owner, b, prepared(trees, background))
    return ProductGame(value[:, 0] if trees.n_outputs == 1 else value, a, b, weights, trees.constant)


def _with_linear_terms(functions: LinearLeaves, owner: np.ndarray, passes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the factors (n_rows, n_terms, n_players) of constants, offsets and coefficients, from those of the leaves."""
    node, column, known = functions.node, functions.column, passes.copy()
    for place, j in zip(node, column, strict=True):
        # LightGBM falls back on the constant where any column of the leaf's function is missing: all its terms are 0 then.
        known[:, place, owner[j]] *= ~np.isnan(rows[:, j])
    factors = known[:, node]
    factors[:, np.arange(len(node)), owner[column]] *= np.nan_to_num(rows[:, column], nan=0.0)
    return np.concatenate([passes, known, factors], axis=1)


def _check_size(n_leaves: int, n_players: int, n_rows: int) -> None:
    needed = 8.0 * n_leaves * n_players * n_rows
    if needed > MAX_GAME_BYTES:
        raise BudgetError(
            "The explicit game of this ensemble does not fit",
            f"{n_leaves} leaves x {n_players} players x {n_rows} rows would need {needed / 2**30:.3g} GiB",
            "Use fewer rows; Explainer(...)(X) does not need it",
        )


def _finished(call: OwnCall, column: int, values: np.ndarray) -> np.ndarray:
    """Return the margin of the chosen output."""
    values = call.finish(values)
    return values[:, column] if values.ndim == 2 else values
