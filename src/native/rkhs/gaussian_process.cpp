// Sweeps for the covariance of Shapley values under a Gaussian process.
//
// Arrays are C-contiguous with the dimension that is summed or listed last, so that one instruction works on several entries.
// No divisions, no expansions, no fast-math; drivers in `_gp_covariance` validate and allocate, kernels fill `out`.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int TILE = 16;  // background rows (or training rows) per sweep

EXACTSHAP_INLINE double lesser(double a, double b) { return b < a ? b : a; }

/// Per player and entry of a tile: derivative in t at s = 0, derivative in t and s, F(t, 0), derivative in s, and scratch.
struct Factors {
  Array<double, 2> slope, mixed, low, rise, first, second, factor, suffix;
};

/// Set the derivative of F in t at s = 0 and its mixed derivative for one row, one z and one tile of z'; pad with zeros.
EXACTSHAP_INLINE void load_slopes(In<double, 1> corner, In<double, 2> left, In<double, 2> right, In<double, 2> between, int64_t m,
                                  int64_t start, int64_t width, const Factors& f) {
  for (int64_t k = 0; k < corner.size[0]; k++) {
    const double high = corner[k] - right[k][m];
    const double *const left_k = left[k].data + start, *const between_k = between[k].data + start;
    double *const slope = f.slope[k].data, *const mixed = f.mixed[k].data;
    for (int i = 0; i < TILE; i++) slope[i] = mixed[i] = 0.0;
    for (int64_t i = 0; i < width; i++) {
      slope[i] = left_k[i] - between_k[i];
      mixed[i] = high - slope[i];
    }
  }
}

/// Set F(t, 0) and its derivative in s at one t; pad with zeros.
EXACTSHAP_INLINE void load_ends(double t, In<double, 1> corner, In<double, 2> right, In<double, 2> between, int64_t m, int64_t start,
                                int64_t width, const Factors& f) {
  for (int64_t k = 0; k < corner.size[0]; k++) {
    const double top = right[k][m] + t * (corner[k] - right[k][m]);
    const double *const between_k = between[k].data + start, *const slope = f.slope[k].data;
    double *const low = f.low[k].data, *const rise = f.rise[k].data;
    for (int64_t i = 0; i < width; i++) {
      low[i] = between_k[i] + t * slope[i];
      rise[i] = top - low[i];
    }
    for (int64_t i = width; i < TILE; i++) low[i] = rise[i] = 0.0;
  }
}

/// Set the factors of every player at (t, s), from the last on with the product of all behind it.
void load_factors(double s, bool interactions, const Factors& f) {
  const int64_t n_players = f.slope.size[0];
  f.suffix[n_players - 1].fill(1.0);
  for (int64_t k = n_players - 1; k >= 0; k--) {
    const double *const slope = f.slope[k].data, *const mixed = f.mixed[k].data, *const low = f.low[k].data;
    const double *const rise = f.rise[k].data, *const behind = f.suffix[k].data;
    double *const first = f.first[k].data, *const second = f.second[k].data, *const factor = f.factor[k].data;
    for (int i = 0; i < TILE; i++) {
      factor[i] = low[i] + s * rise[i];
      first[i] = interactions ? mixed[i] : slope[i] + s * mixed[i];
      second[i] = (interactions ? mixed[i] : rise[i]) * behind[i];
    }
    if (k > 0)
      for (int i = 0; i < TILE; i++) f.suffix[k - 1][i] = behind[i] * factor[i];
  }
}

/// Add the integrand at one pair of nodes to `share (n_pairs, TILE)`; no factor is ever divided out.
///
/// A prefix over the players before j, a running product between j and j', and a suffix behind j' make every pair.
void add_pairs(double weight, const Factors& f, Array<double, 2> share) {
  const int64_t n_players = f.slope.size[0];
  double prefix[TILE], running[TILE];
  for (int i = 0; i < TILE; i++) prefix[i] = weight;
  double* pair = share.data;
  for (int64_t j = 0; j < n_players; j++, pair += TILE) {
    const double *const mixed = f.mixed[j].data, *const suffix = f.suffix[j].data, *const first = f.first[j].data;
    const double* const factor = f.factor[j].data;
    for (int i = 0; i < TILE; i++) {
      pair[i] += prefix[i] * mixed[i] * suffix[i];
      running[i] = prefix[i] * first[i];
      prefix[i] *= factor[i];
    }
    for (int64_t k = j + 1; k < n_players; k++) {
      const double *const second = f.second[k].data, *const between = f.factor[k].data;
      pair += TILE;
      for (int i = 0; i < TILE; i++) {
        pair[i] += running[i] * second[i];
        running[i] *= between[i];
      }
    }
  }
}

/// Add the prior covariance of pairs of players, in lexicographic order with j = j', to `out (n_rows, n_pairs)`.
///
/// With `corner` k(x, x') (n_rows, n_players), `left` k(x, z') and `right` k(z, x') (n_rows, n_players, n_background), `between`
/// k(z, z') (n_background, n_players, n_background), all for one column or player at a time,
///
///   F_k(t, s) = ts k(x, x') + t(1-s) k(x, z') + (1-t)s k(z, x') + (1-t)(1-s) k(z, z')
///   P_jj' = sum_{z, z'} w_z w_z' int int d_t F_j d_s F_j' prod_{k != j, j'} F_k   for j < j'
///   P_jj  = sum_{z, z'} w_z w_z' int int d_t d_s F_j prod_{k != j} F_k
///
/// With `interactions` every factor of j and j' is d_t d_s F: the prior variance of the interaction {j, j'}; the entries j = j'
/// are then meaningless.
Status fill_prior(In<double, 2> corner, In<double, 3> left, In<double, 3> right, In<double, 3> between, In<double, 1> weights,
                  In<double, 1> nodes, In<double, 1> node_weights, bool interactions, Out<double, 2> out, Context& context) {
  const int64_t n_rows = corner.size[0], n_players = corner.size[1], n_background = weights.size[0], n_pairs = out.size[1];
  EXACTSHAP_REQUIRE(left.size[0] == n_rows && left.size[1] == n_players && left.size[2] == n_background);
  EXACTSHAP_REQUIRE(right.size[0] == n_rows && right.size[1] == n_players && right.size[2] == n_background);
  EXACTSHAP_REQUIRE(between.size[0] == n_background && between.size[1] == n_players && between.size[2] == n_background);
  EXACTSHAP_REQUIRE(nodes.size[0] == node_weights.size[0] && out.size[0] == n_rows && n_pairs == n_players * (n_players + 1) / 2);
  if (n_players == 0) return Status::done;
  auto blocks = context.empty<double>(8, n_players, TILE);
  auto share = context.empty<double>(n_pairs, TILE);
  if (context.failed()) return Status::no_memory;
  const Factors f{blocks[0], blocks[1], blocks[2], blocks[3], blocks[4], blocks[5], blocks[6], blocks[7]};
  for (int64_t r = 0; r < n_rows; r++)
    for (int64_t start = 0; start < n_background; start += TILE) {
      const int64_t width = smaller(TILE, n_background - start);
      share.fill(0.0);
      for (int64_t m = 0; m < n_background; m++) {
        load_slopes(corner[r], left[r], right[r], between[m], m, start, width, f);
        for (int64_t q = 0; q < nodes.size[0]; q++) {
          if (context.interrupted()) return Status::interrupted;
          load_ends(nodes[q], corner[r], right[r], between[m], m, start, width, f);
          for (int64_t p = 0; p < nodes.size[0]; p++) {
            load_factors(nodes[p], interactions, f);
            add_pairs(weights[m] * node_weights[q] * node_weights[p], f, share);
          }
        }
      }
      for (int64_t pair = 0; pair < n_pairs; pair++) {
        double value = 0.0;
        for (int64_t i = 0; i < width; i++) value += weights[start + i] * share[pair][i];
        out[r][pair] += value;
      }
    }
  return Status::done;
}

/// Add the values of single players of each term's own game to `out (n_rows, n_players, n_terms)`:
///
///   Phi_j(x)_i = sum_z w_z (a_ij - b_zij) sum_q omega_q prod_{k != j} (t_q a_ik + (1 - t_q) b_zik)
///
/// for `a (n_rows, n_players, n_terms)` and `b (n_background, n_players, n_terms)`: the linear functional of f that the value
/// is, evaluated at kernel sections.
Status fill_functionals(In<double, 3> a, In<double, 3> b, In<double, 1> weights, In<double, 1> nodes, In<double, 1> node_weights,
                        Out<double, 3> out, Context& context) {
  const int64_t n_rows = a.size[0], n_players = a.size[1], n_terms = a.size[2];
  EXACTSHAP_REQUIRE(b.size[0] == weights.size[0] && b.size[1] == n_players && b.size[2] == n_terms);
  EXACTSHAP_REQUIRE(nodes.size[0] == node_weights.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == n_players && out.size[2] == n_terms);
  if (n_players == 0) return Status::done;
  auto slope = context.empty<double>(n_players, TILE), factor = context.empty<double>(n_players, TILE);
  auto suffix = context.empty<double>(n_players, TILE), share = context.empty<double>(n_players, TILE);
  if (context.failed()) return Status::no_memory;
  double prefix[TILE];
  for (int64_t r = 0; r < n_rows; r++)
    for (int64_t start = 0; start < n_terms; start += TILE) {
      const int64_t width = smaller(TILE, n_terms - start);
      for (int64_t m = 0; m < weights.size[0]; m++) {
        if (context.interrupted()) return Status::interrupted;
        share.fill(0.0);
        slope.fill(0.0);
        factor.fill(0.0);
        for (int64_t k = 0; k < n_players; k++)
          for (int64_t i = 0; i < width; i++) slope[k][i] = a[r][k][start + i] - b[m][k][start + i];
        for (int64_t q = 0; q < nodes.size[0]; q++) {
          const double t = nodes[q];
          for (int i = 0; i < TILE; i++) prefix[i] = node_weights[q];
          suffix[n_players - 1].fill(weights[m]);
          for (int64_t k = n_players - 1; k >= 0; k--) {
            for (int64_t i = 0; i < width; i++) factor[k][i] = b[m][k][start + i] + t * slope[k][i];
            if (k > 0)
              for (int i = 0; i < TILE; i++) suffix[k - 1][i] = suffix[k][i] * factor[k][i];
          }
          for (int64_t k = 0; k < n_players; k++)
            for (int i = 0; i < TILE; i++) {
              share[k][i] += prefix[i] * suffix[k][i];
              prefix[i] *= factor[k][i];
            }
        }
        for (int64_t k = 0; k < n_players; k++)
          for (int64_t i = 0; i < width; i++) out[r][k][start + i] += slope[k][i] * share[k][i];
      }
    }
  return Status::done;
}

/// Add the interactions of all pairs, in lexicographic order, of each term's own game to `out (n_rows, n_pairs, n_terms)`:
///
///   Phi_jk(x)_i = sum_z w_z (a_ij - b_zij)(a_ik - b_zik) sum_q omega_q prod_{l != j, k} F_zil(t_q)
Status fill_pair_functionals(In<double, 3> a, In<double, 3> b, In<double, 1> weights, In<double, 1> nodes,
                             In<double, 1> node_weights, Out<double, 3> out, Context& context) {
  const int64_t n_rows = a.size[0], n_players = a.size[1], n_terms = a.size[2];
  EXACTSHAP_REQUIRE(b.size[0] == weights.size[0] && b.size[1] == n_players && b.size[2] == n_terms);
  EXACTSHAP_REQUIRE(nodes.size[0] == node_weights.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == n_players * (n_players - 1) / 2 && out.size[2] == n_terms);
  if (n_players == 0) return Status::done;
  auto slope = context.empty<double>(n_players), factor = context.empty<double>(n_players), suffix = context.empty<double>(n_players);
  if (context.failed()) return Status::no_memory;
  for (int64_t r = 0; r < n_rows; r++)
    for (int64_t i = 0; i < n_terms; i++)
      for (int64_t m = 0; m < weights.size[0]; m++) {
        if (context.interrupted()) return Status::interrupted;
        for (int64_t k = 0; k < n_players; k++) slope[k] = a[r][k][i] - b[m][k][i];
        for (int64_t q = 0; q < nodes.size[0]; q++) {
          suffix[n_players - 1] = weights[m] * node_weights[q];
          for (int64_t k = n_players - 1; k >= 0; k--) {
            factor[k] = b[m][k][i] + nodes[q] * slope[k];
            if (k > 0) suffix[k - 1] = suffix[k] * factor[k];
          }
          double prefix = 1.0;
          int64_t pair = 0;
          for (int64_t j = 0; j < n_players; j++) {
            double running = prefix * slope[j];
            for (int64_t k = j + 1; k < n_players; k++, pair++) {
              out[r][pair][i] += running * slope[k] * suffix[k];
              running *= factor[k];
            }
            prefix *= factor[j];
          }
        }
      }
  return Status::done;
}

EXACTSHAP_INLINE double relative_width(double a, double b) {
  const double top = larger(a, b);
  return top > 0.0 ? 0.5 * fabs(a - b) / top : 0.0;
}

/// Set `spread (n_rows,)` to the largest sum over players of the relative widths of F in one of its two arguments.
///
/// For factors that are nowhere negative, F(1, s) / F(0, s) is monotone in s, so the width at fixed s is at most the larger of the
/// widths at s = 0 and s = 1 (see `_nodes` for what the spread bounds). A negative factor gives infinity: then only the exact
/// number of nodes will do.
Status fill_spread(In<double, 2> corner, In<double, 3> cross, In<double, 3> between, Out<double, 1> spread, Context& context) {
  const int64_t n_rows = corner.size[0], n_players = corner.size[1], n_background = cross.size[2];
  EXACTSHAP_REQUIRE(cross.size[0] == n_rows && cross.size[1] == n_players && spread.size[0] == n_rows);
  EXACTSHAP_REQUIRE(between.size[0] == n_background && between.size[1] == n_players && between.size[2] == n_background);
  for (int64_t r = 0; r < n_rows; r++) {
    spread[r] = 0.0;
    for (int64_t m = 0; m < n_background; m++) {
      if (context.interrupted()) return Status::interrupted;
      for (int64_t z = 0; z < n_background; z++) {
        double total = 0.0;
        for (int64_t k = 0; k < n_players; k++) {
          const double xx = corner[r][k], zx = cross[r][k][m], xz = cross[r][k][z], zz = between[m][k][z];
          if (lesser(lesser(xx, zx), lesser(xz, zz)) < 0.0)
            total = INFINITY;
          else
            total += larger(relative_width(xx, zx), relative_width(xz, zz));
        }
        spread[r] = larger(spread[r], total);
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(rkhs, fill_prior, fill_prior)
EXACTSHAP_KERNEL(rkhs, fill_functionals, fill_functionals)
EXACTSHAP_KERNEL(rkhs, fill_pair_functionals, fill_pair_functionals)
EXACTSHAP_KERNEL(rkhs, fill_spread, fill_spread)
