"""Build ensembles as flat arrays; compute covers and paths, route rows, encode named columns."""

from __future__ import annotations

from exactshap.trees.ensemble._build import MAX_CELLS as MAX_CELLS
from exactshap.trees.ensemble._build import MAX_DEPTH as MAX_DEPTH
from exactshap.trees.ensemble._build import MAX_NODES as MAX_NODES
from exactshap.trees.ensemble._build import RawTree as RawTree
from exactshap.trees.ensemble._build import build as build
from exactshap.trees.ensemble._build import complete_forest as complete_forest
from exactshap.trees.ensemble._build import largest_sum as largest_sum
from exactshap.trees.ensemble._encode import encode as encode
from exactshap.trees.ensemble._encode import readable as readable
from exactshap.trees.ensemble._flat import MISSING_NEVER as MISSING_NEVER
from exactshap.trees.ensemble._flat import FlatTrees as FlatTrees
from exactshap.trees.ensemble._flat import NodeArrays as NodeArrays
from exactshap.trees.ensemble._forest import RawForest as RawForest
from exactshap.trees.ensemble._hashed import HashedColumns as HashedColumns
from exactshap.trees.ensemble._hashed import TargetStatistic as TargetStatistic
from exactshap.trees.ensemble._linear import LeafFunction as LeafFunction
from exactshap.trees.ensemble._linear import LinearLeaves as LinearLeaves
from exactshap.trees.ensemble._linear import offsets_of as offsets_of
from exactshap.trees.ensemble._linear import taken as taken
from exactshap.trees.ensemble._model import TreeModel as TreeModel
from exactshap.trees.ensemble._model import fitted_columns as fitted_columns
from exactshap.trees.ensemble._model import model_of as model_of
from exactshap.trees.ensemble._model import take_trees as take_trees
from exactshap.trees.ensemble._paths import Paths as Paths
from exactshap.trees.ensemble._paths import cover_shares as cover_shares
from exactshap.trees.ensemble._paths import inside as inside
from exactshap.trees.ensemble._paths import parents as parents
from exactshap.trees.ensemble._paths import paths as paths
from exactshap.trees.ensemble._routing import HybridRow as HybridRow
from exactshap.trees.ensemble._routing import Hybrids as Hybrids
from exactshap.trees.ensemble._routing import add_leaf_functions as add_leaf_functions
from exactshap.trees.ensemble._routing import apply as apply
from exactshap.trees.ensemble._routing import decisions as decisions
from exactshap.trees.ensemble._routing import fill_decisions as fill_decisions
from exactshap.trees.ensemble._routing import function_sizes as function_sizes
from exactshap.trees.ensemble._routing import margin as margin
from exactshap.trees.ensemble._routing import prepared as prepared
from exactshap.trees.ensemble._routing import sum_leaf_values as sum_leaf_values
