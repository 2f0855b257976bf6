// Exponentials of several registers at once.
#pragma once

#include "lanes.h"
#include "level.h"

EXACTSHAP_BEGIN

constexpr int EACH = int(sizeof(Widest) / sizeof(double));  // numbers in one register
constexpr int TOGETHER = EACH == 8 ? 8 : 4;                                  // registers whose exponentials go together: none waits for the last step

/// Replace `values`, all <= 0, by their exponentials, within two units in the last place:
///
///   e^x = 2^k e^r,   k = round(x / ln 2),   |r| <= ln(2) / 2,   e^r = 1 + (r O(r^2) + r^2 E(r^2))
///
/// A call of the C library costs several times more, as it works on one number at a time. `k LN2_HIGH` is exact. Odd and even powers are
/// two chains of half the length: a step waits for the one before.
EXACTSHAP_INLINE void exponentiate(Widest (&values)[TOGETHER]) {
  typedef uint64_t Bits __attribute__((vector_size(sizeof(Widest))));
  const double LOG2_E = 1.4426950408889634, LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
  const double ROUNDER = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer and leaves that integer in the low bits
  const double LOWEST = -708.0;  // exp of anything below is taken as that of this, 3e-308: below, the exponent bits run out
  const double ODD[] = {39916800.0, 362880.0, 5040.0, 120.0, 6.0}, EVEN[] = {3628800.0, 40320.0, 720.0, 24.0, 2.0};
  Widest shifted[TOGETHER], r[TOGETHER], square[TOGETHER], odd[TOGETHER], even[TOGETHER];
  for (int i = 0; i < TOGETHER; i++) {
    const Widest lowest = Widest{} + LOWEST, x = lowest > values[i] ? lowest : values[i];
    shifted[i] = rounded(x * LOG2_E) + ROUNDER;
    const Widest k = shifted[i] - ROUNDER;
    r[i] = (x - rounded(k * LN2_HIGH)) - rounded(k * LN2_LOW);
    square[i] = r[i] * r[i];
    odd[i] = Widest{} + 1.0 / 6227020800.0, even[i] = Widest{} + 1.0 / 479001600.0;  // 1 / 13!, 1 / 12!
  }
  for (int step = 0; step < 5; step++)
    for (int i = 0; i < TOGETHER; i++) {
      odd[i] = rounded(square[i] * odd[i]) + 1.0 / ODD[step];
      even[i] = rounded(square[i] * even[i]) + 1.0 / EVEN[step];
    }
  for (int i = 0; i < TOGETHER; i++) {
    odd[i] = rounded(square[i] * odd[i]) + 1.0;
    Bits bits;
    __builtin_memcpy(&bits, &shifted[i], sizeof bits);
    bits = (bits << 52) + (uint64_t(1023) << 52);
    Widest scale;
    __builtin_memcpy(&scale, &bits, sizeof bits);
    values[i] = ((rounded(r[i] * odd[i]) + rounded(square[i] * even[i])) + 1.0) * scale;
  }
}

EXACTSHAP_END
