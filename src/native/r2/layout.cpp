// Rows and covers in the form that the other kernels read.

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t COLUMN_ROWS = 16;  // rows that are transposed at a time: both sides stay in cache

/// Write columns `used` of `X (n_rows, n_features)` to `out (n_used, n_rows)`, rounded to float32 if asked for.
template <bool single_precision>
void copy_columns(In<double, 2> X, In<int64_t, 1> used, Out<double, 2> out) {
  const int64_t n_rows = X.size[0], width = X.size[1];
  for (int64_t start = 0; start < n_rows; start += COLUMN_ROWS) {
    const int64_t n = n_rows - start < COLUMN_ROWS ? n_rows - start : COLUMN_ROWS;
    for (int64_t k = 0; k < used.size[0]; k++) {
      const double* __restrict const from = X.data + start * width + used[k];
      double* __restrict const to = out[k].data + start;
      for (int64_t i = 0; i < n; i++) to[i] = single_precision ? double(float(from[i * width])) : from[i * width];
    }
  }
}

/// As copy_columns.
Status fill_columns(In<double, 2> X, In<int64_t, 1> used, bool single_precision, Out<double, 2> out) {
  EXACTSHAP_REQUIRE(out.size[0] == used.size[0] && out.size[1] == X.size[0]);
  for (int64_t k = 0; k < used.size[0]; k++) EXACTSHAP_REQUIRE(used[k] >= 0 && used[k] < X.size[1]);
  single_precision ? copy_columns<true>(X, used, out) : copy_columns<false>(X, used, out);
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
