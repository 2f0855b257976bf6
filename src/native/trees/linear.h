// Linear functions of leaves (exactshap.trees.ensemble.LinearLeaves has the same arrays).
#pragma once

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

/// Node q's terms are start[q] to start[q + 1] - 1; `coefficient (n_terms, n_outputs)`, `offset (n_nodes, n_outputs)`.
struct LeafTerms {
  In<int64_t, 1> start;
  In<int32_t, 1> column;
  In<double, 2> coefficient, offset;
  EXACTSHAP_FIELDS(start, column, coefficient, offset)

  EXACTSHAP_INLINE bool fit() const {
    const int64_t n = offset.size[0];
    if (start.size[0] != n + 1 || start[0] != 0 || column.size[0] != start[n] || coefficient.size[0] != start[n]) return false;
    for (int64_t q = 0; q < n; q++)
      if (start[q] > start[q + 1]) return false;
    return coefficient.size[1] == offset.size[1];
  }
  /// Whether a column of node q's function is missing in a row, `x[column * stride]`: the function is left out then.
  EXACTSHAP_INLINE bool is_missing(int64_t q, const double* x, int64_t stride) const {
    for (int64_t e = start[q]; e < start[q + 1]; e++)
      if (x[column[e] * stride] != x[column[e] * stride]) return true;
    return false;
  }
};

EXACTSHAP_END
