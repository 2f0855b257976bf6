"""Build ensembles as flat arrays; compute covers and paths, route rows, encode named columns."""

# ruff: noqa: F401 - names of the room
from exactshap.trees.ensemble._build import (
    MAX_CELLS,
    MAX_DEPTH,
    MAX_NODES,
    Forest,
    RawForest,
    RawTree,
    build,
    check_totals,
    complete_forest,
    largest_sum,
)
from exactshap.trees.ensemble._flat import MISSING_NEVER, FlatTrees, LeafFunction, LinearLeaves, NodeArrays, offsets_of, taken
from exactshap.trees.ensemble._hashed import HashedColumns, TargetStatistic
from exactshap.trees.ensemble._model import TreeModel, encode, model_of, readable, take_trees
from exactshap.trees.ensemble._routing import (
    HybridRow,
    Hybrids,
    Paths,
    add_leaf_functions,
    apply,
    cover_shares,
    decisions,
    fill_decisions,
    function_sizes,
    inside,
    margin,
    parents,
    paths,
    prepared,
    sum_leaf_values,
)
