// Products of kernel factors: memory traffic, not arithmetic, is what they cost.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t TILE = 2048;  // 16 KiB of results stay in the first cache while the factors stream by
constexpr int64_t SQUARE = 64;  // rows and columns of a tile that is read across its grain: 32 KiB

/// Set `out (n_values,)` to the product of the rows `chosen` of `factors (n_players, n_all)` from column `first` on; ones where
/// none is chosen.
Status fill_product(In<double, 2> factors, In<int64_t, 1> chosen, int64_t first, Out<double, 1> out, Context& context) {
  const int64_t n_values = out.size[0], n_chosen = chosen.size[0];
  EXACTSHAP_REQUIRE(first >= 0 && first <= factors.size[1] - n_values);
  for (int64_t k = 0; k < n_chosen; k++) EXACTSHAP_REQUIRE(chosen[k] >= 0 && chosen[k] < factors.size[0]);
  for (int64_t start = 0; start < n_values; start += TILE) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t width = smaller(TILE, n_values - start);
    double* __restrict const tile = out.data + start;
    if (n_chosen == 0)
      for (int64_t i = 0; i < width; i++) tile[i] = 1.0;
    else
      memcpy(tile, factors[chosen[0]].data + first + start, size_t(width) * sizeof(double));
    for (int64_t k = 1; k < n_chosen; k++) {
      const double* __restrict const factor = factors[chosen[k]].data + first + start;
      for (int64_t i = 0; i < width; i++) tile[i] *= factor[i];
    }
  }
  return Status::done;
}

/// Copy what is above the diagonal of `matrix (n, n)` below it.
Status mirror(Out<double, 2> matrix, Context& context) {
  const int64_t n = matrix.size[0];
  EXACTSHAP_REQUIRE(matrix.size[1] == n);
  for (int64_t top = 0; top < n; top += SQUARE)
    for (int64_t left = top; left < n; left += SQUARE) {
      if (context.interrupted()) return Status::interrupted;
      for (int64_t i = top; i < smaller(top + SQUARE, n); i++)
        for (int64_t j = i + 1 > left ? i + 1 : left; j < smaller(left + SQUARE, n); j++) matrix[j][i] = matrix[i][j];
    }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(rkhs, fill_product, fill_product)
EXACTSHAP_KERNEL(rkhs, mirror, mirror)
