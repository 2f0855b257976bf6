// Sweeps over product games.
//
// Python drivers validate, allocate and cut; these kernels fill `out`. Arrays are C-contiguous with the terms last, so that one
// instruction works on several terms: `a (n_rows, n_players, n_terms)`, `b (n_background, n_players, n_terms)`,
// `c (n_outputs, n_terms)`, background `weights (n_background,)`. No divisions, no expansions, no fast-math: with factors in
// [0, 1] nothing can overflow or cancel.

#include "tiles.h"

EXACTSHAP_BEGIN

namespace {

constexpr int STRIP = 32;      // terms per sweep that keeps nothing for each player: the background of a strip stays in cache for all rows
constexpr int LONG_STRIP = 128;  // the same without a background: long reads are foreseen by the processor
constexpr double TINY = 1e-300;  // stands in for a factor that is 0 throughout: half / top is 0 / TINY then

/// Visit every set of `size` players by a stack of running products, one per member, and add its integrand at one node.
template <class T>
void add_sets(int64_t size, Array<T, 2> slope, Array<T, 2> factor, Array<T, 2> suffix, Array<T, 2> running,
              Array<int64_t, 1> position, Array<T, 2> share) {
  const int64_t n_players = slope.size[0];
  int64_t level = 0, s = 0;
  position[0] = 0;
  while (level >= 0) {
    const int64_t k = position[level];
    T* const product = running[level].data;
    if (k > n_players - (size - level)) {  // no room for the rest of the set: one member back, and on to its next player
      level--;
      if (level >= 0) {
        const int64_t j = position[level];
        for (int i = 0; i < TILE; i++) running[level][i] *= factor[j][i];
        position[level] = j + 1;
      }
    } else if (level == size - 1) {
      const T *const slope_k = slope[k].data, *const factor_k = factor[k].data, *const behind = suffix[k + 1].data;
      T* const share_s = share[s].data;
      for (int i = 0; i < TILE; i++) {
        share_s[i] += product[i] * slope_k[i] * behind[i];
        product[i] *= factor_k[i];
      }
      s++;
      position[level] = k + 1;
    } else {
      for (int i = 0; i < TILE; i++) running[level + 1][i] = product[i] * slope[k][i];
      position[level + 1] = k + 1;
      level++;
    }
  }
}

/// The number of sets of `size` players, or -1 above `limit`.
int64_t count_sets(int64_t n_players, int64_t size, int64_t limit) {
  int64_t count = 1;
  for (int64_t k = 1; k <= size; k++) {
    if (__builtin_mul_overflow(count, n_players - size + k, &count)) return -1;
    count /= k;
    if (count > limit) return -1;
  }
  return count;
}

/// Add the values of all sets of `size` players, in lexicographic order, to `out (n_rows, n_sets, n_outputs)`.
///
///   phi_T = sum_m w_m sum_l c_l sum_q omega_q prod_{j in T} (a_lj - b_mlj) prod_{k not in T} F_mlk(t_q)
template <class T>
Status fill_interactions(In<T, 3> a, In<T, 3> b, In<T, 2> c, In<double, 1> weights, int64_t size, In<double, 1> nodes,
                         In<double, 1> node_weights, Out<double, 3> out, Context& context) {
  const int64_t n_rows = a.size[0], n_players = a.size[1], n_terms = a.size[2], n_outputs = c.size[0], n_sets = out.size[1];
  EXACTSHAP_REQUIRE(fit(a, b, c, weights) && nodes.size[0] == node_weights.size[0]);
  EXACTSHAP_REQUIRE(size >= 1 && size <= n_players && n_sets == count_sets(n_players, size, n_sets));
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[2] == n_outputs);
  auto base = context.empty<T>(n_players, TILE), slope = context.empty<T>(n_players, TILE);
  auto factor = context.empty<T>(n_players, TILE), suffix = context.empty<T>(n_players + 1, TILE);
  auto running = context.empty<T>(size + 1, TILE), share = context.empty<T>(n_sets, TILE);
  auto position = context.empty<int64_t>(size + 1);
  auto coefficient = context.empty<T>(n_outputs, TILE);
  if (context.failed()) return Status::no_memory;
  for (int64_t start = 0; start < n_terms; start += TILE) {
    load_coefficients(c, start, coefficient);
    for (int64_t r = 0; r < n_rows; r++) {
      share.fill(T(0.0));
      for (int64_t m = 0; m < weights.size[0]; m++) {
        load_tile(a[r], b[m], start, base, slope);
        for (int64_t q = 0; q < nodes.size[0]; q++) {
          if (context.interrupted()) return Status::interrupted;
          suffix[n_players].fill(T(1.0));
          running[0].fill(T(node_weights[q] * weights[m]));
          for (int64_t k = n_players - 1; k >= 0; k--)
            for (int i = 0; i < TILE; i++) {
              const T value = base[k][i] + T(nodes[q]) * slope[k][i];
              factor[k][i] = value;
              suffix[k][i] = suffix[k + 1][i] * value;
            }
          add_sets(size, slope, factor, suffix, running, position, share);
        }
      }
      if (weights.size[0] > 0) add_tile(share, coefficient, out[r]);
    }
  }
  return Status::done;
}

/// H = |a + b| / 2 + |a - b| / 2: the larger of the two where they are real.
EXACTSHAP_INLINE double height_of(double a, double b) { return larger(fabs(a), fabs(b)); }
EXACTSHAP_INLINE double height_of(Complex a, Complex b) { return magnitude(0.5 * (a + b)) + 0.5 * magnitude(a - b); }

/// The products of one row and one background row over a strip of terms, with what bounds the error of the quadrature.
template <class T>
struct Strip {
  T inside[LONG_STRIP], outside[LONG_STRIP];
  double height[LONG_STRIP], width_sum[LONG_STRIP];

  EXACTSHAP_INLINE void multiply(In<T, 2> a, In<T, 2> b, int64_t start, int64_t width) {
    for (int64_t i = 0; i < width; i++) {
      inside[i] = outside[i] = T(1.0);
      height[i] = 1.0;
      width_sum[i] = 0.0;
    }
    for (int64_t k = 0; k < a.size[0]; k++) {
      const T *const present = a[k].data + start, *const absent = b[k].data + start;
      for (int64_t i = 0; i < width; i++) {
        inside[i] *= present[i];
        outside[i] *= absent[i];
      }
      double half[LONG_STRIP], top[LONG_STRIP];
      int64_t others = 0;  // heights that are not 1: kernels that are 1 at best, against factors set to 1, need no division
      for (int64_t i = 0; i < width; i++) {
        half[i] = 0.5 * magnitude(present[i] - absent[i]);
        top[i] = height_of(present[i], absent[i]);
        others |= top[i] != 1.0;
      }
      if (others == 0) {
        for (int64_t i = 0; i < width; i++) width_sum[i] += half[i];
        continue;
      }
      for (int64_t i = 0; i < width; i++) {
        height[i] *= top[i];
        width_sum[i] += half[i] / (top[i] + TINY);
      }
    }
  }
};

/// Add v(empty) and v(D) (n_rows, n_outputs); set the size and the spread of the factors (n_rows,).
///
/// With H = |a + b| / 2 + |a - b| / 2, an upper bound of every factor on [0, 1]: `scale` is
/// sum_m w_m sum_l max_o |c_lo| prod_k H_mlk and `spread` the largest sum_k |a_lk - b_mlk| / (2 H_mlk), which bounds the
/// quadrature error (see `_nodes`).
template <class T>
Status fill_ends(In<T, 3> a, In<T, 3> b, In<T, 2> c, In<double, 1> weights, Out<double, 2> empty, Out<double, 2> full,
                 Out<double, 1> scale, Out<double, 1> spread, Context& context) {
  const int64_t n_rows = a.size[0], n_terms = a.size[2], n_outputs = c.size[0];
  EXACTSHAP_REQUIRE(fit(a, b, c, weights) && scale.size[0] == n_rows && spread.size[0] == n_rows);
  EXACTSHAP_REQUIRE(empty.size[0] == n_rows && empty.size[1] == n_outputs);
  EXACTSHAP_REQUIRE(full.size[0] == n_rows && full.size[1] == n_outputs);
  Strip<T> strip;
  spread.fill(0.0);
  scale.fill(0.0);
  const int64_t most = weights.size[0] > 1 ? STRIP : LONG_STRIP;
  for (int64_t start = 0; start < n_terms; start += most) {
    const int64_t width = smaller(most, n_terms - start);
    for (int64_t r = 0; r < n_rows; r++)
      for (int64_t m = 0; m < weights.size[0]; m++) {
        if (context.interrupted()) return Status::interrupted;
        strip.multiply(a[r], b[m], start, width);
        const double weight = weights[m];
        for (int64_t i = 0; i < width; i++) {
          spread[r] = larger(spread[r], strip.width_sum[i]);
          double largest = 0.0;
          for (int64_t o = 0; o < n_outputs; o++) {
            const T coefficient = c[o][start + i];
            largest = larger(largest, magnitude(coefficient));
            full[r][o] += weight * real(coefficient * strip.inside[i]);
            empty[r][o] += weight * real(coefficient * strip.outside[i]);
          }
          scale[r] += weight * largest * strip.height[i];
        }
      }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_interactions, fill_interactions<double>, fill_interactions<Complex>)
EXACTSHAP_KERNEL(product, fill_ends, fill_ends<double>, fill_ends<Complex>)
