// What the library has once, whatever the CPU: which level to use, the hash of the sources, and interruption.
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(_WIN32)
#define EXACTSHAP_API extern "C" __declspec(dllexport)
#else
#define EXACTSHAP_API extern "C" __attribute__((visibility("default")))
#endif

#ifndef EXACTSHAP_SOURCES
#define EXACTSHAP_SOURCES ""
#endif

namespace {

#if defined(__x86_64__)

bool has(unsigned value, unsigned bits) { return (value & bits) == bits; }

/// The vector registers that the operating system keeps when it switches between programs.
unsigned saved_registers() {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

const char* best_level() {
  unsigned a, b, c = 0, d, b7 = 0, unused;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return "";
  const unsigned ssse3 = 1u << 9, sse42 = 3u << 19, popcnt = 1u << 23, fma = 1u << 12, f16c = 1u << 29, movbe = 1u << 22;
  const unsigned osxsave = 1u << 27, avx = 1u << 28;
  if (!has(c, ssse3 | sse42 | popcnt)) return "";
  if (!has(c, osxsave | avx | fma | f16c | movbe) || !has(saved_registers(), 0x6)) return "v2";
  if (!__get_cpuid_count(7, 0, &unused, &b7, &c, &d)) return "v2";
  const unsigned bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8, lzcnt = 1u << 5;
  if (!has(b7, bmi1 | avx2 | bmi2)) return "v2";
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has(c, lzcnt)) return "v2";
  const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;  // F, DQ, CD, BW, VL
  return has(b7, avx512) && has(saved_registers(), 0xe6) ? "v4" : "v3";
}

#else

const char* best_level() { return "base"; }

#endif

// Functions of Python's stable C interface, handed over when the library is loaded: nothing of Python is linked.
struct Python {
  int (*lock)();
  void (*unlock)(int);
  int (*check_signals)();
  void (*fetch)(void**, void**, void**);
  void (*restore)(void*, void*, void*);
};

Python python = {};
__thread void* raised[3];                // what a signal's handler raised in this thread while a kernel ran
__thread const volatile int32_t* watch;  // set for threads of a pool: nonzero once the others gave up

constexpr int64_t interval = 20000000;  // nanoseconds between two looks

int64_t now() {
  timespec t;
  timespec_get(&t, TIME_UTC);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

}  // namespace

EXACTSHAP_API const char* exactshap_sources() { return EXACTSHAP_SOURCES; }

EXACTSHAP_API const char* exactshap_best_level() { return best_level(); }

EXACTSHAP_API void exactshap_connect(const Python* functions) { python = *functions; }

EXACTSHAP_API void exactshap_watch(const volatile int32_t* flag) { watch = flag; }

/// Raise again, in Python, what a signal's handler raised: called with the interpreter's lock held.
EXACTSHAP_API void exactshap_raise() {
  python.restore(raised[0], raised[1], raised[2]);
  raised[0] = raised[1] = raised[2] = nullptr;
}

// Handlers written in Python run between its own instructions, so a kernel has to let them: it takes the interpreter's lock for
// a moment and asks for pending signals. Off the main thread that does nothing; there the flag of the pool is read instead, by
// each call at its first look as well: between calls nobody else reads it, and none of many calls in turn may last.
extern "C" __attribute__((visibility("hidden"))) int exactshap_poll(int64_t* due) {
  const int64_t t = now();
  const bool first = *due == 0;
  if (!first && t < *due && *due - t <= interval) return 0;
  *due = t + interval;
  if (watch != nullptr) return *watch != 0;
  if (first || python.check_signals == nullptr) return 0;
  const int state = python.lock();
  const int failed = python.check_signals();
  if (failed) python.fetch(&raised[0], &raised[1], &raised[2]);
  python.unlock(state);
  return failed;
}
