// What players move along orders of them.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

/// Write what each player moves, the mean of an order and its reverse, to `out (n_background, n_outputs, n_orders, n_players)`:
///
///   out_j = (v_{p + 1} - v_p + u_{n - p} - u_{n - 1 - p}) / 2
///
/// with `values (n_background, n_outputs, 2 n_orders, n_players + 1)` v of the first 0 to n players of the orders and then u of those of
/// their reverses, where player j of n has `place (n_background, n_orders, n_players)` p.
Status fill_moves(In<double, 4> values, In<int32_t, 3> place, Out<double, 4> out, Context& context) {
  const int64_t n_outputs = out.size[1], n_orders = out.size[2], n = out.size[3];
  EXACTSHAP_REQUIRE(values.size[0] == out.size[0] && values.size[1] == n_outputs && values.size[2] == 2 * n_orders);
  EXACTSHAP_REQUIRE(values.size[3] == n + 1 && place.size[0] == out.size[0] && place.size[1] == n_orders && place.size[2] == n);
  for (int64_t i = 0; i < out.size[0]; i++) {
    if (context.interrupted()) return Status::interrupted;
    EXACTSHAP_REQUIRE(lie_within(place[i], n));
    for (int64_t o = 0; o < n_outputs; o++) {
      for (int64_t order = 0; order < n_orders; order++) {
        const double *const v = values[i][o][order].data, *const u = values[i][o][order + n_orders].data;
        const int32_t* const places = place[i][order].data;
        double* const moves = out[i][o][order].data;
        for (int64_t j = 0; j < n; j++) {
          const int64_t p = places[j];
          moves[j] = 0.5 * ((v[p + 1] - v[p]) + (u[n - p] - u[n - 1 - p]));
        }
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(responses, fill_moves, fill_moves)
