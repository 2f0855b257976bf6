// Rows and covers in the form that the other kernels read.

#include "columns.h"

EXACTSHAP_BEGIN

namespace {

/// As copy_columns, to all of `out (n_used, n_rows)`.
Status fill_columns(In<double, 2> X, In<int64_t, 1> used, bool single_precision, Out<double, 2> out) {
  EXACTSHAP_REQUIRE(out.size[0] == used.size[0] && out.size[1] == X.size[0] && lie_within(used, X.size[1]));
  copy_columns(X, used, single_precision, out);
  return Status::done;
}

/// Write depths, cover(node) / cover(parent), and every tree's value when nothing is known; give the largest depth.
///
/// `empty (n_trees,)`. Parents come before their children; both children of an empty parent get 1/2.
Status fill_shares(In<int64_t, 1> tree_start, In<int32_t, 1> left, In<int32_t, 1> right, In<double, 1> cover,
                   In<double, 1> value, Out<int32_t, 1> depths, Out<double, 1> share, Out<double, 1> empty, int64_t& deepest,
                   Context& context) {
  const int64_t n = left.size[0], n_trees = tree_start.size[0] - 1;
  deepest = 0;
  EXACTSHAP_REQUIRE(right.size[0] == n && cover.size[0] == n && value.size[0] == n && depths.size[0] == n);
  EXACTSHAP_REQUIRE(share.size[0] == n && n_trees >= 0 && empty.size[0] == n_trees && tree_start[n_trees] == n);
  auto mean = context.empty<double>(n);
  if (context.failed()) return Status::no_memory;
  for (int64_t q = 0; q < n; q++) mean[q] = value[q];
  for (int64_t k = 0; k < n_trees; k++) {
    const int64_t root = tree_start[k], stop = tree_start[k + 1];
    depths[root] = 0;
    share[root] = 1.0;
    for (int64_t q = root; q < stop; q++) {
      deepest = depths[q] > deepest ? depths[q] : deepest;
      if (left[q] < 0) continue;
      const int32_t children[2] = {left[q], right[q]};
      for (const int32_t child : children) {
        depths[child] = depths[q] + 1;
        share[child] = cover[q] > 0.0 ? cover[child] / cover[q] : 0.5;
      }
    }
    for (int64_t q = stop - 1; q >= root; q--)
      if (left[q] >= 0) mean[q] = share[left[q]] * mean[left[q]] + share[right[q]] * mean[right[q]];
    empty[k] = mean[root];
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(r2, fill_columns, fill_columns)
EXACTSHAP_KERNEL(r2, fill_shares, fill_shares)
