// What tables of trees are made of. A leaf is the game v_A(S) = c [S in A] g(S): A are the players on its path whose splits the row
// satisfies, g is how much of the background passes the splits of the others. The row enters through A only.
#pragma once

#include "groups.h"

EXACTSHAP_BEGIN

/// Where rows go before they meet the groups: the splits above any group, parents first, with the bit of each one's player in the
/// codes of the groups below; which splits and groups are each tree's. `is_plain`: numerical splits only, zero is a number.
/// `walk_feature` and `walk_threshold` are those of all splits of a tree, of the ones above groups and then of those inside, group by
/// group: these begin at `inside_start (n_groups + 1,)`, less where the tree's first group has them.
struct Routes {
  In<int64_t, 1> group_start, split_start;
  In<int32_t, 1> split;
  In<int16_t, 1> bit;
  In<int64_t, 1> walk_start, inside_start;
  In<int32_t, 1> walk_feature;
  In<double, 1> walk_threshold;
  int64_t n_features;
  bool is_plain, single_precision;
  EXACTSHAP_FIELDS(group_start, split_start, split, bit, walk_start, inside_start, walk_feature, walk_threshold, n_features, is_plain,
                   single_precision)

  EXACTSHAP_INLINE int64_t most_groups() const {
    int64_t most = 0;
    for (int64_t k = 0; k + 1 < group_start.size[0]; k++)
      most = group_start[k + 1] - group_start[k] > most ? group_start[k + 1] - group_start[k] : most;
    return most;
  }
  /// The most splits of a tree.
  EXACTSHAP_INLINE int64_t longest_walk() const {
    int64_t most = 0;
    for (int64_t k = 0; k + 1 < walk_start.size[0]; k++) most = walk_start[k + 1] - walk_start[k] > most ? walk_start[k + 1] - walk_start[k] : most;
    return most;
  }
  EXACTSHAP_INLINE bool fit(int64_t n_trees, int64_t n_groups) const {
    if (walk_start.size[0] != n_trees + 1 || inside_start.size[0] != n_groups + 1 || walk_start[0] != 0) return false;
    if (walk_feature.size[0] != walk_start[n_trees] || walk_threshold.size[0] != walk_start[n_trees]) return false;
    return group_start.size[0] == n_trees + 1 && split_start.size[0] == n_trees + 1 && group_start[n_trees] == n_groups &&
           split.size[0] == split_start[n_trees] && bit.size[0] == split.size[0];
  }
};

/// An ensemble cut into groups. `background_table` holds g of all leaves, leaf l's from `background_start[l]` on; empty for cover ratios.
struct Tables {
  Forest forest;
  Groups groups;
  Routes routes;
  Leaves leaves;
  In<int64_t, 1> background_start;
  In<double, 1> background_table;
  EXACTSHAP_FIELDS(forest, groups, routes, leaves, background_start, background_table)

  EXACTSHAP_INLINE bool has_background() const { return background_table.size[0] > 0; }
  EXACTSHAP_INLINE In<double, 1> survival_of(int64_t l) const { return background_table.slice(background_start[l], background_start[l + 1]); }
  EXACTSHAP_INLINE bool fit() const {
    return forest.fit() && groups.fit() && routes.fit(forest.n_trees(), groups.count()) && leaves.fit() &&
           (!has_background() ||
            (background_start.size[0] == leaves.count() + 1 && background_start[leaves.count()] == background_table.size[0]));
  }
};

/// Which column of the result each table row adds to, ascending in each group, and where each group's cells start: `(n_codes, n_columns)`,
/// code after code. `masks (n_groups, n_registers)` tells the same columns, eight to a register, as bits; none where there are many.
struct TableRows {
  In<int64_t, 1> column_start, columns, table_start;
  In<uint8_t, 2> masks;
  In<int64_t, 2> binomials;
  In<int64_t, 1> offsets;
  EXACTSHAP_FIELDS(column_start, columns, table_start, masks, binomials, offsets)

  EXACTSHAP_INLINE bool fit(const Groups& groups) const {
    const int64_t n = groups.count();
    return column_start.size[0] == n + 1 && table_start.size[0] == n + 1 && columns.size[0] == column_start[n] &&
           masks.size[0] == n;
  }
  EXACTSHAP_INLINE int64_t n_columns(int64_t g) const { return column_start[g + 1] - column_start[g]; }
};

/// Whether `first` to `last - 1` are groups.
EXACTSHAP_INLINE bool are_groups(int64_t first, int64_t last, const Groups& groups) {
  return first >= 0 && first <= last && last <= groups.count();
}

/// The most players of a leaf, and the most bits of a group.
EXACTSHAP_INLINE int64_t most_players(const Leaves& leaves) {
  int64_t most = 0;
  for (int64_t l = 0; l < leaves.count(); l++) most = leaves.n_players(l) > most ? leaves.n_players(l) : most;
  return most;
}
EXACTSHAP_INLINE int64_t most_bits(const Groups& groups) {
  int64_t most = 0;
  for (int64_t g = 0; g < groups.count(); g++) most = groups.n_bits[g] > most ? groups.n_bits[g] : most;
  return most;
}

/// Write g(S) = prod_{k not in S} b_k for all S of the players with the cover ratios `b (m,)` to `out (2^m,)`.
EXACTSHAP_INLINE void fill_cover_survival(const double* b, int64_t m, double* __restrict out) {
  out[0] = 1.0;
  for (int64_t k = 0; k < m; k++) {
    const int64_t half = int64_t(1) << k;
    const double ratio = b[k];
    for (int64_t s = 0; s < half; s++) {
      out[half + s] = out[s];
      out[s] *= ratio;
    }
  }
}

/// Note for each split inside group g which bit it has.
EXACTSHAP_INLINE void note_bits(int64_t g, const Groups& groups, Array<int16_t, 1> bit_of_node) {
  for (int64_t c = groups.condition_start[g] + groups.n_above[g]; c < groups.condition_start[g + 1]; c++)
    bit_of_node[groups.condition_node[c]] = groups.condition_bit[c];
}

/// Write which players of leaf l a row of each code of group g satisfies, as a mask, to `codes (2^bits,)`.
inline void fill_leaf_codes(int64_t g, int64_t l, const Groups& groups, const Leaves& leaves, Array<int16_t, 1> bit_of_node,
                            Array<int64_t, 1> codes) {
  codes.fill((int64_t(1) << leaves.n_players(l)) - 1);
  const int64_t first = leaves.edge_start[l], n_codes = codes.size[0];
  for (int64_t e = first; e < leaves.edge_start[l + 1]; e++) {
    const bool above = e - first < groups.n_above[g];
    const int64_t bit = above ? groups.condition_bit[groups.condition_start[g] + e - first] : bit_of_node[leaves.edge_node[e]];
    const int64_t passes = above || leaves.edge_left[e] ? 1 : 0, kept = ~(int64_t(1) << leaves.edge_slot[e]);
    for (int64_t code = 0; code < n_codes; code++) codes[code] &= ((code >> bit) & 1) != passes ? kept : -1;
  }
}

/// The most cells of a group whose tables begin at `start (n_groups + 1,)`.
EXACTSHAP_INLINE int64_t most_cells(int64_t first_group, int64_t last_group, In<int64_t, 1> start) {
  int64_t most = 0;
  for (int64_t g = first_group; g < last_group; g++) {
    const int64_t n_cells = start[g + 1] - start[g];
    most = n_cells > most ? n_cells : most;
  }
  return most;
}

/// Write a table that was filled row by row, `table (n_columns, n_codes)`, to `out (n_codes, n_columns)`: what belongs to one code
/// lies together, so that one row touches a cache line or two of each group.
EXACTSHAP_APART inline void turn_table(const double* table, int64_t n_columns, int64_t n_codes, double* __restrict out) {
  for (int64_t code = 0; code < n_codes; code++)
    for (int64_t c = 0; c < n_columns; c++) out[code * n_columns + c] = table[c * n_codes + code];
}

/// Add v(D) of the outputs and the scale of one leaf: the full coalition survives where all its players are satisfied.
inline void add_ends(Array<int64_t, 1> codes, const double* survival, int64_t m, In<double, 1> value, int64_t first, int64_t last,
                     double* __restrict out) {
  const int64_t everyone = (int64_t(1) << m) - 1, n_codes = codes.size[0];
  for (int64_t o = first; o < last; o++, out += n_codes)
    for (int64_t code = 0; code < n_codes; code++)
      if (codes[code] == everyone) out[code] += value[o];
  const double magnitude = largest(value);
  for (int64_t code = 0; code < n_codes; code++) out[code] += magnitude * survival[codes[code]];
}

/// Replace `table[S] (2^m,)` by the sum over subsets that agree with S on the players of the mask `skip`.
inline void sum_subsets(double* table, int64_t m, int64_t skip) {
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

/// Write the value of the set T in the game [S in A] g(S) for every A of m players to `out (2^m,)`:
///
///   phi_T(A) = (-1)^{|T \ A|} sum_{S in A \ T} p(|S|) Delta_{T n A} g(S)
///
/// One pass per player: players of T are differenced, (g_0, g_1) -> (-g_0, g_1 - g_0), the others are summed over subsets.
inline void fill_set_values(const double* survival, int64_t m, int64_t T, In<double, 1> weights, double* __restrict out) {
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

EXACTSHAP_END
