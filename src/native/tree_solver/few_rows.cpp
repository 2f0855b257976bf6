// Values of single players of a few rows, which need a few cells only: no tables, the same bits (see cells.h).

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

/// Add the sums of group g for one row to `out (n_results,)`.
EXACTSHAP_INLINE void add_group(int64_t g, const uint8_t* decided, int64_t n_players, const Tables& tables, const TableRows& rows,
                                const RowWork& work, double* out) {
  const Groups& groups = tables.groups;
  const int64_t offset = tables.forest.tree_start[groups.tree[g]], first = groups.first_output[g], last = groups.last_output[g];
  for (int64_t i = groups.leaf_start[g]; i < groups.leaf_start[g + 1]; i++) {
    const int64_t l = groups.leaf[i];
    add_cell(l, cell_of(l, tables.leaves, decided, offset), first, last, n_players, tables, work);
  }
  for (int64_t c = rows.column_start[g]; c < rows.column_start[g + 1]; c++) {
    out[rows.columns[c]] += work.total[rows.columns[c]];
    work.total[rows.columns[c]] = 0.0;
  }
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

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep_few_rows, sweep_few_rows)
