// Sweeps over sums of small terms.
//
// A coalition of a term's own players is a code: bit p says whether its p-th player is inside. Only sums and differences of table
// entries: a player that a term does not react to gets exactly zero.

#include <math.h>

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

EXACTSHAP_INLINE double larger(double a, double b) { return b > a ? b : a; }

/// Whether every index lies in [0, size).
bool lie_within(const int64_t* indices, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; i++)
    if (indices[i] < 0 || indices[i] >= size) return false;
  return true;
}

/// Whether local set s has `sizes[s]` players `members[s]`, at least one, ascending bits of a code.
bool are_sets(In<int64_t, 2> members, In<int64_t, 1> sizes, int64_t n_codes) {
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

/// Add the values of the sets within each term to `out (n_rows, n_sets, n_outputs)`, and the ends of the games:
///
///   phi_T += sum_{S subset of I without T} p_|T|(|S|) Delta_T v_I(S)
///
/// `tables (n_terms, n_rows, 2^|I|, n_outputs)`; local set s has `sizes[s]` players `members[s]` (ascending bits) and goes to
/// `positions[l, s]`; `weights[size, code]` is p of the coalition that is left when T is cut out of the code. `scale (n_rows,)`
/// grows by the largest magnitude of each table.
Status fill_sets(In<double, 4> tables, In<int64_t, 2> members, In<int64_t, 1> sizes, In<int64_t, 2> positions, In<double, 2> weights,
                 Out<double, 3> out, Out<double, 2> empty, Out<double, 2> full, Out<double, 1> scale, Context& context) {
  const int64_t n_terms = tables.size[0], n_rows = tables.size[1], n_codes = tables.size[2], n_outputs = tables.size[3];
  EXACTSHAP_REQUIRE(n_codes > 0 && (n_codes & (n_codes - 1)) == 0 && members.size[0] == sizes.size[0]);
  EXACTSHAP_REQUIRE(weights.size[0] == members.size[1] + 1 && weights.size[1] == n_codes && are_sets(members, sizes, n_codes));
  EXACTSHAP_REQUIRE(positions.size[0] == n_terms && positions.size[1] == sizes.size[0]);
  EXACTSHAP_REQUIRE(lie_within(positions.data, positions.count(), out.size[1]));
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[2] == n_outputs && empty.size[1] == n_outputs && full.size[1] == n_outputs);
  auto work = context.empty<double>(n_codes);
  if (context.failed()) return Status::no_memory;
  for (int64_t l = 0; l < n_terms; l++)
    for (int64_t i = 0; i < n_rows; i++) {
      if ((n_codes > 64 || (i & 63) == 0) && context.interrupted()) return Status::interrupted;
      const double* const table = tables[l][i].data;
      const int64_t* const position = positions[l].data;
      double* const row = out[i].data;
      double largest = 0.0;
      for (int64_t o = 0; o < n_outputs; o++) {
        empty[i][o] += table[o];
        full[i][o] += table[(n_codes - 1) * n_outputs + o];
        for (int64_t code = 0; code < n_codes; code++) largest = larger(largest, fabs(table[code * n_outputs + o]));
        for (int64_t s = 0; s < sizes.size[0]; s++)
          row[position[s] * n_outputs + o] +=
              set_value(table + o, n_outputs, n_codes, members[s].data, sizes[s], weights[sizes[s]].data, work.data);
      }
      scale[i] += largest;
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
  EXACTSHAP_REQUIRE(lie_within(inside.data, inside.size[0], n_cells) && lie_within(outside.data, outside.size[0], n_cells));
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
