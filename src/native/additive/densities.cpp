// Log densities of normal distributions, column by column: the terms of Gaussian naive Bayes.

#include <math.h>

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

/// Normal distributions of each class and column, all (n_classes, n_columns).
struct Normals {
  In<double, 2> mean, variance;
  In<double, 2> constant;  // log(2 pi variance)

  EXACTSHAP_FIELDS(mean, variance, constant)
};

bool are_normals(const Normals& normals, int64_t n_columns) {
  const int64_t n_classes = normals.mean.size[0];
  if (normals.variance.size[0] != n_classes || normals.constant.size[0] != n_classes) return false;
  return normals.mean.size[1] == n_columns && normals.variance.size[1] == n_columns && normals.constant.size[1] == n_columns;
}

/// Fill the log densities of one row under one class, (n_columns,):   -1/2 ((x - mean)^2 / variance + log(2 pi variance))
EXACTSHAP_APART void fill_row(const double* __restrict x, const double* __restrict mean, const double* __restrict variance,
                              const double* __restrict constant, int64_t n_columns, double* __restrict out) {
  for (int64_t j = 0; j < n_columns; j++) {
    const double deviation = x[j] - mean[j];
    out[j] = (deviation * deviation / variance[j] + constant[j]) * -0.5;
  }
}

void fill_classes(const double* x, const Normals& normals, Out<double, 2> out) {
  for (int64_t k = 0; k < out.size[0]; k++)
    fill_row(x, normals.mean[k].data, normals.variance[k].data, normals.constant[k].data, out.size[1], out[k].data);
}

/// Set `out (n_rows, n_columns, n_classes)` to the log densities; where there is one output, to those of the second class less the first.
Status fill_densities(In<double, 2> X, Normals normals, bool is_margin, Out<double, 3> out, Context& context) {
  const int64_t n_rows = X.size[0], n_columns = X.size[1], n_classes = normals.mean.size[0];
  EXACTSHAP_REQUIRE(are_normals(normals, n_columns) && (!is_margin || n_classes == 2));
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == n_columns && out.size[2] == (is_margin ? 1 : n_classes));
  auto found = context.empty<double>(n_classes, n_columns);
  if (context.failed()) return Status::no_memory;
  for (int64_t i = 0; i < n_rows; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    fill_classes(X[i].data, normals, found);
    double* const row = out[i].data;
    if (is_margin)
      for (int64_t j = 0; j < n_columns; j++) row[j] = found[1][j] - found[0][j];
    else
      for (int64_t k = 0; k < n_classes; k++)
        for (int64_t j = 0; j < n_columns; j++) row[j * n_classes + k] = found[k][j];
  }
  return Status::done;
}

/// Add the sizes of the log densities to `out (n_rows,)`:   out_i += sum_j max_k |log density_kj(x_ij)|
Status add_sizes(In<double, 2> X, Normals normals, Out<double, 1> out, Context& context) {
  const int64_t n_columns = X.size[1], n_classes = normals.mean.size[0];
  EXACTSHAP_REQUIRE(are_normals(normals, n_columns) && n_classes > 0 && out.size[0] == X.size[0]);
  auto found = context.empty<double>(n_classes, n_columns);
  if (context.failed()) return Status::no_memory;
  for (int64_t i = 0; i < X.size[0]; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    fill_classes(X[i].data, normals, found);
    double* const __restrict largest = found[0].data;
    for (int64_t j = 0; j < n_columns; j++) largest[j] = fabs(largest[j]);
    for (int64_t k = 1; k < n_classes; k++) {
      const double* const other = found[k].data;
      for (int64_t j = 0; j < n_columns; j++) largest[j] = larger(largest[j], fabs(other[j]));
    }
    double sum = 0.0;
    for (int64_t j = 0; j < n_columns; j++) sum += largest[j];
    out[i] += sum;
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_densities, fill_densities)
EXACTSHAP_KERNEL(additive, add_sizes, add_sizes)
