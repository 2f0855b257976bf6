// Blocks of pairwise statistics (MMD, HSIC): what each pair of rows gives to the share of each player.

#include "../common/lanes.h"
#include "../common/rules.h"
#include "tile.h"

EXACTSHAP_BEGIN

namespace {

constexpr int CHUNK = 2 * EACH;                 // lanes whose running products stay in registers
constexpr int MOST = EACH == 8 ? 4 : 2;         // nodes that go together: 512 bits come with twice as many registers
typedef Widest Suffix[2][MOST];

/// Add `NODES` nodes of a rule to `share (n_even, LANES)`, see integrate.
template <int NODES>
EXACTSHAP_INLINE void add_nodes(const double* gap, const double* t, const double* weight, int64_t n_even, Suffix* __restrict suffix,
                                double* __restrict share) {
  Widest product[2][NODES], g, h, share_j, share_k;
  for (int i = 0; i < 2; i++)
    for (int q = 0; q < NODES; q++) product[i][q] = Widest{} + weight[q];
  for (int64_t j = n_even - 2; j >= 0; j -= 2)
    for (int i = 0; i < 2; i++) {
      load(gap + (j + 1) * LANES + i * EACH, g), load(gap + j * LANES + i * EACH, h);
      for (int q = 0; q < NODES; q++) {
        suffix[j / 2][i][q] = product[i][q];
        product[i][q] *= (1.0 - t[q] * g) * (1.0 - t[q] * h);
      }
    }
  for (int i = 0; i < 2; i++)
    for (int q = 0; q < NODES; q++) product[i][q] = Widest{} + 1.0;
  for (int64_t j = 0; j < n_even; j += 2)
    for (int i = 0; i < 2; i++) {
      double *const at_j = share + j * LANES + i * EACH, *const at_k = at_j + LANES;
      load(gap + j * LANES + i * EACH, g), load(gap + (j + 1) * LANES + i * EACH, h), load(at_j, share_j), load(at_k, share_k);
      for (int q = 0; q < NODES; q++) {
        const Widest of_j = 1.0 - t[q] * g, of_k = 1.0 - t[q] * h, rest = product[i][q] * suffix[j / 2][i][q];
        share_j = share_j + rest * of_k;
        share_k = share_k + rest * of_j;
        product[i][q] *= of_j * of_k;
      }
      store(share_j, at_j), store(share_k, at_k);
    }
}

/// Set `share (n_even, LANES)` to the integrals of the products without one player, in the lanes from `lane` on:
///
///   sum_q omega_q prod_{k != j} (1 - t_q g_k)
///
/// A prefix times a suffix: no division. Memory traffic is the limit, so nodes go together and players come in pairs: the product
/// without j is (prefix * suffix of the pair of j) * the other factor of the pair. An odd last player has gap 0.
EXACTSHAP_APART void integrate(Array<double, 2> gaps, const double* nodes, const double* weights, int64_t n_nodes, int lane,
                               Suffix* suffix, Array<double, 2> shares) {
  const int64_t n_even = gaps.size[0];
  const double* const gap = gaps.data + lane;
  double* const share = shares.data + lane;
  for (int64_t j = 0; j < n_even; j++)
    for (int i = 0; i < CHUNK; i += EACH) store(Widest{}, share + j * LANES + i);
  int64_t q = 0;
  for (; q + MOST <= n_nodes; q += MOST) add_nodes<MOST>(gap, nodes + q, weights + q, n_even, suffix, share);
  if (q < n_nodes) add_nodes<2>(gap, nodes + q, weights + q, n_even, suffix, share);
}

/// The total of each lane, prod_k (1 - g_k) - 1, and half the largest sum of gaps.
double fill_totals(Array<double, 2> gap, int64_t n_players, double* __restrict total) {
  double sum[LANES], largest = 0.0;
  for (int i = 0; i < LANES; i++) sum[i] = 0.0, total[i] = 1.0;
  for (int64_t j = 0; j < n_players; j++)
    for (int i = 0; i < LANES; i++) {
      sum[i] += 0.5 * gap[j][i];
      total[i] *= 1.0 - gap[j][i];
    }
  for (int i = 0; i < LANES; i++) {
    total[i] -= 1.0;
    largest = sum[i] > largest ? sum[i] : largest;
  }
  return largest;
}

/// What the pairs of one row with a tile of others give to each share, see fill_contributions: -gap * share, and the total.
struct RowOfPairs {
  const GradedRules& rules;
  Tile lanes;
  Array<double, 2> gap, share;
  Array<Suffix, 1> suffix;
  double total[LANES];

  RowOfPairs(const Factors& factors, const GradedRules& some_rules, Context& context) : rules(some_rules), lanes(factors, context) {
    const int64_t n_even = (factors.n_players() + 1) / 2 * 2;
    gap = context.zeros<double>(n_even, LANES), share = context.empty<double>(n_even, LANES);
    suffix = context.empty<Suffix>(n_even / 2);
  }

  void fill(int64_t row, int64_t n_players) {
    lanes.fill_gaps(row, gap);
    const int64_t rule = rules.smallest(fill_totals(gap, n_players, total));
    const int64_t begin = rules.offsets[rule], n_nodes = rules.offsets[rule + 1] - begin;
    for (int lane = 0; lane < LANES; lane += CHUNK)
      integrate(gap, rules.nodes.data + begin, rules.weights.data + begin, n_nodes, lane, suffix.data, share);
  }
};

/// Set `out (n_players + 1, n_rows, n_padded)` to what each pair gives to each share, and to the total:
///
///   G_j[i, i'] = (k_j - 1) int prod_{k != j} (1 - t + t k_k) dmu(t),   G_d[i, i'] = prod_k k_k - 1
///
/// for the pairs of a block, else 0. A statistic sum w[i,i'] k(i,i') has the shares sum w[i,i'] G_j[i,i'], whatever its weights.
/// Each row of a tile takes the smallest rule whose limit is not below its largest sum of gaps / 2.
Status fill_contributions(Factors factors, GradedRules rules, Block block, Out<double, 3> out, Context& context) {
  const int64_t d = factors.n_players();
  EXACTSHAP_REQUIRE(factors.fit() && rules.fit(2) && block.fit(factors.n_rows()));
  EXACTSHAP_REQUIRE(out.size[0] == d + 1 && out.size[1] == block.height() && out.size[2] == block.padded());
  RowOfPairs pairs(factors, rules, context);
  if (context.failed()) return Status::no_memory;
  for (int64_t tile = 0; tile < block.padded(); tile += LANES) {
    const int64_t left = block.first + tile, width = block.width(tile);
    pairs.lanes.load(left, width);
    for (int64_t row = block.start; row < block.stop; row++) {
      if (context.interrupted()) return Status::interrupted;
      const int64_t r = row - block.start;
      if (left + width <= row + 1) {
        for (int64_t j = 0; j <= d; j++) memset(out[j][r].data + tile, 0, LANES * sizeof(double));
        continue;
      }
      pairs.fill(row, d);
      memcpy(out[d][r].data + tile, pairs.total, sizeof pairs.total);
      for (int64_t j = 0; j < d; j++) {
        double* __restrict const given = out[j][r].data + tile;
        for (int i = 0; i < LANES; i++) given[i] = -pairs.gap[j][i] * pairs.share[j][i];
      }
    }
  }
  return Status::done;
}

/// Add to the sums of a block's rows, `rows (n_players + 1, ...)`, and of those that they are paired with, `others`, what
/// fill_contributions and add_sides (weights.cpp) give together with weights of 1: nothing is stored between.
Status add_contributions(Factors factors, GradedRules rules, Block block, Out<double, 2> rows, Out<double, 2> others, Context& context) {
  const int64_t d = factors.n_players();
  EXACTSHAP_REQUIRE(factors.fit() && rules.fit(2) && block.fit(factors.n_rows()));
  EXACTSHAP_REQUIRE(rows.size[0] == d + 1 && others.size[0] == d + 1 && rows.size[1] >= block.stop);
  EXACTSHAP_REQUIRE(others.size[1] >= block.first + block.padded());
  RowOfPairs pairs(factors, rules, context);
  if (context.failed()) return Status::no_memory;
  for (int64_t tile = 0; tile < block.padded(); tile += LANES) {
    const int64_t left = block.first + tile, width = block.width(tile);
    pairs.lanes.load(left, width);
    for (int64_t row = block.start; row < block.stop && left + width > row + 1; row++) {
      if (context.interrupted()) return Status::interrupted;
      pairs.fill(row, d);
      Widest given[LANES / EACH], gap;
      for (int64_t j = 0; j < d; j++) {
        for (int i = 0; i < LANES / EACH; i++) {
          load(pairs.gap[j].data + i * EACH, gap), load(pairs.share[j].data + i * EACH, given[i]);
          given[i] = -gap * given[i];
        }
        rows[j][row] += add_lanes(given, others[j].data + left);
      }
      for (int i = 0; i < LANES / EACH; i++) load(pairs.total + i * EACH, given[i]);
      rows[d][row] += add_lanes(given, others[d].data + left);
    }
  }
  return Status::done;
}

/// Set `out (n_players, n_rows, n_padded)` to 1 - kernel, 0 outside the triangle i' > i.
Status fill_gaps(Factors factors, Block block, Out<double, 3> out, Context& context) {
  const int64_t d = factors.n_players();
  EXACTSHAP_REQUIRE(factors.fit() && block.fit(factors.n_rows()));
  EXACTSHAP_REQUIRE(out.size[0] == d && out.size[1] == block.height() && out.size[2] == block.padded());
  Tile lanes(factors, context);
  auto gap = context.empty<double>(d, LANES);
  if (context.failed()) return Status::no_memory;
  for (int64_t tile = 0; tile < block.padded(); tile += LANES) {
    lanes.load(block.first + tile, block.width(tile));
    for (int64_t row = block.start; row < block.stop; row++) {
      if (context.interrupted()) return Status::interrupted;
      lanes.fill_gaps(row, gap);
      for (int64_t j = 0; j < d; j++) memcpy(out[j][row - block.start].data + tile, gap[j].data, LANES * sizeof(double));
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(pairwise, fill_contributions, fill_contributions)
EXACTSHAP_KERNEL(pairwise, add_contributions, add_contributions)
EXACTSHAP_KERNEL(pairwise, fill_gaps, fill_gaps)
