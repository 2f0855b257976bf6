// Sums of eight numbers at a time, written out so that every compiler uses vector instructions.
#pragma once

#include "array.h"

EXACTSHAP_BEGIN

/// Several doubles that are added and multiplied lane by lane, in however many registers that takes.
template <int WIDTH> struct Doubles;
template <> struct Doubles<4> { typedef double Vector __attribute__((vector_size(32))); };
template <> struct Doubles<8> { typedef double Vector __attribute__((vector_size(64))); };

/// As many as one register holds.
#if defined(__AVX512F__)
typedef double Widest __attribute__((vector_size(64)));
#elif defined(__AVX__)
typedef double Widest __attribute__((vector_size(32)));
#else
typedef double Widest __attribute__((vector_size(16)));
#endif

/// A product of vectors that is rounded before it is added to (see level.h).
EXACTSHAP_INLINE Widest rounded(Widest product) {
#if defined(__AVX512F__) && !defined(__clang__)
  __asm__("" : "+v"(product));
#endif
  return product;
}

/// Read a vector from anywhere, and write one. What is copied into an element of an array passes through a register of its own: in halves
/// it would be written to the stack, and the whole be waited for there.
template <class T, class Vector>
EXACTSHAP_INLINE void load(const T* values, Vector& out) {
  Vector value;
  __builtin_memcpy(&value, values, sizeof(value));
  out = value;
}
template <class T, class Vector>
EXACTSHAP_INLINE void store(Vector vector, T* values) { __builtin_memcpy(values, &vector, sizeof(vector)); }

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
