// Distances of all pairs of rows, for the median heuristic: columns come first, so that one instruction works on several pairs.

#include "tile.h"

EXACTSHAP_BEGIN

namespace {

/// What a column adds to a distance, of one pair or of as many as a register holds.
template <bool SQUARED>
EXACTSHAP_INLINE double gap(double u) { return SQUARED ? rounded(u * u) : fabs(u); }
template <bool SQUARED>
EXACTSHAP_INLINE Widest gap(Widest u) { return SQUARED ? rounded(u * u) : (u < 0.0 ? -u : u); }

/// Set `out (n_rows - row - 1,)` to the distances of a row from all later ones.
template <bool SQUARED>
void fill_row(In<double, 2> columns, int64_t row, double* out) {
  const int64_t d = columns.size[0], size = columns.size[1] - row - 1;
  int64_t first = 0;
  for (; first + LANES <= size; first += LANES) {
    Widest sums[LANES / EACH] = {}, other;
    for (int64_t k = 0; k < d; k++) {
      const double* const values = columns[k].data + row;
      for (int i = 0; i < LANES / EACH; i++) {
        load(values + 1 + first + i * EACH, other);
        sums[i] = sums[i] + gap<SQUARED>(values[0] - other);
      }
    }
    for (int i = 0; i < LANES / EACH; i++) store(sums[i], out + first + i * EACH);
  }
  for (; first < size; first++) {
    double sum = 0.0;
    for (int64_t k = 0; k < d; k++) sum += gap<SQUARED>(columns[k][row] - columns[k][row + 1 + first]);
    out[first] = sum;
  }
}

/// Set `out (n_rows (n_rows - 1) / 2,)` to sum_k u_k^2 or sum_k |u_k| of all pairs i < i' of `columns (n_columns, n_rows)`, row after row.
Status fill_distances(In<double, 2> columns, bool squared, Out<double, 1> out, Context& context) {
  const int64_t n = columns.size[1];
  EXACTSHAP_REQUIRE(out.size[0] == (n % 2 ? (n - 1) / 2 * n : n / 2 * (n - 1)));
  double* to = out.data;
  for (int64_t row = 0; row < n - 1; to += n - 1 - row, row++) {
    if (context.interrupted()) return Status::interrupted;
    squared ? fill_row<true>(columns, row, to) : fill_row<false>(columns, row, to);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(pairwise, fill_distances, fill_distances)
