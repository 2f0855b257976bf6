// The names that keep the copies of one source apart: every file is compiled once for each level of instruction set.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef EXACTSHAP_LEVEL
#define EXACTSHAP_LEVEL base
#endif

#if defined(_WIN32)
#define EXACTSHAP_API __declspec(dllexport)
#else
#define EXACTSHAP_API __attribute__((visibility("default")))
#endif

#define EXACTSHAP_JOIN_(level, room, name) exactshap_##level##_##room##_##name
#define EXACTSHAP_JOIN(level, room, name) EXACTSHAP_JOIN_(level, room, name)

// Everything that is compiled more than once lives in here: an inline function or template outside of it would be merged by
// the linker across levels, and an old CPU would meet the copy with new instructions.
#define EXACTSHAP_BEGIN namespace exactshap { namespace EXACTSHAP_LEVEL {
#define EXACTSHAP_END } }

#define EXACTSHAP_INLINE inline __attribute__((always_inline))

// An inner loop on its own: within a large function gcc may forget `__restrict`, and with it the vector instructions.
#define EXACTSHAP_APART __attribute__((noinline))

EXACTSHAP_BEGIN

/// A product that is rounded before it is added to. gcc turns alternating differences and sums of products (complex numbers)
/// into fused instructions although -ffp-contract=off forbids it, and AVX-512 cannot be had without them.
EXACTSHAP_INLINE double rounded(double product) {
#if defined(__AVX512F__) && !defined(__clang__)
  __asm__("" : "+v"(product));
#endif
  return product;
}

EXACTSHAP_END
