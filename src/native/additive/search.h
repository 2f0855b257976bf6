// Columns that are cut into bins, and the search for the bin of a value.
#pragma once

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

/// How columns are cut into bins, perhaps several ways each, and how terms number their cells.
struct Bins {
  In<double, 1> cuts;        // ascending, of one way of cutting after the other
  In<int64_t, 1> cut_start;  // way w has cuts[cut_start[w]:cut_start[w + 1]]
  In<int64_t, 1> column;     // that it cuts
  In<int64_t, 1> way_start;  // term l uses the ways way[way_start[l]:way_start[l + 1]]
  In<int64_t, 1> way;
  In<int64_t, 1> stride;  // of each of them in the number of a cell

  EXACTSHAP_FIELDS(cuts, cut_start, column, way_start, way, stride)

  int64_t n_ways() const { return column.size[0]; }
  int64_t n_terms() const { return way_start.size[0] - 1; }
  int64_t n_cuts(int64_t w) const { return cut_start[w + 1] - cut_start[w]; }
};

/// Whether `start` cuts `size` places into as many pieces as it says, in order.
inline bool are_starts(In<int64_t, 1> start, int64_t n_pieces, int64_t size) {
  if (start.size[0] != n_pieces + 1 || start[0] != 0 || start[n_pieces] != size) return false;
  for (int64_t k = 0; k < n_pieces; k++)
    if (start[k] > start[k + 1]) return false;
  return true;
}

/// Whether nothing leads outside.
inline bool are_bins(const Bins& bins, int64_t n_columns) {
  const int64_t n_ways = bins.n_ways(), n_used = bins.way.size[0];
  if (bins.n_terms() < 0 || !are_starts(bins.cut_start, n_ways, bins.cuts.size[0])) return false;
  if (!are_starts(bins.way_start, bins.n_terms(), n_used) || bins.stride.size[0] != n_used) return false;
  return lie_within(bins.column, n_columns) && lie_within(bins.way, n_ways);
}

constexpr int64_t TILE = 64;  // rows whose searches run side by side

/// The bins of some rows in one way of cutting, `bins[i]` = 0 for a missing value, else 1 + #{cuts <= x}.
///
/// Each search takes the same steps, whatever it finds: a branch on the data would be guessed wrong every other time.
EXACTSHAP_INLINE void find_bins(const double* __restrict x, int64_t n_rows, const Bins& all, int64_t w, int64_t* __restrict bins) {
  const double* const cuts = all.cuts.data + all.cut_start[w];
  for (int64_t i = 0; i < n_rows; i++) bins[i] = 0;
  for (int64_t left = all.n_cuts(w); left > 0; left /= 2) {  // it is one of bins[i] + 0, ..., left
    const int64_t half = (left + 1) / 2;
    for (int64_t i = 0; i < n_rows; i++) bins[i] += cuts[bins[i] + half - 1] <= x[i] ? half : 0;
  }
  for (int64_t i = 0; i < n_rows; i++) bins[i] = x[i] != x[i] ? 0 : 1 + bins[i];
}

/// Find the bins of rows from `start` on in every way of cutting, `found (n_ways, TILE)`.
EXACTSHAP_INLINE void find_tile(In<double, 2> X, int64_t start, int64_t n_rows, const Bins& bins, int64_t* found) {
  double x[TILE];
  const int64_t n_columns = X.size[1];
  for (int64_t w = 0; w < bins.n_ways(); w++) {
    const double* const column = X.data + start * n_columns + bins.column[w];
    if (w == 0 || bins.column[w] != bins.column[w - 1])
      for (int64_t i = 0; i < n_rows; i++) x[i] = column[i * n_columns];
    find_bins(x, n_rows, bins, w, found + w * TILE);
  }
}

EXACTSHAP_END
