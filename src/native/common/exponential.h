// Exponentials of several registers at once.
#pragma once

#include "lanes.h"
#include "level.h"

EXACTSHAP_BEGIN

constexpr int EACH = int(sizeof(Widest) / sizeof(double));  // numbers in one register
constexpr int TOGETHER = EACH == 8 ? 8 : 4;                                  // registers whose exponentials go together: none waits for the last step

constexpr double NEAR = 0.1, NEARER = 0.032;  // distances from 0 at which few powers are enough

/// Replace each `r` by e^r = 1 + (r O(r^2) + r^2 E(r^2)), less 1: powers up to 2 STEPS + 3.
///
/// Odd and even powers are two chains of half the length: a step waits for the one before.
template <int STEPS>
EXACTSHAP_INLINE void add_powers(Widest (&r)[TOGETHER]) {
  const double FACTORIALS[] = {1.0, 1.0, 2.0, 6.0, 24.0, 120.0, 720.0, 5040.0, 40320.0, 362880.0, 3628800.0, 39916800.0, 479001600.0, 6227020800.0};
  Widest square[TOGETHER], odd[TOGETHER], even[TOGETHER];
  for (int i = 0; i < TOGETHER; i++) {
    square[i] = r[i] * r[i];
    odd[i] = Widest{} + 1.0 / FACTORIALS[2 * STEPS + 3], even[i] = Widest{} + 1.0 / FACTORIALS[2 * STEPS + 2];
  }
  for (int step = STEPS; step > 0; step--)
    for (int i = 0; i < TOGETHER; i++) {
      odd[i] = rounded(square[i] * odd[i]) + 1.0 / FACTORIALS[2 * step + 1];
      even[i] = rounded(square[i] * even[i]) + 1.0 / FACTORIALS[2 * step];
    }
  for (int i = 0; i < TOGETHER; i++) {
    odd[i] = rounded(square[i] * odd[i]) + 1.0;
    r[i] = rounded(r[i] * odd[i]) + rounded(square[i] * even[i]);
  }
}

/// Replace `values`, all <= 0 and >= -NEAR, or -NEARER for 2 steps, by their exponentials, within a unit in the last place: the next
/// power, r^10 / 10! or r^8 / 8!, is at most a quarter of one.
template <int STEPS>
EXACTSHAP_INLINE void exponentiate_near(Widest (&values)[TOGETHER]) {
  add_powers<STEPS>(values);
  for (int i = 0; i < TOGETHER; i++) values[i] = values[i] + 1.0;
}

/// Replace `values`, all <= 0, by their exponentials, within two units in the last place:
///
///   e^x = 2^k e^r,   k = round(x / ln 2),   |r| <= ln(2) / 2
///
/// A call of the C library costs several times more, as it works on one number at a time. `k LN2_HIGH` is exact.
EXACTSHAP_INLINE void exponentiate(Widest (&values)[TOGETHER]) {
  typedef uint64_t Bits __attribute__((vector_size(sizeof(Widest))));
  const double LOG2_E = 1.4426950408889634, LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
  const double ROUNDER = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer and leaves that integer in the low bits
  const double LOWEST = -708.0;  // exp of anything below is taken as that of this, 3e-308: below, the exponent bits run out
  Widest shifted[TOGETHER], r[TOGETHER];
  for (int i = 0; i < TOGETHER; i++) {
    const Widest lowest = Widest{} + LOWEST, x = lowest > values[i] ? lowest : values[i];
    shifted[i] = rounded(x * LOG2_E) + ROUNDER;
    const Widest k = shifted[i] - ROUNDER;
    r[i] = (x - rounded(k * LN2_HIGH)) - rounded(k * LN2_LOW);
  }
  add_powers<5>(r);
  for (int i = 0; i < TOGETHER; i++) {
    Bits bits;
    __builtin_memcpy(&bits, &shifted[i], sizeof bits);
    bits = (bits << 52) + (uint64_t(1023) << 52);
    Widest scale;
    __builtin_memcpy(&scale, &bits, sizeof bits);
    values[i] = (r[i] + 1.0) * scale;
  }
}

EXACTSHAP_END
