// Quadrature over strips of neighbouring terms, whose buffers stay in the first-level cache.
#pragma once

#include "tiles.h"

EXACTSHAP_BEGIN

namespace {

/// Where the buffers of a player are in its block.
enum Buffer { BASE, SLOPE, SHARE, SUFFIX };
constexpr int64_t STEP = (SUFFIX + 4) * LANES;  // numbers of a block

/// Add `NODES` nodes of the rule to the shares of a strip (`FIRST`: write them): the product without player j is a prefix times a suffix, never divided out.
template <class T, int NODES, bool FIRST>
EXACTSHAP_APART void add_nodes(const double* t, const double* weight, T* strip, int64_t n_players) {
  using Pack = typename Register<T>::Type;
  constexpr int EACH = int(sizeof(Pack) / sizeof(T)), N = LANES / EACH;
  const auto at = [&](int64_t k, int buffer, int i) { return strip + k * STEP + buffer * LANES + i * EACH; };
  Pack product[NODES][N], base, slope;
  for (int q = 0; q < NODES; q++)
    for (int i = 0; i < N; i++) product[q][i] = Pack{} + weight[q];
  for (int64_t k = n_players - 1; k >= 0; k--)
    for (int i = 0; i < N; i++) {
      load(at(k, BASE, i), base), load(at(k, SLOPE, i), slope);
      for (int q = 0; q < NODES; q++) {
        store(product[q][i], at(k, SUFFIX + q, i));
        product[q][i] = product[q][i] * (base + t[q] * slope);
      }
    }
  for (int q = 0; q < NODES; q++)
    for (int i = 0; i < N; i++) product[q][i] = Pack{} + 1.0;
  for (int64_t k = 0; k < n_players; k++)
    for (int i = 0; i < N; i++) {
      Pack share = {}, suffix;
      load(at(k, BASE, i), base), load(at(k, SLOPE, i), slope);
      if (!FIRST) load(at(k, SHARE, i), share);
      for (int q = 0; q < NODES; q++) {
        load(at(k, SUFFIX + q, i), suffix);
        share = share + product[q][i] * suffix;
        product[q][i] = product[q][i] * (base + t[q] * slope);
      }
      store(share, at(k, SHARE, i));
    }
}

template <class T, int NODES>
EXACTSHAP_INLINE void add_or_write(int64_t q, const double* nodes, const double* weights, T* strip, int64_t n_players) {
  q == 0 ? add_nodes<T, NODES, true>(nodes, weights, strip, n_players)
         : add_nodes<T, NODES, false>(nodes + q, weights + q, strip, n_players);
}

/// Sum all nodes of the rule to the shares of a strip, one after the other.
template <class T>
EXACTSHAP_INLINE void sum_rule(In<double, 1> nodes, In<double, 1> weights, T* strip, int64_t n_players) {
  constexpr int MOST = Register<T>::NODES;
  const int64_t n = nodes.size[0];
  int64_t q = 0;
  for (; q + MOST <= n; q += MOST) add_or_write<T, MOST>(q, nodes.data, weights.data, strip, n_players);
  if (MOST > 2 && q + 2 <= n) {
    add_or_write<T, 2>(q, nodes.data, weights.data, strip, n_players);
    q += 2;
  }
  for (; q < n; q++) add_or_write<T, 1>(q, nodes.data, weights.data, strip, n_players);
}

}  // namespace

EXACTSHAP_END
