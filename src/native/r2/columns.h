// Rows as columns: contiguous, at the precision in which a model compares.
#pragma once

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

constexpr int64_t COLUMN_ROWS = 16;  // rows that are transposed at a time: both sides stay in cache

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

/// Write columns `used` of `X (n_rows, n_features)` to the first `n_rows` of `out (n_used, ...)`, rounded to float32 if asked for.
inline void copy_columns(In<double, 2> X, In<int64_t, 1> used, bool single_precision, Out<double, 2> out) {
  single_precision ? copy_columns<true>(X, used, out) : copy_columns<false>(X, used, out);
}

EXACTSHAP_END
