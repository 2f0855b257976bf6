// Linear functions of leaves by tables of groups: the values for every set of players that a row may pass (see linear.h).
//
// With A the players that a row passes at a leaf, n(S) the weight of the background rows that pass all players outside S and s(S) the same
// sum with the function's value in place of 1, all its parts from the background and those of players in S left out,
//
//   v(S) = [S in A] (s(S) + sum_e c_e x_e [k_e in S] n(S)),   e over the columns of the function, k_e their players.
//
// A row's code in a group of leaves tells its A at all of them: their games are added up for each code, and those of a column with their
// coefficients, so that a row looks up one game, and one for each column of the group, which it weighs by its x_e.

#include "linear.h"
#include "walk.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t ROWS = 256;  // at a time: their codes and sums stay in the first caches
constexpr int64_t LANES = 4;   // values that are added up side by side
constexpr int VECTORS = 4;     // and at most so many of them at a time

/// How many numbers hold n values: as many as are read.
EXACTSHAP_INLINE int64_t padded(int64_t n) {
  const int64_t step = n > VECTORS * LANES ? VECTORS * LANES : LANES;
  return (n + step - 1) / step * step;
}

/// What is tabulated: the columns of the functions in group g are `column[start[g]:start[g + 1]]`, and its cells begin at `table_start[g]`,
/// for each code one of `(1 + n_columns) padded(n_values)` numbers: for the games above, one after another, the values of the group's sets
/// and the magnitudes that are added up in them.
struct LinearTables {
  In<int64_t, 1> start;
  In<int32_t, 1> column;
  In<int64_t, 1> table_start;
  EXACTSHAP_FIELDS(start, column, table_start)

  EXACTSHAP_INLINE int64_t n_columns(int64_t g) const { return start[g + 1] - start[g]; }
  EXACTSHAP_INLINE int64_t width(int64_t g, const TableRows& rows) const { return (1 + n_columns(g)) * padded(rows.n_columns(g) - 1); }
  EXACTSHAP_INLINE bool fit(const Groups& groups, const TableRows& rows, int64_t n_features, int64_t first, int64_t last, int64_t n_cells) const {
    const int64_t n = groups.count();
    if (start.size[0] != n + 1 || table_start.size[0] != n + 1 || column.size[0] != start[n] || !lie_within(column, n_features)) return false;
    for (int64_t g = 0; g < n; g++)
      if (rows.n_columns(g) < 2 || table_start[g + 1] - table_start[g] != width(g, rows) << groups.n_bits[g]) return false;
    return table_start[last] - table_start[first] == n_cells;
  }
};

/// Room for one leaf: tables of 2^m.
struct Room {
  double *weight, *size, *game, *some, *values;
};

/// Write n(S), the magnitudes and s(S) of leaf l.
void fill_games(int64_t l, int64_t m, const LeafParts& parts, const Patterns& patterns, const Room& room) {
  const int64_t n_cells = int64_t(1) << m, first = patterns.start[l], last = patterns.start[l + 1], n_parts = parts.count(l);
  for (int64_t s = 0; s < n_cells; s++) room.weight[s] = room.size[s] = 0.0;
  for (int64_t p = first; p < last; p++) {
    room.weight[patterns.failed[p]] = patterns.weight[p];
    room.size[patterns.failed[p]] = patterns.size[p];
  }
  sum_subsets(room.weight, m, 0);
  sum_subsets(room.size, m, 0);
  for (int64_t s = 0; s < n_cells; s++) room.game[s] = parts.offset[l] * room.weight[s];
  for (int64_t k = 0; k < n_parts; k++) {
    const int64_t bit = int64_t(parts.bit[parts.part_start[l] + k]);
    const double* const moments = patterns.moment.data + patterns.moment_start[l] + k;
    for (int64_t s = 0; s < n_cells; s++) room.some[s] = 0.0;
    for (int64_t p = first; p < last; p++) room.some[patterns.failed[p]] = moments[(p - first) * n_parts];
    sum_subsets(room.some, m, bit);
    for (int64_t s = 0; s < n_cells; s++)
      if ((s & bit) == 0) room.game[s] += room.some[s];
  }
}

/// A leaf of a group: the codes as sets of its players, the places of sets and columns in the group's table, `(1 + n_columns, n_values,
/// n_codes)`.
struct LeafOfGroup {
  int64_t l, m, n_values;
  const int32_t* players;
  Array<int64_t, 1> codes, place_of_set, place_of_column;
  double* table;
};

/// Add `scale` times `values (2^m,)` to one row of the group's table.
EXACTSHAP_INLINE void add_row(const LeafOfGroup& leaf, double scale, const double* values, int64_t game, int64_t value) {
  const int64_t n_codes = leaf.codes.size[0];
  double* const to = leaf.table + (game * leaf.n_values + value) * n_codes;
  for (int64_t code = 0; code < n_codes; code++) to[code] += scale * values[leaf.codes[code]];
}

/// Call `add(values, place)` with the values of all sets of one leaf's players in one of its games.
template <class Add>
EXACTSHAP_INLINE void solve_game(const LeafOfGroup& leaf, const double* game, In<double, 3> weights, const TableRows& rows, double* values, Add add) {
  for (int64_t size = 1; size <= smaller(weights.size[0] - 1, leaf.m); size++)
    for (int64_t T = (int64_t(1) << size) - 1; T < int64_t(1) << leaf.m; T = next_mask(T)) {
      fill_set_values(game, leaf.m, T, weights[size][leaf.m], values);
      add(leaf.place_of_set[set_rank(T, size, leaf.players, rows.binomials, rows.offsets)]);
    }
}

/// Add the games of one leaf to the table of its group.
void add_leaf(const LeafOfGroup& leaf, const LeafParts& parts, const Patterns& patterns, In<double, 3> weights, const TableRows& rows,
              const Room& room) {
  const int64_t n_cells = int64_t(1) << leaf.m, magnitude = leaf.n_values - 1;
  fill_games(leaf.l, leaf.m, parts, patterns, room);
  solve_game(leaf, room.game, weights, rows, room.values, [&](int64_t place) { add_row(leaf, 1.0, room.values, 0, place); });
  add_row(leaf, 1.0, room.size, 0, magnitude);
  for (int64_t k = parts.part_start[leaf.l]; k < parts.part_start[leaf.l + 1]; k++) {
    const int64_t bit = int64_t(parts.bit[k]), first = parts.term_start[k], last = parts.term_start[k + 1];
    const auto game_of = [&](int64_t e) { return 1 + leaf.place_of_column[parts.column[e]]; };
    for (int64_t s = 0; s < n_cells; s++) room.game[s] = (s & bit) != 0 ? room.weight[s] : 0.0;
    solve_game(leaf, room.game, weights, rows, room.values, [&](int64_t place) {
      for (int64_t e = first; e < last; e++) add_row(leaf, parts.coefficient[e], room.values, game_of(e), place);
    });
    for (int64_t e = first; e < last; e++) add_row(leaf, fabs(parts.coefficient[e]), room.weight, game_of(e), magnitude);
  }
}

/// Write the tables of groups first to last - 1 to `out`. `weights[size, m, s]` is p(s) for sets of `size` on m players; leaf i of all
/// groups is leaf i of `leaves`, those of these groups are the leaves of `parts` and `patterns`.
Status fill_linear_tables(Tables tables, TableRows rows, LinearTables linear, LeafParts parts, Patterns patterns, In<double, 3> weights,
                          int64_t first_group, int64_t last_group, Out<double, 1> out, Context& context) {
  const Groups& groups = tables.groups;
  const Leaves& leaves = tables.leaves;
  const int64_t most = most_players(leaves), order = weights.size[0] - 1, n_features = tables.routes.n_features;
  EXACTSHAP_REQUIRE(tables.fit() && rows.fit(groups) && are_groups(first_group, last_group, groups) && order >= 1 && most <= 30);
  EXACTSHAP_REQUIRE(linear.fit(groups, rows, n_features, first_group, last_group, out.size[0]));
  EXACTSHAP_REQUIRE(rows.offsets.size[0] == order + 2 && weights.size[1] > most && weights.size[2] == weights.size[1]);
  const int64_t first_leaf = groups.leaf_start[first_group], n_leaves = groups.leaf_start[last_group] - first_leaf;
  EXACTSHAP_REQUIRE(parts.offset.size[0] == n_leaves && patterns.start.size[0] == n_leaves + 1 && lie_within(parts.column, n_features));
  for (int64_t k = 0; k < parts.bit.size[0]; k++) EXACTSHAP_REQUIRE(parts.bit[k] != 0);
  auto scratch = context.empty<double>(int64_t(5), int64_t(1) << most);
  auto every_code = context.empty<int64_t>(int64_t(1) << most_bits(groups));
  auto bit_of_node = context.zeros<int16_t>(tables.forest.value.size[0]);
  auto place_of_set = context.zeros<int64_t>(rows.offsets[order + 1]), place_of_column = context.zeros<int64_t>(n_features);
  auto table = context.empty<double>(most_cells(first_group, last_group, linear.table_start));
  if (context.failed()) return Status::no_memory;
  const Room room{scratch[0].data, scratch[1].data, scratch[2].data, scratch[3].data, scratch[4].data};
  for (int64_t g = first_group; g < last_group; g++) {
    const auto codes = every_code.slice(0, int64_t(1) << groups.n_bits[g]);
    const int64_t n_sets = rows.n_columns(g) - 2, n_values = n_sets + 1, n_games = 1 + linear.n_columns(g), n_codes = codes.size[0];
    note_bits(g, groups, bit_of_node);
    for (int64_t i = 0; i < n_games * n_values * n_codes; i++) table[i] = 0.0;
    for (int64_t j = 0; j < n_sets; j++) place_of_set[rows.columns[rows.column_start[g] + j]] = j;
    for (int64_t e = 0; e < n_games - 1; e++) place_of_column[linear.column[linear.start[g] + e]] = e;
    for (int64_t l = groups.leaf_start[g]; l < groups.leaf_start[g + 1]; l++) {
      if (context.interrupted()) return Status::interrupted;
      fill_leaf_codes(g, l, groups, leaves, bit_of_node, codes);
      const int32_t* const players = leaves.player.data + leaves.start[l];
      const LeafOfGroup leaf{l - first_leaf, leaves.n_players(l), n_values, players, codes, place_of_set, place_of_column, table.data};
      add_leaf(leaf, parts, patterns, weights, rows, room);
    }
    double* const cells = out.data + (linear.table_start[g] - linear.table_start[first_group]);
    const int64_t each = padded(n_values);
    for (int64_t code = 0; code < n_codes; code++)
      for (int64_t game = 0; game < n_games; game++)
        for (int64_t j = 0; j < n_values; j++) cells[(code * n_games + game) * each + j] = table[(game * n_values + j) * n_codes + code];
  }
  return Status::done;
}

/// A group as rows meet it: its cells, their games and numbers, and the group's columns of the rows, `stride` apart.
struct MetGroup {
  const double* cells;
  int64_t n_games, n_values, each;
  const int64_t* sets;
  const int32_t* column;
  const double* columns;
  int64_t stride;
  const bool* missing;  // of each row whether it misses one of the columns; nullptr where none does
};

/// Add the cells of n rows from `start` on to `out (n_rows, n_sets)` and `scale (n_rows,)`: N times LANES values at a time.
template <int N>
EXACTSHAP_APART void add_group(const MetGroup& group, int64_t start, int64_t n, const uint16_t* codes, Out<double, 2> out, Out<double, 1> scale) {
  using Vector = Doubles<LANES>::Vector;
  const int64_t width = group.n_games * group.each, n_sets = group.n_values - 1;
  double values[N * LANES];
  for (int64_t i = 0; i < n; i++) {
    if (group.missing != nullptr && group.missing[start + i]) continue;
    const double *const cell = group.cells + codes[i] * width, *const x = group.columns + start + i;
    double size = cell[n_sets];
    double* const to = out[start + i].data;
    for (int64_t first = 0; first < group.each; first += N * LANES) {
      Vector sums[N], added;
      for (int v = 0; v < N; v++) load(cell + first + v * LANES, sums[v]);
      const double* of_game = cell + first;
      for (int64_t e = 0; e + 1 < group.n_games; e++) {
        of_game += group.each;
        const double x_e = x[group.column[e] * group.stride];
        for (int v = 0; v < N; v++) {
          load(of_game + v * LANES, added);
          sums[v] += added * x_e;
        }
      }
      __builtin_memcpy(values, sums, sizeof sums);
      const int64_t last = smaller(n_sets - first, N * LANES);
      for (int64_t j = 0; j < last; j++) to[group.sets[first + j]] += values[j];
    }
    for (int64_t e = 0; e + 1 < group.n_games; e++) size += fabs(x[group.column[e] * group.stride]) * cell[(e + 1) * group.each + n_sets];
    scale[start + i] += size;
  }
}

/// Add the cells that rows meet to `out (n_rows, n_sets)` and `scale (n_rows,)`; `columns (n_features, n_rows)`.
///
/// A row leaves out the groups where it misses a column of a function, `missing (n_groups, n_rows)`; there is none if no row does.
///
/// Tree after tree: the tables of one stay in the second cache while the rows pass by.
Status sweep_linear_tables(In<double, 2> columns, Tables tables, TableRows rows, LinearTables linear, In<double, 1> cells, In<bool, 2> missing,
                           Out<double, 2> out, Out<double, 1> scale, Context& context) {
  const Groups& groups = tables.groups;
  const Routes& routes = tables.routes;
  const int64_t n_rows = columns.size[1], rows_padded = (n_rows + Many::LANES - 1) / Many::LANES * Many::LANES;
  EXACTSHAP_REQUIRE(tables.fit() && rows.fit(groups) && columns.size[0] == routes.n_features && n_rows == out.size[0] && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(linear.fit(groups, rows, columns.size[0], 0, groups.count(), cells.size[0]));
  EXACTSHAP_REQUIRE(missing.size[0] == 0 || (missing.size[0] == groups.count() && missing.size[1] == n_rows));
  for (int64_t g = 0; g < groups.count(); g++)
    for (int64_t c = rows.column_start[g]; c < rows.column_start[g + 1] - 2; c++) EXACTSHAP_REQUIRE(rows.columns[c] >= 0 && rows.columns[c] < out.size[1]);
  auto x = context.empty<double>(columns.size[0], rows_padded);
  auto failed = context.empty<Many::Code>(tables.forest.largest_tree() * smaller(rows_padded, AT_ONCE));
  auto codes = context.empty<uint16_t>(routes.most_groups() * rows_padded);
  if (context.failed()) return Status::no_memory;
  const bool is_plain = !pad(columns, routes.single_precision, x) && routes.is_plain;
  for (int64_t tree = 0; tree < tables.forest.n_trees(); tree++) {
    const int64_t first = routes.group_start[tree], last = routes.group_start[tree + 1];
    if (first == last) continue;
    if (context.interrupted()) return Status::interrupted;
    walk_all<Many>(tree, x, is_plain, tables, {first, last, codes.data, rows_padded}, Ways<Many>{failed.data, nullptr}, codes.data);
    for (int64_t start = 0; start < n_rows; start += ROWS)
      for (int64_t g = first; g < last; g++) {
        const int64_t n_values = rows.n_columns(g) - 1, each = padded(n_values);
        const MetGroup group{cells.data + linear.table_start[g], 1 + linear.n_columns(g), n_values, each,
                             rows.columns.data + rows.column_start[g], linear.column.data + linear.start[g], columns.data, n_rows,
                             missing.size[0] > 0 ? missing[g].data : nullptr};
        const auto add = each == LANES ? add_group<1> : each == 2 * LANES ? add_group<2> : each == 3 * LANES ? add_group<3> : add_group<VECTORS>;
        add(group, start, smaller(ROWS, n_rows - start), codes.data + (g - first) * rows_padded + start, out, scale);
      }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, fill_linear_tables, fill_linear_tables)
EXACTSHAP_KERNEL(tree_solver, sweep_linear_tables, sweep_linear_tables)
