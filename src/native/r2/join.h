// The joint axes of a pair of units, and the joint index by which a row is counted.
//
// A joint index has one bit for each *normal* axis (a prefix player of either unit; of both: passed in both), and above them the
// *top* bits: prefix bits of the at most two *bottom* axes (the units' own players) and the sides that the row takes at the units'
// own splits.
#pragma once

#include "units.h"

EXACTSHAP_BEGIN

constexpr int SLOTS = 64;  // of two units with codes: at most 2 (CODE_BITS + 1) are used

/// The joint axes of a pair, with scratch.
struct Join {
  int32_t place[2][SLOTS];      // slot of either unit -> bit of the joint index, -1 if dropped, -2 and -3 at the bottoms
  int32_t axis_player[SLOTS];   // players of the normal axes, then of the bottom axes
  double axis_beta[SLOTS];      // beta of the normal axes
  double bottom_beta[2];        // beta of the bottom axes
  double mix[4][16];            // top patterns -> in or out of S on the bottom axes
  int64_t n;                    // normal axes
  int64_t own[2];               // players of the bottom axes, -1 for none
  int64_t bits;                 // which bottom axes (bits 0 and 1) have a prefix bit
  double constant;              // the product of the betas that are always outside S

  int64_t count_bottoms() const { return (own[0] >= 0 ? 1 : 0) + (own[1] >= 0 && own[1] != own[0] ? 1 : 0); }
  int64_t count_top() const { return (bits & 1) + (bits >> 1) + (own[0] >= 0 ? 1 : 0) + (own[1] >= 0 ? 1 : 0); }

  void find(int64_t u, int64_t w, int64_t apart, const Units& units);
  void lay_out(int64_t u, int64_t w, const Units& units, Array<uint32_t, 2> lookups);

 private:
  void place_slots(int64_t unit, int64_t which, int64_t known, int64_t apart, const Units& units);
  void fill_mix(const double* value_u, const double* value_w, int64_t n_top, const int64_t* marks, const int64_t* sides);
  void fill_lookup(int64_t which, const int32_t* size, int64_t side, const int64_t* marks, int64_t n_bits, uint32_t* lookup);
};

/// The player of a unit's own split, -1 if it has none or cannot be in any S that matters.
EXACTSHAP_INLINE int64_t own_player(int64_t unit, int64_t apart, const Units& units) {
  const int32_t bottom = units.size[unit][2];
  if (bottom < 0) return -1;
  const int32_t p = units.player[unit][bottom];
  return p == apart ? -1 : p;
}

/// Find the joint axes of a pair, with `apart` (-1: none) in no S that matters.
inline void Join::find(int64_t u, int64_t w, int64_t apart, const Units& units) {
  own[0] = own_player(u, apart, units);
  own[1] = own_player(w, apart, units);
  bottom_beta[0] = bottom_beta[1] = 1.0;
  n = bits = 0;
  double part[2];
  constant = 1.0;
  place_slots(u, 0, 0, apart, units);
  part[0] = constant;
  constant = 1.0;
  place_slots(w, 1, n, apart, units);
  part[1] = constant;
  constant = part[0] * part[1];
}

/// Give each slot of a unit its axis: normal ones up from n (shared ones found among `known`), -2 and -3 at the bottoms.
inline void Join::place_slots(int64_t unit, int64_t which, int64_t known, int64_t apart, const Units& units) {
  const int64_t n_prefix = units.size[unit][0], n_axes = units.size[unit][1];
  const int32_t* const players = units.player[unit].data;
  const double* const betas = units.beta[unit].data;
  for (int64_t k = 0; k < n_axes; k++) {
    const int32_t p = players[k];
    place[which][k] = -1;
    if (p == apart) {
      constant *= betas[k];
    } else if (p == own[0] || p == own[1]) {
      const int axis = p == own[0] ? 0 : 1;
      bottom_beta[axis] *= betas[k];
      if (k < n_prefix) {
        bits |= int64_t(1) << axis;
        place[which][k] = -2 - axis;
      }
    } else {
      int64_t a = 0;
      while (a < known && axis_player[a] != p) a++;
      if (a == known) {
        a = n++;
        axis_player[a] = p;
        axis_beta[a] = 1.0;
      }
      axis_beta[a] *= betas[k];
      place[which][k] = int32_t(a);
    }
  }
}

/// Write, for each top pattern, the factor of the bottom axes with their players out of S and in S.
inline void Join::fill_mix(const double* value_u, const double* value_w, int64_t n_top, const int64_t* marks,
                           const int64_t* sides) {
  const bool same = own[0] >= 0 && own[0] == own[1];
  for (int64_t t = 0; t < int64_t(1) << n_top; t++) {
    double in_u = marks[0] < 0 || (t >> marks[0] & 1) != 0 ? 1.0 : 0.0;
    double in_w = marks[1] < 0 || (t >> marks[1] & 1) != 0 ? 1.0 : 0.0;
    if (own[0] >= 0) in_u *= (t >> sides[0] & 1) != 0 ? value_u[0] : value_u[1];
    if (own[1] >= 0) {
      const double value = (t >> sides[1] & 1) != 0 ? value_w[0] : value_w[1];
      (same ? in_u : in_w) *= value;
    }
    if (own[0] >= 0 && own[1] >= 0 && !same) {
      mix[0][t] = bottom_beta[0] * bottom_beta[1];
      mix[1][t] = in_u * bottom_beta[1];
      mix[2][t] = bottom_beta[0] * in_w;
      mix[3][t] = in_u * in_w;
    } else if (own[0] >= 0) {
      mix[0][t] = bottom_beta[0];
      mix[1][t] = in_u;
    } else if (own[1] >= 0) {
      mix[0][t] = bottom_beta[1];
      mix[1][t] = in_w;
    } else {
      mix[0][t] = 1.0;
    }
  }
}

/// Write the joint index bits of every code of a unit to `lookup`; bits that the unit does not own are set.
///
/// `side` is the bit of its own split (-1 if dropped), `marks` the bits of the two bottom axes.
inline void Join::fill_lookup(int64_t which, const int32_t* size, int64_t side, const int64_t* marks, int64_t n_bits,
                              uint32_t* __restrict lookup) {
  const int64_t n_prefix = size[0], has_side = size[2] >= 0 ? 1 : 0;
  int32_t* const places = place[which];
  uint32_t owned = side >= 0 ? uint32_t(1) << side : 0;
  for (int64_t k = 0; k < n_prefix; k++) {
    if (places[k] < -1) places[k] = int32_t(marks[-2 - places[k]]);
    owned |= places[k] >= 0 ? uint32_t(1) << places[k] : 0;
  }
  lookup[0] = ((uint32_t(1) << n_bits) - 1) & ~owned;
  int64_t width = 1;
  for (int64_t k = 0; k < n_prefix + has_side; k++) {
    const int64_t where = k < n_prefix ? places[k] : side;
    const uint32_t bit = where >= 0 ? uint32_t(1) << where : 0;
    const uint32_t* __restrict const from = lookup;
    uint32_t* __restrict const to = lookup + width;
    for (int64_t x = 0; x < width; x++) to[x] = from[x] | bit;
    width *= 2;
  }
}

/// Give the top bits of a joint index their numbers, then write the mix of the bottom axes and the lookups of both units.
inline void Join::lay_out(int64_t u, int64_t w, const Units& units, Array<uint32_t, 2> lookups) {
  int64_t top = 0, first = -1, second = -1, side_u = -1, side_w = -1;
  if (bits & 1) first = top++;
  if (bits & 2) second = top++;
  if (own[0] >= 0) side_u = top++;
  if (own[1] >= 0) side_w = top++;
  const int64_t marks[2] = {first, second}, sides[2] = {side_u, side_w};
  fill_mix(units.value[u].data, units.value[w].data, top, marks, sides);
  const int64_t places[2] = {n + first, n + second};
  fill_lookup(0, units.size[u].data, side_u >= 0 ? n + side_u : -1, places, n + top, lookups[0].data);
  fill_lookup(1, units.size[w].data, side_w >= 0 ? n + side_w : -1, places, n + top, lookups[1].data);
}

EXACTSHAP_END
