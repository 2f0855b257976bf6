// Blocks of the joint HSIC game, whose players are the variables of both sides.

#include "tile.h"

EXACTSHAP_BEGIN

namespace {

/// Set `out (LANES,)` to the product of 1 - t gap over the players.
void multiply(Array<double, 2> gap, double t, double* __restrict out) {
  for (int i = 0; i < LANES; i++) out[i] = 1.0;
  for (int64_t j = 0; j < gap.size[0]; j++) {
    const double* __restrict const of_player = gap[j].data;
    for (int i = 0; i < LANES; i++) out[i] *= 1.0 - t * of_player[i];
  }
}

/// Add `start` times the product of 1 - t gap over all players but j to `share[j]`, for every j.
void add_without_one(Array<double, 2> gap, double t, const double* start, Array<double, 2> suffix, Array<double, 2> share) {
  const int64_t n_players = gap.size[0];
  double prefix[LANES];
  for (int i = 0; i < LANES; i++) {
    suffix[n_players - 1][i] = start[i];
    prefix[i] = 1.0;
  }
  for (int64_t j = n_players - 1; j > 0; j--) {
    const double *__restrict const of_player = gap[j].data, *__restrict const behind = suffix[j].data;
    double* __restrict const out = suffix[j - 1].data;
    for (int i = 0; i < LANES; i++) out[i] = behind[i] * (1.0 - t * of_player[i]);
  }
  for (int64_t j = 0; j < n_players; j++) {
    const double *__restrict const of_player = gap[j].data, *__restrict const behind = suffix[j].data;
    double* __restrict const out = share[j].data;
    for (int i = 0; i < LANES; i++) {
      out[i] += prefix[i] * behind[i];
      prefix[i] *= 1.0 - t * of_player[i];
    }
  }
}

/// Set `out (n_nodes, n_rows, n_padded)` to prod_k (1 - t_q + t_q k_k[i, i']) for i' > i, else 0.
Status fill_node_products(Factors factors, Block block, In<double, 1> nodes, Out<double, 3> out, Context& context) {
  EXACTSHAP_REQUIRE(factors.fit() && block.fit(factors.n_rows()) && out.size[0] == nodes.size[0]);
  EXACTSHAP_REQUIRE(out.size[1] == block.height() && out.size[2] == block.padded());
  Tile lanes(factors, context);
  auto gap = context.empty<double>(factors.n_players(), LANES);
  if (context.failed()) return Status::no_memory;
  double product[LANES];
  for (int64_t tile = 0; tile < block.padded(); tile += LANES) {
    const int64_t left = block.first + tile, width = block.width(tile);
    lanes.load(left, width);
    for (int64_t row = block.start; row < block.stop; row++) {
      if (context.interrupted()) return Status::interrupted;
      lanes.fill_gaps(row, gap);
      const int64_t low = row + 1 - left;
      for (int64_t q = 0; q < nodes.size[0]; q++) {
        multiply(gap, nodes[q], product);
        double* __restrict const given = out[q][row - block.start].data + tile;
        for (int i = 0; i < LANES; i++) given[i] = i >= low && i < width ? product[i] : 0.0;
      }
    }
  }
  return Status::done;
}

/// One of the two sides: its players, `offsets (n_nodes, n_rows)` that centre its kernel at each node, and work for one tile.
class Side {
 public:
  Array<double, 2> gap, share;
  double product[LANES], centred[LANES];

  Side(const Factors& factors, In<double, 2> offsets, Context& context) : lanes_(factors, context), offsets_(offsets) {
    gap = context.empty<double>(factors.n_players(), LANES);
    share = context.empty<double>(factors.n_players(), LANES);
  }

  void load(int64_t left, int64_t width) {
    left_ = left, width_ = width;
    lanes_.load(left, width);
  }

  void start_row(int64_t row) {
    lanes_.fill_gaps(row, gap);
    share.fill(0.0);
  }

  /// Set `product` at one node, and `centred` to product - offset[row] - offset[lane]; 0 in the padding.
  void start_node(int64_t row, int64_t q, double t) {
    multiply(gap, t, product);
    const double here = offsets_[q][row];
    const double* const there = offsets_[q].data + left_;
    for (int64_t i = 0; i < width_; i++) centred[i] = product[i] - here - there[i];
    for (int64_t i = width_; i < LANES; i++) centred[i] = 0.0;
  }

  /// Subtract the sums over the lanes of gap times share from `out (n_players,)`.
  void subtract_shares(Array<double, 1> out) const {
    for (int64_t j = 0; j < gap.size[0]; j++) {
      double total = 0.0;
      for (int i = 0; i < LANES; i++) total += gap[j][i] * share[j][i];
      out[j] -= total;
    }
  }

 private:
  Tile lanes_;
  In<double, 2> offsets_;
  int64_t left_ = 0, width_ = 0;
};

/// Add the contributions of one row of a tile, node by node.
void add_row(Side& x, Side& y, int64_t row, In<double, 1> nodes, In<double, 1> weights, Array<double, 2> suffix, Array<double, 1> out) {
  const int64_t n_x = x.gap.size[0], n_y = y.gap.size[0], last_node = nodes.size[0] - 1;
  x.start_row(row);
  y.start_row(row);
  for (int64_t q = 0; q <= last_node; q++) {
    x.start_node(row, q, nodes[q]);
    y.start_node(row, q, nodes[q]);
    if (q == last_node)
      for (int i = 0; i < LANES; i++) out[n_x + n_y] += (x.product[i] - 1.0) * y.centred[i];
    for (int i = 0; i < LANES; i++) {
      x.centred[i] *= weights[q];
      y.centred[i] *= weights[q];
    }
    add_without_one(x.gap, nodes[q], y.centred, suffix, x.share);
    add_without_one(y.gap, nodes[q], x.centred, suffix, y.share);
  }
  x.subtract_shares(out.slice(0, n_x));
  y.subtract_shares(out.slice(n_x, n_x + n_y));
}

/// Add to `out (n_x + n_y + 1,)` the sums over the block's pairs i' > i of
///
///   (k_j - 1) sum_q omega_q prod_{k != j} (1 - t_q + t_q k_k) R_c(t_q)[i, i']
///
/// with R the product over the other side, centred by its offsets at each node; likewise for the players of Y. The last node is
/// t = 1 with weight 0: it gives the statistic itself, sum (prod k - 1) L_c.
Status fill_joint_contributions(Factors x_factors, In<double, 2> x_offsets, Factors y_factors, In<double, 2> y_offsets, Block block,
                                In<double, 1> nodes, In<double, 1> weights, Out<double, 1> out, Context& context) {
  const int64_t n_x = x_factors.n_players(), n_y = y_factors.n_players(), n_rows = x_factors.n_rows();
  EXACTSHAP_REQUIRE(x_factors.fit() && y_factors.fit() && n_x > 0 && n_y > 0 && block.fit(n_rows) && y_factors.n_rows() == n_rows);
  EXACTSHAP_REQUIRE(nodes.size[0] == weights.size[0] && out.size[0] == n_x + n_y + 1);
  EXACTSHAP_REQUIRE(x_offsets.size[0] == nodes.size[0] && x_offsets.size[1] == n_rows);
  EXACTSHAP_REQUIRE(y_offsets.size[0] == nodes.size[0] && y_offsets.size[1] == n_rows);
  Side x(x_factors, x_offsets, context), y(y_factors, y_offsets, context);
  auto suffix = context.empty<double>(n_x > n_y ? n_x : n_y, LANES);
  if (context.failed()) return Status::no_memory;
  for (int64_t tile = 0; tile < block.padded(); tile += LANES) {
    const int64_t left = block.first + tile, width = block.width(tile);
    x.load(left, width);
    y.load(left, width);
    for (int64_t row = block.start; row < block.stop && row < left + width - 1; row++) {
      if (context.interrupted()) return Status::interrupted;
      add_row(x, y, row, nodes, weights, suffix, out);
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(pairwise, fill_node_products, fill_node_products)
EXACTSHAP_KERNEL(pairwise, fill_joint_contributions, fill_joint_contributions)
