// Columns that are cut into bins, and the search for the bin of a value.
#pragma once

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

/// Buckets of equal width over the cuts of each way of cutting: which cuts a value lies between is known but for the few in its own.
///
///   bucket(x) = (x - origin) per_unit,  cut to 0, ..., n_buckets - 1
///
/// never falls where x grows, rounded as it is, so that cuts in other buckets than that of x need not be compared with it.
struct Buckets {
  In<double, 1> origin, per_unit;
  In<int64_t, 1> start;     // way w has the buckets start[w] to start[w + 1] - 1
  In<uint16_t, 1> n_below;  // cuts in the buckets below, at most n_cuts - most
  In<int64_t, 1> most;      // cuts in a bucket of a way, at most

  EXACTSHAP_FIELDS(origin, per_unit, start, n_below, most)
};

/// How columns are cut into bins, perhaps several ways each, and how terms number their cells.
struct Bins {
  In<double, 1> cuts;        // ascending, of one way of cutting after the other
  In<int64_t, 1> cut_start;  // way w has cuts[cut_start[w]:cut_start[w + 1]]
  In<int64_t, 1> column;     // that it cuts
  In<int64_t, 1> way_start;  // term l uses the ways way[way_start[l]:way_start[l + 1]]
  In<int64_t, 1> way;
  In<int64_t, 1> stride;  // of each of them in the number of a cell
  Buckets buckets;

  EXACTSHAP_FIELDS(cuts, cut_start, column, way_start, way, stride, buckets)

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

inline bool are_buckets(const Bins& bins) {
  const Buckets& buckets = bins.buckets;
  const int64_t n_ways = bins.n_ways();
  if (buckets.origin.size[0] != n_ways || buckets.per_unit.size[0] != n_ways || buckets.most.size[0] != n_ways) return false;
  if (!are_starts(buckets.start, n_ways, buckets.n_below.size[0])) return false;
  for (int64_t w = 0; w < n_ways; w++) {
    const int64_t count = buckets.start[w + 1] - buckets.start[w];
    if (count < 1 || count > INT32_MAX || buckets.most[w] < 0 || buckets.most[w] > bins.n_cuts(w)) return false;
  }
  return true;
}

/// Whether nothing leads outside but perhaps `n_below`, which is looked at where it is used.
inline bool are_bins(const Bins& bins, int64_t n_columns) {
  const int64_t n_ways = bins.n_ways(), n_used = bins.way.size[0];
  if (bins.n_terms() < 0 || !are_starts(bins.cut_start, n_ways, bins.cuts.size[0])) return false;
  if (!are_starts(bins.way_start, bins.n_terms(), n_used) || bins.stride.size[0] != n_used) return false;
  return lie_within(bins.column, n_columns) && lie_within(bins.way, n_ways) && are_buckets(bins);
}

constexpr int64_t TILE = 64;  // rows whose searches run side by side

/// The bins of some rows in one way of cutting, `bins[i]` = 0 for a missing value, else 1 + #{cuts <= x}; whether none led outside.
///
/// Each search takes the same steps, whatever it finds: a branch on the data would be guessed wrong every other time.
EXACTSHAP_INLINE bool find_bins(const double* __restrict x, int64_t n_rows, const Bins& all, int64_t w, int64_t* __restrict bins) {
  const Buckets& buckets = all.buckets;
  const double origin = buckets.origin[w], per_unit = buckets.per_unit[w], last = double(buckets.start[w + 1] - buckets.start[w] - 1);
  const uint16_t* const n_below = buckets.n_below.data + buckets.start[w];
  const double* const cuts = all.cuts.data + all.cut_start[w];
  const int64_t most = buckets.most[w], highest = all.n_cuts(w) - most;
  int32_t bucket[TILE];
  for (int64_t i = 0; i < n_rows; i++) {
    double place = (x[i] - origin) * per_unit;
    place = place > 0.0 ? place : 0.0;  // what is missing is in the first bucket as well
    bucket[i] = int32_t(place < last ? place : last);
  }
  int64_t largest = 0;
  for (int64_t i = 0; i < n_rows; i++) bins[i] = n_below[bucket[i]];
  for (int64_t i = 0; i < n_rows; i++) largest = bins[i] > largest ? bins[i] : largest;
  if (largest > highest) return false;
  for (int64_t left = most; left > 0; left /= 2) {  // it is one of bins[i] + 0, ..., left
    const int64_t half = (left + 1) / 2;
    for (int64_t i = 0; i < n_rows; i++) bins[i] += cuts[bins[i] + half - 1] <= x[i] ? half : 0;
  }
  for (int64_t i = 0; i < n_rows; i++) bins[i] = x[i] != x[i] ? 0 : 1 + bins[i];
  return true;
}

/// Find the bins of rows from `start` on in every way of cutting, `found (n_ways, TILE)`; whether none led outside.
EXACTSHAP_INLINE bool find_tile(In<double, 2> X, int64_t start, int64_t n_rows, const Bins& bins, int64_t* found) {
  double x[TILE];
  const int64_t n_columns = X.size[1];
  bool inside = true;
  for (int64_t w = 0; w < bins.n_ways(); w++) {
    const double* const column = X.data + start * n_columns + bins.column[w];
    if (w == 0 || bins.column[w] != bins.column[w - 1])
      for (int64_t i = 0; i < n_rows; i++) x[i] = column[i * n_columns];
    inside &= find_bins(x, n_rows, bins, w, found + w * TILE);
  }
  return inside;
}

EXACTSHAP_END
