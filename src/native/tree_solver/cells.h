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

/// p(|S| - 1) and p(|S|) for all sets S of up to m players, written out when leaves of m players are first met.
class SubsetWeights {
 public:
  SubsetWeights(In<double, 2> weights, int64_t most, Context& context) : weights_(weights) {
    of_sets_ = context.empty<double>(int64_t(2), int64_t(2) << most);
    is_ready_ = context.zeros<bool>(most + 1);
  }
  /// The table of p(|S| - 1), 0 for the empty set; that of p(|S|) is `distance()` numbers further.
  EXACTSHAP_INLINE const double* of(int64_t m) const {
    double *const before = of_sets_[0].data + (int64_t(1) << m), *const of_set = before + distance();
    for (int64_t s = 0; s < int64_t(1) << m && !is_ready_[m]; s++) {
      const int64_t n = __builtin_popcountll(uint64_t(s));
      before[s] = n > 0 ? weights_[m][n - 1] : 0.0, of_set[s] = weights_[m][n];
    }
    is_ready_[m] = true;
    return before;
  }
  EXACTSHAP_INLINE int64_t distance() const { return of_sets_.size[1]; }

 private:
  In<double, 2> weights_;
  Array<double, 2> of_sets_;
  Array<bool, 1> is_ready_;
};

/// Room for one leaf: tables of products or sums, the sets inside a cell.
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

/// Replace g in `P` by P, and write P + Y to `both`, on the subsets of n players of a leaf of m.
EXACTSHAP_INLINE void fill_sums(int64_t n, int64_t m, const SubsetWeights& weights, double* __restrict P, double* __restrict both) {
  const int64_t size = int64_t(1) << n;
  const double *const before = weights.of(m), *const of_set = before + weights.distance();
  for (int64_t s = 0; s < size; s++) {
    both[s] = P[s] * of_set[s];
    P[s] *= before[s];
  }
  sum_cell_subsets(P, n);
  sum_cell_subsets(both, n);
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
