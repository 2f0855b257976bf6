// What sweeps over product games share: the terms are taken in tiles, whose buffers stay in the first-level cache.
#pragma once

#include "../common/kernel.h"
#include "../common/lanes.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

constexpr int TILE = 32;       // terms per sweep: four 512-bit or eight 256-bit registers of double, and small enough for the cache
constexpr int LANES = 8;       // terms that are summed side by side

/// What stays in a register: several terms of a real game, one of a complex one; and how many nodes go together.
template <class T> struct Register {
  typedef Widest Type;
  static constexpr int NODES = sizeof(Widest) > 2 * sizeof(double) ? 4 : 2;
};
template <> struct Register<Complex> {
  typedef Complex Type;
  static constexpr int NODES = 1;
};

/// Sizes of the terms of a game that must agree.
template <class T>
EXACTSHAP_INLINE bool fit(In<T, 3> a, In<T, 3> b, In<T, 2> c, In<double, 1> weights) {
  return b.size[0] == weights.size[0] && b.size[1] == a.size[1] && b.size[2] == a.size[2] && c.size[1] == a.size[2];
}

/// Copy the coefficients of one tile; pad the last tile with terms of coefficient 0.
template <class T>
EXACTSHAP_INLINE void load_coefficients(In<T, 2> c, int64_t start, Array<T, 2> coefficient) {
  const int64_t width = smaller(TILE, c.size[1] - start);
  for (int64_t o = 0; o < c.size[0]; o++) {
    for (int64_t i = 0; i < width; i++) coefficient[o][i] = c[o][start + i];
    for (int64_t i = width; i < TILE; i++) coefficient[o][i] = T(0.0);
  }
}

/// Copy one tile: base = b, slope = a - b; pad the last tile with zeros.
template <class T>
EXACTSHAP_INLINE void load_tile(In<T, 2> a, In<T, 2> b, int64_t start, Array<T, 2> base, Array<T, 2> slope) {
  const int64_t n_players = a.size[0], width = smaller(TILE, a.size[1] - start);
  for (int64_t k = 0; k < n_players; k++) {
    const T *inside = a[k].data + start, *outside = b[k].data + start;
    T *__restrict const base_k = base[k].data, *__restrict const slope_k = slope[k].data;
    for (int64_t i = 0; i < width; i++) {
      base_k[i] = outside[i];
      slope_k[i] = inside[i] - outside[i];
    }
    for (int64_t i = width; i < TILE; i++) base_k[i] = slope_k[i] = T(0.0);
  }
}

/// Add the terms of one tile, weighted by their coefficients, to the outputs of every set, in lanes that do not wait for each other.
template <class T>
EXACTSHAP_INLINE void add_tile(Array<T, 2> total, Array<T, 2> coefficient, Out<double, 2> out) {
  using Pack = typename Register<T>::Type;
  constexpr int EACH = int(sizeof(Pack) / sizeof(T));
  for (int64_t s = 0; s < out.size[0]; s++)
    for (int64_t o = 0; o < coefficient.size[0]; o++) {
      const T *const total_s = total[s].data, *const coefficient_o = coefficient[o].data;
      T lane[LANES];
      for (int i = 0; i < LANES; i += EACH) {
        Pack sum = {}, value, factor;
        for (int first = i; first < TILE; first += LANES) {
          load(total_s + first, value), load(coefficient_o + first, factor);
          sum = sum + value * factor;
        }
        store(sum, lane + i);
      }
      out[s][o] += real(((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])));
    }
}

EXACTSHAP_END
