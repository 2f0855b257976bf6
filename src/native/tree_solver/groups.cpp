// Layout of an ensemble for its solvers: which subtrees share one table, and which bits a row's code in it is made of.

#include "groups.h"

EXACTSHAP_BEGIN

namespace {

constexpr double TOUCH = 3.0;  // what a group costs a row besides its players, in table look-ups: its code, full value and scale

/// Write how many edges and distinct players are above each node, how many splits and leaves below; parents come first.
Status count_below(In<int32_t, 1> parent, In<int32_t, 1> player, Out<int32_t, 1> depth, Out<int32_t, 1> distinct,
                   Out<int32_t, 1> internal, Out<int32_t, 1> leaves) {
  const int64_t n = parent.size[0];
  EXACTSHAP_REQUIRE(player.size[0] == n && depth.size[0] == n && distinct.size[0] == n && internal.size[0] == n);
  EXACTSHAP_REQUIRE(leaves.size[0] == n);
  for (int64_t q = 0; q < n; q++) {
    internal[q] = player[q] >= 0 ? 1 : 0;
    leaves[q] = 1 - internal[q];
    const int64_t p = parent[q];
    if (p < 0) {
      depth[q] = distinct[q] = 0;
      continue;
    }
    if (p >= q) return Status::fault;
    depth[q] = depth[p] + 1, distinct[q] = distinct[p] + 1;
    for (int64_t above = parent[p]; above >= 0; above = parent[above])
      if (player[above] == player[p]) {
        distinct[q] -= 1;
        break;
      }
  }
  for (int64_t q = n - 1; q >= 0; q--)
    if (parent[q] >= 0) {
      internal[parent[q]] += internal[q];
      leaves[parent[q]] += leaves[q];
    }
  return Status::done;
}

/// Replace the ones of `out` by the products of the factors of all edges above each node; parents come first.
Status multiply_down(In<int32_t, 1> parent, In<double, 1> factors, Out<double, 1> out) {
  EXACTSHAP_REQUIRE(factors.size[0] == parent.size[0] && out.size[0] == parent.size[0]);
  for (int64_t q = 0; q < parent.size[0]; q++)
    if (parent[q] >= 0) {
      if (parent[q] >= q) return Status::fault;
      out[q] = out[parent[q]] * factors[q];
    }
  return Status::done;
}

/// Count the distinct players above and below a node; `stamp` remembers which were seen for `node`.
int64_t count_players(int64_t node, const Structure& shape, In<int32_t, 1> left, In<int32_t, 1> right, Array<int64_t, 1> stamp,
                      Array<int64_t, 1> stack) {
  int64_t count = 0;
  const auto see = [&](int64_t q) {
    const int64_t j = shape.player[q];
    count += stamp[j] != node;
    stamp[j] = node;
  };
  for (int64_t p = shape.parent[node]; p >= 0; p = shape.parent[p]) see(p);
  int64_t size = 1;
  stack[0] = node;
  while (size > 0) {
    const int64_t p = stack[--size];
    if (shape.player[p] < 0) continue;
    see(p);
    stack[size] = right[p], stack[size + 1] = left[p];
    size += 2;
  }
  return count;
}

/// One more than the largest player that nodes split on.
int64_t count_of(In<int32_t, 1> player) {
  int64_t largest = -1;
  for (int64_t q = 0; q < player.size[0]; q++) largest = player[q] > largest ? player[q] : largest;
  return largest + 1;
}

/// What a group of leaves costs, see mark_groups.
EXACTSHAP_INLINE double group_cost(int64_t n_players, int64_t bits, int64_t n_leaves, double n_rows) {
  return n_rows * (double(n_players) + TOUCH) + double(int64_t(1) << bits) * double(n_players) * double(n_leaves);
}

/// Cut each tree into subtrees of least cost; set `is_root`, `n_players` and `cost`, infinite where nothing fits:
///
///   cost = n_rows (n_players + 3) + 2^bits n_players n_leaves
///
/// One large table needs fewer look-ups, many small ones are filled faster; `n_rows` balances the two. With `leave_out`, leaves of too many
/// players are in no group and cost nothing.
Status mark_groups(Structure shape, In<int32_t, 1> left, In<int32_t, 1> right, int64_t max_bits, double n_rows, bool leave_out,
                   Out<double, 1> cost, Out<int32_t, 1> n_players, Out<bool, 1> is_root, Context& context) {
  const int64_t n = cost.size[0];
  EXACTSHAP_REQUIRE(shape.fit(n) && left.size[0] == n && right.size[0] == n && n_players.size[0] == n && is_root.size[0] == n);
  EXACTSHAP_REQUIRE(max_bits >= 0 && max_bits < 62);
  auto stamp = context.empty<int64_t>(count_of(shape.player)), stack = context.empty<int64_t>(n + 1);
  if (context.failed()) return Status::no_memory;
  stamp.fill(-1);
  for (int64_t q = n - 1; q >= 0; q--) {
    const int64_t distinct = shape.distinct[q], bits = distinct + shape.internal[q];
    const double alone = leave_out && bits > max_bits ? 0.0 : double(INFINITY);
    const double apart = shape.player[q] < 0 ? alone : cost[left[q]] + cost[right[q]];
    double together = double(INFINITY);
    if (bits <= max_bits && group_cost(distinct, bits, shape.leaves[q], n_rows) <= apart) {  // it has at least the players above
      n_players[q] = int32_t(shape.player[q] >= 0 ? count_players(q, shape, left, right, stamp, stack) : distinct);
      together = group_cost(n_players[q], bits, shape.leaves[q], n_rows);
    }
    cost[q] = apart < together ? apart : together;
    is_root[q] = together <= apart;
  }
  for (int64_t q = 0; q < n; q++) {
    const int64_t p = shape.parent[q];
    if (p >= 0 && (is_root[p] || cost[p] < 0.0)) {
      is_root[q] = false;
      cost[q] = -1.0;  // below a root
    }
  }
  return Status::done;
}

/// 2^n; more than 2^60 are out of reach anyway.
EXACTSHAP_INLINE double cells_of(int64_t n) { return double(int64_t(1) << smaller(n, 60)); }

/// Add the look-ups, the filling, the cells of tables and those of leaves of each tree to `out (4, n_trees)`.
Status sum_forecast(In<int64_t, 1> tree_start, Structure shape, In<bool, 1> is_root, In<int32_t, 1> n_players, double leaf_cell,
                    Out<double, 2> out) {
  const int64_t n = is_root.size[0], n_trees = out.size[1];
  EXACTSHAP_REQUIRE(shape.fit(n) && n_players.size[0] == n && out.size[0] == 4 && tree_start.size[0] == n_trees + 1);
  EXACTSHAP_REQUIRE(tree_start[0] >= 0 && tree_start[n_trees] <= n);
  for (int64_t k = 0; k < n_trees; k++)
    for (int64_t q = tree_start[k]; q < tree_start[k + 1]; q++) {
      const int64_t distinct = shape.distinct[q];
      if (shape.player[q] < 0) {
        const double cells = cells_of(distinct);
        out[1][k] += leaf_cell * cells * double(distinct) * (double(distinct) + 1.0);
        out[3][k] += cells;
      }
      if (is_root[q]) {
        const double cells = cells_of(distinct + shape.internal[q]);
        out[0][k] += double(n_players[q]) + TOUCH;
        out[1][k] += cells * double(n_players[q]) * double(shape.leaves[q]);
        out[2][k] += cells * (double(n_players[q]) + 2.0);
      }
    }
  return Status::done;
}

/// Groups whose roots and offsets are set, the rest of which is to be filled.
struct EmptyGroups {
  In<int64_t, 1> root, tree, n_above;
  Out<int64_t, 1> n_bits;
  In<int64_t, 1> leaf_start;
  Out<int64_t, 1> leaf;
  In<int64_t, 1> condition_start;
  Out<int64_t, 1> condition_node;
  Out<bool, 1> condition_left;
  Out<int16_t, 1> condition_bit;
  Out<int64_t, 1> first_output, last_output;
  EXACTSHAP_FIELDS(root, tree, n_above, n_bits, leaf_start, leaf, condition_start, condition_node, condition_left, condition_bit,
                   first_output, last_output)

  Groups filled() const {
    return {root, tree, n_above, n_bits, leaf_start, leaf, condition_start, condition_node, condition_left, condition_bit,
            first_output, last_output};
  }
};

/// The links of the nodes.
struct Links {
  In<int32_t, 1> parent, player, left, right;
};

/// Fill the conditions above group g: the players of the edges from the root down become bits. Returns how many there are.
int64_t fill_above(int64_t g, const EmptyGroups& groups, const Links& links, Array<int64_t, 1> bit_of) {
  const int64_t first = groups.condition_start[g], last = first + groups.n_above[g];
  int64_t c = last, below = groups.root[g];
  for (int64_t p = links.parent[below]; p >= 0; below = p, p = links.parent[p]) {
    c--;
    groups.condition_node[c] = p;
    groups.condition_left[c] = links.left[p] == below;
  }
  int64_t bits = 0;
  for (c = first; c < last; c++) {
    const int64_t j = links.player[groups.condition_node[c]];
    if (bit_of[j] < 0) bit_of[j] = bits++;
    groups.condition_bit[c] = int16_t(bit_of[j]);
  }
  for (c = first; c < last; c++) bit_of[links.player[groups.condition_node[c]]] = -1;
  return bits;
}

/// List the splits below the root of group g as bits from `bits` on, and its leaves; bound its outputs.
void fill_subtree(int64_t g, const EmptyGroups& groups, int64_t bits, const Links& links, In<int64_t, 1> leaf_of_node,
                  In<double, 2> value, Array<int64_t, 1> stack) {
  int64_t c = groups.condition_start[g] + groups.n_above[g], slot = groups.leaf_start[g];
  int64_t first = value.size[1], last = 0, size = 1;
  stack[0] = groups.root[g];
  while (size > 0) {
    const int64_t p = stack[--size];
    if (links.player[p] >= 0) {
      groups.condition_node[c] = p, groups.condition_left[c] = true, groups.condition_bit[c] = int16_t(bits);
      c++, bits++;
      stack[size] = links.right[p], stack[size + 1] = links.left[p];
      size += 2;
      continue;
    }
    groups.leaf[slot++] = leaf_of_node[p];
    for (int64_t o = 0; o < value.size[1]; o++)
      if (value[p][o] != 0.0) {
        first = o < first ? o : first;
        last = o + 1 > last ? o + 1 : last;
      }
  }
  groups.n_bits[g] = bits;
  groups.first_output[g] = last < first ? last : first;
  groups.last_output[g] = last;
}

/// Fill conditions, leaves and outputs of `groups` whose roots and offsets are set.
Status fill_groups(EmptyGroups groups, Structure shape, In<int32_t, 1> left, In<int32_t, 1> right, In<int64_t, 1> leaf_of_node,
                   In<double, 2> value, Context& context) {
  const int64_t n = left.size[0];
  EXACTSHAP_REQUIRE(groups.filled().fit() && shape.fit(n) && right.size[0] == n && leaf_of_node.size[0] == n && value.size[0] == n);
  auto bit_of = context.empty<int64_t>(count_of(shape.player)), stack = context.empty<int64_t>(n + 1);
  if (context.failed()) return Status::no_memory;
  bit_of.fill(-1);
  const Links links{shape.parent, shape.player, left, right};
  for (int64_t g = 0; g < groups.root.size[0]; g++) {
    const int64_t root = groups.root[g];
    EXACTSHAP_REQUIRE(root >= 0 && root < n && groups.n_above[g] == shape.depth[root]);
    EXACTSHAP_REQUIRE(groups.condition_start[g + 1] - groups.condition_start[g] == shape.depth[root] + shape.internal[root]);
    EXACTSHAP_REQUIRE(groups.leaf_start[g + 1] - groups.leaf_start[g] == shape.leaves[root]);
    fill_subtree(g, groups, fill_above(g, groups, links, bit_of), links, leaf_of_node, value, stack);
  }
  return Status::done;
}

/// Write which column of the result each table row of each group adds to; with `write` false only the offsets.
///
/// The rows are the sets met on the group's leaves, each with the group's outputs, then v(D) of the outputs, then the scale.
Status fill_columns(Groups groups, Leaves leaves, int64_t order, In<int64_t, 2> binomials, In<int64_t, 1> offsets, int64_t n_outputs,
                    bool write, Out<int64_t, 1> column_start, Out<int64_t, 1> columns, Context& context) {
  EXACTSHAP_REQUIRE(groups.fit() && leaves.fit() && order >= 1 && offsets.size[0] == order + 2 && binomials.size[1] == order + 1);
  EXACTSHAP_REQUIRE(column_start.size[0] == groups.count() + 1);
  EXACTSHAP_REQUIRE(!write || columns.size[0] == column_start[groups.count()]);
  const int64_t n_sets = offsets[order + 1];
  auto stamp = context.empty<int64_t>(n_sets);
  if (context.failed()) return Status::no_memory;
  stamp.fill(-1);
  for (int64_t g = 0; g < groups.count(); g++) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t first = groups.first_output[g], last = groups.last_output[g];
    int64_t at = column_start[g];
    for (int64_t i = groups.leaf_start[g]; i < groups.leaf_start[g + 1]; i++) {
      const int64_t l = groups.leaf[i], m = leaves.n_players(l);
      for (int64_t size = 1; size <= smaller(order, m); size++)
        for (int64_t mask = (int64_t(1) << size) - 1; mask < int64_t(1) << m; mask = next_mask(mask)) {
          const int64_t rank = set_rank(mask, size, leaves.player.data + leaves.start[l], binomials, offsets);
          if (stamp[rank] == g) continue;
          stamp[rank] = g;
          if (write)
            for (int64_t o = first; o < last; o++) columns[at + o - first] = rank * n_outputs + o;
          at += last - first;
        }
    }
    if (!write) {
      column_start[g + 1] = at - column_start[g] + last - first + 1;
      continue;
    }
    for (int64_t o = first; o < last; o++) columns[at + o - first] = n_sets * n_outputs + o;
    columns[at + last - first] = (n_sets + 1) * n_outputs;
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, count_below, count_below)
EXACTSHAP_KERNEL(tree_solver, multiply_down, multiply_down)
EXACTSHAP_KERNEL(tree_solver, mark_groups, mark_groups)
EXACTSHAP_KERNEL(tree_solver, sum_forecast, sum_forecast)
EXACTSHAP_KERNEL(tree_solver, fill_groups, fill_groups)
EXACTSHAP_KERNEL(tree_solver, fill_columns, fill_columns)
