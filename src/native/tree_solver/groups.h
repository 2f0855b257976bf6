// Leaves and groups of an ensemble as its solvers see them (exactshap.solvers.trees._kernels has the same structures).
#pragma once

#include "../common/numbers.h"
#include "../trees/routing.h"

EXACTSHAP_BEGIN

/// Per node: parent, player of its split (-1 at leaves), edges and distinct players above, splits and leaves below.
struct Structure {
  In<int32_t, 1> player_of_column, parent, player, depth, distinct, internal, leaves;
  EXACTSHAP_FIELDS(player_of_column, parent, player, depth, distinct, internal, leaves)

  EXACTSHAP_INLINE bool fit(int64_t n_nodes) const {
    return parent.size[0] == n_nodes && player.size[0] == n_nodes && depth.size[0] == n_nodes && distinct.size[0] == n_nodes &&
           internal.size[0] == n_nodes && leaves.size[0] == n_nodes;
  }
};

/// An ensemble: tree k owns nodes `tree_start[k]` to `tree_start[k + 1] - 1`; `value (n_nodes, n_outputs)`.
struct Forest {
  In<int64_t, 1> tree_start;
  Nodes nodes;
  In<double, 2> value;
  EXACTSHAP_FIELDS(tree_start, nodes, value)

  EXACTSHAP_INLINE int64_t n_trees() const { return tree_start.size[0] - 1; }
  EXACTSHAP_INLINE int64_t largest_tree() const {
    int64_t largest = 0;
    for (int64_t k = 0; k < n_trees(); k++)
      largest = tree_start[k + 1] - tree_start[k] > largest ? tree_start[k + 1] - tree_start[k] : largest;
    return largest;
  }
  EXACTSHAP_INLINE bool fit() const {
    const int64_t n_nodes = nodes.feature.size[0];
    if (!nodes.fit() || value.size[0] != n_nodes || n_trees() < 0) return false;
    for (int64_t k = 0; k < n_trees(); k++)
      if (tree_start[k] < 0 || tree_start[k] > tree_start[k + 1]) return false;
    return tree_start[n_trees()] <= n_nodes;
  }
};

/// Leaf l's distinct players, ascending, with their cover ratios, and its edges from the root down, in compressed rows.
struct Leaves {
  In<int32_t, 1> node;
  In<int64_t, 1> start;
  In<int32_t, 1> player;
  In<double, 1> ratio;
  In<int64_t, 1> edge_start;
  In<int32_t, 1> edge_node;
  In<bool, 1> edge_left;
  In<int32_t, 1> edge_slot;
  EXACTSHAP_FIELDS(node, start, player, ratio, edge_start, edge_node, edge_left, edge_slot)

  EXACTSHAP_INLINE int64_t count() const { return node.size[0]; }
  EXACTSHAP_INLINE int64_t n_players(int64_t l) const { return start[l + 1] - start[l]; }
  EXACTSHAP_INLINE bool fit() const {
    const int64_t n = node.size[0], n_edges = edge_node.size[0];
    return start.size[0] == n + 1 && edge_start.size[0] == n + 1 && player.size[0] == start[n] && ratio.size[0] == start[n] &&
           n_edges == edge_start[n] && edge_left.size[0] == n_edges && edge_slot.size[0] == n_edges;
  }
};

/// Subtrees that share one table. A row's code has one bit per player above the subtree and one per split inside; a row that
/// fails a condition loses the condition's bit. Some leaf of a group is not zero in its outputs first to last - 1.
struct Groups {
  In<int64_t, 1> root, tree, n_above, n_bits, leaf_start, leaf, condition_start, condition_node;
  In<bool, 1> condition_left;
  In<int16_t, 1> condition_bit;
  In<int64_t, 1> first_output, last_output;
  EXACTSHAP_FIELDS(root, tree, n_above, n_bits, leaf_start, leaf, condition_start, condition_node, condition_left, condition_bit,
                   first_output, last_output)

  EXACTSHAP_INLINE int64_t count() const { return root.size[0]; }
  EXACTSHAP_INLINE bool fit() const {
    const int64_t n = root.size[0], n_conditions = condition_node.size[0];
    return tree.size[0] == n && n_above.size[0] == n && n_bits.size[0] == n && leaf_start.size[0] == n + 1 &&
           condition_start.size[0] == n + 1 && leaf.size[0] == leaf_start[n] && n_conditions == condition_start[n] &&
           condition_left.size[0] == n_conditions && condition_bit.size[0] == n_conditions && first_output.size[0] == n &&
           last_output.size[0] == n;
  }
};

/// The next larger mask with as many bits (Gosper's hack).
EXACTSHAP_INLINE int64_t next_mask(int64_t mask) {
  const int64_t lowest = mask & -mask, carried = mask + lowest;
  return (((carried ^ mask) >> 2) / lowest) | carried;
}

/// The position of a set among all sets, by size and then lexicographically (Knuth, TAOCP 7.2.1.3):
///
///   offset_k + C(d, k) - 1 - sum_{i < k} C(d - 1 - T_i, k - i)
///
/// `mask` holds bits of the ascending `players`.
EXACTSHAP_INLINE int64_t set_rank(int64_t mask, int64_t size, const int32_t* players, In<int64_t, 2> binomials, In<int64_t, 1> offsets) {
  const int64_t d = binomials.size[0] - 1;
  int64_t rank = offsets[size] + binomials[d][size] - 1;
  for (int64_t i = 0, bit = 0; mask >> bit; bit++)
    if ((mask >> bit) & 1) {
      rank -= binomials[d - 1 - players[bit]][size - i];
      i++;
    }
  return rank;
}

/// The largest magnitude of a leaf's values.
EXACTSHAP_INLINE double largest(In<double, 1> values) {
  double out = 0.0;
  for (int64_t o = 0; o < values.size[0]; o++) out = fabs(values[o]) > out ? fabs(values[o]) : out;
  return out;
}

EXACTSHAP_END
