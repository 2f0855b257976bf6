// Leaves with linear functions: the game of one leaf, and what of a background enters it.
//
// A row x and background rows z reach a leaf only as the sets F and E of its players whose splits they fail. A function has one *part*
// for each player k that holds columns of it,
//
//   l_k(x) = sum over its columns j of player k of c_j x_j.
//
// A column that is missing leaves the function out: its player then counts as failed. With disjoint E and F, in the hybrid of coalition S
//
//   v(S) = [E in S] [S n F empty] (c_0 + sum_{k in S} l_k(x) + sum_{k not in S} l_k(z)),
//
// so that players of E contribute l_k(x), players of F l_k(z), and each other player k adds a game of its own, (l_k(x) - l_k(z)) [E + k in S]
// [S n F empty]. Background rows that fail the same players enter by their weight N(E) and the moments M_k(E) = sum_z w_z l_k(z) alone.
#pragma once

#include "groups.h"

EXACTSHAP_BEGIN

constexpr int64_t PATTERN_BITS = 64;

/// Leaf l's parts are part_start[l] to part_start[l + 1] - 1, part k's terms term_start[k] to term_start[k + 1] - 1. `bit` is that of the
/// part's player among the leaf's players, 0 where it has none: it is never failed there.
struct LeafParts {
  In<int64_t, 1> part_start;
  In<int32_t, 1> player;
  In<uint64_t, 1> bit;
  In<int64_t, 1> term_start;
  In<int32_t, 1> column;
  In<double, 1> coefficient, offset;
  EXACTSHAP_FIELDS(part_start, player, bit, term_start, column, coefficient, offset)

  EXACTSHAP_INLINE int64_t count(int64_t l) const { return part_start[l + 1] - part_start[l]; }
  EXACTSHAP_INLINE int64_t most() const {
    int64_t most = 0;
    for (int64_t l = 0; l < offset.size[0]; l++) most = count(l) > most ? count(l) : most;
    return most;
  }
  EXACTSHAP_INLINE bool fit(const Leaves& leaves, int64_t n_features) const {
    const int64_t n = leaves.count(), n_parts = player.size[0];
    if (offset.size[0] != n || part_start.size[0] != n + 1 || part_start[n] != n_parts || bit.size[0] != n_parts) return false;
    if (term_start.size[0] != n_parts + 1 || column.size[0] != term_start[n_parts] || coefficient.size[0] != column.size[0]) return false;
    for (int64_t l = 0; l < n; l++)
      if (leaves.n_players(l) > PATTERN_BITS) return false;
    return lie_within(column, n_features);
  }
  /// l_k of one row, `x[column * stride]`, without missing columns; its magnitude is added to `size`, the part's bit to `failed` where a
  /// column is missing.
  EXACTSHAP_INLINE double part(int64_t k, const double* x, int64_t stride, double& size, uint64_t& failed) const {
    double sum = 0.0;
    for (int64_t e = term_start[k]; e < term_start[k + 1]; e++) {
      const double value = x[column[e] * stride];
      if (value != value) {
        failed |= bit[k];
        continue;
      }
      sum += coefficient[e] * value;
      size += fabs(coefficient[e] * value);
    }
    return sum;
  }
};

/// The distinct sets E of leaf l are start[l] to start[l + 1] - 1, with N(E), the magnitudes that were added up, and the moments of all
/// parts, `moment[moment_start[l] + (i - start[l]) * n_parts + k]`.
struct Patterns {
  In<int64_t, 1> start, moment_start;
  In<uint64_t, 1> failed;
  In<double, 1> weight, size, moment;
  EXACTSHAP_FIELDS(start, moment_start, failed, weight, size, moment)

  EXACTSHAP_INLINE bool fit(const Leaves& leaves, const LeafParts& parts) const {
    const int64_t n = leaves.count();
    if (start.size[0] != n + 1 || moment_start.size[0] != n + 1 || failed.size[0] != start[n]) return false;
    if (weight.size[0] != start[n] || size.size[0] != start[n] || moment.size[0] != moment_start[n]) return false;
    for (int64_t l = 0; l < n; l++)
      if (moment_start[l + 1] - moment_start[l] != (start[l + 1] - start[l]) * parts.count(l)) return false;
    return true;
  }
};

/// Write which players of leaf l each of n rows fails by its splits to `failed`; `decisions` are those of its tree, from node `offset` on.
template <class Code>
EXACTSHAP_APART void fail_rows(int64_t l, int64_t offset, Array<uint8_t, 2> decisions, const Leaves& leaves, int64_t n, Code* __restrict failed) {
  for (int64_t i = 0; i < n; i++) failed[i] = 0;
  for (int64_t e = leaves.edge_start[l]; e < leaves.edge_start[l + 1]; e++) {
    const uint8_t* const decided = decisions[leaves.edge_node[e] - offset].data;
    const Code bit = Code(Code(1) << leaves.edge_slot[e]);
    const uint8_t passes = leaves.edge_left[e] ? 1 : 0;
    for (int64_t i = 0; i < n; i++) failed[i] = Code(failed[i] | (Code(-Code(decided[i] ^ passes)) & bit));
  }
}

/// Call `meet(l, start, n, failed)` for every leaf and `block` rows at a time, with the players that each row fails by its splits.
///
/// Tree after tree: the tables of one stay in the second cache while the rows pass by.
template <class Code, class Meet>
Status meet_leaves(In<double, 2> columns, const Forest& forest, const Leaves& leaves, int64_t block, Context& context, Meet meet) {
  const int64_t n_rows = columns.size[1], width = smaller(block, n_rows);
  auto decisions = context.zeros<uint8_t>(forest.largest_tree(), width);
  auto failed = context.empty<Code>(width);
  if (context.failed()) return Status::no_memory;
  int64_t first_leaf = 0;
  for (int64_t k = 0; k < forest.n_trees(); k++) {
    const int64_t first = forest.tree_start[k], last = forest.tree_start[k + 1];
    int64_t last_leaf = first_leaf;
    while (last_leaf < leaves.count() && leaves.node[last_leaf] < last) last_leaf++;
    for (int64_t start = 0; start < n_rows && first_leaf < last_leaf; start += block) {
      const int64_t n = smaller(block, n_rows - start);
      for (int64_t q = first; q < last; q++) {
        const int64_t j = forest.nodes.feature[q];
        if (j >= columns.size[0]) return Status::fault;
        if (j >= 0) decide(columns[j].data + start, q, forest.nodes, decisions[q - first].data, n);
      }
      for (int64_t l = first_leaf; l < last_leaf; l++) {
        if (context.interrupted()) return Status::interrupted;
        fail_rows(l, first, decisions, leaves, n, failed.data);
        meet(l, start, n, failed.data);
      }
    }
    first_leaf = last_leaf;
  }
  return first_leaf == leaves.count() || n_rows == 0 ? Status::done : Status::fault;
}

EXACTSHAP_END
