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

#pragma once

#include "../common/lanes.h"
#include "tables.h"

EXACTSHAP_BEGIN

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
inline void sum_cell_subsets(double* table, int64_t m) {
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

/// Replace g in `P` by P, and write P + Y to `both`, on the subsets of m players.
inline void fill_sums(int64_t m, In<double, 1> weights, double* __restrict P, double* __restrict both) {
  const int64_t size = int64_t(1) << m;
  for (int64_t s = 0; s < size; s++) {
    const int64_t n = __builtin_popcountll(uint64_t(s));
    both[s] = P[s] * weights[n];
    P[s] *= n > 0 ? weights[n - 1] : 0.0;
  }
  sum_cell_subsets(P, m);
  sum_cell_subsets(both, m);
  for (int64_t s = 0; s < size; s++) both[s] += P[s];
}

/// Whether the arguments of both kernels belong together.
inline bool fit(const Tables& tables, const TableRows& rows, const Measure& measure, int64_t first_group, int64_t last_group, int64_t n_players) {
  const int64_t most = most_players(tables.leaves);
  if (!tables.fit() || !rows.fit(tables.groups) || !are_groups(first_group, last_group, tables.groups)) return false;
  if (measure.nodes.size[0] != measure.node_weights.size[0] || measure.weights.size[0] <= most) return false;
  return measure.weights.size[1] > most && most < 62 && rows.offsets.size[0] == 3 && rows.offsets[2] == n_players;
}

EXACTSHAP_END
