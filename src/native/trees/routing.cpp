// Rows through trees, and what follows from the routes: decisions, leaves, margins.

#include <string.h>

#include "routing.h"

EXACTSHAP_BEGIN

namespace {

/// Write 1 where a row goes left, 0 where right, node by node, to `out (n_nodes, n_rows)`; leaves are left alone.
///
/// `columns (n_features, n_rows)`: a row's neighbour in memory is the next row, so that one instruction compares several.
Status fill_decisions(In<double, 2> columns, Nodes nodes, Out<uint8_t, 2> out) {
  EXACTSHAP_REQUIRE(nodes.fit() && out.size[0] == nodes.feature.size[0] && out.size[1] == columns.size[1]);
  return decide_nodes(columns, 0, out.size[0], nodes, out) ? Status::done : Status::fault;
}

/// The leaf that a row reaches from a root; -1 if a node splits on a column that is not there.
EXACTSHAP_INLINE int64_t leaf_of(const double* x, int64_t n_features, int64_t root, const Nodes& nodes) {
  int64_t q = root;
  while (nodes.feature[q] >= 0) {
    if (nodes.feature[q] >= n_features) return -1;
    q = goes_left(x[nodes.feature[q]], q, nodes) ? nodes.left[q] : nodes.right[q];
  }
  return q;
}

/// Whether every tree but an empty one has a root among the nodes.
EXACTSHAP_INLINE bool roots_fit(In<int64_t, 1> tree_start, const Nodes& nodes) {
  for (int64_t k = 0; k + 1 < tree_start.size[0]; k++)
    if (tree_start[k] < 0 || tree_start[k] >= nodes.feature.size[0]) return false;
  return tree_start.size[0] > 0;
}

/// Write the global number of the leaf that each row reaches in each tree to `out (n_rows, n_trees)`.
Status fill_leaves(In<double, 2> X, In<int64_t, 1> tree_start, Nodes nodes, Out<int32_t, 2> out, Context& context) {
  EXACTSHAP_REQUIRE(nodes.fit() && roots_fit(tree_start, nodes));
  EXACTSHAP_REQUIRE(out.size[0] == X.size[0] && out.size[1] == tree_start.size[0] - 1);
  for (int64_t i = 0; i < out.size[0]; i++) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t k = 0; k < out.size[1]; k++) {
      const int64_t q = leaf_of(X[i].data, X.size[1], tree_start[k], nodes);
      if (q < 0) return Status::fault;
      out[i][k] = int32_t(q);
    }
  }
  return Status::done;
}

constexpr int64_t LANES = 8;  // trees that a row goes through at once: the wait for a node of one is time for the others
constexpr int32_t SPECIAL = 1 << 30;

/// What most nodes are asked for (Routes.packed), side by side. The right child follows the left one; leaves have feature -1, and where
/// the rule takes more than the threshold, SPECIAL is added to it.
struct Packed {
  double threshold;
  int32_t feature, left;
};
static_assert(sizeof(Packed) == 2 * sizeof(double), "two doubles of Routes.packed");

/// What sums of leaves are made of; `packed (n_nodes, 2)`.
struct Routes {
  In<int64_t, 1> tree_start;
  In<double, 2> packed;
  Nodes nodes;
  In<double, 2> value;
  EXACTSHAP_FIELDS(tree_start, packed, nodes, value)

  EXACTSHAP_INLINE bool fit() const {
    const int64_t n = nodes.feature.size[0];
    return nodes.fit() && roots_fit(tree_start, nodes) && value.size[0] == n && packed.size[0] == n && packed.size[1] == 2;
  }
};

/// Write the leaves that a row reaches in trees first to last - 1, at most LANES, to `leaves`. False if a node splits on a column that
/// is not there.
EXACTSHAP_INLINE bool leaves_of(const double* x, int64_t n_features, const Routes& trees, int64_t first, int64_t last, int64_t* leaves) {
  const int64_t n = last - first;
  const bool less_equal = trees.nodes.less_equal;
  for (int64_t k = 0; k < n; k++) leaves[k] = trees.tree_start[first + k];
  for (bool inside = true; inside;) {
    inside = false;
    for (int64_t k = 0; k < n; k++) {
      const int64_t q = leaves[k];
      Packed node;
      memcpy(&node, trees.packed[q].data, sizeof node);
      if (node.feature < 0) continue;
      const int64_t j = node.feature & ~SPECIAL;
      if (j >= n_features) return false;
      const bool plain = j == node.feature && x[j] == x[j];
      const bool below = less_equal ? x[j] <= node.threshold : x[j] < node.threshold;
      leaves[k] = node.left + int64_t(!(plain ? below : goes_left(x[j], q, trees.nodes)));  // no jump: the way cannot be foretold
      inside = true;
    }
  }
  return true;
}

/// Add the values of the reached leaves, tree after tree, to `out (n_rows, n_outputs)`.
Status sum_leaf_values(In<double, 2> X, Routes trees, Out<double, 2> out, Context& context) {
  EXACTSHAP_REQUIRE(trees.fit() && out.size[0] == X.size[0] && out.size[1] == trees.value.size[1]);
  const int64_t n_trees = trees.tree_start.size[0] - 1;
  int64_t leaves[LANES];
  for (int64_t i = 0; i < out.size[0]; i++) {
    if (context.interrupted()) return Status::interrupted;
    double* const out_i = out[i].data;
    for (int64_t first = 0; first < n_trees; first += LANES) {
      const int64_t last = first + LANES < n_trees ? first + LANES : n_trees;
      if (!leaves_of(X[i].data, X.size[1], trees, first, last, leaves)) return Status::fault;
      for (int64_t k = 0; k < last - first; k++) {
        const double* const value_q = trees.value[leaves[k]].data;
        for (int64_t o = 0; o < out.size[1]; o++) out_i[o] += value_q[o];
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, fill_decisions, fill_decisions)
EXACTSHAP_KERNEL(trees, fill_leaves, fill_leaves)
EXACTSHAP_KERNEL(trees, sum_leaf_values, sum_leaf_values)
