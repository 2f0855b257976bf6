// Linear models: each column is a term of one player.

#include <math.h>

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t POLLED = 64;  // rows between two looks for an interruption, which cost as much as a row

/// A linear model bound to a background.
struct Linear {
  In<double, 2> coefficients, absent;  // (n_columns, n_outputs); `absent` are the terms' means over the background
  In<int64_t, 1> players;              // of each column
  EXACTSHAP_FIELDS(coefficients, absent, players)
};

/// What is added up over the terms of one row: the values, the terms, and their magnitudes.
struct RowSums {
  double full, scale;
};

/// Add the terms of one row to its players' values, which are 0 before, of a model of one output.
EXACTSHAP_INLINE RowSums fill_row(const double* __restrict x, const Linear& linear, double weight, double* __restrict out) {
  const double *const coefficients = linear.coefficients.data, *const absent = linear.absent.data;
  const int64_t *const players = linear.players.data, n = linear.players.size[0];
  RowSums sums = {0.0, 0.0};
  for (int64_t l = 0; l < n; l++) {
    const double term = x[l] * coefficients[l];
    out[players[l]] += 0.0 + weight * (term - absent[l]);  // 0.0 + x: never minus zero
    sums.full += term;
    sums.scale += larger(fabs(absent[l]), fabs(term));
  }
  return sums;
}

/// The same for a model of several outputs; return the sum of the terms' largest magnitudes in any of them.
EXACTSHAP_INLINE double fill_outputs(const double* __restrict x, const Linear& linear, double weight, double* __restrict out,
                                     double* __restrict full) {
  const int64_t n = linear.players.size[0], n_outputs = linear.coefficients.size[1];
  double scale = 0.0;
  for (int64_t l = 0; l < n; l++) {
    const double *const coefficients = linear.coefficients[l].data, *const absent = linear.absent[l].data;
    double* const values = out + linear.players[l] * n_outputs;
    double largest = 0.0;
    for (int64_t o = 0; o < n_outputs; o++) {
      const double term = x[l] * coefficients[o];
      values[o] += 0.0 + weight * (term - absent[o]);
      full[o] += term;
      largest = larger(largest, larger(fabs(absent[o]), fabs(term)));
    }
    scale += largest;
  }
  return scale;
}

/// Set `out (n_rows, n_sets, n_outputs)` to the values of a linear model, players first, and nothing to sets of several players:
///
///   phi_j = p(0) sum_l (c_l x_l - E c_l z_l)    over the columns l of player j
///
/// `full (n_rows, n_outputs)` is the sum of the terms, `scale (n_rows,)` that of the larger magnitude of each term, with or without its
/// player, in any output.
Status fill_linear(In<double, 2> X, Linear linear, double weight, Out<double, 3> out, Out<double, 2> full, Out<double, 1> scale,
                   Context& context) {
  const int64_t n_rows = X.size[0], n = X.size[1], n_outputs = out.size[2];
  EXACTSHAP_REQUIRE(linear.coefficients.size[0] == n && linear.absent.size[0] == n && linear.players.size[0] == n);
  EXACTSHAP_REQUIRE(linear.coefficients.size[1] == n_outputs && linear.absent.size[1] == n_outputs);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(full.size[1] == n_outputs && lie_within(linear.players, out.size[1]));
  for (int64_t i = 0; i < n_rows; i++) {
    if (i % POLLED == 0 && context.interrupted()) return Status::interrupted;
    out[i].fill(0.0);
    if (n_outputs == 1) {
      const RowSums sums = fill_row(X[i].data, linear, weight, out[i].data);
      full[i][0] = sums.full;
      scale[i] = sums.scale;
    } else {
      full[i].fill(0.0);
      scale[i] = fill_outputs(X[i].data, linear, weight, out[i].data, full[i].data);
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_linear, fill_linear)
