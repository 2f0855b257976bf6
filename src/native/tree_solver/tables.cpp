// Tables of trees for sets of any size: fill them from the leaves.

#include "tables.h"

EXACTSHAP_BEGIN

namespace {

/// Add the weights of background rows to the cell of the set of players that they fail, at leaf l.
void add_failures_of(int64_t l, int64_t offset, Array<uint8_t, 2> decisions, const Leaves& leaves, In<double, 1> weights,
                     Array<int64_t, 1> failed, double* cells) {
  const int64_t n_background = weights.size[0];
  int64_t* __restrict const failed_by = failed.data;
  for (int64_t i = 0; i < n_background; i++) failed_by[i] = 0;
  for (int64_t e = leaves.edge_start[l]; e < leaves.edge_start[l + 1]; e++) {
    const uint8_t* const decided = decisions[leaves.edge_node[e] - offset].data;
    const int64_t bit = leaves.edge_slot[e];
    const uint8_t passes = leaves.edge_left[e] ? 1 : 0;
    for (int64_t i = 0; i < n_background; i++) failed_by[i] |= int64_t(decided[i] ^ passes) << bit;
  }
  for (int64_t i = 0; i < n_background; i++) cells[failed_by[i]] += weights[i];
}

/// Add the weights of background rows, `columns (n_features, n_background)`, to the cells N_l(F) of the set F of players that they
/// fail at each leaf l: `out[start[l] + F]`.
Status add_failures(In<double, 2> columns, Forest forest, Leaves leaves, In<double, 1> weights, In<int64_t, 1> start,
                    Out<double, 1> out, Context& context) {
  const int64_t n_background = weights.size[0];
  EXACTSHAP_REQUIRE(forest.fit() && leaves.fit() && columns.size[1] == n_background && start.size[0] == leaves.count() + 1);
  EXACTSHAP_REQUIRE(start[leaves.count()] == out.size[0]);
  auto decisions = context.zeros<uint8_t>(forest.largest_tree(), n_background);
  auto failed = context.empty<int64_t>(n_background);
  if (context.failed()) return Status::no_memory;
  int64_t l = 0;
  for (int64_t k = 0; k < forest.n_trees(); k++) {
    const int64_t first = forest.tree_start[k], last = forest.tree_start[k + 1];
    if (!decide_nodes(columns, first, last, forest.nodes, decisions)) return Status::fault;
    for (; l < leaves.count() && leaves.node[l] < last; l++) {
      if (context.interrupted()) return Status::interrupted;
      EXACTSHAP_REQUIRE(start[l + 1] - start[l] == int64_t(1) << leaves.n_players(l));
      add_failures_of(l, first, decisions, leaves, weights, failed, out.data + start[l]);
    }
  }
  return Status::done;
}

/// Replace the weights of failures N_l(F) by those of the rows that pass all players outside S:   g_l(S) = sum_{F in S} N_l(F)
Status sum_survival(Leaves leaves, In<int64_t, 1> start, Out<double, 1> out, Context& context) {
  EXACTSHAP_REQUIRE(leaves.fit() && start.size[0] == leaves.count() + 1 && start[leaves.count()] == out.size[0]);
  for (int64_t l = 0; l < leaves.count(); l++) {
    if (context.interrupted()) return Status::interrupted;
    EXACTSHAP_REQUIRE(start[l + 1] - start[l] == int64_t(1) << leaves.n_players(l));
    sum_subsets(out.data + start[l], leaves.n_players(l), 0);
  }
  return Status::done;
}

/// A leaf, the codes of its group as sets of its players, and where the group's rows are.
struct LeafOfGroup {
  int64_t m, first, last;  // players; outputs
  const int32_t* players;
  const double* survival;
  In<double, 1> value;
  Array<int64_t, 1> codes, position;
};

/// Add the values of all sets of players of one leaf to the rows of its group's table.
void add_sets(const LeafOfGroup& leaf, In<double, 3> weights, const TableRows& rows, double* values, double* out) {
  const int64_t n_codes = leaf.codes.size[0];
  for (int64_t size = 1; size <= smaller(weights.size[0] - 1, leaf.m); size++)
    for (int64_t T = (int64_t(1) << size) - 1; T < int64_t(1) << leaf.m; T = next_mask(T)) {
      fill_set_values(leaf.survival, leaf.m, T, weights[size][leaf.m], values);
      double* __restrict at = out + leaf.position[set_rank(T, size, leaf.players, rows.binomials, rows.offsets)];
      for (int64_t o = leaf.first; o < leaf.last; o++, at += n_codes) {
        const double c = leaf.value[o];
        for (int64_t code = 0; code < n_codes; code++) at[code] += c * values[leaf.codes[code]];
      }
    }
}

/// Add the leaves' values of all sets, v(D) and the scale of every code of groups first to last - 1 to `out`.
///
/// `weights[size, m, s]` is p(s) for sets of `size` on a leaf of m players. Cost O(sum over leaves of n_sets (m 2^m + 2^bits n_outputs)).
Status fill_tables(Tables tables, TableRows rows, In<double, 3> weights, int64_t first_group, int64_t last_group, Out<double, 1> out,
                   Context& context) {
  const Groups& groups = tables.groups;
  const Leaves& leaves = tables.leaves;
  const int64_t order = weights.size[0] - 1, most = most_players(leaves), n_outputs = tables.forest.value.size[1];
  EXACTSHAP_REQUIRE(tables.fit() && rows.fit(groups) && are_groups(first_group, last_group, groups) && order >= 1);
  EXACTSHAP_REQUIRE(rows.offsets.size[0] == order + 2 && weights.size[1] > most && weights.size[2] > most && most < 62);
  EXACTSHAP_REQUIRE(out.size[0] == rows.table_start[last_group] - rows.table_start[first_group]);
  auto every_code = context.empty<int64_t>(int64_t(1) << most_bits(groups));
  auto passing = context.empty<double>(int64_t(1) << most), values = context.empty<double>(int64_t(1) << most);
  auto bit_of_node = context.zeros<int16_t>(tables.forest.value.size[0]);
  auto position = context.zeros<int64_t>(rows.offsets[order + 1] + 1);  // where each set's rows start in the group's table
  auto table = context.empty<double>(most_cells(first_group, last_group, rows.table_start));
  if (context.failed()) return Status::no_memory;
  for (int64_t g = first_group; g < last_group; g++) {
    const auto codes = every_code.slice(0, int64_t(1) << groups.n_bits[g]);
    const int64_t first = groups.first_output[g], last = groups.last_output[g];
    const int64_t n_set_rows = rows.n_columns(g) - 1 - (last - first);
    note_bits(g, groups, bit_of_node);
    table.slice(0, rows.n_columns(g) * codes.size[0]).fill(0.0);
    for (int64_t row = 0; row < n_set_rows; row += last > first ? last - first : 1)
      position[rows.columns[rows.column_start[g] + row] / n_outputs] = row * codes.size[0];
    for (int64_t i = groups.leaf_start[g]; i < groups.leaf_start[g + 1]; i++) {
      if (context.interrupted()) return Status::interrupted;
      const int64_t l = groups.leaf[i], m = leaves.n_players(l);
      const double* survival = passing.data;
      if (tables.has_background())
        survival = tables.survival_of(l).data;
      else
        fill_cover_survival(leaves.ratio.data + leaves.start[l], m, passing.data);
      fill_leaf_codes(g, l, groups, leaves, bit_of_node, codes);
      const In<double, 1> value = tables.forest.value[leaves.node[l]];
      add_sets({m, first, last, leaves.player.data + leaves.start[l], survival, value, codes, position}, weights, rows, values.data,
               table.data);
      add_ends(codes, survival, m, value, first, last, table.data + n_set_rows * codes.size[0]);
    }
    turn_table(table.data, rows.n_columns(g), codes.size[0], out.data + rows.table_start[g] - rows.table_start[first_group]);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, add_failures, add_failures)
EXACTSHAP_KERNEL(tree_solver, sum_survival, sum_survival)
EXACTSHAP_KERNEL(tree_solver, fill_tables, fill_tables)
