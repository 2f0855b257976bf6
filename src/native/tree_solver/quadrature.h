// Quadrature along the paths of deep trees with cover ratios: memory linear in the depth, any number of players.
//
// A leaf is the product of the factors F_j(t) = a_j t + (1 - t) b_j over the distinct players of its path: a says whether the row
// satisfies all splits on j, b is the product of their cover ratios. Nodes lie inside (0, 1), where a factor is zero only if
// a = b = 0, and then nothing is ever divided by it. Below an edge on player j, in one tree, let S be the sum over leaves of
// c_l prod_k F_lk. Then
//
//   phi_j = sum_q omega_q sum_{e on j} ((a - b) / F_j |_e - (a - b) / F_j |_{above e}) S_e(t_q)
//
// Down the tree products are multiplied, up the tree sums are added: O(n_splits n_nodes) per row. Many rows go together in
// paths.cpp, one at a time in rows.cpp: the same operations in the same order, so the same bits.
#pragma once

#include "steps.h"

EXACTSHAP_BEGIN

enum State : int64_t { LEFT = 0, RIGHT = 1, FAILED = 2 };  // a row at a split: its side, or it failed an earlier split on the player
enum RuleRow { NODES, REST, LOST, WEIGHTS };               // rows of a rule: t, 1 - t, -1 / (1 - t), weights

/// The player's factor F where the row passes all splits so far.
EXACTSHAP_INLINE double passed(double t, double rest, double b) { return t + rest * b; }

/// The change of (a - b) / F along the edge that a row takes; `inverse` and `before` are 1 / F below and above.
EXACTSHAP_INLINE double gain(double b, double inverse, double outside, double before) {
  return rounded((1.0 - b) * inverse) - rounded((1.0 - outside) * before);
}

/// The same along the edge that it does not take: there (a - b) / F = -1 / (1 - t) whatever b is.
EXACTSHAP_INLINE double loss(double lost, double outside, double before) { return lost - (1.0 - outside) * before; }

EXACTSHAP_END
