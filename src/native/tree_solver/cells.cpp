// Values of single players in tables of trees: all cells of a leaf at once (see cells.h).

#include "cells.h"

EXACTSHAP_BEGIN

namespace {

/// Write the products over the players below and above each player, at one node t of the rule:
/// `below[2^j + x]` over those below j, the ones in x satisfied, `above[2^(m - 1 - j) + x]` over those above.
EXACTSHAP_INLINE void fill_products(const double* b, int64_t m, double t, double weight, double* below, double* above) {
  below[1] = weight, above[1] = 1.0;
  for (int64_t j = 0; j < m - 1; j++) {
    const int64_t half = int64_t(1) << j;
    const double outside = (1.0 - t) * b[j], both = t + outside;
    const double* const from = below + half;
    double *__restrict const without = below + 2 * half, *__restrict const with = below + 3 * half;
    for (int64_t x = 0; x < half; x++) {
      without[x] = from[x] * outside;
      with[x] = from[x] * both;
    }
  }
  for (int64_t j = m - 1; j > 0; j--) {
    const int64_t n_above = int64_t(1) << (m - 1 - j);
    const double outside = (1.0 - t) * b[j], both = t + outside;
    const double* const from = above + n_above;
    double* __restrict const to = above + 2 * n_above;
    for (int64_t x = 0; x < n_above; x++) {
      to[2 * x] = from[x] * outside;
      to[2 * x + 1] = from[x] * both;
    }
  }
}

/// Write the values of all players of a leaf in all cells to `out (m, stride)`: products of those below and above each player.
void fill_cover_values(const double* b, int64_t m, const Measure& measure, const Scratch& scratch, double* out, int64_t stride) {
  const int64_t size = int64_t(1) << m;
  for (int64_t j = 0; j < m; j++)
    for (int64_t s = 0; s < size; s++) out[j * stride + s] = 0.0;
  const double *const below = scratch.one, *const above = scratch.two;
  for (int64_t q = 0; q < measure.nodes.size[0]; q++) {
    fill_products(b, m, measure.nodes[q], measure.node_weights[q], scratch.one, scratch.two);
    for (int64_t j = 0; j < m; j++) {
      const int64_t half = int64_t(1) << j, n_above = int64_t(1) << (m - 1 - j);
      double* __restrict const total = out + j * stride;
      for (int64_t y = 0; y < n_above; y++) {
        const double product = above[n_above + y];
        for (int64_t x = 0; x < half; x++) total[2 * half * y + x] += below[half + x] * product;
      }
    }
  }
  for (int64_t j = 0; j < m; j++) {
    const int64_t half = int64_t(1) << j;
    double* const total = out + j * stride;
    for (int64_t block = 0; block < size; block += 2 * half)
      for (int64_t x = block; x < block + half; x++) {
        total[x + half] = total[x] * (1.0 - b[j]);
        total[x] *= -b[j];
      }
  }
}

/// Write the values of all players of a leaf in all cells to `out (m, stride)`.
void fill_background_values(const double* survival, int64_t m, const SubsetWeights& weights, const Scratch& scratch, double* out,
                            int64_t stride) {
  double *const P = scratch.one, *const both = scratch.two;
  for (int64_t s = 0; s < int64_t(1) << m; s++) P[s] = survival[s];
  fill_sums(m, m, weights, P, both);
  for (int64_t j = 0; j < m; j++) {
    const int64_t half = int64_t(1) << j;
    double* __restrict const total = out + j * stride;
    for (int64_t block = 0; block < int64_t(1) << m; block += 2 * half)
      for (int64_t s = block; s < block + half; s++) {
        total[s] = P[s] - both[s];
        total[s + half] = P[s + half] - both[s];
      }
  }
}

/// Write which row of group g's table each of its players' first output has; return how many rows are players'.
EXACTSHAP_INLINE int64_t fill_positions(int64_t g, const Groups& groups, const TableRows& rows, int64_t n_outputs,
                                        Array<int64_t, 1> position) {
  const int64_t n_group_outputs = groups.last_output[g] - groups.first_output[g];
  const int64_t n_rows = rows.n_columns(g) - 1 - n_group_outputs;
  for (int64_t row = 0; row < n_rows; row += n_group_outputs > 1 ? n_group_outputs : 1)
    position[rows.columns[rows.column_start[g] + row] / n_outputs] = row;
  return n_rows;
}

/// Add the leaves' values of all players, v(D) and the scale of every code of groups first to last - 1 to `out`.
///
/// As fill_tables for order 1. Cost O(sum over leaves of m (2^m + 2^bits n_outputs)), for cover ratios times the nodes.
Status fill_single_tables(Tables tables, TableRows rows, Measure measure, int64_t first_group, int64_t last_group, int64_t n_players,
                          Out<double, 1> out, Context& context) {
  EXACTSHAP_REQUIRE(fit(tables, rows, measure, first_group, last_group, n_players));
  EXACTSHAP_REQUIRE(out.size[0] == rows.table_start[last_group] - rows.table_start[first_group]);
  const Groups& groups = tables.groups;
  const Leaves& leaves = tables.leaves;
  const int64_t most = most_players(leaves), n_cells = int64_t(1) << most, n_outputs = tables.forest.value.size[1];
  auto every_code = context.empty<int64_t>(int64_t(1) << most_bits(groups));
  auto one = context.empty<double>(2 * n_cells), two = context.empty<double>(2 * n_cells);
  const SubsetWeights weights(measure.weights, most, context);
  auto values = context.empty<double>(most, n_cells);
  auto bit_of_node = context.zeros<int16_t>(tables.forest.value.size[0]);
  auto position = context.zeros<int64_t>(n_players);
  auto table = context.empty<double>(most_cells(first_group, last_group, rows.table_start));
  if (context.failed()) return Status::no_memory;
  const Scratch scratch{one.data, two.data, nullptr};
  for (int64_t g = first_group; g < last_group; g++) {
    const auto codes = every_code.slice(0, int64_t(1) << groups.n_bits[g]);
    const int64_t first = groups.first_output[g], last = groups.last_output[g], n_codes = codes.size[0];
    table.slice(0, rows.n_columns(g) * n_codes).fill(0.0);
    note_bits(g, groups, bit_of_node);
    const int64_t n_set_rows = fill_positions(g, groups, rows, n_outputs, position);
    for (int64_t i = groups.leaf_start[g]; i < groups.leaf_start[g + 1]; i++) {
      if (context.interrupted()) return Status::interrupted;
      const int64_t l = groups.leaf[i], m = leaves.n_players(l);
      const double *const b = leaves.ratio.data + leaves.start[l], *survival = one.data;
      const In<double, 1> value = tables.forest.value[leaves.node[l]];
      fill_leaf_codes(g, l, groups, leaves, bit_of_node, codes);
      if (tables.has_background()) {
        survival = tables.survival_of(l).data;
        fill_background_values(survival, m, weights, scratch, values.data, n_cells);
      } else {
        fill_cover_values(b, m, measure, scratch, values.data, n_cells);
        fill_cover_survival(b, m, one.data);
      }
      for (int64_t j = 0; j < m; j++) {
        double* __restrict at = table.data + position[leaves.player[leaves.start[l] + j]] * n_codes;
        const double* const of_j = values.data + j * n_cells;
        for (int64_t o = first; o < last; o++, at += n_codes) {
          const double c = value[o];
          for (int64_t code = 0; code < n_codes; code++) at[code] += c * of_j[codes[code]];
        }
      }
      add_ends(codes, survival, m, value, first, last, table.data + n_set_rows * n_codes);
    }
    turn_table(table.data, rows.n_columns(g), n_codes, out.data + rows.table_start[g] - rows.table_start[first_group]);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, fill_single_tables, fill_single_tables)
