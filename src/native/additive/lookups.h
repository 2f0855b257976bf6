// Terms that are tables over bins, with the background folded in.
#pragma once

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

/// Terms of equally many players with the background folded in: one table for each coalition of a term's players.
struct Lookups {
  In<int64_t, 1> term;     // which of a row's cells belongs to it
  In<int64_t, 2> shape;    // (n_terms, n_columns): bins of its columns; 1 where there are fewer columns
  In<int64_t, 3> strides;  // (n_terms, n_codes, 1 + n_columns): where a coalition's table starts, its strides, 0 for columns outside
  In<double, 2> folded;    // (n_places, n_outputs): all tables

  EXACTSHAP_FIELDS(term, shape, strides, folded)
};

/// Whether every coalition's table lies in `n_places` places, whatever the bins.
inline bool are_strides(In<int64_t, 2> strides, In<int64_t, 1> shape, int64_t n_places) {
  for (int64_t code = 0; code < strides.size[0]; code++) {
    int64_t last = strides[code][0];
    if (last < 0) return false;
    for (int64_t p = 0; p < shape.size[0]; p++) {
      int64_t reach;
      if (shape[p] < 1 || strides[code][p + 1] < 0 || __builtin_mul_overflow(strides[code][p + 1], shape[p] - 1, &reach) ||
          __builtin_add_overflow(last, reach, &last))
        return false;
    }
    if (last >= n_places) return false;
  }
  return true;
}

inline bool are_lookups(const Lookups& lookups, int64_t n_cells) {
  const int64_t n_terms = lookups.term.size[0];
  if (lookups.shape.size[0] != n_terms || lookups.strides.size[0] != n_terms) return false;
  if (lookups.strides.size[2] != lookups.shape.size[1] + 1) return false;
  for (int64_t t = 0; t < n_terms; t++) {
    if (lookups.term[t] < 0 || lookups.term[t] >= n_cells) return false;
    if (!are_strides(lookups.strides[t], lookups.shape[t], lookups.folded.size[0])) return false;
  }
  return true;
}

EXACTSHAP_END
