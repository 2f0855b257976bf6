// Inner products whose bits do not depend on how many rows are asked for, unlike those of BLAS.

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t TERM_BLOCK = 1024;  // 8 KiB of results and of each column of parameters: they stay in the first cache

/// Add columns `first` to `first` + 3 of one row to its results, in this order.
void add_four(const double* x, In<double, 2> W, int64_t first, int64_t start, int64_t stop, double* __restrict out) {
  const double a = x[first], b = x[first + 1], c = x[first + 2], d = x[first + 3];
  const double *__restrict const w0 = W[first].data, *__restrict const w1 = W[first + 1].data;
  const double *__restrict const w2 = W[first + 2].data, *__restrict const w3 = W[first + 3].data;
  for (int64_t t = start; t < stop; t++) out[t] = (((out[t] + a * w0[t]) + b * w1[t]) + c * w2[t]) + d * w3[t];
}

/// Add X W to `out (n_rows, n_terms)`, X (n_rows, n_columns), W (n_columns, n_terms): column by column, four to a pass.
Status fill_inner(In<double, 2> X, In<double, 2> W, Out<double, 2> out, Context& context) {
  const int64_t n_columns = W.size[0], n_terms = W.size[1];
  EXACTSHAP_REQUIRE(X.size[1] == n_columns && out.size[0] == X.size[0] && out.size[1] == n_terms);
  for (int64_t start = 0; start < n_terms; start += TERM_BLOCK) {
    const int64_t stop = start + TERM_BLOCK < n_terms ? start + TERM_BLOCK : n_terms;
    for (int64_t i = 0; i < X.size[0]; i++) {
      if (context.interrupted()) return Status::interrupted;
      const double* const x = X[i].data;
      double* __restrict const row = out[i].data;
      int64_t j = 0;
      for (; j + 4 <= n_columns; j += 4) add_four(x, W, j, start, stop, row);
      for (; j < n_columns; j++) {
        const double* __restrict const w = W[j].data;
        for (int64_t t = start; t < stop; t++) row[t] += x[j] * w[t];
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(rkhs_weighting, fill_inner, fill_inner)
