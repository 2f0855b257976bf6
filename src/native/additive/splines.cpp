// B-splines of single columns, as features of rows: a linear model of them is an additive one.

#include <math.h>
#include <string.h>

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

/// The splines of each column, which it has equally many of; those beyond `n_splines` are the first ones again (of a periodic function).
///
/// A number below `limits[c][0]` or above `limits[c][1]` has   value_b + (x - limit) slope_b,   `ends[c][side][0 or 1][b]`.
struct Splines {
  In<double, 2> knots, limits;  // (n_columns, n_knots), ascending; (n_columns, 2)
  In<double, 4> ends;           // (n_columns, 2, 2, n_splines)
  int64_t degree;
  EXACTSHAP_FIELDS(knots, limits, ends, degree)
};

constexpr int64_t POLLED = 64;  // rows between two looks for an interruption

/// The last of the knots from `first` up to `stop - 1` that x has reached; the first one where it has reached none.
EXACTSHAP_INLINE int64_t reached(const double* knots, int64_t first, int64_t stop, double x) {
  int64_t found = first;
  for (int64_t left = stop - first; left > 1;) {
    const int64_t half = left / 2;
    found = knots[found + half] <= x ? found + half : found;
    left -= half;
  }
  return found;
}

/// Set `bases` to the DEGREE + 1 splines that are not zero between `knot[0]` and `knot[1]` (Cox 1972, de Boor 1972):
///
///   B_n^j(x) = (x - t_n) / (t_n+j - t_n) B_n^(j-1)(x) + (t_n+j+1 - x) / (t_n+j+1 - t_n+1) B_n+1^(j-1)(x),   0 for knots in one place
template <int DEGREE>
EXACTSHAP_INLINE void fill_bases(const double* knot, double x, double* bases) {
  bases[0] = 1.0;
  for (int j = 1; j <= DEGREE; j++) {
    double carried = 0.0;
    for (int n = 0; n < j; n++) {
      const double right = knot[n + 1], left = knot[n + 1 - j], width = right - left, share = bases[n] / width;
      bases[n] = width == 0.0 ? carried : carried + share * (right - x);
      carried = width == 0.0 ? 0.0 : share * (x - left);
    }
    bases[j] = carried;
  }
}

/// Set the features of one column in one row, which are zeros, the first `kept` of its splines.
template <int DEGREE>
EXACTSHAP_INLINE void fill_column(const Splines& splines, int64_t column, double x, int64_t kept, double* out) {
  const int64_t n_splines = splines.ends.size[3], n_bases = splines.knots.size[1] - DEGREE - 1;
  const double* const limit = splines.limits[column].data;
  if (x < limit[0] || x > limit[1]) {
    const int64_t side = x > limit[1];
    const double *const value = splines.ends[column][side][0].data, *const slope = splines.ends[column][side][1].data;
    for (int64_t b = 0; b < kept; b++) out[b] = value[b] + (x - limit[side]) * slope[b];
    return;
  }
  double bases[DEGREE + 1];
  const double* const knots = splines.knots[column].data;
  const int64_t place = reached(knots, DEGREE, n_bases, x);
  fill_bases<DEGREE>(knots + place, x, bases);
  double doubt = x - x;  // a spline of degree 0 would hide it, and one that is left out
  for (int64_t a = 0; a <= DEGREE; a++) doubt += bases[a] - bases[a];
  for (int64_t b = 0; doubt != 0.0 && b < kept; b++) out[b] = double(NAN);
  for (int64_t a = 0; doubt == 0.0 && a <= DEGREE; a++) {
    const int64_t basis = place - DEGREE + a, b = basis < n_splines ? basis : basis - n_splines;
    if (b < kept) out[b] += bases[a];
  }
}

template <int DEGREE>
Status fill_rows(In<double, 2> X, const Splines& splines, int64_t kept, Out<double, 2> out, Context& context) {
  const int64_t n_columns = X.size[1];
  for (int64_t i = 0; i < X.size[0]; i++) {
    if (i % POLLED == 0 && context.interrupted()) return Status::interrupted;
    const double* const x = X[i].data;
    double* const __restrict row = out[i].data;
    memset(row, 0, size_t(out.size[1]) * sizeof(double));
    for (int64_t c = 0; c < n_columns; c++) fill_column<DEGREE>(splines, c, x[c], kept, row + c * kept);
  }
  return Status::done;
}

/// Set `out (n_rows, n_columns * kept)` to the first splines of each column of `X (n_rows, n_columns)`, column after column; those of a
/// number that is not finite, or has a spline that is not, are not either. `kept` is all of them or one less.
Status fill_splines(In<double, 2> X, Splines splines, int64_t kept, Out<double, 2> out, Context& context) {
  const int64_t n_columns = X.size[1], n_splines = splines.ends.size[3], degree = splines.degree;
  const int64_t n_bases = splines.knots.size[1] - degree - 1;
  EXACTSHAP_REQUIRE(0 <= degree && degree <= 5 && degree < n_bases && n_splines <= n_bases && n_bases <= 2 * n_splines);
  EXACTSHAP_REQUIRE(splines.knots.size[0] == n_columns && splines.limits.size[0] == n_columns && splines.limits.size[1] == 2);
  EXACTSHAP_REQUIRE(splines.ends.size[0] == n_columns && splines.ends.size[1] == 2 && splines.ends.size[2] == 2);
  EXACTSHAP_REQUIRE(out.size[0] == X.size[0] && 0 <= kept && kept <= n_splines && out.size[1] == n_columns * kept);
  switch (degree) {
    case 0: return fill_rows<0>(X, splines, kept, out, context);
    case 1: return fill_rows<1>(X, splines, kept, out, context);
    case 2: return fill_rows<2>(X, splines, kept, out, context);
    case 3: return fill_rows<3>(X, splines, kept, out, context);
    case 4: return fill_rows<4>(X, splines, kept, out, context);
    default: return fill_rows<5>(X, splines, kept, out, context);
  }
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_splines, fill_splines)
