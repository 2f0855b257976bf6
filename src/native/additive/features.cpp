// Features of scikit-learn's bases, by the same arithmetic: a model's own prediction is a product with them.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

/// Set `out (n_rows, n_features)` to products of columns, multiplied from the left:
///
///   out_if = ((x_i,c0 x_i,c1) x_i,c2) ...,   c = chains[f] as far as it is not negative;   1 where there is none
Status fill_products_of_columns(In<double, 2> X, In<int64_t, 2> chains, Out<double, 2> out, Context& context) {
  const int64_t n_rows = X.size[0], n_columns = X.size[1], n_features = chains.size[0], degree = chains.size[1];
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == n_features);
  auto lengths = context.empty<int64_t>(n_features);
  if (context.failed()) return Status::no_memory;
  for (int64_t f = 0; f < n_features; f++) {
    int64_t length = 0;
    while (length < degree && chains[f][length] >= 0) EXACTSHAP_REQUIRE(chains[f][length++] < n_columns);
    lengths[f] = length;
  }
  for (int64_t i = 0; i < n_rows; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    const double* const x = X[i].data;
    double* const __restrict row = out[i].data;
    const int64_t* chain = chains.data;
    for (int64_t f = 0; f < n_features; f++, chain += degree) {
      double product = lengths[f] > 0 ? x[chain[0]] : 1.0;
      for (int64_t q = 1; q < lengths[f]; q++) product *= x[chain[q]];
      row[f] = product;
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_products_of_columns, fill_products_of_columns)
