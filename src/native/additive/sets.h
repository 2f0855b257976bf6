// The sets of players within one small term, and what they add to a row's values.
#pragma once

#include <math.h>

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

/// The sets within a term that are solved: set s has `sizes[s]` players `members[s]`, ascending bits of a code.
struct Sets {
  In<int64_t, 2> members;
  In<int64_t, 1> sizes;
  In<double, 2> weights;  // (size, code): p of the coalition that is left when a set of that size is cut out of the code

  EXACTSHAP_FIELDS(members, sizes, weights)
};

EXACTSHAP_INLINE bool are_sets(const Sets& sets, int64_t n_codes) {
  const auto members = sets.members;
  const auto sizes = sets.sizes;
  if (n_codes <= 0 || (n_codes & (n_codes - 1)) != 0 || members.size[0] != sizes.size[0]) return false;
  if (sets.weights.size[0] != members.size[1] + 1 || sets.weights.size[1] != n_codes) return false;
  for (int64_t s = 0; s < sizes.size[0]; s++) {
    if (sizes[s] < 1 || sizes[s] > members.size[1]) return false;
    for (int64_t m = 0; m < sizes[s]; m++) {
      const int64_t low = m > 0 ? members[s][m - 1] + 1 : 0;
      if (members[s][m] < low || members[s][m] >= 62 || int64_t(1) << members[s][m] >= n_codes) return false;
    }
  }
  return true;
}

/// Set `out` to the differences over one player of all codes of `values`, `step` apart; return how many there are.
EXACTSHAP_INLINE int64_t subtract_without(const double* values, int64_t step, int64_t width, int64_t player, double* out) {
  const int64_t bit = int64_t(1) << player;
  int64_t target = 0;
  for (int64_t start = 0; start < width; start += 2 * bit)
    for (int64_t code = start; code < start + bit; code++) out[target++] = values[(code + bit) * step] - values[code * step];
  return target;
}

/// The value of one set in the game of one term: differences over its players, then the weighted sum over the codes that are left.
EXACTSHAP_INLINE double set_value(const double* table, int64_t step, int64_t n_codes, const int64_t* players, int64_t size,
                                  const double* weights, double* work) {
  int64_t width = n_codes;
  for (int64_t m = size - 1; m > 0; m--) {  // highest bit first: the lower ones keep their places
    width = subtract_without(table, step, width, players[m], work);
    table = work;
    step = 1;
  }
  const int64_t bit = int64_t(1) << players[0];  // the last difference is summed as it is made
  double value = 0.0;
  for (int64_t start = 0; start < width; start += 2 * bit)
    for (int64_t code = start; code < start + bit; code++)
      value += *weights++ * (table[(code + bit) * step] - table[code * step]);
  return value;
}

/// Whether `positions (n_terms, n_local_sets)` lie among `n_sets`.
EXACTSHAP_INLINE bool are_positions(In<int64_t, 2> positions, int64_t n_terms, const Sets& sets, int64_t n_sets) {
  return positions.size[0] == n_terms && positions.size[1] == sets.sizes.size[0] && lie_within(positions, n_sets);
}

/// The same as `add_table` below for a term of one player.
EXACTSHAP_INLINE void add_single(const double* table, int64_t n_outputs, double weight, double* values, double* empty, double* full,
                                 double& scale) {
  double largest = 0.0;
  for (int64_t o = 0; o < n_outputs; o++) {
    const double without = table[o], with = table[n_outputs + o];
    empty[o] += without;
    full[o] += with;
    largest = larger(larger(largest, fabs(without)), fabs(with));
    values[o] += 0.0 + weight * (with - without);  // 0.0 + x: never minus zero
  }
  scale += largest;
}

/// Add the values of the sets within one term to those of its row, and what the term is worth without and with all of its players.
EXACTSHAP_INLINE void add_table(const double* table, int64_t n_codes, int64_t n_outputs, const Sets& sets, const int64_t* position,
                                double* work, double* row, double* empty, double* full, double& scale) {
  if (n_codes == 2 && sets.sizes.size[0] == 1)
    return add_single(table, n_outputs, sets.weights[1][0], row + position[0] * n_outputs, empty, full, scale);
  double largest = 0.0;
  for (int64_t o = 0; o < n_outputs; o++) {
    empty[o] += table[o];
    full[o] += table[(n_codes - 1) * n_outputs + o];
    for (int64_t code = 0; code < n_codes; code++) largest = larger(largest, fabs(table[code * n_outputs + o]));
    for (int64_t s = 0; s < sets.sizes.size[0]; s++)
      row[position[s] * n_outputs + o] += set_value(table + o, n_outputs, n_codes, sets.members[s].data, sets.sizes[s],
                                                    sets.weights[sets.sizes[s]].data, work);
  }
  scale += largest;
}

EXACTSHAP_END
