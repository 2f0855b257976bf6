// The splits of all trees, each tree's in depth-first order: a walk down and up a tree reads them one after the other.
#pragma once

#include "groups.h"

EXACTSHAP_BEGIN

/// What routing reads, split by split (`nodes`, without children), and what the children need. Sides: 0 left, 1 right.
struct Steps {
  In<int64_t, 1> tree_start;
  Nodes nodes;
  In<int32_t, 1> level;     // splits above
  In<bool, 1> is_right;     // whether this split is the right child of the one above
  In<int32_t, 1> above;     // level + 1 of the nearest split above on the same player, 0 if there is none
  In<int32_t, 1> end;       // the split after this one's subtree
  In<bool, 2> is_leaf;      // (n_splits, 2): whether the child on a side is a leaf
  In<double, 2> share;      // (n_splits, 2): cover ratios of the children
  In<double, 3> value;      // (n_splits, 2, n_outputs): those of leaf children, 0 for others
  EXACTSHAP_FIELDS(tree_start, nodes, level, is_right, above, end, is_leaf, share, value)

  EXACTSHAP_INLINE int64_t n_trees() const { return tree_start.size[0] - 1; }
  EXACTSHAP_INLINE int64_t n_levels() const {
    int64_t most = 0;
    for (int64_t i = 0; i < level.size[0]; i++) most = level[i] > most ? level[i] : most;
    return most + 1;
  }
  EXACTSHAP_INLINE int64_t largest_tree() const {
    int64_t largest = 0;
    for (int64_t k = 0; k < n_trees(); k++)
      largest = tree_start[k + 1] - tree_start[k] > largest ? tree_start[k + 1] - tree_start[k] : largest;
    return largest;
  }
  /// Whether all arrays belong together, and rows of `n_features` columns have all that are asked for and have players.
  EXACTSHAP_INLINE bool fit(int64_t n_features, In<int32_t, 1> player_of) const {
    const int64_t n = level.size[0];
    if (nodes.feature.size[0] != n || nodes.threshold.size[0] != n || nodes.missing.size[0] != n) return false;
    if (nodes.zero_is_missing.size[0] != n || nodes.category_start.size[0] != n || nodes.category_count.size[0] != n) return false;
    if (is_right.size[0] != n || above.size[0] != n || end.size[0] != n || is_leaf.size[0] != n || is_leaf.size[1] != 2) return false;
    if (share.size[0] != n || share.size[1] != 2 || value.size[0] != n || value.size[1] != 2) return false;
    int64_t last_column = -1;
    for (int64_t i = 0; i < n; i++) last_column = nodes.feature[i] > last_column ? nodes.feature[i] : last_column;
    return n_trees() >= 0 && tree_start[0] == 0 && tree_start[n_trees()] == n && last_column < n_features && last_column < player_of.size[0];
  }
};

EXACTSHAP_END
