// The kernels of docs/native.md; tests pass them what does not fit.

#include "kernel.h"

EXACTSHAP_BEGIN

namespace {

/// Add the weighted sums of each row to `out (n_rows,)`:   out_r = sum_{l >= first} w_l X_rl
template <class T>
Status add_sums(In<T, 2> X, In<double, 1> weights, int64_t first, Out<double, 1> out, Context& context) {
  EXACTSHAP_REQUIRE(weights.size[0] == X.size[1] && out.size[0] == X.size[0]);
  EXACTSHAP_REQUIRE(first >= 0 && first <= X.size[1]);
  auto products = context.empty<double>(X.size[1]);
  if (context.failed()) return Status::no_memory;
  for (int64_t r = 0; r < X.size[0]; r++) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t l = first; l < X.size[1]; l++) products[l] = double(X[r][l]) * weights[l];
    for (int64_t l = first; l < X.size[1]; l++) out[r] += products[l];
  }
  return Status::done;
}

struct Range {
  In<double, 1> values;
  double scale;
  EXACTSHAP_FIELDS(values, scale)
};

struct Chain {
  In<int32_t, 1> next;
  Range range;
  bool reversed;
  EXACTSHAP_FIELDS(next, range, reversed)
};

/// Follow `next` from `start` until it points nowhere; give the number of steps and the scaled sum of values on the way.
Status follow(Chain chain, int64_t start, int64_t& n_steps, double& sum) {
  EXACTSHAP_REQUIRE(chain.next.size[0] == chain.range.values.size[0]);
  const int64_t n = chain.next.size[0];
  for (int64_t at = start; at != -1; at = chain.next[at]) {
    if (at < 0 || at >= n || n_steps > n) return Status::fault;
    n_steps++;
    sum += chain.range.scale * chain.range.values[chain.reversed ? n - 1 - at : at];
  }
  return Status::done;
}

/// Ask for more memory than there is.
Status exhaust(int64_t size, Context& context) {
  auto scratch = context.zeros<double>(size, size, size);
  return context.failed() || scratch.data == nullptr ? Status::no_memory : Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(common, add_sums, add_sums<double>, add_sums<float>)
EXACTSHAP_KERNEL(common, follow, follow)
EXACTSHAP_KERNEL(common, exhaust, exhaust)
