// Sums of terms of one player each: linear models, the main effects of additive ones.

#include <math.h>

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

bool are_players(In<int64_t, 1> players, int64_t n_players) {
  for (int64_t l = 0; l < players.size[0]; l++)
    if (players[l] < 0 || players[l] >= n_players) return false;
  return true;
}

/// Add one output of a row's terms to its values and ends, term after term.
EXACTSHAP_INLINE void add_row(const double* present, In<double, 2> absent, int64_t o, double weight, In<int64_t, 1> players, double* out,
                              double& empty, double& full) {
  const int64_t n_outputs = absent.size[1];
  double without = empty, with = full;
  for (int64_t l = 0; l < absent.size[0]; l++) {
    const double here = present[l * n_outputs + o], gone = absent[l][o];
    without += gone;
    with += here;
    out[players[l] * n_outputs + o] += 0.0 + weight * (here - gone);  // 0.0 + x: never minus zero
  }
  empty = without;
  full = with;
}

/// The sum over a row's terms of the largest magnitude in any output, from `total` on.
EXACTSHAP_INLINE double add_largest(const double* present, In<double, 2> absent, double total) {
  const int64_t n_outputs = absent.size[1];
  for (int64_t l = 0; l < absent.size[0]; l++) {
    double largest = 0.0;
    for (int64_t o = 0; o < n_outputs; o++) {
      const double here = fabs(present[l * n_outputs + o]), gone = fabs(absent[l][o]);
      largest = gone > largest ? gone : largest;
      largest = here > largest ? here : largest;
    }
    total += largest;
  }
  return total;
}

/// Add the values of terms of one player each to `out (n_rows, n_players or more, n_outputs)`, and the ends of the games:
///
///   phi_j += p(0) (v_l(x_j) - E v_l(z_j))    for the terms l of player j
///
/// `present (n_rows, n_terms, n_outputs)`, `absent (n_terms, n_outputs)`. `scale (n_rows,)` grows by the largest magnitude of
/// each term.
Status add_singles(In<double, 3> present, In<double, 2> absent, double weight, In<int64_t, 1> players, Out<double, 3> out,
                   Out<double, 2> empty, Out<double, 2> full, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = present.size[0], n_terms = present.size[1], n_outputs = present.size[2];
  EXACTSHAP_REQUIRE(absent.size[0] == n_terms && absent.size[1] == n_outputs && players.size[0] == n_terms);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[2] == n_outputs && empty.size[1] == n_outputs && full.size[1] == n_outputs);
  EXACTSHAP_REQUIRE(are_players(players, out.size[1]));
  for (int64_t i = 0; i < n_rows; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    const double* const row = present[i].data;
    for (int64_t o = 0; o < n_outputs; o++)
      add_row(row, absent, o, weight, players, out[i].data, empty[i][o], full[i][o]);
    scale[i] = add_largest(row, absent, scale[i]);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, add_singles, add_singles)
