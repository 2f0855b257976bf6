// Values of a few rows, which need a few cells only: no tables, the same bits (see cells.h for single players, tables.h for sets).

#include "cells.h"

EXACTSHAP_BEGIN

namespace {

/// Leaves whose values for cover ratios are found together, one in each lane.
constexpr int64_t LANES = 8;

/// Room for the players of some leaves, `(most, LANES)` each, and for a number of each leaf. Where a leaf has no such player, ratio and
/// inside are 1, and so is the factor at each node: (1 - t) + t rounds to 1.
struct Lanes {
  double *ratio, *inside, *below, *factor, *values, *passing;
};

/// Write the values of all players of the leaves, and the products of the ratios of those outside their cells.
///
/// Node after node in each lane, as fill_cover_values in cells.cpp adds.
EXACTSHAP_APART void fill_lanes(int64_t m, const Measure& measure, const Lanes& lanes) {
  constexpr int64_t WIDTH = int64_t(sizeof(Widest) / sizeof(double)), N = LANES / WIDTH;
  const double *__restrict const ratio = lanes.ratio, *__restrict const inside = lanes.inside;
  double *__restrict const below = lanes.below, *__restrict const factor = lanes.factor, *__restrict const values = lanes.values;
  Widest product[N], b, in, f, sum;
  for (int64_t j = 0; j < m * LANES; j++) values[j] = 0.0;
  for (int64_t q = 0; q < measure.nodes.size[0]; q++) {
    const Widest t = Widest{} + measure.nodes[q], rest = Widest{} + (1.0 - measure.nodes[q]);
    for (int64_t k = 0; k < N; k++) product[k] = Widest{} + measure.node_weights[q];
    for (int64_t j = 0; j < m; j++)
      for (int64_t k = 0; k < N; k++) {
        const int64_t at = j * LANES + k * WIDTH;
        load(ratio + at, b), load(inside + at, in);
        f = rounded(rest * b) + rounded(t * in);
        store(product[k], below + at), store(f, factor + at);
        product[k] *= f;
      }
    for (int64_t k = 0; k < N; k++) product[k] = Widest{} + 1.0;
    for (int64_t j = m - 1; j >= 0; j--)
      for (int64_t k = 0; k < N; k++) {
        const int64_t at = j * LANES + k * WIDTH;
        load(below + at, b), load(factor + at, f), load(values + at, sum);
        store(sum + rounded(b * product[k]), values + at);
        product[k] *= f;
      }
  }
  for (int64_t k = 0; k < N; k++) product[k] = Widest{} + 1.0;
  for (int64_t j = 0; j < m; j++)
    for (int64_t k = 0; k < N; k++) {
      const int64_t at = j * LANES + k * WIDTH;
      load(ratio + at, b), load(inside + at, in), load(values + at, sum);
      store(sum * (in - b), values + at);
      product[k] *= in + rounded((1.0 - in) * b);
    }
  for (int64_t k = 0; k < N; k++) store(product[k], lanes.passing + k * WIDTH);
}

/// Write the values of all players of a leaf in the cell A to `out (m,)`: sums over the subsets of A only.
EXACTSHAP_INLINE void background_values_of(int64_t A, const double* survival, int64_t m, const SubsetWeights& weights,
                                           const Scratch& scratch, double* out) {
  double *const P = scratch.one, *const both = scratch.two;
  int64_t* const inside = scratch.inside;
  int64_t size = 1;
  inside[0] = 0;
  for (int64_t j = 0; j < m; j++)
    if ((A >> j) & 1) {
      int64_t *const from = inside, *__restrict const to = inside + size;
      for (int64_t x = 0; x < size; x++) to[x] = from[x] | (int64_t(1) << j);
      size *= 2;
    }
  for (int64_t x = 0; x < size; x++) P[x] = survival[inside[x]];
  fill_sums(__builtin_popcountll(uint64_t(size - 1)), m, weights, P, both);
  int64_t bit = 1;
  for (int64_t j = 0; j < m; j++)
    if ((A >> j) & 1) {
      out[j] = P[size - 1] - both[size - 1 - bit];
      bit *= 2;
    } else {
      out[j] = P[size - 1] - both[size - 1];
    }
}

/// Which players of leaf l a row satisfies, as a mask; `decided` says whether it goes left at each node from `offset` on.
EXACTSHAP_INLINE int64_t cell_of(int64_t l, const Leaves& leaves, const uint8_t* decided, int64_t offset) {
  int64_t failed = 0;
  for (int64_t e = leaves.edge_start[l]; e < leaves.edge_start[l + 1]; e++)
    failed |= int64_t(decided[leaves.edge_node[e] - offset] ^ uint8_t(leaves.edge_left[e])) << leaves.edge_slot[e];
  return ((int64_t(1) << leaves.n_players(l)) - 1) & ~failed;
}

/// Weights, and room for some leaves of one row.
struct RowWork {
  const SubsetWeights& weights;
  const Measure& measure;
  Scratch scratch;
  Lanes lanes;
  int64_t* cell;
  double* values;
};

/// Add the values of leaf l in the cell A, `values[j * stride]`, to the sums of one row.
EXACTSHAP_INLINE void add_cell(int64_t l, int64_t A, int64_t first, int64_t last, int64_t n_players, const Tables& tables, const double* values,
                               int64_t stride, double passing, double* total) {
  const Leaves& leaves = tables.leaves;
  const int64_t m = leaves.n_players(l), n_outputs = tables.forest.value.size[1];
  const int32_t* const player = leaves.player.data + leaves.start[l];
  const In<double, 1> value = tables.forest.value[leaves.node[l]];
  for (int64_t o = first; o < last; o++) {
    const double c = value[o];
    for (int64_t j = 0; j < m; j++) total[player[j] * n_outputs + o] += rounded(c * values[j * stride]);
  }
  if ((int64_t(1) << m) - 1 == A)
    for (int64_t o = first; o < last; o++) total[n_players * n_outputs + o] += value[o];
  total[(n_players + 1) * n_outputs] += largest(value) * passing;
}

/// Add the sums of group g to `out (n_results,)`, and begin anew.
EXACTSHAP_INLINE void add_columns(int64_t g, const TableRows& rows, double* total, double* out) {
  for (int64_t c = rows.column_start[g]; c < rows.column_start[g + 1]; c++) {
    out[rows.columns[c]] += total[rows.columns[c]];
    total[rows.columns[c]] = 0.0;
  }
}

/// Write the ratios of some leaves, one in each lane, and return the number of players of the longest.
EXACTSHAP_APART int64_t lay_out(const int64_t* leaf, int64_t n, const Leaves& leaves, const Lanes& lanes) {
  int64_t m = 0;
  for (int64_t i = 0; i < n; i++) m = leaves.n_players(leaf[i]) > m ? leaves.n_players(leaf[i]) : m;
  for (int64_t j = 0; j < m * LANES; j++) lanes.ratio[j] = 1.0;
  for (int64_t i = 0; i < n; i++) {
    const double* const b = leaves.ratio.data + leaves.start[leaf[i]];
    for (int64_t j = 0; j < leaves.n_players(leaf[i]); j++) lanes.ratio[j * LANES + i] = b[j];
  }
  return m;
}

/// Write the cells of `n` leaves to `cell`, and what is inside them to the lanes of m players.
EXACTSHAP_APART void fill_cells(const int64_t* leaf, int64_t n, int64_t m, const Leaves& leaves, const uint8_t* decided, int64_t offset,
                                int64_t* __restrict cell, double* __restrict inside) {
  const double one_of[2] = {0.0, 1.0};
  for (int64_t i = 0; i < n; i++) {
    const int64_t A = cell[i] = cell_of(leaf[i], leaves, decided, offset);
    const int64_t others = ~((int64_t(1) << leaves.n_players(leaf[i])) - 1);
    for (int64_t j = 0; j < m; j++) inside[j * LANES + i] = one_of[((A | others) >> j) & 1];
  }
  for (int64_t i = n; i < LANES; i++)
    for (int64_t j = 0; j < m; j++) inside[j * LANES + i] = 1.0;
}

/// Add the shares of `n` leaves from place `at` of the groups on, the first of them in group g, to the sums of row r.
///
/// A group that ends with one of them is added to `out (n_results,)`. Return the group of the next leaf.
EXACTSHAP_APART int64_t add_leaves(int64_t at, int64_t n, int64_t m, int64_t g, const uint8_t* decided, int64_t n_players, const Tables& tables,
                                    const TableRows& rows, const RowWork& work, double* total, double* out) {
  const Groups& groups = tables.groups;
  const Leaves& leaves = tables.leaves;
  const Lanes& lanes = work.lanes;
  const int64_t* const leaf = groups.leaf.data + at;
  const int64_t offset = tables.forest.tree_start[groups.tree[g]];
  fill_cells(leaf, n, m, leaves, decided, offset, work.cell, lanes.inside);
  if (!tables.has_background()) fill_lanes(m, work.measure, lanes);
  for (int64_t i = 0; i < n; i++) {
    const int64_t l = leaf[i], A = work.cell[i], first = groups.first_output[g], last = groups.last_output[g];
    if (tables.has_background()) {
      const double* const survival = tables.survival_of(l).data;
      background_values_of(A, survival, leaves.n_players(l), work.weights, work.scratch, work.values);
      add_cell(l, A, first, last, n_players, tables, work.values, 1, survival[A], total);
    } else {
      add_cell(l, A, first, last, n_players, tables, lanes.values + i, LANES, lanes.passing[i], total);
    }
    for (; g < groups.count() && groups.leaf_start[g + 1] <= at + i + 1; g++) add_columns(g, rows, total, out);
  }
  return g;
}

/// Add what fill_single_tables and sweep would add to `out (n_rows, n_results)`, without tables: cell by cell.
Status sweep_few_rows(In<double, 2> columns, Tables tables, TableRows rows, Measure measure, int64_t first_group, int64_t last_group,
                 int64_t n_players, Out<double, 2> out, Context& context) {
  EXACTSHAP_REQUIRE(fit(tables, rows, measure, first_group, last_group, n_players));
  const Groups& groups = tables.groups;
  const In<int64_t, 1> tree_start = tables.forest.tree_start;
  const int64_t n_rows = columns.size[1], n_outputs = tables.forest.value.size[1], most = most_players(tables.leaves);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == (n_players + 1) * n_outputs + 1);
  const int64_t n_cells = tables.has_background() ? int64_t(1) << most : 0;
  auto one = context.empty<double>(n_cells), two = context.empty<double>(n_cells), values = context.empty<double>(most);
  auto passing = context.empty<double>(LANES);
  auto inside = context.empty<int64_t>(n_cells), cell = context.empty<int64_t>(LANES);
  auto total = context.zeros<double>(n_rows, out.size[1]);
  auto decisions = context.empty<uint8_t>(n_rows, tables.forest.largest_tree());
  auto room = context.empty<double>(int64_t(5), most * LANES);
  const SubsetWeights weights(measure.weights, tables.has_background() ? most : 0, context);
  if (context.failed()) return Status::no_memory;
  const Lanes lanes{room[0].data, room[1].data, room[2].data, room[3].data, room[4].data, passing.data};
  const RowWork work{weights, measure, {one.data, two.data, inside.data}, lanes, cell.data, values.data};
  int64_t tree = -1, g = first_group, next = g, last = g;
  for (int64_t at = groups.leaf_start[first_group]; at < groups.leaf_start[last_group];) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t r = 0; r < n_rows && groups.tree[g] != tree; r++)
      if (!decide_row(columns.data + r, n_rows, columns.size[0], tree_start[groups.tree[g]], tree_start[groups.tree[g] + 1],
                      tables.forest.nodes, decisions[r].data))
        return Status::fault;
    tree = groups.tree[g];
    while (last < last_group && groups.tree[last] == tree) last++;
    const int64_t n = smaller(LANES, groups.leaf_start[last] - at);
    const int64_t m = lay_out(groups.leaf.data + at, n, tables.leaves, lanes);
    for (int64_t r = 0; r < n_rows; r++)
      next = add_leaves(at, n, m, g, decisions[r].data, n_players, tables, rows, work, total[r].data, out[r].data);
    at += n, g = next;
  }
  return Status::done;
}

/// Room for the sets of one leaf in one cell: g on the subsets of A, values of the sets inside A, and which of them are known.
struct SetWork {
  int64_t order;
  In<double, 3> weights;  // p(s) for sets of each size on a leaf of m players
  int64_t *inside, *known, *now;
  double *of_leaf, *g, *part, *value, *total;
};

/// Return the value of a set with the players U of A, as places, and `size` players in all, up to its sign:
///
///   sum_{S in A \ U} p(|S|) Delta_U g(S)
///
/// Players in ascending order, the first at the highest place: fill_set_values does the same to all cells.
EXACTSHAP_INLINE double value_inside(int64_t U, int64_t n_inside, const double* weights, const SetWork& work) {
  int64_t n = int64_t(1) << n_inside;
  double* const part = work.part;
  const double* from = work.g;
  for (int64_t place = n_inside - 1; place >= 0; place--) {
    if (((U >> place) & 1) == 0) continue;
    const int64_t low = int64_t(1) << place;
    n >>= 1;
    for (int64_t x = 0; x < n; x++) {
      const int64_t without = (x & ~(low - 1)) << 1 | (x & (low - 1));
      part[x] = from[without + low] - from[without];
    }
    from = part;
  }
  for (int64_t x = 0; x < n; x++) part[x] = from[x] * weights[__builtin_popcountll(uint64_t(x))];
  while (n > 1) {
    n >>= 1;
    for (int64_t x = 0; x < n; x++) part[x] += part[x + n];
  }
  return part[0];
}

/// Add leaf l's share in the cell A of all sets of 1..order players to the sums of one row.
EXACTSHAP_INLINE void add_cell_of_sets(int64_t l, int64_t A, int64_t first, int64_t last, const Tables& tables, const TableRows& rows,
                                       const SetWork& work) {
  const Leaves& leaves = tables.leaves;
  const int64_t m = leaves.n_players(l), n_outputs = tables.forest.value.size[1], n_sets = rows.offsets[work.order + 1];
  const int32_t* const player = leaves.player.data + leaves.start[l];
  const In<double, 1> value = tables.forest.value[leaves.node[l]];
  const double* survival = work.of_leaf;
  if (tables.has_background())
    survival = tables.survival_of(l).data;
  else
    fill_cover_survival(leaves.ratio.data + leaves.start[l], m, work.of_leaf);
  int64_t n_inside = 0, size = 1;
  work.inside[0] = 0;
  for (int64_t j = m - 1; j >= 0; j--)
    if ((A >> j) & 1) {
      for (int64_t x = 0; x < size; x++) work.inside[size + x] = work.inside[x] | int64_t(1) << j;
      size *= 2, n_inside++;
    }
  for (int64_t x = 0; x < size; x++) work.g[x] = survival[work.inside[x]];
  for (int64_t n_players = 1; n_players <= smaller(work.order, m); n_players++) {
    const double* const weights = work.weights[n_players][m].data;
    const int64_t stamp = ++*work.now;  // sets that differ outside A only have the same value but for its sign
    for (int64_t T = (int64_t(1) << n_players) - 1; T < int64_t(1) << m; T = next_mask(T)) {
      int64_t U = 0;
      for (int64_t left = T & A; left != 0; left &= left - 1) U |= int64_t(1) << __builtin_popcountll(uint64_t(A & ~(left ^ (left - 1))));
      if (work.known[U] != stamp) work.known[U] = stamp, work.value[U] = value_inside(U, n_inside, weights, work);
      const double found = (__builtin_popcountll(uint64_t(T & ~A)) & 1) ? -work.value[U] : work.value[U];
      double* const at = work.total + set_rank(T, n_players, player, rows.binomials, rows.offsets) * n_outputs;
      for (int64_t o = first; o < last; o++) at[o] += value[o] * found;
    }
  }
  if ((int64_t(1) << m) - 1 == A)
    for (int64_t o = first; o < last; o++) work.total[n_sets * n_outputs + o] += value[o];
  work.total[(n_sets + 1) * n_outputs] += largest(value) * survival[A];
}

/// Add what fill_tables and sweep would add to `out (n_rows, n_results)`, without tables: cell by cell.
Status sweep_few_sets(In<double, 2> columns, Tables tables, TableRows rows, In<double, 3> weights, int64_t first_group, int64_t last_group,
                      Out<double, 2> out, Context& context) {
  const Groups& groups = tables.groups;
  const In<int64_t, 1> tree_start = tables.forest.tree_start;
  const int64_t order = weights.size[0] - 1, most = most_players(tables.leaves), n_outputs = tables.forest.value.size[1];
  EXACTSHAP_REQUIRE(tables.fit() && rows.fit(groups) && are_groups(first_group, last_group, groups) && order >= 1);
  EXACTSHAP_REQUIRE(rows.offsets.size[0] == order + 2 && weights.size[1] > most && weights.size[2] > most && most < 62);
  const int64_t n_rows = columns.size[1], n_results = (rows.offsets[order + 1] + 1) * n_outputs + 1, n_cells = int64_t(1) << most;
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == n_results);
  auto inside = context.empty<int64_t>(n_cells), known = context.zeros<int64_t>(n_cells);
  auto cells = context.empty<double>(int64_t(4), n_cells);
  auto total = context.zeros<double>(n_results);
  auto decisions = context.empty<uint8_t>(n_rows, tables.forest.largest_tree());
  int64_t now = 0, tree = -1;
  if (context.failed()) return Status::no_memory;
  const SetWork work{order, weights, inside.data, known.data, &now, cells[0].data, cells[1].data, cells[2].data, cells[3].data, total.data};
  for (int64_t g = first_group; g < last_group; g++) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t offset = tree_start[groups.tree[g]];
    for (int64_t r = 0; r < n_rows && groups.tree[g] != tree; r++)
      if (!decide_row(columns.data + r, n_rows, columns.size[0], offset, tree_start[groups.tree[g] + 1], tables.forest.nodes,
                      decisions[r].data))
        return Status::fault;
    tree = groups.tree[g];
    for (int64_t r = 0; r < n_rows; r++) {
      for (int64_t i = groups.leaf_start[g]; i < groups.leaf_start[g + 1]; i++) {
        const int64_t l = groups.leaf[i], A = cell_of(l, tables.leaves, decisions[r].data, offset);
        add_cell_of_sets(l, A, groups.first_output[g], groups.last_output[g], tables, rows, work);
      }
      add_columns(g, rows, total.data, out[r].data);
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep_few_rows, sweep_few_rows)
EXACTSHAP_KERNEL(tree_solver, sweep_few_sets, sweep_few_sets)
