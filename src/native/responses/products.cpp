// Sums of products along orders of the players.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t LANES = 8;  // terms that are added side by side, so that sums have the same bits at every level

/// Return sum_l a_l b_l, and multiply a by `factors`.
EXACTSHAP_INLINE double add_and_multiply(double* __restrict a, const double* b, const double* factors, int64_t n) {
  double lane[LANES] = {};
  int64_t l = 0;
  for (; l + LANES <= n; l += LANES) {
    for (int64_t i = 0; i < LANES; i++) lane[i] += a[l + i] * b[l + i];
    for (int64_t i = 0; i < LANES; i++) a[l + i] *= factors[l + i];
  }
  for (int64_t i = 0; l + i < n; i++) {
    lane[i] += a[l + i] * b[l + i];
    a[l + i] *= factors[l + i];
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/// Add the sums of products to `out (n_background, n_outputs, n_orders, n_players + 1)`, with the first p players of an order inside:
///
///   out_zp = sum_l c_l prod_{q < p} a_l(q) prod_{q >= p} b_zl(q)
///
/// of the player at each place q; player j has `place (n_background, n_orders, n_players)`, `present (n_players, n_terms)` a and
/// `absent (n_background, n_players, n_terms)` b. Products of the last players are kept, so that a place costs one term's product.
Status add_along(In<int32_t, 3> place, In<double, 2> present, In<double, 3> absent, In<double, 2> coefficients, Out<double, 4> out,
                 Context& context) {
  const int64_t n = present.size[0], n_terms = present.size[1], n_orders = place.size[1];
  EXACTSHAP_REQUIRE(place.size[0] == absent.size[0] && place.size[2] == n && absent.size[1] == n && absent.size[2] == n_terms);
  EXACTSHAP_REQUIRE(coefficients.size[1] == n_terms && out.size[0] == place.size[0] && out.size[1] == coefficients.size[0]);
  EXACTSHAP_REQUIRE(out.size[2] == n_orders && out.size[3] == n + 1);
  auto player = context.zeros<int64_t>(n);
  auto ones = context.empty<double>(n_terms);
  auto prefix = context.empty<double>(n_terms);
  auto suffixes = context.empty<double>((n + 1) * n_terms);
  if (context.failed()) return Status::no_memory;
  for (int64_t l = 0; l < n_terms; l++) ones[l] = suffixes[n * n_terms + l] = 1.0;
  for (int64_t z = 0; z < place.size[0]; z++) {
    EXACTSHAP_REQUIRE(lie_within(place[z], n));
    for (int64_t order = 0; order < n_orders; order++) {
      if (context.interrupted()) return Status::interrupted;
      for (int64_t j = 0; j < n; j++) player[place[z][order][j]] = j;
      for (int64_t p = n - 1; p >= 0; p--) {
        const double* const factors = absent[z][player[p]].data;
        for (int64_t l = 0; l < n_terms; l++) suffixes[p * n_terms + l] = suffixes[(p + 1) * n_terms + l] * factors[l];
      }
      for (int64_t o = 0; o < out.size[1]; o++) {
        for (int64_t l = 0; l < n_terms; l++) prefix[l] = coefficients[o][l];
        for (int64_t p = 0; p <= n; p++) {
          const double* const factors = p < n ? present[player[p]].data : &ones[0];
          out[z][o][order][p] += add_and_multiply(&prefix[0], &suffixes[p * n_terms], factors, n_terms);
        }
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(responses, add_along, add_along)
