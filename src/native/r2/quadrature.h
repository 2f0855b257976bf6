// Unit pairs by quadrature, row by row: linear memory at any depth, each row's own share, and the twin of the tables.
//
//   phi_j = sum_i omega_i (a_ij - b_j) integral_0^1 prod_{k != j} (t a_ik + (1 - t) b_k) dt,
//   a_ik = alpha_uk(x_i) alpha_wk(x_i),   b_k = beta_uk beta_wk
//
// The integrand has degree m - 1: ceil(m / 2) Gauss-Legendre nodes are exact. Nothing is divided by a factor.
#pragma once

#include "units.h"

EXACTSHAP_BEGIN

/// Gauss-Legendre rules on [0, 1]: rule q in row q, of q nodes.
struct Rules {
  In<double, 2> nodes, weights;
  EXACTSHAP_FIELDS(nodes, weights)

  /// Whether there is one for every pair of `units`.
  bool fit(const Units& units) const {
    const int64_t most = units.count_players();
    return nodes.size[0] > most && nodes.size[1] >= most && weights.size[0] == nodes.size[0] && weights.size[1] == nodes.size[1];
  }
};

/// The sums of all pairs of one block of rows, with the scratch of one call.
class Sweep {
 public:
  Sweep(const Units& units, const Rules& rules, int64_t n_rows, Out<double, 2> out, Context& context)
      : units_(units), rules_(rules), n_rows_(n_rows), out_(out) {
    const int64_t m = 2 * units.count_players();
    player_ = context.empty<int64_t>(m);
    slot_u_ = context.empty<int64_t>(m);
    slot_w_ = context.empty<int64_t>(m);
    beta_ = context.empty<double>(m);
    alpha_ = context.empty<double>(m, n_rows);
    factor_ = context.empty<double>(m, n_rows);
    prefix_ = context.empty<double>(m, n_rows);
    share_ = context.empty<double>(m, n_rows);
    suffix_ = context.empty<double>(n_rows);
  }
  /// Whether there is a rule for every pair and a place for every player.
  bool fit() const { return rules_.fit(units_) && units_.players_within(out_.size[0]) && out_.size[1] == n_rows_; }

  void add(int64_t u, int64_t w, double factor, In<double, 2> alpha_u, In<double, 2> alpha_w, In<double, 1> weights);

 private:
  Units units_;
  Rules rules_;
  int64_t n_rows_;
  Out<double, 2> out_;                                 // (n_players, n_rows)
  Array<int64_t, 1> player_, slot_u_, slot_w_;         // (n_axes,): slots in the units, -1 for none
  Array<double, 1> beta_;                              // (n_axes,)
  Array<double, 2> alpha_, factor_, prefix_, share_;   // (n_axes, n_rows)
  Array<double, 1> suffix_;                            // (n_rows,)

  int64_t join_axes(int64_t u, int64_t w);
  void fill_alpha(int64_t m, In<double, 2> alpha_u, In<double, 2> alpha_w);
  void add_node(double t, double node_weight, int64_t m);
};

/// List the players of a pair (`w` = -1: of unit u alone) with their slots and betas; return their number.
inline int64_t Sweep::join_axes(int64_t u, int64_t w) {
  const int64_t n_u = units_.size[u][1];
  int64_t m = n_u;
  for (int64_t k = 0; k < m; k++) {
    player_[k] = units_.player[u][k];
    beta_[k] = units_.beta[u][k];
    slot_u_[k] = k;
    slot_w_[k] = -1;
  }
  if (w < 0) return m;
  for (int64_t k = 0; k < units_.size[w][1]; k++) {
    const int32_t p = units_.player[w][k];
    int64_t a = 0;
    while (a < n_u && player_[a] != p) a++;
    if (a == n_u) {
      a = m++;
      player_[a] = p;
      beta_[a] = 1.0;
      slot_u_[a] = -1;
    }
    beta_[a] *= units_.beta[w][k];
    slot_w_[a] = k;
  }
  return m;
}

inline void Sweep::fill_alpha(int64_t m, In<double, 2> alpha_u, In<double, 2> alpha_w) {
  for (int64_t a = 0; a < m; a++) {
    double* __restrict const row = alpha_[a].data;
    const double* __restrict const first = slot_u_[a] < 0 ? alpha_w[slot_w_[a]].data : alpha_u[slot_u_[a]].data;
    for (int64_t i = 0; i < n_rows_; i++) row[i] = first[i];
    if (slot_u_[a] < 0 || slot_w_[a] < 0) continue;
    const double* __restrict const second = alpha_w[slot_w_[a]].data;
    for (int64_t i = 0; i < n_rows_; i++) row[i] *= second[i];
  }
}

/// Add one quadrature node's part of every axis' share of every row of the block.
inline void Sweep::add_node(double t, double node_weight, int64_t m) {
  const int64_t n = n_rows_;
  double* __restrict const behind = suffix_.data;
  for (int64_t i = 0; i < n; i++) behind[i] = node_weight;
  for (int64_t a = 0; a < m; a++) {
    const double* __restrict const alpha_a = alpha_[a].data;
    double *__restrict const factor_a = factor_[a].data, *__restrict const prefix_a = prefix_[a].data;
    const double outside = (1.0 - t) * beta_[a];
    for (int64_t i = 0; i < n; i++) {
      const double value = t * alpha_a[i] + outside;
      factor_a[i] = value;
      prefix_a[i] = behind[i];
      behind[i] *= value;
    }
  }
  for (int64_t i = 0; i < n; i++) behind[i] = 1.0;
  for (int64_t a = m - 1; a >= 0; a--) {
    const double *__restrict const alpha_a = alpha_[a].data, *__restrict const factor_a = factor_[a].data;
    const double* __restrict const prefix_a = prefix_[a].data;
    double* __restrict const share_a = share_[a].data;
    const double beta_a = beta_[a];
    for (int64_t i = 0; i < n; i++) {
      share_a[i] += (alpha_a[i] - beta_a) * prefix_a[i] * behind[i];
      behind[i] *= factor_a[i];
    }
  }
}

/// Add `factor` times each row's Shapley values of the pair's game; `w` = -1: of unit u alone. `weights (n_rows,)`.
inline void Sweep::add(int64_t u, int64_t w, double factor, In<double, 2> alpha_u, In<double, 2> alpha_w,
                       In<double, 1> weights) {
  const int64_t m = join_axes(u, w);
  fill_alpha(m, alpha_u, alpha_w);
  const double constant = factor * units_.value[u][2] * (w >= 0 ? units_.value[w][2] : 1.0);
  share_.slice(0, m).fill(0.0);
  const int64_t n_nodes = (m + 1) / 2;
  for (int64_t q = 0; q < n_nodes; q++) add_node(rules_.nodes[n_nodes][q], rules_.weights[n_nodes][q], m);
  for (int64_t a = 0; a < m; a++) {
    const double *__restrict const share = share_[a].data, *__restrict const row_weights = weights.data;
    double* __restrict const total = out_[player_[a]].data;
    for (int64_t i = 0; i < n_rows_; i++) total[i] += constant * row_weights[i] * share[i];
  }
}

EXACTSHAP_END
