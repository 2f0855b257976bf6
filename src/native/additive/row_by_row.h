// Rows of a table one after the other, for kernels that answer a linear model in one pass.
#pragma once

#include <math.h>

#include "../common/context.h"

EXACTSHAP_BEGIN

constexpr int64_t TURNED = 16;  // rows that are turned together: whole cache lines of a column
constexpr int64_t POLLED = 256;  // rows between two looks for an interruption, which cost as much as a row

/// Rows one after the other, as they lie in memory, or by column, as those of frames: then some at a time are turned.
struct RowByRow {
  In<double, 2> X;
  bool by_column;
  int64_t first;  // row that is asked for first
  Array<double, 1> turned;

  RowByRow(In<double, 2> X, bool by_column, int64_t first, Context& context)
      : X(X), by_column(by_column), first(first), turned(context.empty<double>(by_column ? TURNED * X.size[0] : 0)) {}

  EXACTSHAP_INLINE const double* row(int64_t i) {
    if (!by_column) return X[i].data;
    const int64_t place = (i - first) % TURNED;
    if (place == 0) turn(i);
    return turned.data + place * X.size[0];
  }

  /// Write rows `first` to `first + TURNED - 1`, as far as there are any, of columns that lie behind each other.
  EXACTSHAP_APART void turn(int64_t first) {
    const int64_t n = X.size[0], n_rows = X.size[1], count = n_rows - first < TURNED ? n_rows - first : TURNED;
    for (int64_t l = 0; l < n; l++) {
      const double* const column = X[l].data + first;
      for (int64_t i = 0; i < count; i++) turned[i * n + l] = column[i];
    }
  }
};

/// Whether a residual is within its tolerance: an infinite one, where numbers overflow, allows nothing.
EXACTSHAP_INLINE bool is_within(double residual, double tolerance) { return fabs(residual) <= tolerance && tolerance - tolerance == 0.0; }

EXACTSHAP_END
