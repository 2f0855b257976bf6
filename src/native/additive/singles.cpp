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

constexpr int LANES = 8;  // sums of neighbouring columns that do not wait for each other; they are part of the numbers

EXACTSHAP_INLINE double sum_of(const double* lane) {
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/// Add the terms c_j x_j of one row, each of a player of its own, and return their sum; `largest` grows by their magnitudes.
EXACTSHAP_INLINE double add_scaled_row(const double* __restrict row, const double* __restrict coefficients, const double* __restrict absent,
                                       double weight, int64_t n, double* __restrict out, double& largest) {
  double with[LANES] = {0.0}, size[LANES] = {0.0};
  int64_t l = 0;
  for (; l + LANES <= n; l += LANES) {
    double here[LANES], both[LANES];
    for (int k = 0; k < LANES; k++) here[k] = row[l + k] * coefficients[l + k];
    for (int k = 0; k < LANES; k++) both[k] = fabs(here[k]) > fabs(absent[l + k]) ? fabs(here[k]) : fabs(absent[l + k]);
    for (int k = 0; k < LANES; k++) out[l + k] += 0.0 + weight * (here[k] - absent[l + k]);
    for (int k = 0; k < LANES; k++) with[k] += here[k];
    for (int k = 0; k < LANES; k++) size[k] += both[k];
  }
  double rest = 0.0, rest_size = 0.0;
  for (; l < n; l++) {
    const double here = row[l] * coefficients[l];
    out[l] += 0.0 + weight * (here - absent[l]);
    rest += here;
    rest_size += fabs(here) > fabs(absent[l]) ? fabs(here) : fabs(absent[l]);
  }
  largest += sum_of(size) + rest_size;
  return sum_of(with) + rest;
}

/// The same as `add_singles` for terms c_l x_l of the columns, column l being player l, and one output: no value of a term is kept.
Status add_scaled(In<double, 2> X, In<double, 1> coefficients, In<double, 1> absent, double weight, Out<double, 3> out,
                  Out<double, 2> empty, Out<double, 2> full, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = X.size[0], n = X.size[1];
  EXACTSHAP_REQUIRE(coefficients.size[0] == n && absent.size[0] == n && out.size[1] >= n);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[2] == 1 && empty.size[1] == 1 && full.size[1] == 1);
  double without = 0.0;
  for (int64_t l = 0; l < n; l++) without += absent[l];
  for (int64_t i = 0; i < n_rows; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    full[i][0] += add_scaled_row(X[i].data, coefficients.data, absent.data, weight, n, out[i].data, scale[i]);
    empty[i][0] += without;
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, add_singles, add_singles)
EXACTSHAP_KERNEL(additive, add_scaled, add_scaled)
