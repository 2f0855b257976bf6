// Tables of trees for sets of any size: fill them from the leaves, and sweep rows through them.

#include "tables.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t FEW_ROWS = 4, FEW_ROWS_OF_LARGE = 24;  // rows that are swept tree after tree; where tables do not fit into any cache
constexpr int64_t CACHED_CELLS = int64_t(1) << 22;
constexpr int64_t LARGE = 4096;  // cells of a table that does not fit into the first-level cache
constexpr int64_t AHEAD = 8;
constexpr int64_t SPARSE = 32;  // cells for each row of a table that is not worth reading ahead as a whole

/// Replace `table[S] (2^m,)` by the sum over subsets that agree with S on the players of the mask `skip`.
void sum_subsets(double* table, int64_t m, int64_t skip) {
  for (int64_t k = 0; k < m; k++) {
    if ((skip >> k) & 1) continue;
    const int64_t half = int64_t(1) << k;
    for (int64_t block = 0; block < int64_t(1) << m; block += 2 * half) {
      const double* const from = table + block;
      double* __restrict const to = table + block + half;
      for (int64_t s = 0; s < half; s++) to[s] += from[s];
    }
  }
}

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

/// Write the value of the set T in the game [S in A] g(S) for every A of m players to `out (2^m,)`:
///
///   phi_T(A) = (-1)^{|T \ A|} sum_{S in A \ T} p(|S|) Delta_{T n A} g(S)
///
/// One pass per player: players of T are differenced, (g_0, g_1) -> (-g_0, g_1 - g_0), the others are summed over subsets.
void fill_set_values(const double* survival, int64_t m, int64_t T, In<double, 1> weights, double* __restrict out) {
  const int64_t size = int64_t(1) << m;
  for (int64_t s = 0; s < size; s++) out[s] = survival[s];
  for (int64_t k = 0; k < m; k++) {
    if (((T >> k) & 1) == 0) continue;
    const int64_t half = int64_t(1) << k;
    for (int64_t block = 0; block < size; block += 2 * half)
      for (int64_t s = block; s < block + half; s++) {
        out[s + half] -= out[s];
        out[s] = -out[s];
      }
  }
  for (int64_t s = 0; s < size; s++) out[s] *= weights[__builtin_popcountll(uint64_t(s & ~T))];
  sum_subsets(out, m, T);
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
  auto table = context.empty<double>(most_cells(first_group, last_group, rows));
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

// Loops over rows, apart: inlined, gcc finds no vector instructions for them.

EXACTSHAP_APART void fail_condition(const uint8_t* __restrict decided, uint8_t fails, uint16_t bit, uint16_t* __restrict code, int64_t n_rows) {
  const uint16_t keep = uint16_t(~bit);
  for (int64_t r = 0; r < n_rows; r++) code[r] = uint16_t(code[r] & (keep | uint16_t(uint16_t(decided[r] ^ fails) * bit)));
}

/// Add the cells of all rows to their sums, `out (n_rows, n_results)`; those of a large table are asked for some rows ahead.
template <bool IS_LARGE>
EXACTSHAP_APART void look_up(const uint16_t* code, const double* table, const int64_t* columns, int64_t n_columns, Out<double, 2> out) {
  const int64_t n_rows = out.size[0], n_results = out.size[1];
  double* total = out.data;
  for (int64_t r = 0; r < n_rows; r++, total += n_results) {
    const double* const cell = table + code[r] * n_columns;
    if (IS_LARGE && r + AHEAD < n_rows) {
      const double* const next = table + code[r + AHEAD] * n_columns;
      __builtin_prefetch(next), __builtin_prefetch(next + n_columns - 1);
    }
    for (int64_t c = 0; c < n_columns; c++) total[columns[c]] += cell[c];
  }
}

/// Take the bits of the conditions of group g that a row fails from its code, for all rows.
void fill_codes(int64_t g, int64_t offset, const Groups& groups, Array<uint8_t, 2> decisions, Array<uint16_t, 1> codes) {
  codes.fill(uint16_t((int64_t(1) << groups.n_bits[g]) - 1));
  for (int64_t c = groups.condition_start[g]; c < groups.condition_start[g + 1]; c++)
    fail_condition(decisions[groups.condition_node[c] - offset].data, groups.condition_left[c] ? 0 : 1,
                   uint16_t(int64_t(1) << groups.condition_bit[c]), codes.data, codes.size[0]);
}

/// The code of one row in group g; `decided` says whether it goes left at each node from `offset` on.
EXACTSHAP_INLINE int64_t code_of(int64_t g, int64_t offset, const Groups& groups, const uint8_t* decided) {
  int64_t failed = 0;
  for (int64_t c = groups.condition_start[g]; c < groups.condition_start[g + 1]; c++)
    failed |= int64_t(decided[groups.condition_node[c] - offset] ^ uint8_t(groups.condition_left[c])) << groups.condition_bit[c];
  return ((int64_t(1) << groups.n_bits[g]) - 1) & ~failed;
}

/// What a sweep reads besides the rows.
struct Look {
  const Tables& tables;
  const TableRows& rows;
  int64_t first_group, last_group;
  const double* cells;

  EXACTSHAP_INLINE const double* table(int64_t g) const { return cells + (rows.table_start[g] - rows.table_start[first_group]); }
  EXACTSHAP_INLINE const int64_t* columns(int64_t g) const { return rows.columns.data + rows.column_start[g]; }
};

/// Add the cells of some rows to `out (n_rows, n_results)`, tree after tree: a row's cells of a tree are asked for before they are read.
///
/// A tree's tables stay in cache from row to row; for many rows codes are cheaper by the register, group after group.
Status sweep_trees(In<double, 2> columns, const Look& look, Array<uint8_t, 1> decided, Array<const double*, 1> cell_of,
                   Out<double, 2> out, Context& context) {
  const Groups& groups = look.tables.groups;
  const Forest& forest = look.tables.forest;
  const int64_t n_rows = columns.size[1];
  for (int64_t first = look.first_group, last; first < look.last_group; first = last) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t tree = groups.tree[first], offset = forest.tree_start[tree], end = forest.tree_start[tree + 1];
    for (last = first; last < look.last_group && groups.tree[last] == tree;) last++;
    for (int64_t r = 0; r < n_rows; r++) {
      if (!decide_row(columns.data + r, n_rows, columns.size[0], offset, end, forest.nodes, decided.data)) return Status::fault;
      for (int64_t g = first; g < last; g++) {
        const double* const cell = look.table(g) + code_of(g, offset, groups, decided.data) * look.rows.n_columns(g);
        __builtin_prefetch(cell);
        __builtin_prefetch(cell + look.rows.n_columns(g) - 1);
        cell_of[g - first] = cell;
      }
      double* const total = out[r].data;
      for (int64_t g = first; g < last; g++) {
        const double* const cell = cell_of[g - first];
        const int64_t* const columns_of = look.columns(g);
        for (int64_t c = 0, n = look.rows.n_columns(g); c < n; c++) total[columns_of[c]] += cell[c];
      }
    }
  }
  return Status::done;
}

/// Ask for the whole table of group g while rows are looked up in the one before: cells in random order are waited for one by one.
EXACTSHAP_INLINE void ask_for(int64_t g, const Look& look, int64_t n_rows) {
  const int64_t n_cells = look.rows.table_start[g + 1] - look.rows.table_start[g];
  if (n_cells > SPARSE * n_rows) return;
  const double* const table = look.table(g);
  for (int64_t c = 0; c < n_cells; c += 8) __builtin_prefetch(table + c);
}

/// Add the cells of a block of rows to `out (n_rows, n_results)`, group after group.
Status sweep_rows(In<double, 2> columns, const Look& look, Array<uint16_t, 1> codes, Array<uint8_t, 2> decisions, Out<double, 2> out,
                  Context& context) {
  const Groups& groups = look.tables.groups;
  const Forest& forest = look.tables.forest;
  int64_t tree = -1;
  for (int64_t g = look.first_group; g < look.last_group; g++) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t offset = forest.tree_start[groups.tree[g]];
    if (groups.tree[g] != tree) {
      tree = groups.tree[g];
      if (!decide_nodes(columns, offset, forest.tree_start[tree + 1], forest.nodes, decisions)) return Status::fault;
    }
    fill_codes(g, offset, groups, decisions, codes);
    if (g + 1 < look.last_group) ask_for(g + 1, look, codes.size[0]);
    const int64_t n_columns = look.rows.n_columns(g), n_cells = n_columns << groups.n_bits[g];
    (n_cells > LARGE ? look_up<true> : look_up<false>)(codes.data, look.table(g), look.columns(g), n_columns, out);
  }
  return Status::done;
}

/// The most groups of one tree.
int64_t most_groups(const Groups& groups) {
  int64_t most = 0;
  for (int64_t g = 0, same = 0; g < groups.count(); g++) {
    same = g > 0 && groups.tree[g] == groups.tree[g - 1] ? same + 1 : 1;
    most = same > most ? same : most;
  }
  return most;
}

/// Add the cells of each row's codes to `out (n_rows, n_results)`, group after group.
///
/// `columns (n_features, n_rows)`. A row costs one look-up per set of players of each group.
Status sweep(In<double, 2> columns, Tables tables, TableRows rows, int64_t first_group, int64_t last_group, In<double, 1> cells,
             Out<double, 2> out, Context& context) {
  const int64_t n_rows = columns.size[1], largest_tree = tables.forest.largest_tree();
  EXACTSHAP_REQUIRE(tables.fit() && rows.fit(tables.groups) && are_groups(first_group, last_group, tables.groups));
  EXACTSHAP_REQUIRE(cells.size[0] == rows.table_start[last_group] - rows.table_start[first_group] && out.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[1] > (rows.offsets[rows.offsets.size[0] - 1] + 1) * tables.forest.value.size[1]);
  const Look look{tables, rows, first_group, last_group, cells.data};
  if (n_rows > (cells.size[0] > CACHED_CELLS ? FEW_ROWS_OF_LARGE : FEW_ROWS)) {
    auto codes = context.empty<uint16_t>(n_rows);
    auto decisions = context.empty<uint8_t>(largest_tree, n_rows);
    return context.failed() ? Status::no_memory : sweep_rows(columns, look, codes, decisions, out, context);
  }
  auto decided = context.empty<uint8_t>(largest_tree);
  auto cell_of = context.empty<const double*>(most_groups(tables.groups));
  if (context.failed()) return Status::no_memory;
  return sweep_trees(columns, look, decided, cell_of, out, context);
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, add_failures, add_failures)
EXACTSHAP_KERNEL(tree_solver, sum_survival, sum_survival)
EXACTSHAP_KERNEL(tree_solver, fill_tables, fill_tables)
EXACTSHAP_KERNEL(tree_solver, sweep, sweep)
