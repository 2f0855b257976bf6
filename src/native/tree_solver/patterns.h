// Values leaf by leaf with a background: patterns of failed players instead of pairs of rows.
//
// A row and a background row enter a leaf of m players only through the sets E and F of players whose splits they fail. With N(F)
// the weight of the background rows that fail F, A the complement of E, e = |E|, f = |F|, and p_n(s) the weights for n players,
//
//   phi_j(A) = P(A) - (P + Y)(A \ j)   (which is -Y(A) for j not in A),
//   Y(A) = sum_{F in A} N(F) p_{e + f}(f),   P(A) = sum_{F in A} N(F) p_{e + f}(f - 1)
//
// (of the empty F, P holds the sum of p_{m - i}(0) over i below |A|, which cancels). Tables of all A answer all rows and players at
// once (leaves.cpp), one row needs one A (leaf_rows.cpp): *dense* leaves. Where 2^m is too large, the pairs of disjoint E and F are
// summed (*sparse* leaves): players in F gain N(F) p_{e+f}(f - 1), players in E lose N(F) p_{e+f}(f). Which way a leaf goes depends
// on its players and on the size of the background, not on the rows.
#pragma once

#include "steps.h"

EXACTSHAP_BEGIN

constexpr int64_t WIDTH = 32;  // bits of a pattern

/// The background's rows and weights, p(s) on m players as `weights[m, s]`, and the players of the columns. Leaves of at most
/// `n_dense` players are dense, `n_low` bits sort the patterns of the others; those of more than WIDTH are left out.
struct Background {
  In<double, 2> columns;
  In<double, 1> weights_of;
  In<double, 2> weights;
  In<int32_t, 1> player_of;
  int64_t n_dense, n_low;
  EXACTSHAP_FIELDS(columns, weights_of, weights, player_of, n_dense, n_low)

  EXACTSHAP_INLINE int64_t count() const { return weights_of.size[0]; }
  EXACTSHAP_INLINE bool fit(const Steps& steps, int64_t n_players) const {
    return lie_within(player_of, n_players) && columns.size[1] == count() && steps.fit(columns.size[0], player_of) &&
           weights.size[0] == weights.size[1] && n_dense >= 0 && n_dense < WIDTH && n_low >= 0 && n_low < WIDTH;
  }
};

EXACTSHAP_INLINE int64_t count(uint32_t code) { return __builtin_popcount(code); }
EXACTSHAP_INLINE uint32_t bit_of(int64_t slot) { return uint32_t(1) << slot; }

/// The sets of all of m players.
EXACTSHAP_INLINE uint32_t all_of(int64_t m) { return m > 0 ? ~uint32_t(0) >> (WIDTH - m) : 0; }

/// Add up the masses of equal patterns, in order of first appearance; return their number. `mass_of` is 0.0 before and after.
EXACTSHAP_INLINE int64_t merge(uint32_t* patterns, double* mass, int64_t n, double* mass_of) {
  int64_t k = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t F = patterns[i];
    if (mass_of[F] == 0.0) {
      patterns[k] = F;
      k += mass[i] > 0.0 ? 1 : 0;
    }
    mass_of[F] += mass[i];
  }
  for (int64_t i = 0; i < k; i++) {
    mass[i] = mass_of[patterns[i]];
    mass_of[patterns[i]] = 0.0;
  }
  return k;
}

/// The weights of a pattern of f players in P and P + Y of a cell of a of m players.
struct Ends {
  double with_all, both;
};

EXACTSHAP_INLINE Ends ends(int64_t f, int64_t a, int64_t m, In<double, 2> weights) {
  double gain = f > 0 ? weights[m - a + f][f - 1] : 0.0;
  for (int64_t i = 0; i < (f == 0 ? a : 0); i++) gain += weights[m - i][0];  // P leaves out the empty set
  return {gain, gain + weights[m - a + f][f]};
}

EXACTSHAP_END
