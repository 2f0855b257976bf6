// Sweeps over sums of small terms.
//
// A coalition of a term's own players is a code: bit p says whether its p-th player is inside. Only sums and differences of table
// entries: a player that a term does not react to gets exactly zero.

#include "sets.h"

EXACTSHAP_BEGIN

namespace {

/// Add the values of the sets within each term to `out (n_rows, n_sets, n_outputs)`, and the ends of the games:
///
///   phi_T += sum_{S subset of I without T} p_|T|(|S|) Delta_T v_I(S)
///
/// `tables (n_terms, n_rows, 2^|I|, n_outputs)`; local set s goes to `positions[l, s]`. `scale (n_rows,)` grows by the largest magnitude
/// of each table.
Status fill_sets(In<double, 4> tables, Sets sets, In<int64_t, 2> positions, Out<double, 3> out, Out<double, 2> empty, Out<double, 2> full,
                 Out<double, 1> scale, Context& context) {
  const int64_t n_terms = tables.size[0], n_rows = tables.size[1], n_codes = tables.size[2], n_outputs = tables.size[3];
  EXACTSHAP_REQUIRE(are_sets(sets, n_codes) && are_positions(positions, n_terms, sets, out.size[1]));
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[2] == n_outputs && empty.size[1] == n_outputs && full.size[1] == n_outputs);
  auto work = context.empty<double>(n_codes);
  if (context.failed()) return Status::no_memory;
  for (int64_t l = 0; l < n_terms; l++)
    for (int64_t i = 0; i < n_rows; i++) {
      if ((n_codes > 64 || (i & 63) == 0) && context.interrupted()) return Status::interrupted;
      add_table(tables[l][i].data, n_codes, n_outputs, sets, positions[l].data, work.data, out[i].data, empty[i].data, full[i].data, scale[i]);
    }
  return Status::done;
}

int64_t largest_of(In<int64_t, 1> values) {
  int64_t largest = 0;
  for (int64_t i = 0; i < values.size[0]; i++) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

/// Set `out (n_inside, n_outputs)` to the mean of a binned term over the background's bins outside a coalition:
///
///   T_A[x_A] = sum_z w_z f_I(x_A, z_{I without A})
///
/// `scores (n_cells, n_outputs)`; a cell's number is `inside[x_A] + outside[z]`: both are sums of strides times bins.
Status fill_fold(In<double, 2> scores, In<int64_t, 1> inside, In<int64_t, 1> outside, In<double, 1> weights, Out<double, 2> out,
                 Context& context) {
  const int64_t n_cells = scores.size[0], n_outputs = scores.size[1];
  EXACTSHAP_REQUIRE(lie_within(inside, n_cells) && lie_within(outside, n_cells));
  EXACTSHAP_REQUIRE(inside.size[0] == 0 || outside.size[0] == 0 || largest_of(inside) + largest_of(outside) < n_cells);
  EXACTSHAP_REQUIRE(weights.size[0] == outside.size[0] && out.size[0] == inside.size[0] && out.size[1] == n_outputs);
  for (int64_t cell = 0; cell < inside.size[0]; cell++) {
    if ((cell & 15) == 0 && context.interrupted()) return Status::interrupted;
    for (int64_t o = 0; o < n_outputs; o++) {
      double total = 0.0;
      for (int64_t z = 0; z < outside.size[0]; z++) total += weights[z] * scores[inside[cell] + outside[z]][o];
      out[cell][o] = total;
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_sets, fill_sets)
EXACTSHAP_KERNEL(additive, fill_fold, fill_fold)
