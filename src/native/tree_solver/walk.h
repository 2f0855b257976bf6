// Which cells of a tree's groups rows meet: the codes of several rows side by side.
#pragma once

#include "../common/lanes.h"
#include "one_row.h"

EXACTSHAP_BEGIN

constexpr int64_t AT_ONCE = 64;  // rows whose codes in a tree are worked out at a time

/// Some rows side by side, as many as a register holds, or one alone. While codes are worked out they are as wide as the values, unless
/// one instruction makes them narrow: those of all nodes then take a quarter of the cache.
struct Many {
  static constexpr int LANES = int(sizeof(Widest) / sizeof(double));
  typedef int64_t Bits __attribute__((vector_size(sizeof(Widest))));
#if defined(__AVX512F__)
  typedef int16_t Code;
#else
  typedef int64_t Code;
#endif
  typedef Code Codes __attribute__((vector_size(sizeof(Code) * LANES)));
};
struct One {
  static constexpr int LANES = 1;
  typedef int64_t Code, Codes;
};

/// A split and its column, `x (n_rows,)`. `IS_PLAIN`: it is numerical, and no value is missing.
template <class Rows, bool IS_PLAIN>
struct Test {
  const double* x;
  Split split;
  bool is_numerical, missing_left;

  EXACTSHAP_INLINE Test(const double* columns, int64_t n_rows, int64_t q, const Nodes& nodes)
      : x(columns + nodes.feature[q] * n_rows), split(split_of(q, nodes)), is_numerical(split.category_start < 0 && !split.zero_is_missing),
        missing_left(goes_left(double(NAN), split)) {}

  /// All bits of the rows from r on that go left, none of the others.
  EXACTSHAP_INLINE void lefts(int64_t r, Many::Codes& left) const {
    Widest values;
    load(x + r, values);
    if (IS_PLAIN || is_numerical) {
      Many::Bits wide = split.less_equal ? Many::Bits(values <= split.threshold) : Many::Bits(values < split.threshold);
      if (!IS_PLAIN && missing_left) wide |= Many::Bits(values != values);
      left = __builtin_convertvector(wide, Many::Codes);
    } else {
      for (int i = 0; i < Many::LANES; i++) left[i] = Many::Code(-goes_left(x[r + i], split));
    }
  }
  EXACTSHAP_INLINE void lefts(int64_t r, int64_t& left) const {
    left = -int64_t(!IS_PLAIN ? goes_left(x[r], split) : split.less_equal ? x[r] <= split.threshold : x[r] < split.threshold);
  }
};

/// Write the codes of n_rows rows in the groups first to last - 1 of a tree to `codes`, a group's `stride` after those of the one before.
///
/// From the root down, the splits above any group tell both children which players were failed on the way, `failed (nodes of the
/// tree, n_rows)`; a split within a group has a bit of its own, lost where the row goes right.
template <class Rows, bool IS_PLAIN>
void walk(int64_t tree, const double* columns, int64_t n_rows, const Tables& tables, int64_t first, int64_t last,
          typename Rows::Code* failed, uint16_t* codes, int64_t stride) {
  typedef typename Rows::Code Code;
  typename Rows::Codes left{}, lost;
  const Nodes& nodes = tables.forest.nodes;
  const Groups& groups = tables.groups;
  const Routes& routes = tables.routes;
  const int64_t offset = tables.forest.tree_start[tree];
  for (int64_t r = 0; r < n_rows; r++) failed[r] = 0;
  for (int64_t s = routes.split_start[tree]; s < routes.split_start[tree + 1]; s++) {
    const int64_t q = routes.split[s];
    const Code bit = Code(int64_t(1) << routes.bit[s]);
    const Test<Rows, IS_PLAIN> test(columns, stride, q, nodes);
    const Code* const before = failed + (q - offset) * n_rows;
    Code *const to_left = failed + (nodes.left[q] - offset) * n_rows, *const to_right = failed + (nodes.right[q] - offset) * n_rows;
    for (int64_t r = 0; r < n_rows; r += Rows::LANES) {
      test.lefts(r, left);
      load(before + r, lost);
      store(typename Rows::Codes(lost | (~left & bit)), to_left + r);
      store(typename Rows::Codes(lost | (left & bit)), to_right + r);
    }
  }
  for (int64_t g = first; g < last; g++, codes += stride) {
    Code* const failed_here = failed + (groups.root[g] - offset) * n_rows;
    for (int64_t c = groups.condition_start[g] + groups.n_above[g]; c < groups.condition_start[g + 1]; c++) {
      const Code bit = Code(int64_t(1) << groups.condition_bit[c]);
      const Test<Rows, IS_PLAIN> test(columns, stride, groups.condition_node[c], nodes);
      for (int64_t r = 0; r < n_rows; r += Rows::LANES) {
        test.lefts(r, left);
        load(failed_here + r, lost);
        store(typename Rows::Codes(lost | (~left & bit)), failed_here + r);
      }
    }
    const int64_t all = (int64_t(1) << groups.n_bits[g]) - 1;
    for (int64_t r = 0; r < n_rows; r++) codes[r] = uint16_t(~failed_here[r] & all);
  }
}

/// The groups of a tree, and the codes of all rows in them.
struct Met {
  int64_t first, last;
  const uint16_t* codes;
  int64_t stride;  // from group to group
};

/// Copy `columns (n_features, n_rows)` to `out (n_features, padded)`, filled up with zeros, as they are compared with thresholds. Returns
/// whether a value is missing.
inline bool pad(In<double, 2> columns, bool single_precision, Array<double, 2> out) {
  const int64_t n_rows = columns.size[1];
  bool is_missing = false;
  for (int64_t j = 0; j < columns.size[0]; j++)
    for (int64_t r = 0; r < out.size[1]; r++) {
      double x = r < n_rows ? columns[j][r] : 0.0;
      x = single_precision ? double(float(x)) : x;
      is_missing |= x != x;
      out[j][r] = x;
    }
  return is_missing;
}

/// Scratch of walks: players that were failed on the way to each node of a tree; of one row alone where it goes right.
template <class Rows>
struct Ways {
  typename Rows::Code* failed;
  uint8_t* right;
};

/// Write the codes of all rows in the groups of a tree to `codes`: of one row alone as in one_row.h, of several a part at a time.
template <class Rows>
EXACTSHAP_INLINE void walk_all(int64_t tree, Array<double, 2> x, bool is_plain, const Tables& tables, const Met& met, const Ways<Rows>& ways,
                               uint16_t* codes) {
  const int64_t padded = x.size[1];
  if constexpr (Rows::LANES == 1)
    if (is_plain) return walk_row(tree, x.data, tables, met.first, met.last, ways.failed, ways.right, codes);
  const auto walk_some = is_plain && Rows::LANES > 1 ? walk<Rows, true> : walk<Rows, false>;
  for (int64_t r = 0; r < padded; r += AT_ONCE)
    walk_some(tree, x.data + r, smaller(padded - r, AT_ONCE), tables, met.first, met.last, ways.failed, codes + r, padded);
}

EXACTSHAP_END
