// Linear models whose columns belong to players, several to some of them.

#include <math.h>

#include "../common/kernel.h"
#include "../common/numbers.h"
#include "row_by_row.h"

EXACTSHAP_BEGIN

namespace {

/// A linear model bound to a background.
struct LinearPlayers {
  In<double, 2> coefficients, absent;  // (n_columns, n_outputs)
  In<double, 1> constant;
  In<int64_t, 1> players;  // of each column
  double growth, floor;
  EXACTSHAP_FIELDS(coefficients, absent, constant, players, growth, floor)
};

/// Add one output of a row's terms to its players' values; return v(D) without the constant, term after term.
EXACTSHAP_INLINE double add_output(const double* row, const LinearPlayers& linear, int64_t o, double weight, double* values) {
  const int64_t n = linear.coefficients.size[0], n_outputs = linear.coefficients.size[1];
  const double *const coefficients = linear.coefficients.data + o, *const absent = linear.absent.data + o;
  const int64_t* const players = linear.players.data;
  double full = 0.0;
  for (int64_t l = 0; l < n; l++) {
    const double here = row[l] * coefficients[l * n_outputs];
    full += here;
    values[players[l] * n_outputs + o] += 0.0 + weight * (here - absent[l * n_outputs]);  // never minus zero
  }
  return full;
}

/// The sum over the terms of a row of their largest magnitude in any output, with or without their player.
EXACTSHAP_INLINE double scale_of(const double* row, const LinearPlayers& linear) {
  const int64_t n = linear.coefficients.size[0], n_outputs = linear.coefficients.size[1];
  const double *coefficient = linear.coefficients.data, *absent = linear.absent.data;
  double scale = 0.0;
  for (int64_t l = 0; l < n; l++) {
    double largest = 0.0;
    for (int64_t o = 0; o < n_outputs; o++, coefficient++, absent++) {
      const double here = fabs(row[l] * *coefficient), gone = fabs(*absent);
      largest = gone > largest ? gone : largest;
      largest = here > largest ? here : largest;
    }
    scale += largest;
  }
  return scale;
}

/// Write the values of a linear model into `out (n_rows, n_sets, n_outputs)`, players first, beside its own predictions:
///
///   phi_j = p(0) sum_l (c_l x_l - E c_l z_l)    over the columns l of player j
///   residual_i = f(x_i) - v(empty) - sum_j phi_j   (not `efficient`: f(x_i) - v(D))
///   tolerance_i = growth (scale_i + max_o |f_o(x_i)| + floor)
///
/// `X (n_rows, n_columns)`, or `by_column`, as frames lie in memory. Rows, `empty`, `finite` and `within` are those of `answer_scaled`.
Status answer_players(In<double, 2> X, bool by_column, LinearPlayers linear, double weight, In<double, 2> prediction, bool efficient,
                      Out<double, 3> out, Out<double, 2> empty, Out<double, 2> residual, Out<double, 1> tolerance, int64_t first,
                      int64_t last, int64_t& finite, int64_t& within, Context& context) {
  const int64_t n_rows = X.size[by_column], n = X.size[!by_column], n_own = out.size[0], n_sets = out.size[1];
  const int64_t n_outputs = linear.constant.size[0], width = n_sets * n_outputs;
  finite = within = 1;
  EXACTSHAP_REQUIRE(linear.coefficients.size[0] == n && linear.coefficients.size[1] == n_outputs && n_own <= n_rows);
  EXACTSHAP_REQUIRE(linear.absent.size[0] == n && linear.absent.size[1] == n_outputs && out.size[2] == n_outputs);
  EXACTSHAP_REQUIRE(linear.players.size[0] == n && lie_within(linear.players, n_sets));
  EXACTSHAP_REQUIRE(prediction.size[0] == n_rows && prediction.size[1] == n_outputs && empty.size[1] == n_outputs);
  EXACTSHAP_REQUIRE(residual.size[0] == n_rows && residual.size[1] == n_outputs && tolerance.size[0] == n_rows);
  EXACTSHAP_REQUIRE(0 <= first && first <= last && last <= n_rows);
  RowByRow rows(X, by_column, first, context);
  auto nowhere = context.empty<double>(n_own < last ? width : 0), without = context.zeros<double>(n_outputs);
  if (context.failed()) return Status::no_memory;
  for (int64_t o = 0; o < n_outputs; o++) {
    for (int64_t l = 0; l < n; l++) without[o] += linear.absent[l][o];
    without[o] += linear.constant[o];
  }
  for (int64_t i = first; i < last; i++) {
    if (i % POLLED == 0 && context.interrupted()) return Status::interrupted;
    double* const values = i < n_own ? out[i].data : nowhere.data;
    const double* const row = rows.row(i);
    for (int64_t s = 0; s < width; s++) values[s] = 0.0;
    double largest = 0.0;
    for (int64_t o = 0; o < n_outputs; o++) {
      const double full = add_output(row, linear, o, weight, values), own = prediction[i][o];
      double total = 0.0;
      for (int64_t s = o; s < width; s += n_outputs) total += values[s];
      if (i < empty.size[0]) empty[i][o] = without[o];
      residual[i][o] = own - (efficient ? without[o] + total : full + linear.constant[o]);
      if (!(fabs(own) <= largest) && largest == largest) largest = fabs(own);  // what is no number stays
      finite &= int64_t(total - total == 0.0);
    }
    tolerance[i] = linear.growth * (scale_of(row, linear) + largest + linear.floor) + 0.0;
    for (int64_t o = 0; o < n_outputs && i < n_own; o++) within &= int64_t(is_within(residual[i][o], tolerance[i]));
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, answer_players, answer_players)
