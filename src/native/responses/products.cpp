// Sums of products along orders of the players.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t LANES = 8;  // terms that are added side by side, so that sums have the same bits at every level

/// Hold the coefficients that are not 0, in blocks of LANES terms: those of one output and of one pair of classes are few.
struct Blocks {
  Array<int64_t, 1> starts;  // (n_blocks + 1): the entries of each block
  Array<int64_t, 1> outputs;  // (n_entries)
  Array<double, 1> values;  // (n_entries * LANES), padded by 0

  Blocks(In<double, 2> coefficients, int64_t n_blocks, Context& context)
      : starts(context.empty<int64_t>(n_blocks + 1)),
        outputs(context.empty<int64_t>(n_blocks * coefficients.size[0])),
        values(context.zeros<double>(n_blocks * coefficients.size[0] * LANES)) {
    if (context.failed()) return;
    int64_t n_entries = 0;
    for (int64_t block = 0; block < n_blocks; block++) {
      starts[block] = n_entries;
      const int64_t first = block * LANES, n = smaller(LANES, coefficients.size[1] - first);
      for (int64_t o = 0; o < coefficients.size[0]; o++) {
        bool any = false;
        for (int64_t i = 0; i < n; i++) any |= (values[n_entries * LANES + i] = coefficients[o][first + i]) != 0.0;
        if (any) outputs[n_entries++] = o;
      }
    }
    starts[n_blocks] = n_entries;
  }
};

/// Multiply `a` by `factors`, and add a_l b_l c_l to the lanes of each output, before that, for `n` terms of a block.
EXACTSHAP_INLINE void add_and_multiply(double* __restrict a, const double* b, const double* factors, int64_t n, const Blocks& blocks,
                                       int64_t block, double* __restrict lanes) {
  double product[LANES] = {};
  for (int64_t i = 0; i < n; i++) product[i] = a[i] * b[i];
  for (int64_t i = 0; i < n; i++) a[i] *= factors[i];
  for (int64_t entry = blocks.starts[block]; entry < blocks.starts[block + 1]; entry++) {
    double* const lane = lanes + blocks.outputs[entry] * LANES;
    const double* const c = &blocks.values[entry * LANES];
    for (int64_t i = 0; i < LANES; i++) lane[i] += c[i] * product[i];
  }
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
  auto lanes = context.empty<double>(out.size[1] * LANES);
  const int64_t n_blocks = (n_terms + LANES - 1) / LANES;
  const Blocks blocks(coefficients, n_blocks, context);
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
      for (int64_t l = 0; l < n_terms; l++) prefix[l] = 1.0;
      for (int64_t p = 0; p <= n; p++) {
        const double* const factors = p < n ? present[player[p]].data : &ones[0];
        const double* const suffix = &suffixes[p * n_terms];
        for (int64_t i = 0; i < out.size[1] * LANES; i++) lanes[i] = 0.0;
        for (int64_t block = 0; block < n_blocks; block++) {
          const int64_t l = block * LANES;
          if (l + LANES <= n_terms) add_and_multiply(&prefix[l], suffix + l, factors + l, LANES, blocks, block, &lanes[0]);
          else add_and_multiply(&prefix[l], suffix + l, factors + l, n_terms - l, blocks, block, &lanes[0]);
        }
        for (int64_t o = 0; o < out.size[1]; o++) {
          const double* const lane = &lanes[o * LANES];
          out[z][o][order][p] += ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
        }
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(responses, add_along, add_along)
