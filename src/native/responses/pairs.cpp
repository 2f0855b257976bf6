// Probabilities of classes from those of their pairs.

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

/// Solve min_p sum_ij (r_ji p_i - r_ij p_j)^2 with sum 1 for each row of `chances (n, n_pairs)`, those of the first of each pair:
///
///   p_t <- p_t + (p' Q p - (Q p)_t) / Q_tt, then p <- p / sum p,   Q_tt = sum_j r_jt^2,  Q_tj = -r_jt r_tj
///
/// until all |(Q p)_t - p' Q p| are less than `near / n_classes`, or after `most_steps` turns over the classes.
Status couple(In<double, 2> chances, double near, int64_t most_steps, Out<double, 2> out, Context& context) {
  const int64_t n = out.size[1];
  EXACTSHAP_REQUIRE(chances.size[0] == out.size[0] && chances.size[1] == n * (n - 1) / 2);
  auto q = context.empty<double>(n, n);
  auto slopes = context.empty<double>(n);
  if (context.failed()) return Status::no_memory;
  for (int64_t row = 0; row < out.size[0]; row++) {
    if (context.interrupted()) return Status::interrupted;
    double* const p = out[row].data;
    for (int64_t t = 0; t < n; t++) q[t][t] = 0.0, p[t] = 1.0 / double(n);
    for (int64_t i = 0, pair = 0; i < n; i++)
      for (int64_t j = i + 1; j < n; j++, pair++) {
        const double one = chances[row][pair], other = 1.0 - one;
        q[i][i] += other * other;
        q[j][j] += one * one;
        q[i][j] = q[j][i] = -one * other;
      }
    for (int64_t step = 0; step < most_steps; step++) {
      double value = 0.0, far = 0.0;
      for (int64_t t = 0; t < n; t++) {
        slopes[t] = 0.0;
        for (int64_t j = 0; j < n; j++) slopes[t] += q[t][j] * p[j];
        value += p[t] * slopes[t];
      }
      for (int64_t t = 0; t < n; t++) far = __builtin_fmax(far, __builtin_fabs(slopes[t] - value));
      if (far < near / double(n)) break;
      for (int64_t t = 0; t < n; t++) {
        const double move = (value - slopes[t]) / q[t][t], sum = 1.0 + move;
        p[t] += move;
        value = (value + move * (move * q[t][t] + 2.0 * slopes[t])) / sum / sum;
        for (int64_t j = 0; j < n; j++) {
          slopes[j] = (slopes[j] + move * q[t][j]) / sum;
          p[j] /= sum;
        }
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(responses, couple, couple)
