// What a call brings along: scratch memory that is freed when the kernel returns, and whether somebody pressed Ctrl-C.
#pragma once

#include <stdlib.h>
#include <string.h>

#include "array.h"

/// Whether to stop now; looks at most every 20 ms whether a signal arrived (or another thread gave up). See library.cpp.
extern "C" __attribute__((visibility("hidden"))) int exactshap_poll(int64_t* due);

EXACTSHAP_BEGIN

/// How a kernel ended. A kernel that cannot fail returns void.
enum class Status : int64_t { done = 0, no_memory = 1, interrupted = 2, mismatch = 3, fault = 4 };

class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  ~Context() {
    while (blocks_ != nullptr) {
      Block* next = blocks_->next;
      free(blocks_);
      blocks_ = next;
    }
  }

  /// Uninitialised scratch. On failure data is null and `failed()` true: ask once, after the last request.
  template <class T, class... Sizes>
  Array<T, int(sizeof...(Sizes))> empty(Sizes... sizes) {
    Array<T, int(sizeof...(Sizes))> out = {nullptr, {int64_t(sizes)...}};
    size_t bytes = sizeof(T);
    for (int64_t size : out.size) failed_ |= size < 0 || __builtin_mul_overflow(bytes, size_t(size), &bytes);
    if (!failed_) out.data = static_cast<T*>(take(bytes));
    return out;
  }

  template <class T, class... Sizes>
  Array<T, int(sizeof...(Sizes))> zeros(Sizes... sizes) {
    auto out = empty<T>(sizes...);
    if (!failed_) memset(static_cast<void*>(out.data), 0, size_t(out.count()) * sizeof(T));
    return out;
  }

  bool failed() const { return failed_; }

  /// Ask in the outermost loop whose turns last at least a microsecond; on true return Status::interrupted.
  bool interrupted() { return exactshap_poll(&due_) != 0; }

 private:
  struct Block {
    Block* next;
  };
  static constexpr size_t alignment = 64;  // a cache line, and the widest vector

  void* take(size_t bytes) {
    size_t total;
    failed_ = __builtin_add_overflow(bytes, sizeof(Block) + alignment, &total);
    Block* block = failed_ ? nullptr : static_cast<Block*>(malloc(total));
    failed_ = block == nullptr;
    if (failed_) return nullptr;
    block->next = blocks_;
    blocks_ = block;
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(block + 1) + alignment - 1) & ~uintptr_t(alignment - 1));
  }

  Block* blocks_ = nullptr;
  int64_t due_ = 0;
  bool failed_ = false;
};

EXACTSHAP_END
