// Quadrature rules with a-priori bounds of their errors: for products of any factors, and for those that lie around a common one.
#pragma once

#include "../common/kernel.h"
#include "../common/lanes.h"
#include "strips.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t MOST_RADII = 32;

/// Whether each of `n_rules` rules has nodes.
bool fit_rules(In<int64_t, 1> offsets, int64_t n_rules, In<double, 1> nodes, In<double, 1> weights) {
  if (offsets.size[0] != n_rules + 1 || offsets[0] != 0 || offsets[n_rules] != nodes.size[0] || nodes.size[0] != weights.size[0]) return false;
  for (int64_t r = 0; r < n_rules; r++)
    if (offsets[r + 1] <= offsets[r]) return false;
  return true;
}

/// The smallest rule whose error is allowed on one of the radii, for integrands with these logarithms of bounds; all rules are
/// counted where none is. Errors (n_rules, n_radii) fall from rule to rule.
int64_t smallest_rule(In<double, 2> errors, const double* bounds, double allowed) {
  int64_t low = 0, high = errors.size[0];
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const double* const error = errors[middle].data;
    int any = 0;
    for (int64_t i = 0; i < errors.size[1]; i++) any |= error[i] + bounds[i] <= allowed;
    if (any != 0) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// Rules of growing size, and the error of each for integrands that ellipses around [0, 1] bound.
struct BoundedRules {
  In<double, 1> gammas;  // (n_radii,): the largest |2 t - 1| on an ellipse
  In<double, 2> errors;  // (n_rules, n_radii): logarithms, for an integrand of at most 1 on the ellipse; the last rule is exact
  In<int64_t, 1> offsets;
  In<double, 1> nodes, weights;
  double allowed;  // logarithm of the error of a term
  EXACTSHAP_FIELDS(gammas, errors, offsets, nodes, weights, allowed)

  bool fit() const {
    const int64_t n_rules = errors.size[0], n_radii = gammas.size[0];
    return n_rules >= 1 && n_radii >= 1 && n_radii <= MOST_RADII && errors.size[1] == n_radii && fit_rules(offsets, n_rules, nodes, weights);
  }
};

/// Of each lane, the sums of c_k = 1 - a_k and of their squares, and the product of all a_k.
struct Gaps {
  double sum[LANES], square[LANES], product[LANES];
};

/// Gauss rules for functional terms, whose factors F = 1 - t c_k lie around a common one:
///
///   prod F = (1 - t c)^(d - 1) prod (1 - s delta),   s = t / (1 - t c),   delta = c_k - c.
///
/// The first factor is part of the weight, and of the rest |prod| <= exp(rho |sum delta| + rho^2 sum delta^2 / 2) on the circle |s| = rho,
/// or exp(rho sum |delta|), which is less where all delta have the same sign.
struct ReferenceRules {
  In<double, 1> references;  // (n_references,): c, growing, the first one 0; there may be none
  In<double, 1> ends;        // (n_references,): where the integral over t ends
  In<double, 1> radii;       // rho
  In<double, 3> errors;      // (n_references, n_sizes, n_radii): logarithms, for products of at most 1 on the circle
  In<int64_t, 1> offsets;    // (n_references n_sizes + 1,)
  In<double, 1> nodes, weights;
  EXACTSHAP_FIELDS(references, ends, radii, errors, offsets, nodes, weights)

  bool fit() const {
    const int64_t n = references.size[0], n_radii = radii.size[0];
    return ends.size[0] == n && errors.size[0] == n && n_radii <= MOST_RADII && errors.size[2] == n_radii && (n == 0 || ends[0] >= 1.0) &&
           fit_rules(offsets, n * errors.size[1], nodes, weights);
  }

  /// The smallest rule whose error is allowed, or -1. `weight` is the logarithm of that of the product.
  int64_t smallest(const Gaps& gaps, int64_t n_players, double weight, double allowed) const {
    if (references.size[0] == 0) return -1;
    const double d = double(n_players);
    double least = gaps.sum[0], most = least;
    for (int i = 0; i < LANES; i++) least = gaps.sum[i] < least ? gaps.sum[i] : least, most = gaps.sum[i] > most ? gaps.sum[i] : most;
    int64_t at = nearest(0.5 * (least + most) / d);
    // int_T^1 prod (1 - t c_k) dt <= exp(-T (sum c_k - 1)), which takes a 16th of what is allowed
    while (ends[at] < 1.0 && weight - ends[at] * (least - 1.0) > allowed - 2.7726) at--;
    const double c = references[at], slack = 1e-12 * d;
    double shift = 0.0, square = 0.0, bounds[MOST_RADII];
    for (int i = 0; i < LANES; i++) {
      const double sum = gaps.sum[i] - d * c, squares = gaps.square[i] - c * (2.0 * gaps.sum[i] - d * c);
      shift = sum > shift ? sum : -sum > shift ? -sum : shift;
      square = squares > square ? squares : square;
    }
    const double furthest = c > 0.5 ? c : 1.0 - c;  // of any delta: that of the player whose value it is does not count
    if (c == 0.0 || c == 1.0) square = 0.0;
    else shift += square < furthest * furthest ? sqrt(square) : furthest;
    for (int64_t i = 0; i < radii.size[0]; i++) bounds[i] = weight + radii[i] * (shift + slack + 0.5 * radii[i] * (square + slack));
    const int64_t size = smallest_rule(errors[at], bounds, allowed);
    return size < errors.size[1] ? at * errors.size[1] + size : -1;
  }

 private:
  int64_t nearest(double c) const {
    int64_t low = 0, high = references.size[0] - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (2.0 * c > references[middle] + references[middle + 1]) low = middle + 1;
      else high = middle;
    }
    return low;
  }
};

/// How far the factors of a strip are from constants.
///
///   F = H (1 - y tau),  H = max(a, b), y = |a - b| / H, tau in [0, 1]:   |prod F| <= prod H exp((gamma - 1) sum y / 2)
///   F = m (1 + u delta),  m = (a + b) / 2, delta = (a - b) / (a + b), u = 2 t - 1, as |1 + w|^2 <= exp(2 Re w + |w|^2):
///                                     |prod F| <= prod m exp(gamma |sum delta| + gamma^2 sum delta^2 / 2)
struct Spread {
  double most;                   // sum y / 2
  double shift, square, middle;  // |sum delta| + max |delta|, sum delta^2 / 2, and a logarithm not below that of prod m

  /// Set logarithms of bounds on each ellipse; `height` is that of a weight times prod H.
  void fill_bounds(In<double, 1> gammas, double height, double weight, double* bounds) const {
    for (int64_t i = 0; i < gammas.size[0]; i++) {
      const double gamma = gammas[i], one_way = height + (gamma - 1.0) * most;
      const double either = weight + middle + gamma * (shift + gamma * square);
      bounds[i] = either < one_way ? either : one_way;
    }
  }
};

/// A logarithm that is at most log(2) too large, for numbers >= 0.
EXACTSHAP_INLINE double above_logarithm(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (double(int64_t(bits >> 52) - 1023) + 1.0) * 0.6931471805599454;
}

}  // namespace

EXACTSHAP_END
