// Arrays as kernels see them: a pointer and the sizes, C-contiguous, without ownership.
#pragma once

#include "level.h"

EXACTSHAP_BEGIN

/// Values of type T (const T: read only) in N dimensions. `a[i]` is the i-th row, for N = 1 the i-th value; nothing is checked
/// unless EXACTSHAP_CHECKED is defined, and negative indices do not count from the end.
template <class T, int N>
struct Array {
  T* data;
  int64_t size[N];

  EXACTSHAP_INLINE Array<T, N - 1> operator[](int64_t i) const {
    check(i);
    Array<T, N - 1> row;
    int64_t step = 1;
    for (int k = 1; k < N; k++) {
      row.size[k - 1] = size[k];
      step *= size[k];
    }
    row.data = data + i * step;
    return row;
  }

  /// Rows start to stop - 1.
  EXACTSHAP_INLINE Array slice(int64_t start, int64_t stop) const {
    Array part = *this;
    part.data = data + start * (count() / (size[0] > 0 ? size[0] : 1));
    part.size[0] = stop - start;
    return part;
  }

  EXACTSHAP_INLINE int64_t count() const {
    int64_t product = 1;
    for (int k = 0; k < N; k++) product *= size[k];
    return product;
  }

  EXACTSHAP_INLINE void fill(T value) const {
    for (int64_t i = 0, n = count(); i < n; i++) data[i] = value;
  }

  /// The same values, read only.
  EXACTSHAP_INLINE operator Array<const T, N>() const {
    Array<const T, N> same;
    same.data = data;
    for (int k = 0; k < N; k++) same.size[k] = size[k];
    return same;
  }

  EXACTSHAP_INLINE void check([[maybe_unused]] int64_t i) const {
#ifdef EXACTSHAP_CHECKED
    if (i < 0 || i >= size[0]) __builtin_trap();
#endif
  }
};

template <class T>
struct Array<T, 1> {
  T* data;
  int64_t size[1];

  EXACTSHAP_INLINE T& operator[](int64_t i) const {
#ifdef EXACTSHAP_CHECKED
    if (i < 0 || i >= size[0]) __builtin_trap();
#endif
    return data[i];
  }

  EXACTSHAP_INLINE Array slice(int64_t start, int64_t stop) const { return Array{data + start, {stop - start}}; }
  EXACTSHAP_INLINE int64_t count() const { return size[0]; }

  EXACTSHAP_INLINE void fill(T value) const {
    for (int64_t i = 0; i < size[0]; i++) data[i] = value;
  }

  EXACTSHAP_INLINE operator Array<const T, 1>() const { return Array<const T, 1>{data, {size[0]}}; }
};

// What most kernels take: In<double, 2> is read, Out<double, 2> is written.
template <class T, int N>
using In = Array<const T, N>;
template <class T, int N>
using Out = Array<T, N>;

EXACTSHAP_END
