// Values of single players in tables of trees: all cells of a leaf at once, or one cell alone with the same bits.
//
// A leaf's cell A are the players whose splits the row satisfies. With cover ratios b and the rule's nodes t and weights w
//
//   phi_j(A) = ([j in A] - b_j) sum_q w_q prod_{k != j} (t_q [k in A] + (1 - t_q) b_k),
//
// with a background, g of which is known for all sets of players,
//
//   phi_j(A) = P(A) - (P + Y)(A \ j),   Y(A) = sum_{S in A} p(|S|) g(S),   P(A) = sum_{S in A} p(|S| - 1) g(S).
//
// A few rows need a few cells only: they are not worth whole tables. Every operation of a cell is the same, in the same order,
// either way.

#include "../common/lanes.h"
#include "tables.h"

EXACTSHAP_BEGIN

namespace {

/// A rule's nodes and weights for cover ratios, and p(s) on m players, `weights[m, s]`, for a background.
struct Measure {
  In<double, 1> nodes, node_weights;
  In<double, 2> weights;
  EXACTSHAP_FIELDS(nodes, node_weights, weights)
};

/// Room for one leaf: tables of products or sums, the sets inside a cell, the values of its players (in all cells or in one).
struct Scratch {
  double *one, *two;
  int64_t* inside;
};

/// Sum over the subsets of three players in registers: `t[S]` for S in 0..7.
EXACTSHAP_INLINE void sum_eight(double* t) {
  double a0 = t[0], a1 = t[1], a2 = t[2], a3 = t[3], a4 = t[4], a5 = t[5], a6 = t[6], a7 = t[7];
  a1 = a1 + a0, a3 = a3 + a2, a5 = a5 + a4, a7 = a7 + a6;
  a2 = a2 + a0, a3 = a3 + a1, a6 = a6 + a4, a7 = a7 + a5;
  t[0] = a0, t[1] = a1, t[2] = a2, t[3] = a3;
  t[4] = a4 + a0, t[5] = a5 + a1, t[6] = a6 + a2, t[7] = a7 + a3;
}

/// Replace `table[S] (2^m,)` by the sum over the subsets of S, one player after another.
///
/// A cell meets the same additions in the same order whichever players outside it the table has.
void sum_subsets(double* table, int64_t m) {
  const int64_t size = int64_t(1) << m;
  if (m < 3) {
    for (int64_t k = 0; k < m; k++) {
      const int64_t half = int64_t(1) << k;
      for (int64_t block = 0; block < size; block += 2 * half)
        for (int64_t s = block; s < block + half; s++) table[s + half] += table[s];
    }
    return;
  }
  for (int64_t start = 0; start < size; start += 8) sum_eight(table + start);
  for (int64_t k = 3; k < m; k++) {
    const int64_t half = int64_t(1) << k;
    for (int64_t block = 0; block < size; block += 2 * half) add_range(table, block + half, block, half);
  }
}

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

/// A rule in vectors of `width` nodes, 4 or 8, the last one filled up with zeros: t, 1 - t and weights; `zero` are zeros.
struct Lanes {
  int64_t n_nodes, width;
  double *nodes, *rest, *weights, *zero, *below, *factor;
};

/// Add the values of all players of a leaf in the cell A at `width` nodes from `first` on to `out (m,)`, node after node.
template <int WIDTH>
EXACTSHAP_INLINE void add_cover_values(int64_t first, int64_t A, const double* b, int64_t m, const Lanes& lanes, double* out) {
  const double *const rest = lanes.rest + first, *const nodes = lanes.nodes + first;
  double *__restrict const below = lanes.below, *__restrict const factor = lanes.factor;
  double product[WIDTH];
  for (int q = 0; q < WIDTH; q++) product[q] = lanes.weights[first + q];
  for (int64_t j = 0; j < m; j++) {
    const double* const inside = (A >> j) & 1 ? nodes : lanes.zero;
    for (int q = 0; q < WIDTH; q++) {
      below[j * WIDTH + q] = product[q];
      factor[j * WIDTH + q] = rest[q] * b[j] + inside[q];
      product[q] *= factor[j * WIDTH + q];
    }
  }
  for (int q = 0; q < WIDTH; q++) product[q] = 1.0;
  for (int64_t j = m - 1; j >= 0; j--)
    for (int q = 0; q < WIDTH; q++) {
      below[j * WIDTH + q] *= product[q];
      product[q] *= factor[j * WIDTH + q];
    }
  const int64_t n = smaller(WIDTH, lanes.n_nodes - first);
  for (int64_t j = 0; j < m; j++) {
    double sum = out[j];
    for (int64_t q = 0; q < n; q++) sum += below[j * WIDTH + q];
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
  for (int64_t j = 0; j < m; j++) out[j] *= (A >> j) & 1 ? 1.0 - b[j] : -b[j];
}

/// Replace g in `P` by P, and write P + Y to `both`, on the subsets of m players.
void fill_sums(int64_t m, In<double, 1> weights, double* __restrict P, double* __restrict both) {
  const int64_t size = int64_t(1) << m;
  for (int64_t s = 0; s < size; s++) {
    const int64_t n = __builtin_popcountll(uint64_t(s));
    both[s] = P[s] * weights[n];
    P[s] *= n > 0 ? weights[n - 1] : 0.0;
  }
  sum_subsets(P, m);
  sum_subsets(both, m);
  for (int64_t s = 0; s < size; s++) both[s] += P[s];
}

/// Write the values of all players of a leaf in all cells to `out (m, stride)`.
void fill_background_values(const double* survival, int64_t m, In<double, 1> weights, const Scratch& scratch, double* out,
                            int64_t stride) {
  double *const P = scratch.one, *const both = scratch.two;
  for (int64_t s = 0; s < int64_t(1) << m; s++) P[s] = survival[s];
  fill_sums(m, weights, P, both);
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

/// Write the values of all players of a leaf in the cell A to `out (m,)`: sums over the subsets of A only.
EXACTSHAP_INLINE void background_values_of(int64_t A, const double* survival, int64_t m, In<double, 1> weights,
                                           const Scratch& scratch, double* out) {
  double *const P = scratch.one, *const both = scratch.two;
  int64_t* const inside = scratch.inside;
  int64_t size = 1;
  inside[0] = 0;
  for (int64_t j = 0; j < m; j++)
    if ((A >> j) & 1) {
      for (int64_t x = 0; x < size; x++) inside[size + x] = inside[x] | (int64_t(1) << j);
      size *= 2;
    }
  for (int64_t x = 0; x < size; x++) P[x] = survival[inside[x]];
  fill_sums(__builtin_popcountll(uint64_t(size - 1)), weights, P, both);
  int64_t bit = 1;
  for (int64_t j = 0; j < m; j++)
    if ((A >> j) & 1) {
      out[j] = P[size - 1] - both[size - 1 - bit];
      bit *= 2;
    } else {
      out[j] = P[size - 1] - both[size - 1];
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

/// Whether the arguments of both kernels belong together.
bool fit(const Tables& tables, const TableRows& rows, const Measure& measure, int64_t first_group, int64_t last_group, int64_t n_players) {
  const int64_t most = most_players(tables.leaves);
  if (!tables.fit() || !rows.fit(tables.groups) || !are_groups(first_group, last_group, tables.groups)) return false;
  if (measure.nodes.size[0] != measure.node_weights.size[0] || measure.weights.size[0] <= most) return false;
  return measure.weights.size[1] > most && most < 62 && rows.offsets.size[0] == 3 && rows.offsets[2] == n_players;
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
  auto values = context.empty<double>(most, n_cells);
  auto bit_of_node = context.zeros<int16_t>(tables.forest.value.size[0]);
  auto position = context.zeros<int64_t>(n_players);
  auto table = context.empty<double>(most_cells(first_group, last_group, rows));
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
        fill_background_values(survival, m, measure.weights[m], scratch, values.data, n_cells);
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
  for (int64_t k = 0; k < m; k++) product *= (A >> k) & 1 ? 1.0 : b[k];
  return product;
}

/// Room for one row, with sums of one group as `total (n_results,)`.
struct RowWork {
  Scratch scratch;
  Lanes lanes;
  double *values, *total;
};

/// Add leaf l's share in the cell A to the sums of one row.
EXACTSHAP_INLINE void add_cell(int64_t l, int64_t A, int64_t first, int64_t last, int64_t n_players, const Tables& tables,
                               const Measure& measure, const RowWork& work) {
  const Leaves& leaves = tables.leaves;
  const int64_t m = leaves.n_players(l), n_outputs = tables.forest.value.size[1];
  const double* const b = leaves.ratio.data + leaves.start[l];
  const int32_t* const player = leaves.player.data + leaves.start[l];
  const In<double, 1> value = tables.forest.value[leaves.node[l]];
  double passing;
  if (tables.has_background()) {
    const double* const survival = tables.survival_of(l).data;
    passing = survival[A];
    background_values_of(A, survival, m, measure.weights[m], work.scratch, work.values);
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
                                const Measure& measure, const RowWork& work, double* out) {
  const Groups& groups = tables.groups;
  const int64_t offset = tables.forest.tree_start[groups.tree[g]], first = groups.first_output[g], last = groups.last_output[g];
  for (int64_t i = groups.leaf_start[g]; i < groups.leaf_start[g + 1]; i++) {
    const int64_t l = groups.leaf[i];
    add_cell(l, cell_of(l, tables.leaves, decided, offset), first, last, n_players, tables, measure, work);
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
  const auto zero = context.zeros<double>(width);
  if (context.failed()) return {};
  for (int64_t q = 0; q < n; q++) {
    rule[0][q] = measure.nodes[q], rule[1][q] = 1.0 - measure.nodes[q];
    rule[2][q] = measure.node_weights[q];
  }
  return {n, width, rule[0].data, rule[1].data, rule[2].data, zero.data, room[0].data, room[1].data};
}

/// Add what fill_single_tables and sweep would add to `out (n_rows, n_results)`, without tables: cell by cell.
Status sweep_few(In<double, 2> columns, Tables tables, TableRows rows, Measure measure, int64_t first_group, int64_t last_group,
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
  const RowWork work{{one.data, two.data, inside.data}, lanes_of(measure, most, context), values.data, total.data};
  if (context.failed()) return Status::no_memory;
  int64_t tree = -1;
  for (int64_t g = first_group; g < last_group; g++) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t r = 0; r < n_rows && groups.tree[g] != tree; r++)
      if (!decide_row(columns.data + r, n_rows, columns.size[0], tree_start[groups.tree[g]], tree_start[groups.tree[g] + 1],
                      tables.forest.nodes, decisions[r].data))
        return Status::fault;
    tree = groups.tree[g];
    for (int64_t r = 0; r < n_rows; r++) add_group(g, decisions[r].data, n_players, tables, rows, measure, work, out[r].data);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, fill_single_tables, fill_single_tables)
EXACTSHAP_KERNEL(tree_solver, sweep_few, sweep_few)
