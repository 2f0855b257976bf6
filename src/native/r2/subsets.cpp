// R2 of least squares on every subset of the columns, from the triangular factor of the data (Shapley regression).
//
// Rows of `factor (p, p + 1)` are R of [X y] = Q R without the row of what no column explains; columns have norm 1 in the data,
// y last. Taking the first column in leaves R without its first row and column, and explains the square of that row's last
// entry. Leaving it out leaves R without its first column, made triangular again by rotations, which are stable at any
// condition number (the Gram matrix would square it). Half of all subsets have the first column, a quarter the first two, so
// that rotations cost O(2^p) altogether, whatever p.
#include <math.h>

#include "../common/kernel.h"

EXACTSHAP_BEGIN
namespace {

/// The subset recursion; `sums[m][s]` and `sums[j][s]` add up the explained part of subsets of s players, of those with j.
class Subsets {
 public:
  Subsets(In<double, 1> tolerance, In<int64_t, 1> start, Out<double, 2> sums, Context& context)
      : tolerance_(tolerance), start_(start), sums_(sums), m_(start.size[0] - 1), p_(tolerance.size[0]) {
    left_out_ = context.empty<double>(m_ + 1, p_, p_ + 1);
    taken_in_ = context.empty<double>(m_ + 1, p_, p_ + 1);
    by_size_ = context.empty<double>(m_ + 1, m_ + 1);
    inside_ = context.empty<double>(m_ + 1, m_ + 1);
  }

  /// Visit the subsets whose first `fixed` players are those of the bits of `prefix`.
  bool visit(In<double, 2> factor, int64_t fixed, int64_t prefix, Context& context) {
    fixed_ = fixed;
    prefix_ = prefix;
    descend(0, 0, factor.data, p_ + 1, p_, 0.0, 0.0, context);
    for (int64_t s = 0; s <= m_; s++) sums_[m_][s] += by_size_[0][s];
    return !stopped_;
  }

 private:
  In<double, 1> tolerance_;
  In<int64_t, 1> start_;
  Out<double, 2> sums_;
  int64_t m_, p_, fixed_ = 0, prefix_ = 0;
  bool stopped_ = false;
  Array<double, 3> left_out_, taken_in_;  // (n_players + 1, p, p + 1): the factors below each player
  Array<double, 2> by_size_, inside_;     // (n_players + 1, n_players + 1): sums over the subsets of the players from g on

  /// Write the factor (c, c + 1) without its first column to `out`, which has c - 1 rows (and may be the factor itself).
  void drop_first(const double* factor, int64_t stride, int64_t c, double* out, int64_t out_stride) {
    for (int64_t i = 0; i < c; i++)
      for (int64_t k = i == 0 ? 0 : i - 1; k < c; k++) out[i * out_stride + k] = factor[i * stride + k + 1];
    for (int64_t i = 0; i + 1 < c; i++) {
      double *__restrict const upper = out + i * out_stride, *__restrict const lower = upper + out_stride;
      const double below = lower[i];
      if (below == 0.0) continue;
      const double length = sqrt(upper[i] * upper[i] + below * below), cosine = upper[i] / length, sine = below / length;
      upper[i] = length;
      for (int64_t k = i + 1; k < c; k++) {
        const double a = upper[k], b = lower[k];
        upper[k] = cosine * a + sine * b;
        lower[k] = cosine * b - sine * a;
      }
    }
  }

  /// Fill by_size_[g] from the subsets of the players from g on; `count` players are inside already, with `rounding` of the worst.
  void descend(int64_t g, int64_t count, const double* factor, int64_t stride, int64_t c, double explained, double rounding,
               Context& context) {
    Array<double, 1> total = by_size_[g];
    if (g == m_) {
      total[0] = explained;
      return;
    }
    if (m_ - g > 8 && context.interrupted()) stopped_ = true;
    for (int64_t s = 0; s <= m_ - g; s++) total[s] = 0.0;
    if (stopped_) return;
    const bool either = g >= fixed_, with = ((prefix_ >> g) & 1) != 0;
    if (either || with) {
      take_in(g, count, factor, stride, c, explained, rounding, context);
      for (int64_t s = 0; s < m_ - g; s++) {
        const double sum = by_size_[g + 1][s];
        total[s + 1] = sum;
        sums_[g][count + s + 1] += sum;
      }
    }
    if (either || !with) {
      double* out = left_out_[g].data;
      for (int64_t k = start_[g]; k < start_[g + 1]; k++, c--) {
        drop_first(factor, stride, c, out, p_ + 1);
        factor = out;
        stride = p_ + 1;
      }
      descend(g + 1, count, factor, stride, c, explained, rounding, context);
      for (int64_t s = 0; s < m_ - g; s++) total[s] += by_size_[g + 1][s];
    }
  }

  /// Descend with the columns of player g inside; a column that those inside explain adds nothing.
  void take_in(int64_t g, int64_t count, const double* factor, int64_t stride, int64_t c, double explained, double rounding,
               Context& context) {
    for (int64_t k = start_[g]; k < start_[g + 1]; k++, c--) {
      const double limit = tolerance_[k] > rounding ? tolerance_[k] : rounding;
      if (fabs(factor[0]) > limit) {
        rounding = limit;
        explained += factor[c] * factor[c];
        factor += stride + 1;
      } else {
        double* out = taken_in_[g].data;
        drop_first(factor, stride, c, out, p_ + 1);
        factor = out;
        stride = p_ + 1;
      }
    }
    descend(g + 1, count + 1, factor, stride, c, explained, rounding, context);
  }
};

bool fits(In<double, 2> factor, In<double, 1> tolerance, In<int64_t, 1> start) {
  const int64_t p = tolerance.size[0], m = start.size[0] - 1;
  if (m < 1 || start[0] != 0 || start[m] != p || factor.size[0] != p || factor.size[1] != p + 1) return false;
  for (int64_t g = 0; g < m; g++)
    if (start[g] > start[g + 1]) return false;
  return true;
}

/// Add the explained parts of subsets by size: `sums (n_players + 1, n_players + 1)`, row j of those with player j, the last of
/// all. `start (n_players + 1,)`: the columns of each player; `tolerance (p,)`: what is left of a column that others explain, of which
/// a column that comes later has at least that of those before it.
Status add_subsets(In<double, 2> factor, In<double, 1> tolerance, In<int64_t, 1> start, int64_t fixed, int64_t prefix,
                   Out<double, 2> sums, Context& context) {
  EXACTSHAP_REQUIRE(fits(factor, tolerance, start) && sums.size[0] == start.size[0] && sums.size[1] == start.size[0]);
  EXACTSHAP_REQUIRE(fixed >= 0 && fixed < start.size[0] && fixed < 62 && prefix >= 0 && prefix >> fixed == 0);
  Subsets subsets(tolerance, start, sums, context);
  if (context.failed()) return Status::no_memory;
  return subsets.visit(factor, fixed, prefix, context) ? Status::done : Status::interrupted;
}

/// Write what each player adds in each order to `gains (n_orders, n_players)`: `columns (p, p)` and `y (p,)` of the factor, by
/// the modified Gram-Schmidt process, in which y is one column more (stable: Bjorck 1967).
Status fill_orders(In<double, 2> columns, In<double, 1> y, In<double, 1> tolerance, In<int64_t, 1> start,
                   In<int64_t, 2> orders, Out<double, 2> gains, Context& context) {
  const int64_t p = tolerance.size[0], m = start.size[0] - 1;
  EXACTSHAP_REQUIRE(m > 0 && start[0] == 0 && start[m] == p && columns.size[0] == p && columns.size[1] == p && y.size[0] == p);
  EXACTSHAP_REQUIRE(orders.size[1] == m && gains.size[0] == orders.size[0] && gains.size[1] == m);
  auto work = context.empty<double>(p, p);
  auto rest = context.empty<double>(p);
  auto place = context.empty<int64_t>(p);
  if (context.failed()) return Status::no_memory;
  for (int64_t r = 0; r < orders.size[0]; r++) {
    if (context.interrupted()) return Status::interrupted;
    int64_t n = 0;
    for (int64_t g = 0; g < m; g++) {
      EXACTSHAP_REQUIRE(orders[r][g] >= 0 && orders[r][g] < m);
      for (int64_t k = start[orders[r][g]]; k < start[orders[r][g] + 1] && n < p; k++) place[n++] = k;
    }
    EXACTSHAP_REQUIRE(n == p);
    for (int64_t a = 0; a < p; a++)
      for (int64_t i = 0; i < p; i++) work[a][i] = columns[place[a]][i];
    for (int64_t i = 0; i < p; i++) rest[i] = y[i];
    int64_t a = 0;
    double rounding = 0.0;  // of the worst column so far, which others leave over
    for (int64_t g = 0; g < m; g++) {
      double gain = 0.0;
      for (int64_t k = start[orders[r][g]]; k < start[orders[r][g] + 1]; k++, a++) {
        double* __restrict const q = work[a].data;
        double square = 0.0;
        for (int64_t i = 0; i < p; i++) square += q[i] * q[i];
        const double length = sqrt(square);
        const double limit = tolerance[k] > rounding ? tolerance[k] : rounding;
        if (!(length > limit)) continue;
        rounding = limit;
        for (int64_t i = 0; i < p; i++) q[i] /= length;
        for (int64_t b = a + 1; b <= p; b++) {
          double* __restrict const other = b < p ? work[b].data : rest.data;
          double along = 0.0;
          for (int64_t i = 0; i < p; i++) along += q[i] * other[i];
          for (int64_t i = 0; i < p; i++) other[i] -= along * q[i];
          if (b == p) gain += along * along;
        }
      }
      gains[r][orders[r][g]] = gain;
    }
  }
  return Status::done;
}

}  // namespace
EXACTSHAP_END

EXACTSHAP_KERNEL(r2, add_subsets, add_subsets)
EXACTSHAP_KERNEL(r2, fill_orders, fill_orders)
