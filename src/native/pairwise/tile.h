// Kernel values between one row and a tile of LANES other rows, player by player.
//
// A block holds the pairs of some rows i with some rows i' > i. Its last axis is padded to whole tiles, so that every inner loop
// has a constant length and becomes vector instructions; pairs outside the triangle and the padding have kernel value 1 and
// contribute exactly 0.
#pragma once

#include <math.h>
#include <string.h>

#include "../common/exponential.h"
#include "../common/kernel.h"

EXACTSHAP_BEGIN

constexpr int LANES = 64;

enum FactorKind : int64_t { RBF = 0, LAPLACIAN = 1, CAUCHY = 2, CATEGORICAL = 3 };

/// `columns (n_columns, n_rows)` in the order of the players; player j holds columns `starts[j]` to `starts[j + 1] - 1`.
struct Factors {
  In<double, 2> columns;
  In<int64_t, 1> kinds;
  In<double, 1> scales;
  In<int64_t, 1> starts;
  EXACTSHAP_FIELDS(columns, kinds, scales, starts)

  int64_t n_columns() const { return columns.size[0]; }
  int64_t n_rows() const { return columns.size[1]; }
  int64_t n_players() const { return starts.size[0] - 1; }

  bool fit() const {
    if (kinds.size[0] != n_columns() || scales.size[0] != n_columns() || starts.size[0] < 1 || starts[0] != 0) return false;
    for (int64_t j = 0; j < n_players(); j++)
      if (starts[j + 1] < starts[j]) return false;
    return starts[n_players()] == n_columns();
  }
};

/// Pairs of rows `start` <= i < `stop` with rows `first` <= i' < `last`, i' > i.
struct Block {
  int64_t start, stop, first, last;
  EXACTSHAP_FIELDS(start, stop, first, last)

  int64_t height() const { return stop - start; }
  int64_t padded() const { return (last - first + LANES - 1) / LANES * LANES; }
  int64_t width(int64_t tile) const { return last - first - tile < LANES ? last - first - tile : LANES; }
  bool fit(int64_t n_rows) const { return 0 <= start && start <= stop && stop <= n_rows && 0 <= first && first <= last && last <= n_rows; }
};

/// The same for `values (LANES,)`.
EXACTSHAP_INLINE void exponentiate(double* values) {
  Widest some[TOGETHER];
  for (int first = 0; first < LANES; first += TOGETHER * EACH) {
    for (int i = 0; i < TOGETHER; i++) load(values + first + i * EACH, some[i]);
    exponentiate(some);
    for (int i = 0; i < TOGETHER; i++) store(some[i], values + first + i * EACH);
  }
}

/// Add the numbers of a tile to `sums (LANES,)`; return their sum: half of them is added to the other half, again and again.
EXACTSHAP_INLINE double add_lanes(Widest (&values)[LANES / EACH], double* sums) {
  Widest sum;
  for (int i = 0; i < LANES / EACH; i++) load(sums + i * EACH, sum), store(sum + values[i], sums + i * EACH);
  for (int half = LANES / EACH / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) values[i] += values[half + i];
  double last[EACH];
  store(values[0], last);
  for (int half = EACH / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) last[i] += last[half + i];
  return last[0];
}

/// Set `out (LANES,)` to 1 - kernel of one Gaussian column, the usual player: nothing of it leaves the registers.
EXACTSHAP_INLINE void fill_gaussian_gap(double x, double scale, const double* lane, double* __restrict out) {
  Widest some[TOGETHER], u;
  for (int first = 0; first < LANES; first += TOGETHER * EACH) {
    for (int i = 0; i < TOGETHER; i++) {
      load(lane + first + i * EACH, u);
      u = (x - u) * scale;
      some[i] = -(u * u);
    }
    exponentiate(some);
    for (int i = 0; i < TOGETHER; i++) store(1.0 - some[i], out + first + i * EACH);
  }
}

/// The rows of one tile, column by column.
class Tile {
 public:
  Tile(const Factors& factors, Context& context) : factors_(factors) { lanes_ = context.empty<double>(factors.n_columns(), LANES); }

  /// Copy `width` rows from `first` on; repeat the last one as padding.
  void load(int64_t first, int64_t width) {
    first_ = first, width_ = width;
    for (int64_t k = 0; k < factors_.n_columns(); k++) {
      const double* const column = factors_.columns[k].data + first;
      for (int64_t i = 0; i < LANES; i++) lanes_[k][i] = column[i < width ? i : width - 1];
    }
  }

  /// Copy the rows `rows[0]`, ..., `rows[width - 1]`; repeat the last one as padding.
  void load(const int32_t* rows, int64_t width) {
    first_ = 0, width_ = width;
    for (int64_t k = 0; k < factors_.n_columns(); k++)
      for (int64_t i = 0; i < LANES; i++) lanes_[k][i] = factors_.columns[k][rows[i < width ? i : width - 1]];
  }

  /// Set `out (LANES,)` to the kernel of columns `start` to `stop` - 1 between `row` and the lanes:
  ///
  ///   prod_k kappa_k(u_k),   u = s (x - x'):   e^(-u^2),  e^(-|u|),  1 / (1 + u^2),  [x = x']
  ///
  /// Exponents add up over the columns, so that a group costs one exponential.
  void fill_factor(int64_t row, int64_t start, int64_t stop, double* __restrict out) const;

  /// Set `gap (n_players, LANES)` to 1 - kernel, 0 where the lane is not a row after `row`.
  void fill_gaps(int64_t row, Array<double, 2> gap) const {
    const int64_t low = row + 1 - first_;
    for (int64_t j = 0; j < factors_.n_players(); j++) {
      double* const out = gap[j].data;
      const int64_t start = factors_.starts[j], stop = factors_.starts[j + 1];
      if (stop == start + 1 && factors_.kinds[start] == RBF) {
        fill_gaussian_gap(factors_.columns[start][row], factors_.scales[start], lanes_[start].data, out);
      } else {
        fill_factor(row, start, stop, out);
        for (int i = 0; i < LANES; i++) out[i] = 1.0 - out[i];
      }
      for (int64_t i = 0; i < low && i < LANES; i++) out[i] = 0.0;
      for (int64_t i = width_; i < LANES; i++) out[i] = 0.0;
    }
  }

 private:
  Factors factors_;
  Array<double, 2> lanes_;
  int64_t first_ = 0, width_ = 0;
};

inline void Tile::fill_factor(int64_t row, int64_t start, int64_t stop, double* __restrict out) const {
  double exponent[LANES];
  bool has_exponent = false;
  for (int i = 0; i < LANES; i++) {
    exponent[i] = 0.0;
    out[i] = 1.0;
  }
  for (int64_t k = start; k < stop; k++) {
    const double x = factors_.columns[k][row], s = factors_.scales[k];
    const double* __restrict const lane = lanes_[k].data;
    const int64_t kind = factors_.kinds[k];
    has_exponent |= kind == RBF || kind == LAPLACIAN;
    if (kind == RBF) {
      for (int i = 0; i < LANES; i++) {
        const double u = (x - lane[i]) * s;
        exponent[i] -= u * u;
      }
    } else if (kind == LAPLACIAN) {
      for (int i = 0; i < LANES; i++) exponent[i] -= fabs(x - lane[i]) * s;
    } else if (kind == CAUCHY) {
      for (int i = 0; i < LANES; i++) {
        const double u = (x - lane[i]) * s;
        out[i] /= 1.0 + u * u;
      }
    } else {
      for (int i = 0; i < LANES; i++) out[i] = x == lane[i] ? out[i] : 0.0;
    }
  }
  if (!has_exponent) return;
  exponentiate(exponent);
  for (int i = 0; i < LANES; i++) out[i] *= exponent[i];
}

/// Set `out (LANES,)` to k[row, i'] - offset[row] - offset[i'] for the `width` rows from `left` on that come later, else 0.
EXACTSHAP_INLINE void fill_centred(Tile& lanes, const Factors& factors, In<double, 1> offset, int64_t row, int64_t left, int64_t width,
                                   double* __restrict out) {
  double product[LANES];
  lanes.fill_factor(row, 0, factors.n_columns(), product);
  for (int i = 0; i < LANES; i++) out[i] = 0.0;
  for (int64_t i = row < left ? 0 : row + 1 - left; i < width; i++) out[i] = product[i] - offset[row] - offset[left + i];
}

EXACTSHAP_END
