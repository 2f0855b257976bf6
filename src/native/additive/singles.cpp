// Sums of terms of one player each: linear models, the main effects of additive ones.

#include <math.h>

#include "../common/kernel.h"
#include "../common/lanes.h"
#include "../common/numbers.h"
#include "row_by_row.h"

EXACTSHAP_BEGIN

namespace {

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
  EXACTSHAP_REQUIRE(lie_within(players, out.size[1]));
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
constexpr int EACH = int(sizeof(Widest) / sizeof(double));  // numbers in one register

EXACTSHAP_INLINE double sum_of(const Widest (&registers)[LANES / EACH]) {
  double lane[LANES];
  for (int i = 0; i < LANES / EACH; i++) store(registers[i], lane + i * EACH);
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

EXACTSHAP_INLINE Widest magnitude(Widest u) {
  typedef uint64_t Bits __attribute__((vector_size(sizeof(Widest))));
  return (Widest)((Bits)u & ~(uint64_t(1) << 63));
}

/// What is added up over the terms of one row: their values with the player, the values of the players, and the larger magnitudes.
struct RowSums {
  double full, total, scale;
};

/// Write the values of the terms c_l x_l of one row, each of a player of its own. SIZED: magnitudes are |x_l| `sizes[l]` instead.
template <bool SIZED>
EXACTSHAP_INLINE RowSums fill_scaled_row(const double* __restrict row, const double* __restrict coefficients, const double* __restrict absent,
                                         const double* __restrict sizes, double weight, int64_t n, double* __restrict out) {
  Widest with[LANES / EACH] = {}, total[LANES / EACH] = {}, size[LANES / EACH] = {}, here, gone, value;
  int64_t l = 0;
  for (; l + LANES <= n; l += LANES)
    for (int i = 0; i < LANES / EACH; i++) {
      const int64_t place = l + i * EACH;
      load(row + place, here);
      load(coefficients + place, value);
      load(absent + place, gone);
      const Widest x = here;
      here *= value;
      value = 0.0 + weight * (here - gone);  // 0.0 + x: never minus zero
      store(value, out + place);
      with[i] += here;
      total[i] += value;
      if (SIZED) {
        load(sizes + place, value);
        size[i] += rounded(magnitude(x) * value);
      } else {
        here = magnitude(here);
        gone = magnitude(gone);
        size[i] += here > gone ? here : gone;
      }
    }
  RowSums rest = {0.0, 0.0, 0.0};
  for (; l < n; l++) {
    const double term = row[l] * coefficients[l], without = absent[l];
    out[l] = 0.0 + weight * (term - without);
    rest.full += term;
    rest.total += out[l];
    rest.scale += SIZED ? fabs(row[l]) * sizes[l] : fabs(term) > fabs(without) ? fabs(term) : fabs(without);
  }
  return {sum_of(with) + rest.full, sum_of(total) + rest.total, sum_of(size) + rest.scale};
}

EXACTSHAP_INLINE double sum_over(In<double, 1> values) {
  double total = 0.0;
  for (int64_t l = 0; l < values.size[0]; l++) total += values[l];
  return total;
}

/// Write the values of a linear model into `out (n_rows, n_columns or more, 1)`, nothing into sets of several players, what each row's
/// values add up to, and the ends of the games; each row is read once:
///
///   phi_l = p(0) (c_l x_l - E c_l z_l)
///
/// `X (n_rows, n_columns)`, or `by_column`, as frames lie in memory, `(n_columns, n_rows)`.
/// A number that is not finite, in X or of a term, shows in its row's total. `scale (n_rows,)` adds up the larger magnitude of each
/// term, with or without its player.
Status fill_scaled(In<double, 2> X, bool by_column, In<double, 1> coefficients, In<double, 1> absent, double weight, Out<double, 3> out,
                   Out<double, 2> total, Out<double, 2> empty, Out<double, 2> full, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = X.size[by_column], n = X.size[!by_column], n_sets = out.size[1];
  EXACTSHAP_REQUIRE(coefficients.size[0] == n && absent.size[0] == n && n_sets >= n && total.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[2] == 1 && total.size[1] == 1 && empty.size[1] == 1 && full.size[1] == 1);
  RowByRow rows(X, by_column, 0, context);
  if (context.failed()) return Status::no_memory;
  const double without = sum_over(absent);
  for (int64_t i = 0; i < n_rows; i++) {
    if (i % POLLED == 0 && context.interrupted()) return Status::interrupted;
    double* const values = out[i].data;
    const RowSums sums = fill_scaled_row<false>(rows.row(i), coefficients.data, absent.data, nullptr, weight, n, values);
    for (int64_t s = n; s < n_sets; s++) values[s] = 0.0;
    total[i][0] = sums.total;
    empty[i][0] = without;
    full[i][0] = 0.0 + sums.full;
    scale[i] = sums.scale;
  }
  return Status::done;
}

/// A linear model bound to a background, and what rounding explains of its predictions.
struct Linear {
  In<double, 1> coefficients, absent;
  double constant, growth, floor;
  In<double, 1> sizes;  // (n_columns,) of a sum of linear models; none of others
  EXACTSHAP_FIELDS(coefficients, absent, constant, growth, floor, sizes)

  bool fit(int64_t n) const {
    return coefficients.size[0] == n && absent.size[0] == n && (sizes.size[0] == n || sizes.size[0] == 0);
  }

  EXACTSHAP_INLINE RowSums fill(const double* row, double weight, double* out) const {
    const double *const c = coefficients.data, *const gone = absent.data;
    const int64_t n = coefficients.size[0];
    if (sizes.size[0] > 0) return fill_scaled_row<true>(row, c, gone, sizes.data, weight, n, out);
    return fill_scaled_row<false>(row, c, gone, nullptr, weight, n, out);
  }
};

/// The same beside the model's own predictions, with its constant in v(empty) and v(D), of the rows from `first` up to `last`, in one pass:
///
///   residual_i = f(x_i) - v(empty) - sum_l phi_l   (not `efficient`: f(x_i) - v(D))
///   tolerance_i = growth (scale_i + |f(x_i)| + floor)
///
/// The scale of a model that adds up others is that of all of them, sum_l |x_l| s_l by the model's sizes.
/// Values are written of the first rows, as many as `out` has: the others are only compared. v(empty), the same for all rows, is
/// written as often as `empty` has room. `finite`: whether all sums are; `within`: whether all rows with values are within tolerance.
Status answer_scaled(In<double, 2> X, bool by_column, Linear linear, double weight, In<double, 1> prediction, bool efficient,
                     Out<double, 2> out, Out<double, 1> empty, Out<double, 1> residual, Out<double, 1> tolerance, int64_t first,
                     int64_t last, int64_t& finite, int64_t& within, Context& context) {
  const int64_t n_rows = X.size[by_column], n = X.size[!by_column], n_own = out.size[0], n_sets = out.size[1];
  finite = within = 1;
  EXACTSHAP_REQUIRE(linear.fit(n) && n_sets >= n && n_own <= n_rows);
  EXACTSHAP_REQUIRE(prediction.size[0] == n_rows && residual.size[0] == n_rows && tolerance.size[0] == n_rows);
  EXACTSHAP_REQUIRE(0 <= first && first <= last && last <= n_rows);
  RowByRow rows(X, by_column, first, context);
  auto nowhere = context.empty<double>(n_own < last ? n : 0);
  if (context.failed()) return Status::no_memory;
  const double without = sum_over(linear.absent) + linear.constant;
  for (int64_t i = first; i < last; i++) {
    if (i % POLLED == 0 && context.interrupted()) return Status::interrupted;
    double* const values = i < n_own ? out[i].data : nowhere.data;
    const RowSums sums = linear.fill(rows.row(i), weight, values);
    for (int64_t s = n; s < n_sets && i < n_own; s++) values[s] = 0.0;
    if (i < empty.size[0]) empty[i] = without;
    const double own = prediction[i], full = 0.0 + sums.full + linear.constant;
    residual[i] = own - (efficient ? without + sums.total : full);
    tolerance[i] = linear.growth * (sums.scale + fabs(own) + linear.floor) + 0.0;
    finite &= int64_t(sums.total - sums.total == 0.0);
    within &= int64_t(i >= n_own || is_within(residual[i], tolerance[i]));
  }
  return Status::done;
}

/// A linear model of several outputs, bound to a background.
struct LinearOutputs {
  In<double, 2> coefficients, absent;  // (n_columns, n_outputs)
  In<double, 1> constant;
  double growth, floor;
  EXACTSHAP_FIELDS(coefficients, absent, constant, growth, floor)
};

/// What is added up over the terms of one row, for each output, from nothing on; the sum of the terms' largest magnitudes is returned.
EXACTSHAP_INLINE double fill_row_of_outputs(const double* __restrict row, const LinearOutputs& linear, double weight, double* __restrict out,
                                            double* __restrict total, double* __restrict full) {
  const int64_t n = linear.coefficients.size[0], n_outputs = linear.coefficients.size[1];
  double scale = 0.0;
  for (int64_t o = 0; o < n_outputs; o++) total[o] = full[o] = 0.0;
  for (int64_t l = 0; l < n; l++) {
    const double* const coefficients = linear.coefficients[l].data;
    const double* const absent = linear.absent[l].data;
    double largest = 0.0;
    for (int64_t o = 0; o < n_outputs; o++) {
      const double here = row[l] * coefficients[o], gone = absent[o], value = 0.0 + weight * (here - gone);  // never minus zero
      out[l * n_outputs + o] = value;
      total[o] += value;
      full[o] += here;
      largest = fabs(gone) > largest ? fabs(gone) : largest;
      largest = fabs(here) > largest ? fabs(here) : largest;
    }
    scale += largest;
  }
  return scale;
}

/// As `answer_scaled`, of a model of several outputs, whose scale adds up each term's largest magnitude in any output:
///
///   tolerance_i = growth (scale_i + max_o |f_o(x_i)| + floor)
///
/// `empty (n_rows or fewer, n_outputs)`, `residual (n_rows, n_outputs)`, `tolerance (n_rows,)`.
Status answer_outputs(In<double, 2> X, bool by_column, LinearOutputs linear, double weight, In<double, 2> prediction, bool efficient,
                      Out<double, 3> out, Out<double, 2> empty, Out<double, 2> residual, Out<double, 1> tolerance, int64_t first,
                      int64_t last, int64_t& finite, int64_t& within, Context& context) {
  const int64_t n_rows = X.size[by_column], n = X.size[!by_column], n_own = out.size[0], n_sets = out.size[1];
  const int64_t n_outputs = linear.constant.size[0];
  finite = within = 1;
  EXACTSHAP_REQUIRE(linear.coefficients.size[0] == n && linear.coefficients.size[1] == n_outputs && n_sets >= n && n_own <= n_rows);
  EXACTSHAP_REQUIRE(linear.absent.size[0] == n && linear.absent.size[1] == n_outputs && out.size[2] == n_outputs);
  EXACTSHAP_REQUIRE(prediction.size[0] == n_rows && prediction.size[1] == n_outputs && empty.size[1] == n_outputs);
  EXACTSHAP_REQUIRE(residual.size[0] == n_rows && residual.size[1] == n_outputs && tolerance.size[0] == n_rows);
  EXACTSHAP_REQUIRE(0 <= first && first <= last && last <= n_rows);
  RowByRow rows(X, by_column, first, context);
  auto nowhere = context.empty<double>(n_own < last ? n * n_outputs : 0), without = context.empty<double>(n_outputs);
  auto total = context.empty<double>(n_outputs), full = context.empty<double>(n_outputs);
  if (context.failed()) return Status::no_memory;
  for (int64_t o = 0; o < n_outputs; o++) {
    without[o] = 0.0;
    for (int64_t l = 0; l < n; l++) without[o] += linear.absent[l][o];
    without[o] += linear.constant[o];
  }
  for (int64_t i = first; i < last; i++) {
    if (i % POLLED == 0 && context.interrupted()) return Status::interrupted;
    double* const values = i < n_own ? out[i].data : nowhere.data;
    const double scale = fill_row_of_outputs(rows.row(i), linear, weight, values, total.data, full.data);
    for (int64_t s = n * n_outputs; s < n_sets * n_outputs && i < n_own; s++) values[s] = 0.0;
    double largest = 0.0;
    for (int64_t o = 0; o < n_outputs; o++) {
      if (i < empty.size[0]) empty[i][o] = without[o];
      const double own = prediction[i][o];
      residual[i][o] = own - (efficient ? without[o] + total[o] : 0.0 + full[o] + linear.constant[o]);
      if (!(fabs(own) <= largest) && largest == largest) largest = fabs(own);  // what is no number stays
      finite &= int64_t(total[o] - total[o] == 0.0);
    }
    tolerance[i] = linear.growth * (scale + largest + linear.floor) + 0.0;
    for (int64_t o = 0; o < n_outputs && i < n_own; o++) within &= int64_t(is_within(residual[i][o], tolerance[i]));
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, add_singles, add_singles)
EXACTSHAP_KERNEL(additive, fill_scaled, fill_scaled)
EXACTSHAP_KERNEL(additive, answer_scaled, answer_scaled)
EXACTSHAP_KERNEL(additive, answer_outputs, answer_outputs)
