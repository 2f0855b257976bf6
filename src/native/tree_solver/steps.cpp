// The list of the splits of deep trees in depth-first order.

#include "steps.h"

EXACTSHAP_BEGIN

namespace {

/// The arrays of Steps that are to be filled, and the node of each split.
struct EmptySteps {
  Out<int32_t, 1> node, level;
  Out<bool, 1> is_right;
  Out<int32_t, 1> above, end;
  Out<bool, 2> is_leaf;
  Out<double, 2> share;
  Out<double, 3> value;
  EXACTSHAP_FIELDS(node, level, is_right, above, end, is_leaf, share, value)

  bool fit(int64_t n_outputs) const {
    const int64_t n = node.size[0];
    return level.size[0] == n && is_right.size[0] == n && above.size[0] == n && end.size[0] == n && is_leaf.size[0] == n &&
           is_leaf.size[1] == 2 && share.size[0] == n && share.size[1] == 2 && value.size[0] == n && value.size[1] == 2 &&
           value.size[2] == n_outputs;
  }
};

/// What the children of a split need, on one side.
EXACTSHAP_INLINE void fill_child(int64_t i, int64_t side, int64_t child, const Structure& shape, In<double, 1> share_of,
                                 In<double, 2> value_of, const EmptySteps& out) {
  const bool is_leaf = shape.player[child] < 0;
  out.is_leaf[i][side] = is_leaf;
  out.share[i][side] = share_of[child];
  for (int64_t o = 0; o < value_of.size[1]; o++) out.value[i][side][o] = is_leaf ? value_of[child][o] : 0.0;
}

/// Fill the arrays of Steps and the node of each split.
Status fill_steps(Forest forest, Structure shape, In<double, 1> share_of, EmptySteps out, Context& context) {
  const int64_t n_nodes = share_of.size[0], n_splits = out.node.size[0];
  const In<double, 2> value_of = forest.value;
  EXACTSHAP_REQUIRE(forest.fit() && forest.nodes.left.size[0] == n_nodes && shape.fit(n_nodes) && out.fit(value_of.size[1]));
  int64_t n_levels = 1;
  for (int64_t q = 0; q < n_nodes; q++) n_levels = shape.depth[q] + 1 > n_levels ? shape.depth[q] + 1 : n_levels;
  auto stack = context.empty<int64_t>(n_levels + 1, int64_t(2));
  auto on_path = context.empty<int64_t>(n_levels);
  if (context.failed()) return Status::no_memory;
  int64_t i = 0;
  for (int64_t k = 0; k < forest.n_trees(); k++) {
    const int64_t root = forest.tree_start[k];
    stack[0][0] = root, stack[0][1] = 0;
    int64_t size = shape.player[root] >= 0 ? 1 : 0;
    for (; size > 0; i++) {
      if (i == n_splits) return Status::fault;
      const int64_t q = stack[--size][0], depth = stack[size][1];
      out.node[i] = int32_t(q), out.level[i] = int32_t(depth), out.end[i] = int32_t(i + shape.internal[q]);
      out.is_right[i] = depth > 0 && forest.nodes.right[on_path[depth - 1]] == q;
      on_path[depth] = q;
      int64_t above = depth;
      while (above > 0 && shape.player[on_path[above - 1]] != shape.player[q]) above--;
      out.above[i] = int32_t(above);
      for (int64_t side = 1; side >= 0; side--) {
        const int64_t child = side ? forest.nodes.right[q] : forest.nodes.left[q];
        fill_child(i, side, child, shape, share_of, value_of, out);
        if (shape.player[child] < 0) continue;
        stack[size][0] = child, stack[size][1] = depth + 1;
        size++;
      }
    }
  }
  return i == n_splits ? Status::done : Status::fault;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, fill_steps, fill_steps)
