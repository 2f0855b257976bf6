// The rows of a scan of Universal Binary JSON, and the numbers that they point to (see ubj.cpp).
#pragma once

#include "../common/kernel.h"

EXACTSHAP_BEGIN

constexpr int64_t TYPED = 128;  // added to the type of the numbers of a typed array

/// Bytes of a number of a type, 0 if it is none.
EXACTSHAP_INLINE int64_t width_of(int64_t type) {
  switch (type) {
    case 'i': case 'U': return 1;
    case 'I': return 2;
    case 'l': case 'd': return 4;
    case 'L': case 'D': return 8;
    default: return 0;
  }
}

/// The rows of a scan and the bytes that they point into; see Rows (`size` is its `count`).
struct Tape {
  In<uint8_t, 1> data, marker;
  In<int64_t, 1> key_start, key_length, start, size, after;
  EXACTSHAP_FIELDS(data, marker, key_start, key_length, start, size, after)

  EXACTSHAP_INLINE bool fit() const {
    const int64_t n = after.size[0];
    return marker.size[0] == n && key_start.size[0] == n && key_length.size[0] == n && start.size[0] == n && size.size[0] == n;
  }
};

constexpr int64_t MAX_KEYS = 64;  // of an object among many alike ones

/// Whether two rows have the same key; false where some bytes lie outside.
inline bool same_key(const Tape& tape, int64_t one, int64_t two) {
  const int64_t n = tape.key_length[one], a = tape.key_start[one], b = tape.key_start[two], last = tape.data.size[0] - n;
  if (n != tape.key_length[two] || n < 0 || a < 0 || b < 0 || a > last || b > last) return false;
  return memcmp(tape.data.data + a, tape.data.data + b, size_t(n)) == 0;
}

/// Write the rows of the children of `object` to `rows` and return how many there are, -1 if more than `most` or out of order.
inline int64_t list_children(const Tape& tape, int64_t object, int64_t most, int64_t* rows) {
  const int64_t n = tape.after.size[0];
  if (object < 0 || object >= n || tape.after[object] > n) return -1;
  int64_t found = 0;
  for (int64_t row = object + 1; row < tape.after[object]; row = tape.after[row]) {
    if (found == most || tape.after[row] <= row) return -1;
    rows[found++] = row;
  }
  return found;
}

/// The number of type `Number` whose bytes begin at `bytes`, the most significant first.
template <class Number, class Bits>
EXACTSHAP_INLINE Number number_at(const uint8_t* bytes) {
  Bits bits = 0;
  for (size_t b = 0; b < sizeof(Bits); b++) bits = Bits(uint64_t(bits) << 8 | bytes[b]);
  Number number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

template <class Number, class Bits, class T>
EXACTSHAP_INLINE void copy_piece(const uint8_t* bytes, int64_t n, T* __restrict out) {
  for (int64_t i = 0; i < n; i++) out[i] = T(number_at<Number, Bits>(bytes + i * int64_t(sizeof(Bits))));
}

EXACTSHAP_END
