// Values of a few rows, which need a few cells only: no tables, the same bits (see cells.h for single players, tables.h for sets).

#include "cells.h"

EXACTSHAP_BEGIN

namespace {

/// A rule in vectors of `width` nodes, 4 or 8, the last one filled up with zeros: t, 1 - t and weights.
struct Lanes {
  int64_t n_nodes, width;
  double *nodes, *rest, *weights, *below, *factor;
};

/// Add the values of all players of a leaf in the cell A at `WIDTH` nodes from `first` on to `out (m,)`, node after node.
template <int WIDTH>
EXACTSHAP_INLINE void add_cover_values(int64_t first, int64_t A, const double* b, int64_t m, const Lanes& lanes, double* out) {
  using Vector = typename Doubles<WIDTH>::Vector;
  Vector rest, product, inside[2] = {};
  load(lanes.rest + first, rest), load(lanes.nodes + first, inside[1]), load(lanes.weights + first, product);
  Vector *__restrict const below = reinterpret_cast<Vector*>(lanes.below), *__restrict const factor = reinterpret_cast<Vector*>(lanes.factor);
  for (int64_t j = 0; j < m; j++) {
    below[j] = product;
    factor[j] = rest * b[j] + inside[(A >> j) & 1];
    product *= factor[j];
  }
  product = Vector{} + 1.0;
  const int64_t n = smaller(WIDTH, lanes.n_nodes - first);
  for (int64_t j = m - 1; j >= 0; j--) {
    const Vector share = below[j] * product;
    product *= factor[j];
    double sum = out[j];
    for (int64_t q = 0; q < n; q++) sum += share[q];
    out[j] = sum;
  }
}

/// Write the values of all players of a leaf in the cell A to `out (m,)`: all nodes at once, their sums one after the other.
EXACTSHAP_INLINE void cover_values_of(int64_t A, const double* b, int64_t m, const Lanes& lanes, double* __restrict out) {
  for (int64_t j = 0; j < m; j++) out[j] = 0.0;
  for (int64_t first = 0; first < lanes.n_nodes; first += lanes.width)
    if (lanes.width == 4)
      add_cover_values<4>(first, A, b, m, lanes, out);
    else
      add_cover_values<8>(first, A, b, m, lanes, out);
  for (int64_t j = 0; j < m; j++) out[j] *= double((A >> j) & 1) - b[j];
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

/// The product of the cover ratios of the players outside A.
EXACTSHAP_INLINE double survival_outside(int64_t A, const double* b, int64_t m) {
  double product = 1.0;
  for (int64_t k = 0; k < m; k++) {
    const double ratio[2] = {b[k], 1.0};  // a branch would be guessed wrong every other time
    product *= ratio[(A >> k) & 1];
  }
  return product;
}

/// Room for one row, with sums of one group as `total (n_results,)`.
struct RowWork {
  const SubsetWeights& weights;
  Scratch scratch;
  Lanes lanes;
  double *values, *total;
};

/// Add leaf l's share in the cell A to the sums of one row.
EXACTSHAP_INLINE void add_cell(int64_t l, int64_t A, int64_t first, int64_t last, int64_t n_players, const Tables& tables,
                               const RowWork& work) {
  const Leaves& leaves = tables.leaves;
  const int64_t m = leaves.n_players(l), n_outputs = tables.forest.value.size[1];
  const double* const b = leaves.ratio.data + leaves.start[l];
  const int32_t* const player = leaves.player.data + leaves.start[l];
  const In<double, 1> value = tables.forest.value[leaves.node[l]];
  double passing;
  if (tables.has_background()) {
    const double* const survival = tables.survival_of(l).data;
    passing = survival[A];
    background_values_of(A, survival, m, work.weights, work.scratch, work.values);
  } else {
    passing = survival_outside(A, b, m);
    cover_values_of(A, b, m, work.lanes, work.values);
  }
  for (int64_t j = 0; j < m; j++)
    for (int64_t o = first; o < last; o++) work.total[player[j] * n_outputs + o] += value[o] * work.values[j];
  if ((int64_t(1) << m) - 1 == A)
    for (int64_t o = first; o < last; o++) work.total[n_players * n_outputs + o] += value[o];
  work.total[(n_players + 1) * n_outputs] += largest(value) * passing;
}

/// Add the sums of group g to `out (n_results,)`, and begin anew.
EXACTSHAP_INLINE void add_columns(int64_t g, const TableRows& rows, double* total, double* out) {
  for (int64_t c = rows.column_start[g]; c < rows.column_start[g + 1]; c++) {
    out[rows.columns[c]] += total[rows.columns[c]];
    total[rows.columns[c]] = 0.0;
  }
}

/// Add the sums of group g for one row to `out (n_results,)`.
EXACTSHAP_INLINE void add_group(int64_t g, const uint8_t* decided, int64_t n_players, const Tables& tables, const TableRows& rows,
                                const RowWork& work, double* out) {
  const Groups& groups = tables.groups;
  const int64_t offset = tables.forest.tree_start[groups.tree[g]], first = groups.first_output[g], last = groups.last_output[g];
  for (int64_t i = groups.leaf_start[g]; i < groups.leaf_start[g + 1]; i++) {
    const int64_t l = groups.leaf[i];
    add_cell(l, cell_of(l, tables.leaves, decided, offset), first, last, n_players, tables, work);
  }
  add_columns(g, rows, work.total, out);
}

/// The nodes of a measure in vectors, in scratch memory.
Lanes lanes_of(const Measure& measure, int64_t most, Context& context) {
  const int64_t n = measure.nodes.size[0], width = n <= 4 ? 4 : 8, padded = (n + width - 1) / width * width;
  const auto rule = context.zeros<double>(int64_t(3), padded), room = context.empty<double>(int64_t(2), most * width);
  if (context.failed()) return {};
  for (int64_t q = 0; q < n; q++) {
    rule[0][q] = measure.nodes[q], rule[1][q] = 1.0 - measure.nodes[q];
    rule[2][q] = measure.node_weights[q];
  }
  return {n, width, rule[0].data, rule[1].data, rule[2].data, room[0].data, room[1].data};
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
  auto inside = context.empty<int64_t>(n_cells);
  auto total = context.zeros<double>(out.size[1]);
  auto decisions = context.empty<uint8_t>(n_rows, tables.forest.largest_tree());
  const SubsetWeights weights(measure.weights, tables.has_background() ? most : 0, context);
  const RowWork work{weights, {one.data, two.data, inside.data}, lanes_of(measure, most, context), values.data, total.data};
  if (context.failed()) return Status::no_memory;
  int64_t tree = -1;
  for (int64_t g = first_group; g < last_group; g++) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t r = 0; r < n_rows && groups.tree[g] != tree; r++)
      if (!decide_row(columns.data + r, n_rows, columns.size[0], tree_start[groups.tree[g]], tree_start[groups.tree[g] + 1],
                      tables.forest.nodes, decisions[r].data))
        return Status::fault;
    tree = groups.tree[g];
    for (int64_t r = 0; r < n_rows; r++) add_group(g, decisions[r].data, n_players, tables, rows, work, out[r].data);
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
