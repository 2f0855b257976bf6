// Rows through trees, and what follows from the routes: decisions, leaves, margins.

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

/// Add the values of the reached leaves, tree after tree, to `out (n_rows, n_outputs)`.
Status sum_leaf_values(In<double, 2> X, In<int64_t, 1> tree_start, Nodes nodes, In<double, 2> value, Out<double, 2> out,
                       Context& context) {
  EXACTSHAP_REQUIRE(nodes.fit() && roots_fit(tree_start, nodes) && value.size[0] == nodes.feature.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == X.size[0] && out.size[1] == value.size[1]);
  for (int64_t i = 0; i < out.size[0]; i++) {
    if (context.interrupted()) return Status::interrupted;
    double* const out_i = out[i].data;
    for (int64_t k = 0; k + 1 < tree_start.size[0]; k++) {
      const int64_t q = leaf_of(X[i].data, X.size[1], tree_start[k], nodes);
      if (q < 0) return Status::fault;
      const double* const value_q = value[q].data;
      for (int64_t o = 0; o < out.size[1]; o++) out_i[o] += value_q[o];
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, fill_decisions, fill_decisions)
EXACTSHAP_KERNEL(trees, fill_leaves, fill_leaves)
EXACTSHAP_KERNEL(trees, sum_leaf_values, sum_leaf_values)
