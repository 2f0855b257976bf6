// Values of single players of functional games: absent factors are 1, present ones exp(-gamma u^2 - lambda |u|), u = x - point.
//
// Nothing is kept between strips of terms: factors, products and shares of a strip stay in the first-level cache.

#include "../common/rules.h"
#include "functional.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t GROUP = TOGETHER * EACH > LANES ? TOGETHER * EACH / LANES : 1;  // players whose exponentials go together
constexpr int64_t LOOK = 64;   // strips after which somebody may interrupt

/// The exponents' rates of each column, and the points and coefficients of the terms.
struct Expansion {
  In<double, 2> points;  // (n_players, n_terms)
  In<double, 1> squared, absolute;
  In<double, 2> coefficients;  // (n_outputs, n_terms)
  EXACTSHAP_FIELDS(points, squared, absolute, coefficients)

  bool fit() const {
    const int64_t n_players = points.size[0];
    return squared.size[0] == n_players && absolute.size[0] == n_players && coefficients.size[1] == points.size[1];
  }
};

/// Set `factor (padded, LANES)` to the factors of a row and the strip of terms from `first` on: a strip that is not full repeats its first term.
void fill_factors(const double* x, const Expansion& expansion, int64_t first, int64_t padded, double* factor) {
  const int64_t n_players = expansion.points.size[0], left = expansion.points.size[1] - first;
  double repeated[LANES];
  Widest point;
  for (int64_t k = 0; k < n_players; k++) {
    const double* points = expansion.points[k].data + first;
    if (left < LANES) {
      for (int64_t i = 0; i < LANES; i++) repeated[i] = points[i < left ? i : 0];
      points = repeated;
    }
    const double squared = expansion.squared[k], absolute = expansion.absolute[k];
    for (int i = 0; i < LANES; i += EACH) {
      load(points + i, point);
      const Widest u = x[k] - point;
      Widest exponent = Widest{};  // squares of large numbers overflow, and 0 times infinity is no number
      if (squared != 0.0) exponent = rounded(rounded(u * u) * squared);
      if (absolute != 0.0) exponent = exponent + rounded((u < 0.0 ? -u : u) * absolute);
      store(-exponent, factor + k * LANES + i);
    }
  }
  memset(factor + n_players * LANES, 0, size_t((padded - n_players) * LANES) * sizeof(double));
  Widest some[TOGETHER];
  for (int64_t begin = 0; begin < n_players * LANES; begin += TOGETHER * EACH) {
    for (int i = 0; i < TOGETHER; i++) load(factor + begin + i * EACH, some[i]);
    exponentiate(some);
    for (int i = 0; i < TOGETHER; i++) store(some[i], factor + begin + i * EACH);
  }
}

/// Set `inside (LANES,)` to the products of all factors; return the largest spread, half the sum of what they are below 1.
double fill_ends(const double* factor, int64_t n_players, double* inside) {
  Widest product[N], gap[N], a;
  for (int i = 0; i < N; i++) product[i] = Widest{} + 1.0, gap[i] = Widest{};
  for (int64_t k = 0; k < n_players; k++)
    for (int i = 0; i < N; i++) {
      load(factor + k * LANES + i * EACH, a);
      product[i] = product[i] * a;
      gap[i] = gap[i] + (1.0 - a);
    }
  double gaps[LANES], largest = 0.0;
  for (int i = 0; i < N; i++) store(product[i], inside + i * EACH), store(gap[i], gaps + i * EACH);
  for (int i = 0; i < LANES; i++) largest = gaps[i] > largest ? gaps[i] : largest;
  return 0.5 * largest;
}

/// Add a strip to the sums of one output: `total (n_players, LANES)` gains c (a - 1) share.
EXACTSHAP_INLINE void add_strip(const double* coefficient, const double* factor, const double* share, int64_t n_players, double* total) {
  Widest c[N], a, weight, sum;
  for (int i = 0; i < N; i++) load(coefficient + i * EACH, c[i]);
  for (int64_t k = 0; k < n_players; k++)
    for (int i = 0; i < N; i++) {
      const int64_t at = k * LANES + i * EACH;
      load(factor + at, a), load(share + at, weight), load(total + at, sum);
      store(sum + c[i] * ((a - 1.0) * weight), total + at);
    }
}

EXACTSHAP_INLINE double sum_lanes(const double* lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/// Set the values of single players (n_rows, n_players, n_outputs), v(D) without its constant (n_rows, n_outputs), and the largest rule taken (n_rows,).
///
///   phi_j = sum_l c_l (a_lj - 1) sum_q w_q prod_{k != j} (1 + t_q (a_lk - 1)),   a_lk = exp(-gamma_k u^2 - lambda_k |u|)
///
/// Each strip of terms takes the smallest rule that its spread allows.
Status fill_functional(In<double, 2> X, Expansion expansion, GradedRules rules, Out<double, 3> values, Out<double, 2> full,
                       Out<int64_t, 1> largest, Context& context) {
  const int64_t n_rows = X.size[0], n_players = X.size[1], n_terms = expansion.points.size[1], n_outputs = expansion.coefficients.size[0];
  EXACTSHAP_REQUIRE(expansion.fit() && rules.fit(1) && expansion.points.size[0] == n_players && largest.size[0] == n_rows);
  EXACTSHAP_REQUIRE(values.size[0] == n_rows && values.size[1] == n_players && values.size[2] == n_outputs);
  EXACTSHAP_REQUIRE(full.size[0] == n_rows && full.size[1] == n_outputs);
  if (n_players == 0) return Status::done;
  const int64_t padded = (n_players + GROUP - 1) / GROUP * GROUP;
  auto factor = context.empty<double>(padded, LANES), share = context.empty<double>(n_players, LANES);
  auto suffix = context.empty<double>(n_players, MOST, LANES), total = context.empty<double>(n_outputs, n_players + 1, LANES);
  auto nodes = context.empty<Node>(rules.nodes.size[0]);
  if (context.failed()) return Status::no_memory;
  const bool small = fill_nodes(rules.nodes, rules.weights, n_players, nodes.data);
  double coefficient[LANES], inside[LANES];
  int64_t strips = 0;
  for (int64_t r = 0; r < n_rows; r++) {
    total.fill(0.0);
    largest[r] = 0;
    for (int64_t start = 0; start < n_terms; start += LANES) {
      if (strips++ % LOOK == 0 && context.interrupted()) return Status::interrupted;
      fill_factors(X[r].data, expansion, start, padded, factor.data);
      const double spread = fill_ends(factor.data, n_players, inside);
      const int64_t rule = rules.smallest(spread);
      largest[r] = rule > largest[r] ? rule : largest[r];
      const Node* const some = nodes.data + rules.offsets[rule];
      const int64_t n_nodes = rules.offsets[rule + 1] - rules.offsets[rule];
      small ? sum_functional_rule<true>(some, n_nodes, factor.data, n_players, suffix.data, share.data, KeepShares{})
            : sum_functional_rule<false>(some, n_nodes, factor.data, n_players, suffix.data, share.data, KeepShares{});
      for (int64_t o = 0; o < n_outputs; o++) {
        for (int64_t i = 0; i < LANES; i++) coefficient[i] = start + i < n_terms ? expansion.coefficients[o][start + i] : 0.0;
        add_strip(coefficient, factor.data, share.data, n_players, total[o].data);
        for (int i = 0; i < LANES; i++) total[o][n_players][i] += coefficient[i] * inside[i];
      }
    }
    for (int64_t o = 0; o < n_outputs; o++) {
      for (int64_t k = 0; k < n_players; k++) values[r][k][o] = sum_lanes(total[o][k].data);
      full[r][o] = sum_lanes(total[o][n_players].data);
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_functional, fill_functional)
