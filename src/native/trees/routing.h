// The one definition of "goes left". Values must have been rounded to the precision of the model before: doubles are compared.
#pragma once

#include <math.h>

#include "../common/kernel.h"

EXACTSHAP_BEGIN

constexpr int8_t MISSING_LEFT = 1, MISSING_NEVER = 2;
constexpr double ZERO = double(1e-35f);  // LightGBM's kZeroThreshold: a float literal stored in a double

/// What routing reads of an ensemble (FlatTrees.nodes); numbers of nodes, columns and words were checked where it was built.
struct Nodes {
  In<int32_t, 1> feature;
  In<double, 1> threshold;
  In<int32_t, 1> left, right;
  In<int8_t, 1> missing;
  In<bool, 1> zero_is_missing;
  In<int64_t, 1> category_start;
  In<int32_t, 1> category_count;
  In<uint32_t, 1> category_words;
  bool less_equal;
  EXACTSHAP_FIELDS(feature, threshold, left, right, missing, zero_is_missing, category_start, category_count, category_words,
                   less_equal)

  /// Whether all arrays belong to the same nodes.
  EXACTSHAP_INLINE bool fit() const {
    const int64_t n = feature.size[0];
    return threshold.size[0] == n && left.size[0] == n && right.size[0] == n && missing.size[0] == n &&
           zero_is_missing.size[0] == n && category_start.size[0] == n && category_count.size[0] == n;
  }
};

/// Whether the bit of category int(x) is set; outside the set (negative, too large, infinite) it is not.
EXACTSHAP_INLINE bool in_category_set(double x, int64_t start, int64_t count, In<uint32_t, 1> words) {
  if (!(-1.0 < x && x < 32.0 * double(count))) return false;
  const int64_t code = int64_t(x);
  return ((words[start + (code >> 5)] >> (code & 31)) & 1u) == 1u;
}

/// One node's rule by value: what is written to an array of bytes could be anything's, so that its fields would be read anew.
struct Split {
  double threshold;
  int64_t category_start, category_count;
  In<uint32_t, 1> category_words;
  int8_t missing;
  bool zero_is_missing, less_equal;
};

EXACTSHAP_INLINE Split split_of(int64_t q, const Nodes& nodes) {
  return {nodes.threshold[q], nodes.category_start[q],  nodes.category_count[q], nodes.category_words,
          nodes.missing[q],   nodes.zero_is_missing[q], nodes.less_equal};
}

/// Whether a value x of the column that a node splits on goes to its left child:
///
///   x is missing ? missing_q : x in C_q or x <= threshold_q or x < threshold_q
EXACTSHAP_INLINE bool goes_left(double x, const Split& split) {
  if (x != x) {
    if (split.missing != MISSING_NEVER) return split.missing == MISSING_LEFT;
    x = 0.0;
  } else if (split.zero_is_missing && fabs(x) <= ZERO) {
    return split.missing == MISSING_LEFT;
  }
  if (split.category_start >= 0) return in_category_set(x, split.category_start, split.category_count, split.category_words);
  return split.less_equal ? x <= split.threshold : x < split.threshold;
}

EXACTSHAP_INLINE bool goes_left(double x, int64_t q, const Nodes& nodes) { return goes_left(x, split_of(q, nodes)); }

/// Write 1 to `out (n_rows,)` where `holds`, 0 elsewhere. Comparisons of doubles become words of eight bytes first, then of one:
/// gcc takes no vector instructions for both steps at once.
template <class Holds>
EXACTSHAP_INLINE void compare_rows(const double* __restrict values, double threshold, uint8_t* __restrict out, int64_t n_rows, Holds holds) {
  constexpr int LANES = 32;
  int64_t i = 0;
  for (; i + LANES <= n_rows; i += LANES) {
    int64_t lane[LANES];
    for (int k = 0; k < LANES; k++) lane[k] = holds(values[i + k], threshold) ? 1 : 0;
    for (int k = 0; k < LANES; k++) out[i + k] = uint8_t(lane[k]);
  }
  for (; i < n_rows; i++) out[i] = holds(values[i], threshold);
}

/// Write 1 where a row goes left at a numerical split, 0 where right, to `out (n_rows,)`.
EXACTSHAP_INLINE void compare(const double* values, double threshold, bool less_equal, bool missing_left, uint8_t* out, int64_t n_rows) {
  const auto not_above = [](double x, double t) { return !(x > t); };
  const auto not_reached = [](double x, double t) { return !(x >= t); };
  const auto below = [](double x, double t) { return x < t; };
  const auto below_equal = [](double x, double t) { return x <= t; };
  if (less_equal && missing_left)
    compare_rows(values, threshold, out, n_rows, not_above);
  else if (less_equal)
    compare_rows(values, threshold, out, n_rows, below_equal);
  else if (missing_left)
    compare_rows(values, threshold, out, n_rows, not_reached);
  else
    compare_rows(values, threshold, out, n_rows, below);
}

/// Write 1 where a row goes left at node q, 0 where right, to `out (n_rows,)`; `values (n_rows,)` of the split's column.
EXACTSHAP_INLINE void decide(const double* values, int64_t q, const Nodes& nodes, uint8_t* out, int64_t n_rows) {
  const Split split = split_of(q, nodes);
  if (split.category_start >= 0 || split.zero_is_missing)
    for (int64_t i = 0; i < n_rows; i++) out[i] = goes_left(values[i], split);
  else
    compare(values, split.threshold, split.less_equal, goes_left(double(NAN), split), out, n_rows);
}

/// Write 1 where a row goes left at nodes first to last - 1 to `out (last - first, n_rows)`, 0 where right; leaves are left alone.
/// `columns (n_features, n_rows)`. False if a node splits on a column that is not there.
inline bool decide_nodes(In<double, 2> columns, int64_t first, int64_t last, const Nodes& nodes, Out<uint8_t, 2> out) {
  const int64_t n_rows = columns.size[1];
  for (int64_t q = first; q < last; q++) {
    const int64_t j = nodes.feature[q];
    if (j < 0) continue;
    if (j >= columns.size[0]) return false;
    decide(columns[j].data, q, nodes, out[q - first].data, n_rows);
  }
  return true;
}

/// Write 1 where one row, `x[j * stride]`, goes left at nodes first to last - 1 to `out`, 0 where right; leaves get anything. False if
/// a node splits on a column that is not there.
inline bool decide_row(const double* x, int64_t stride, int64_t n_features, int64_t first, int64_t last, const Nodes& nodes, uint8_t* __restrict out) {
  int64_t largest = -1;
  for (int64_t q = first; q < last; q++) {
    const int64_t feature = nodes.feature[q], j = feature < 0 ? 0 : feature;
    largest = j > largest ? j : largest;
    if (j < n_features) out[q - first] = goes_left(x[j * stride], q, nodes);
  }
  return largest < n_features || n_features == 0;
}

EXACTSHAP_END
