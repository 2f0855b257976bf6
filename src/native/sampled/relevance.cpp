// Passes of the process over coalitions: fused, so that memory traffic does not rival the factorisation.

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

/// Set `exponential (n, n)`, e, to a e + b / e + `constant` + `diagonal` I and `difference` to a e - b / e, of `scale` a and
/// `mirrored_scale` b.
Status fill_covariance(double scale, double mirrored_scale, double constant, double diagonal, Out<double, 2> exponential,
                       Out<double, 2> difference, Context& context) {
  const int64_t n = exponential.size[0];
  EXACTSHAP_REQUIRE(exponential.size[1] == n && difference.size[0] == n && difference.size[1] == n);
  for (int64_t i = 0; i < n; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    double *__restrict const row = exponential[i].data, *__restrict const apart = difference[i].data;
    for (int64_t j = 0; j < n; j++) {
      const double same = scale * row[j], mirrored = mirrored_scale / row[j];
      row[j] = same + mirrored + constant;
      apart[j] = same - mirrored;
    }
    row[i] += diagonal;
  }
  return Status::done;
}

/// Set `exponential`, e, to a e + b / e + `constant`, of `scale` a and `mirrored_scale` b.
Status fill_sums(double scale, double mirrored_scale, double constant, Out<double, 2> exponential, Context& context) {
  const int64_t n = exponential.size[1];
  for (int64_t i = 0; i < exponential.size[0]; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    double *__restrict const row = exponential[i].data;
    for (int64_t j = 0; j < n; j++) row[j] = scale * row[j] + mirrored_scale / row[j] + constant;
  }
  return Status::done;
}

/// Set `difference (n, n)` to D times it, all of it above its diagonal, doubled:   D = (n_outputs K^-1 - dual scaled^T) / 2
///
/// Only the upper triangle of `inverse` is read.
Status fill_weighted(In<double, 2> inverse, In<double, 2> dual, In<double, 2> scaled, Out<double, 2> difference, Context& context) {
  const int64_t n = dual.size[0], n_outputs = dual.size[1];
  EXACTSHAP_REQUIRE(inverse.size[0] == n && inverse.size[1] == n && difference.size[0] == n && difference.size[1] == n);
  EXACTSHAP_REQUIRE(scaled.size[0] == n && scaled.size[1] == n_outputs);
  auto room = context.empty<double>(n);
  auto columns = context.empty<double>(n_outputs, n);
  if (context.failed()) return Status::no_memory;
  for (int64_t j = 0; j < n; j++)
    for (int64_t k = 0; k < n_outputs; k++) columns[k][j] = dual[j][k];
  double* __restrict const slope = room.data;
  for (int64_t i = 0; i < n; i++) {
    if ((i & 15) == 0 && context.interrupted()) return Status::interrupted;
    const double* __restrict const above = inverse[i].data;
    double* __restrict const row = difference[i].data;
    for (int64_t j = i; j < n; j++) slope[j] = double(n_outputs) * above[j];
    for (int64_t k = 0; k < n_outputs; k++) {
      const double factor = scaled[i][k];
      const double* __restrict const column = columns[k].data;
      for (int64_t j = i; j < n; j++) slope[j] -= factor * column[j];
    }
    for (int64_t j = i; j < n; j++) row[j] *= slope[j];
    row[i] *= 0.5;
    for (int64_t j = 0; j < i; j++) row[j] = 0.0;
  }
  return Status::done;
}

/// Add F_j(x) + `sign` F_j(-x) to `out (n, d)`, without the second term if `sign` is 0:
///
///   F_j(x) = sum_q w_q 2 rho_j x_j / (1 + rho_j) prod_{k != j} (1 + u_q rho_k x_k) / (1 + rho_k),   u = 2 t - 1
Status fill_singles(In<double, 2> points, In<double, 1> rho, In<double, 1> nodes, In<double, 1> weights, double sign,
                    Out<double, 2> out, Context& context) {
  const int64_t d = points.size[1];
  EXACTSHAP_REQUIRE(rho.size[0] == d && nodes.size[0] == weights.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == points.size[0] && out.size[1] == d);
  auto base = context.empty<double>(d), slope = context.empty<double>(d);
  if (context.failed()) return Status::no_memory;
  for (int64_t k = 0; k < d; k++) {
    base[k] = 1.0 / (1.0 + rho[k]);
    slope[k] = rho[k] / (1.0 + rho[k]);
  }
  for (int64_t i = 0; i < points.size[0]; i++) {
    if ((i & 63) == 0 && context.interrupted()) return Status::interrupted;
    const double* __restrict const point = points[i].data;
    double* __restrict const row = out[i].data;
    for (int64_t side = 0; side < (sign == 0.0 ? 1 : 2); side++) {
      const double mirror = side == 0 ? 1.0 : -1.0;
      for (int64_t q = 0; q < nodes.size[0]; q++) {
        const double u = mirror * (2.0 * nodes[q] - 1.0);  // F_j(-x) is -F_j(x) with -u in the place of u
        double product = side == 0 ? weights[q] : -sign * weights[q];
        for (int64_t k = 0; k < d; k++) product *= base[k] + u * slope[k] * point[k];
        for (int64_t j = 0; j < d; j++) {
          const double step = slope[j] * point[j];
          row[j] += product * 2.0 * step / (base[j] + u * step);  // the factor is positive: rho < 1
        }
      }
    }
  }
  return Status::done;
}

/// Subtract B s s^T B / (s^T B s) and add r r^T / (s^T r), given `old` B s, `mixed` r and the two products.
void replace_curvature(In<double, 1> old, double supposed, In<double, 1> mixed, double gained, Array<double, 2> curvature) {
  for (int64_t i = 0; i < old.size[0]; i++) {
    double* __restrict const row = curvature[i].data;
    for (int64_t j = 0; j < old.size[0]; j++) row[j] += mixed[i] * mixed[j] / gained - old[i] * old[j] / supposed;
  }
}

/// Update `curvature (n, n)` by each step s (n_steps, n) and turn y of the gradient on it: damped BFGS (Nocedal & Wright 2006, 18.2):
///
///   B <- B - B s s^T B / (s^T B s) + r r^T / (s^T r),   r = t y + (1 - t) B s
///
/// with the largest t in [0, 1] that leaves s^T r >= c s^T B s, c = `convex`: B stays positive definite.
Status correct_curvature(Out<double, 2> curvature, In<double, 2> steps, In<double, 2> turns, double convex, Context& context) {
  const int64_t n_steps = steps.size[0], n = steps.size[1];
  EXACTSHAP_REQUIRE(turns.size[0] == n_steps && turns.size[1] == n && curvature.size[0] == n && curvature.size[1] == n);
  auto old = context.empty<double>(n), mixed = context.empty<double>(n);
  if (context.failed()) return Status::no_memory;
  for (int64_t k = 0; k < n_steps; k++) {
    if (context.interrupted()) return Status::interrupted;
    double supposed = 0.0, seen = 0.0;
    for (int64_t i = 0; i < n; i++) {
      old[i] = 0.0;
      for (int64_t j = 0; j < n; j++) old[i] += curvature[i][j] * steps[k][j];
      supposed += steps[k][i] * old[i];
      seen += steps[k][i] * turns[k][i];
    }
    const double share = seen >= convex * supposed ? 1.0 : (1.0 - convex) * supposed / (supposed - seen);
    for (int64_t i = 0; i < n; i++) mixed[i] = share * turns[k][i] + (1.0 - share) * old[i];
    const double gained = share * seen + (1.0 - share) * supposed;
    replace_curvature(old, supposed, mixed, gained, curvature);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(sampled, fill_covariance, fill_covariance)
EXACTSHAP_KERNEL(sampled, fill_sums, fill_sums)
EXACTSHAP_KERNEL(sampled, fill_weighted, fill_weighted)
EXACTSHAP_KERNEL(sampled, fill_singles, fill_singles)
EXACTSHAP_KERNEL(sampled, correct_curvature, correct_curvature)
