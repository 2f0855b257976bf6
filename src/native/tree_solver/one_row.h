// The cells that one row meets: with nobody beside it, its splits are looked at side by side.
#pragma once

#include <string.h>

#include "tables.h"

EXACTSHAP_BEGIN

constexpr int64_t AT_A_TIME = 8;  // truth values of a byte each that are packed to bits at a time: there is room for as many behind the last

/// Write 1 where a row goes right at splits side by side, 0 where left, to `out (n,)`. No value is missing.
template <bool LESS_EQUAL>
EXACTSHAP_APART void decide_splits(const double* __restrict x, const int32_t* __restrict feature, const double* __restrict threshold, int64_t n,
                                   uint8_t* __restrict out) {
  for (int64_t c = 0; c < n; c++) out[c] = LESS_EQUAL ? !(x[feature[c]] <= threshold[c]) : !(x[feature[c]] < threshold[c]);
}

/// The bits of truth values of a byte each, the first one lowest; `n` of them, the others are not there.
EXACTSHAP_INLINE uint64_t bits_of(const uint8_t* bytes, int64_t n) {
  uint64_t bits = 0;
  for (int64_t first = 0; first < n; first += AT_A_TIME) {
    uint64_t eight;
    memcpy(&eight, bytes + first, sizeof eight);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    bits |= (eight * 0x0102040810204080u >> 56) << first;  // byte i has its bit at 8 i, and needs it at 56 + i
  }
  return bits & ((uint64_t(1) << n) - 1);
}

/// Write the codes of one row in the groups first to last - 1 of a tree to `codes`, as `walk` of sweep.cpp does of rows side by side.
///
/// `failed (nodes of the tree,)` and `right (splits of the tree and room,)` are scratch.
EXACTSHAP_INLINE void walk_row(int64_t tree, const double* x, const Tables& tables, int64_t first, int64_t last, int64_t* failed,
                               uint8_t* right, uint16_t* codes) {
  const Nodes& nodes = tables.forest.nodes;
  const Groups& groups = tables.groups;
  const Routes& routes = tables.routes;
  const int64_t offset = tables.forest.tree_start[tree], start = routes.walk_start[tree], n = routes.walk_start[tree + 1] - start;
  const auto decide = nodes.less_equal ? decide_splits<true> : decide_splits<false>;
  decide(x, routes.walk_feature.data + start, routes.walk_threshold.data + start, n, right);
  failed[0] = 0;
  const int64_t first_split = routes.split_start[tree], n_above = routes.split_start[tree + 1] - first_split;
  for (int64_t s = 0; s < n_above; s++) {
    const int64_t q = routes.split[first_split + s], bit = int64_t(1) << routes.bit[first_split + s], before = failed[q - offset];
    failed[nodes.left[q] - offset] = before | (right[s] ? bit : 0);
    failed[nodes.right[q] - offset] = before | (right[s] ? 0 : bit);
  }
  const int64_t skipped = routes.inside_start[routes.group_start[tree]];
  for (int64_t g = first; g < last; g++) {
    const int64_t n_inside = routes.inside_start[g + 1] - routes.inside_start[g], n_bits = groups.n_bits[g];
    const uint64_t inside = bits_of(right + n_above + routes.inside_start[g] - skipped, n_inside);
    const uint64_t lost = uint64_t(failed[groups.root[g] - offset]) | inside << (n_bits - n_inside);
    *codes++ = uint16_t(~lost & ((uint64_t(1) << n_bits) - 1));
  }
}

EXACTSHAP_END
