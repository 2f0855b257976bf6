// Quadrature over strips of terms of functional games: absent factors are 1, so that a factor at a node is F = 1 + t (a - 1).
//
// With v = (1 - t) / t that is t (v + a): one addition where the general game takes two operations. The powers of t are multiplied in
// for STRETCH players at a time, so that products neither overflow nor vanish before F itself does.
#pragma once

#include "../common/exponential.h"
#include "../common/kernel.h"
#include "tiles.h"

EXACTSHAP_BEGIN

namespace {

constexpr int N = LANES / EACH;  // registers of a player of a strip
constexpr int MOST = EACH > 2 ? 4 : 2;  // nodes that go together
constexpr int64_t STRETCH = 16;

/// What is done at a node, in numbers: v, t, the factor of the first stretch, and t to the length of a stretch, whole or the last.
struct Node {
  double v, t, start, whole, last;
};

/// A factor, divided by t, or (`SMALL`) as it is: v = 1 - t then, and no power of t is multiplied in.
template <bool SMALL>
EXACTSHAP_INLINE Widest factor_at(Widest v, Widest t, Widest a) { return SMALL ? v + rounded(t * a) : v + a; }

/// t to the power n, by squarings.
EXACTSHAP_INLINE double power(double t, int64_t n) {
  double product = 1.0;
  for (; n > 0; n /= 2, t *= t)
    if (n % 2 == 1) product *= t;
  return product;
}

/// Prepare the nodes of all rules; return whether some t is too small for its reciprocal, to the power of a stretch, to be a number.
bool fill_nodes(In<double, 1> t_of, In<double, 1> weight_of, int64_t n_players, Node* nodes) {
  const int64_t last = (n_players - 1) % STRETCH + 1, first = n_players < STRETCH ? n_players : STRETCH, n_nodes = t_of.size[0];
  bool small = false;
  for (int64_t q = 0; q < n_nodes; q++) small = small || !(t_of[q] > 1e-6);
  for (int64_t q = 0; q < n_nodes; q++) {
    const double t = t_of[q], weight = weight_of[q];
    if (small) nodes[q] = {1.0 - t, t, weight, 1.0, 1.0};
    else nodes[q] = {(1.0 - t) / t, t, weight * power(t, first - 1), power(t, STRETCH), power(t, last)};
  }
  return small;
}

/// What is done with shares once they are complete, apart from keeping them: nothing.
struct KeepShares {
  EXACTSHAP_INLINE void operator()(int64_t, Widest, Widest) const {}
};

/// Add `NODES` nodes to the shares of a strip (`FIRST`: write them): the product without player j is a prefix times a suffix.
/// The `LAST` ones call `deliver(place, factor, share)`.
template <int NODES, bool FIRST, bool LAST, bool SMALL, class Deliver>
EXACTSHAP_APART void add_functional_nodes(const Node* node, const double* factor, int64_t n_players, double* suffix, double* share,
                                          Deliver deliver) {
  Widest product[NODES][N], v[NODES], t[NODES], a, sum, behind;
  for (int q = 0; q < NODES; q++) {
    v[q] = Widest{} + node[q].v, t[q] = Widest{} + node[q].t;
    for (int i = 0; i < N; i++) product[q][i] = Widest{} + 1.0;
  }
  for (int64_t stop = n_players; stop > 0;) {
    const int64_t start = (stop - 1) / STRETCH * STRETCH;
    for (int64_t k = stop - 1; k >= start; k--)
      for (int i = 0; i < N; i++) {
        load(factor + k * LANES + i * EACH, a);
        for (int q = 0; q < NODES; q++) {
          store(product[q][i], suffix + (k * MOST + q) * LANES + i * EACH);
          product[q][i] = product[q][i] * factor_at<SMALL>(v[q], t[q], a);
        }
      }
    for (int q = 0; q < NODES; q++)
      for (int i = 0; i < N; i++) product[q][i] = product[q][i] * (stop == n_players ? node[q].last : node[q].whole);
    stop = start;
  }
  for (int q = 0; q < NODES; q++)
    for (int i = 0; i < N; i++) product[q][i] = Widest{} + node[q].start;
  for (int64_t start = 0; start < n_players;) {
    const int64_t stop = start + STRETCH < n_players ? start + STRETCH : n_players;
    for (int64_t k = start; k < stop; k++)
      for (int i = 0; i < N; i++) {
        load(factor + k * LANES + i * EACH, a);
        sum = Widest{};
        if (!FIRST) load(share + k * LANES + i * EACH, sum);
        for (int q = 0; q < NODES; q++) {
          load(suffix + (k * MOST + q) * LANES + i * EACH, behind);
          sum = sum + product[q][i] * behind;
          product[q][i] = product[q][i] * factor_at<SMALL>(v[q], t[q], a);
        }
        store(sum, share + k * LANES + i * EACH);
        if (LAST) deliver(k * LANES + i * EACH, a, sum);
      }
    for (int q = 0; q < NODES; q++)
      for (int i = 0; i < N; i++) product[q][i] = product[q][i] * (stop + STRETCH < n_players ? node[q].whole : node[q].last);
    start = stop;
  }
}

/// Add the nodes from q on, `NODES` at a time while there are so many; return the first that is left.
template <int NODES, bool SMALL, class Deliver>
EXACTSHAP_INLINE int64_t add_groups(int64_t q, const Node* nodes, int64_t n_nodes, const double* factor, int64_t n_players, double* suffix,
                                    double* share, Deliver deliver) {
  for (; q + NODES <= n_nodes; q += NODES) {
    const bool first = q == 0, last = q + NODES == n_nodes;
    if (first && last) add_functional_nodes<NODES, true, true, SMALL>(nodes + q, factor, n_players, suffix, share, deliver);
    else if (first) add_functional_nodes<NODES, true, false, SMALL>(nodes + q, factor, n_players, suffix, share, deliver);
    else if (last) add_functional_nodes<NODES, false, true, SMALL>(nodes + q, factor, n_players, suffix, share, deliver);
    else add_functional_nodes<NODES, false, false, SMALL>(nodes + q, factor, n_players, suffix, share, deliver);
  }
  return q;
}

/// Set `share (n_players, LANES)` to sum_q w_q prod_{k != j} F_k(t_q), and deliver it.
template <bool SMALL, class Deliver>
void sum_functional_rule(const Node* nodes, int64_t n_nodes, const double* factor, int64_t n_players, double* suffix, double* share,
                         Deliver deliver) {
  int64_t q = add_groups<MOST, SMALL>(0, nodes, n_nodes, factor, n_players, suffix, share, deliver);
  if (MOST > 2) q = add_groups<2, SMALL>(q, nodes, n_nodes, factor, n_players, suffix, share, deliver);
  add_groups<1, SMALL>(q, nodes, n_nodes, factor, n_players, suffix, share, deliver);
}

}  // namespace

EXACTSHAP_END
