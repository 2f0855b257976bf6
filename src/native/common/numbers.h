// Small questions about numbers and indices.
#pragma once

#include "array.h"

EXACTSHAP_BEGIN

EXACTSHAP_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
EXACTSHAP_INLINE double larger(double a, double b) { return b > a ? b : a; }

/// Whether every index lies in [0, size).
template <class T, int N>
EXACTSHAP_INLINE bool lie_within(Array<const T, N> indices, int64_t size) {
  for (int64_t i = 0, n = indices.count(); i < n; i++)
    if (indices.data[i] < 0 || indices.data[i] >= size) return false;
  return true;
}

EXACTSHAP_END
