// Sums of eight numbers at a time, written out so that every compiler uses vector instructions.
#pragma once

#include "array.h"

EXACTSHAP_BEGIN

/// Add `values[source:source + size]` to `values[to:to + size]`, eight at a time: these ranges are often just eight, and do not overlap.
EXACTSHAP_INLINE void add_range(double* values, int64_t to, int64_t source, int64_t size) {
  double* const target = values + to;
  const double* const added = values + source;
  int64_t x = 0;
  for (; x + 8 <= size; x += 8) {
    double lane[8];
    for (int i = 0; i < 8; i++) lane[i] = target[x + i] + added[x + i];
    for (int i = 0; i < 8; i++) target[x + i] = lane[i];
  }
  for (; x < size; x++) target[x] += added[x];
}

EXACTSHAP_END
