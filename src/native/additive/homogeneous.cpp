// Evaluation of homogeneous functions from their piecewise polynomials on the faces of a cube.

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

/// One function: `coefficients (n_faces, n_cells, n_cells_1, n_powers, n_powers_1)`; the axes _1 have length 1 for two columns.
class Homogeneous {
 public:
  Homogeneous(In<double, 5> coefficients, int64_t degree, int64_t n_columns, Context& context)
      : coefficients_(coefficients), degree_(degree), n_columns_(n_columns) {
    powers_ = context.empty<double>(coefficients.size[4]);
  }

  /// Whether the coefficients belong to a function of two or three columns.
  bool fit() const {
    const int64_t* const size = coefficients_.size;
    const bool two = n_columns_ == 2 && size[2] == 1 && size[4] == 1, three = n_columns_ == 3 && size[2] == size[1];
    return (two || three) && size[0] == 2 * n_columns_ && size[1] > 0 && size[3] > 0 && size[4] > 0;
  }

  double operator()(const double* x) const;

 private:
  In<double, 5> coefficients_;
  int64_t degree_, n_columns_;
  Array<double, 1> powers_;

  int64_t place(double ratio, double& within) const;
};

/// The cell of a coordinate x / r of a face, and where in the cell it lies, from -1 to 1. NaN stays, in the first cell.
EXACTSHAP_INLINE int64_t Homogeneous::place(double ratio, double& within) const {
  const int64_t n_cells = coefficients_.size[1];
  const double u = (ratio + 1.0) * (0.5 * double(n_cells));
  int64_t cell = u >= 0.0 ? int64_t(u) : 0;
  cell = cell < n_cells - 1 ? cell : n_cells - 1;
  within = 2.0 * (u - double(cell)) - 1.0;
  return cell;
}

/// f(x) = r^p P(x / r): r the largest |x_j|, P the polynomial of its face's cell, by Horner's rule in s for all powers of t.
double Homogeneous::operator()(const double* x) const {
  int64_t largest = 0;
  for (int64_t j = 1; j < n_columns_; j++)
    if (fabs(x[j]) > fabs(x[largest])) largest = j;
  const double r = fabs(x[largest]);
  if (r == 0.0) return 0.0;
  double s, t = 0.0;
  const int64_t cell = place(x[largest != 0 ? 0 : 1] / r, s);
  const int64_t other = n_columns_ == 3 ? place(x[largest != 2 ? 2 : 1] / r, t) : 0;
  const In<double, 2> polynomial = coefficients_[2 * largest + (x[largest] < 0.0 ? 1 : 0)][cell][other];
  const int64_t n_powers = polynomial.size[0], width = polynomial.size[1];
  double* __restrict const powers = powers_.data;
  for (int64_t b = 0; b < width; b++) powers[b] = polynomial[n_powers - 1][b];
  for (int64_t a = n_powers - 2; a >= 0; a--) {
    const double* __restrict const coefficient = polynomial[a].data;
    for (int64_t b = 0; b < width; b++) powers[b] = powers[b] * s + coefficient[b];
  }
  double value = powers[width - 1];
  for (int64_t b = width - 2; b >= 0; b--) value = value * t + powers[b];
  return degree_ == 0 ? value : value * r;
}

/// Set `out (n_rows,)` to f(x) for X (n_rows, n_columns).
Status fill_homogeneous(In<double, 2> X, In<double, 5> coefficients, int64_t degree, Out<double, 1> out, Context& context) {
  const Homogeneous function(coefficients, degree, X.size[1], context);
  EXACTSHAP_REQUIRE(function.fit() && out.size[0] == X.size[0]);
  if (context.failed()) return Status::no_memory;
  for (int64_t i = 0; i < X.size[0]; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    out[i] = function(X[i].data);
  }
  return Status::done;
}

/// Set `out (n_rows, n_coalitions)` to sum_z w_z f(x inside, z outside), as the first value plus the mean deviation from it.
///
/// `inside (n_coalitions, n_columns)`. The order of summation is that of the background: equal columns give exact zeros.
Status fill_hybrid_means(In<double, 2> X, In<double, 2> background, In<double, 1> weights, In<bool, 2> inside,
                         In<double, 5> coefficients, int64_t degree, Out<double, 2> out, Context& context) {
  const int64_t n_columns = X.size[1], n_sets = inside.size[0];
  const Homogeneous function(coefficients, degree, n_columns, context);
  EXACTSHAP_REQUIRE(function.fit() && background.size[1] == n_columns && weights.size[0] == background.size[0]);
  EXACTSHAP_REQUIRE(inside.size[1] == n_columns && out.size[0] == X.size[0] && out.size[1] == n_sets);
  if (context.failed()) return Status::no_memory;
  double hybrid[3];
  for (int64_t i = 0; i < X.size[0]; i++)
    for (int64_t S = 0; S < n_sets; S++) {
      if (context.interrupted()) return Status::interrupted;
      double origin = 0.0, deviation = 0.0;
      for (int64_t z = 0; z < background.size[0]; z++) {
        for (int64_t j = 0; j < n_columns; j++) hybrid[j] = inside[S][j] ? X[i][j] : background[z][j];
        const double value = function(hybrid);
        if (z == 0) origin = value;
        deviation += weights[z] * (value - origin);
      }
      out[i][S] = origin + deviation;
    }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_homogeneous, fill_homogeneous)
EXACTSHAP_KERNEL(additive, fill_hybrid_means, fill_hybrid_means)
