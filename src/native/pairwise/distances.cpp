// Weighted distances of pairs of rows: columns come first, so that one instruction works on several pairs.

#include "tile.h"

EXACTSHAP_BEGIN

namespace {

/// What a column adds to a distance, of one pair or of as many as a register holds.
template <bool SQUARED>
EXACTSHAP_INLINE double gap(double u) { return SQUARED ? rounded(u * u) : fabs(u); }
template <bool SQUARED>
EXACTSHAP_INLINE Widest gap(Widest u) { return SQUARED ? rounded(u * u) : (u < 0.0 ? -u : u); }

/// Add sum_k w_k u_k^2 or sum_k w_k |u_k| of a row and the others from `first` to `last` to `out (last - first,)`.
template <bool SQUARED>
void add_row(In<double, 2> columns, In<double, 1> weights, int64_t row, int64_t first, int64_t last, double* out) {
  const int64_t d = columns.size[0];
  int64_t start = first;
  for (; start + LANES <= last; start += LANES) {
    Widest sums[LANES / EACH] = {}, other;
    for (int64_t k = 0; k < d; k++) {
      const double* const values = columns[k].data;
      for (int i = 0; i < LANES / EACH; i++) {
        load(values + start + i * EACH, other);
        sums[i] = sums[i] + rounded(weights[k] * gap<SQUARED>(values[row] - other));
      }
    }
    for (int i = 0; i < LANES / EACH; i++) {
      load(out + start - first + i * EACH, other);
      store(other + sums[i], out + start - first + i * EACH);
    }
  }
  for (; start < last; start++) {
    double sum = 0.0;
    for (int64_t k = 0; k < d; k++) sum += rounded(weights[k] * gap<SQUARED>(columns[k][row] - columns[k][start]));
    out[start - first] += sum;
  }
}

/// Add the weighted distances of the pairs of a block of `columns (n_columns, n_rows)` to `out (height, last - first)`.
Status add_distances(In<double, 2> columns, In<double, 1> weights, bool squared, Block block, Out<double, 2> out, Context& context) {
  EXACTSHAP_REQUIRE(weights.size[0] == columns.size[0] && block.fit(columns.size[1]));
  EXACTSHAP_REQUIRE(out.size[0] == block.height() && out.size[1] == block.last - block.first);
  for (int64_t row = block.start; row < block.stop; row++) {
    if (context.interrupted()) return Status::interrupted;
    squared ? add_row<true>(columns, weights, row, block.first, block.last, out[row - block.start].data)
            : add_row<false>(columns, weights, row, block.first, block.last, out[row - block.start].data);
  }
  return Status::done;
}

/// Add the weighted distances of all pairs i < i', row after row, to `out (n_rows (n_rows - 1) / 2,)`.
Status add_all_distances(In<double, 2> columns, In<double, 1> weights, bool squared, Out<double, 1> out, Context& context) {
  const int64_t n = columns.size[1];
  EXACTSHAP_REQUIRE(weights.size[0] == columns.size[0] && out.size[0] == (n % 2 ? (n - 1) / 2 * n : n / 2 * (n - 1)));
  double* to = out.data;
  for (int64_t row = 0; row < n - 1; to += n - 1 - row, row++) {
    if (context.interrupted()) return Status::interrupted;
    squared ? add_row<true>(columns, weights, row, row + 1, n, to) : add_row<false>(columns, weights, row, row + 1, n, to);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(pairwise, add_distances, add_distances)
EXACTSHAP_KERNEL(pairwise, add_all_distances, add_all_distances)
