// Values of single players of games whose terms are mixtures of Gaussians of a distance: radial kernels.
//
// A term is sum_l w_l exp(-rho_l sum_k D_k) with the squared distances D of the row or of a background row in each player. Of the
// mixture a strip of terms takes what its distances can see: far hybrids see no large rate, near ones are as well off with a few nodes
// for all small rates together. What is left takes as few quadrature nodes as the a-priori bound, times its height, allows.

#include "functional.h"
#include "strips.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t GROUP = TOGETHER * EACH > LANES ? TOGETHER * EACH / LANES : 1;  // players whose exponentials go together
constexpr double GONE = 40.0;   // exp(-40) = 4e-18: nothing beside 1
constexpr double TINY = 1e-150;  // a factor so small makes its product nothing
constexpr int64_t KEPT = int64_t(1) << 20;  // numbers of a row's factors that are kept for all of the background: 8 MiB

/// The mixture, by growing rates, and for each number of its first terms the few nodes that stand for these up to a distance.
struct Mixture {
  In<double, 1> rates, weights, tails;  // (n_rates,); tails: the weights from here on, added up
  In<double, 1> reaches;                // (n_rates + 1,): the largest squared distance at which the nodes stand for the first terms
  In<double, 2> low_rates, low_weights;  // (n_rates + 1, n_low), by growing rates; a node of weight 0 is none
  double dropped;                       // logarithm of the largest contribution that is left out
  EXACTSHAP_FIELDS(rates, weights, tails, reaches, low_rates, low_weights, dropped)

  bool fit() const {
    const int64_t n = rates.size[0];
    return n > 0 && weights.size[0] == n && tails.size[0] == n && reaches.size[0] == n + 1 && low_rates.size[0] == n + 1 &&
           low_weights.size[0] == n + 1 && low_rates.size[1] == low_weights.size[1];
  }

  /// The largest number of first terms that nodes may stand for.
  int64_t covered(double distance) const {
    int64_t n = rates.size[0];
    while (n > 0 && !(reaches[n] >= distance)) n--;
    return n;
  }
};

constexpr int64_t MOST_RADII = 32;

/// Rules of growing size, and the error of each for integrands that ellipses around [0, 1] bound; behind these the rules of 1, 2, ... nodes
/// for functional terms with small factors.
struct BoundedRules {
  In<double, 1> gammas;  // (n_radii,): the largest |2 t - 1| on an ellipse
  In<double, 2> errors;  // (n_rules, n_radii): logarithms, for an integrand of at most 1 on the ellipse; the last rule is exact
  In<int64_t, 1> offsets;
  In<double, 1> nodes, weights;
  double allowed, allowed_error;  // logarithm of the error of a term, and that error
  int64_t uniform;  // whether rules are those of a density that is 1 on [0, 1]
  EXACTSHAP_FIELDS(gammas, errors, offsets, nodes, weights, allowed, allowed_error, uniform)

  bool fit() const {
    const int64_t n_rules = errors.size[0], n_radii = gammas.size[0];
    if (n_rules < 1 || n_radii < 1 || n_radii > MOST_RADII || errors.size[1] != n_radii || offsets.size[0] < n_rules + 1) return false;
    const int64_t n_all = offsets.size[0] - 1;
    for (int64_t r = 0; r < n_all; r++)
      if (offsets[r + 1] <= offsets[r]) return false;
    return offsets[0] == 0 && offsets[n_all] == nodes.size[0] && nodes.size[0] == weights.size[0];
  }

  bool allows(int64_t rule, const double* bounds) const {
    const double* const error = errors[rule].data;
    int any = 0;
    for (int64_t i = 0; i < gammas.size[0]; i++) any |= error[i] + bounds[i] <= allowed;
    return any != 0;
  }

  /// The smallest rule whose error is allowed for integrands with these logarithms of bounds: errors fall from rule to rule.
  int64_t smallest(const double* bounds) const {
    int64_t low = 0, high = errors.size[0] - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (allows(middle, bounds)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /// The smallest rule for sparse functional terms whose error is allowed, or -1.
  ///
  ///   prod_{k != j} F_k = sum_r e_r t^r (1 - t)^(d - 1 - r),   e_r <= C(d - 1, r) mean^r   (Maclaurin; e_r is elementary symmetric)
  ///
  /// A rule of n nodes is exact for r < 2 n. It underestimates the others, as it is a Gauss rule for s = t / (1 - t), and their
  /// integrals are 1 / (d C(d - 1, r)), so that it is off by at most mean^(2 n) / (d (1 - mean)).
  int64_t sparse(double sum, int64_t n_players, double weight) const {
    const int64_t n_rules = errors.size[0], n_all = offsets.size[0] - 1;
    const double mean = sum / double(n_players - 1);
    if (n_all == n_rules || !(mean < 0.5)) return -1;
    double error = weight / (double(n_players) * (1.0 - mean));
    for (int64_t rule = n_rules; rule < n_all; rule++) {
      error *= mean * mean;
      if (error <= allowed_error) return rule;
    }
    return -1;
  }
};

/// How far the factors of a strip are from constants.
///
///   F = H (1 - y tau),  H = max(a, b), y = |a - b| / H, tau in [0, 1]:   |prod F| <= prod H exp((gamma - 1) sum y / 2)
///   F = m (1 + u delta),  m = (a + b) / 2, delta = (a - b) / (a + b), u = 2 t - 1, as |1 + w|^2 <= exp(2 Re w + |w|^2):
///                                     |prod F| <= prod m exp(gamma |sum delta| + gamma^2 sum delta^2 / 2)
struct Spread {
  double most, least;           // sum y / 2, the largest and the smallest of a lane
  double shift, square, middle;  // |sum delta| + max |delta|, sum delta^2 / 2, and a logarithm not below that of prod m

  /// Set logarithms of bounds on each ellipse; `height` is that of a weight times prod H.
  void fill_bounds(In<double, 1> gammas, double height, double weight, double* bounds) const {
    for (int64_t i = 0; i < gammas.size[0]; i++) {
      const double gamma = gammas[i], one_way = height + (gamma - 1.0) * most;
      const double either = weight + middle + gamma * (shift + gamma * square);
      bounds[i] = either < one_way ? either : one_way;
    }
  }
};

/// A logarithm that is at most log(2) too large, for numbers >= 0.
EXACTSHAP_INLINE double above_logarithm(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (double(int64_t(bits >> 52) - 1023) + 1.0) * 0.6931471805599454;
}

constexpr double ABOVE = 1.0001;  // more than sums of reciprocals are too small

/// 1 / x for normal positive numbers, at most 1e-5 too small: enough for bounds, at a fifth of the price of a division.
///
/// Minus its bits is a reciprocal to 6 %, and each step of Newton squares that error.
EXACTSHAP_INLINE Widest reciprocal(Widest x) {
  typedef uint64_t Bits __attribute__((vector_size(sizeof(Widest))));
  Bits bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  bits = uint64_t(0x7FDE623822FC16E6) - bits;
  Widest guess;
  __builtin_memcpy(&guess, &bits, sizeof guess);
  guess = guess * (2.0 - x * guess);
  return guess * (2.0 - x * guess);
}

/// What a strip of distances spans: the smallest and the largest sum over the players at any hybrid, and the smallest one above 0.
struct Span {
  double least, most, step;
};

Span span_of(const double* inside, const double* outside, int64_t n_players) {
  double least[LANES] = {}, most[LANES] = {};
  Span span = {1e308, 0.0, 1e308};
  for (int64_t k = 0; k < n_players; k++)
    for (int i = 0; i < LANES; i++) {
      const double a = inside[k * LANES + i], b = outside[k * LANES + i];
      least[i] += a < b ? a : b;
      most[i] += a < b ? b : a;
      if (a > 0.0 && a < span.step) span.step = a;
      if (b > 0.0 && b < span.step) span.step = b;
    }
  for (int i = 0; i < LANES; i++) {
    span.least = least[i] < span.least ? least[i] : span.least;
    span.most = most[i] > span.most ? most[i] : span.most;
  }
  return span;
}

/// Set `factor (padded, LANES)` to exp(-rate distance).
EXACTSHAP_INLINE void fill_factors(const double* distance, double rate, int64_t padded, double* factor) {
  Widest some[TOGETHER];
  for (int64_t begin = 0; begin < padded * LANES; begin += TOGETHER * EACH) {
    for (int i = 0; i < TOGETHER; i++) {
      load(distance + begin + i * EACH, some[i]);
      some[i] = -rounded(some[i] * rate);
    }
    exponentiate(some);
    for (int i = 0; i < TOGETHER; i++) store(some[i], factor + begin + i * EACH);
  }
}

/// Everything that one rate of one strip needs.
struct Sweep {
  const double *inside, *outside;  // distances (padded, LANES)
  double *a, *b, *strip, *share, *total;  // factors, buffers of either way, and the sums (n_players + 2, LANES)
  double* behind;  // (n_players, LANES): sums that a player and all behind it gain, those that are gone at a rate
  int64_t n_players;
  bool functional;  // whether absent factors are 1
  int64_t n_active;  // players whose factors differ: those behind are gone, with factors 0 like the last of these

  /// Set the factors, those of the row unless they are known; return how far they are from constants.
  Spread spread(double rate, bool is_known) const {
    const int64_t padded = (n_active + GROUP - 1) / GROUP * GROUP;
    if (!is_known) fill_factors(inside, rate, padded, a);
    return functional ? spread_one_way() : spread_either_way(rate, padded);
  }

  Spread spread_one_way() const {
    Widest gap[N], present;
    for (int i = 0; i < N; i++) gap[i] = Widest{} + double(n_players - n_active);
    for (int64_t k = 0; k < n_active; k++)
      for (int i = 0; i < N; i++) {
        load(a + k * LANES + i * EACH, present);
        gap[i] = gap[i] + (1.0 - present);
      }
    double gaps[LANES];
    for (int i = 0; i < N; i++) store(gap[i], gaps + i * EACH);
    Spread found = {gaps[0], gaps[0], 1e300, 0.0, 0.0};
    for (int i = 1; i < LANES; i++) {
      found.most = gaps[i] > found.most ? gaps[i] : found.most;
      found.least = gaps[i] < found.least ? gaps[i] : found.least;
    }
    found.most *= 0.5, found.least *= 0.5;
    return found;
  }

  Spread spread_either_way(double rate, int64_t padded) const {
    fill_factors(outside, rate, padded, b);
    Widest gap[N], shift[N], square[N], product[N], longest[N], present, absent;
    for (int i = 0; i < N; i++) gap[i] = shift[i] = square[i] = longest[i] = Widest{}, product[i] = Widest{} + 1.0;
    for (int64_t k = 0; k < n_players; k++)
      for (int i = 0; i < N; i++) {
        load(a + k * LANES + i * EACH, present), load(b + k * LANES + i * EACH, absent);
        const Widest slope = present - absent, size = slope < 0.0 ? -slope : slope, top = present > absent ? present : absent;
        // Where TINY is felt, the product of all factors is nothing
        const Widest sum = present + absent, inverse = reciprocal((top + TINY) * (sum + TINY));
        const Widest delta = slope * (top * inverse), length = delta < 0.0 ? -delta : delta;
        gap[i] = gap[i] + size * (sum * inverse), shift[i] = shift[i] + delta, square[i] = square[i] + delta * delta;
        longest[i] = length > longest[i] ? length : longest[i];
        product[i] = product[i] * (0.5 * sum);
        store(absent, strip + k * STEP + BASE * LANES + i * EACH), store(slope, strip + k * STEP + SLOPE * LANES + i * EACH);
      }
    double gaps[LANES], shifts[LANES], squares[LANES], products[LANES];
    for (int i = 0; i < N; i++) {
      store(gap[i], gaps + i * EACH), store((shift[i] < 0.0 ? -shift[i] : shift[i]) + longest[i], shifts + i * EACH);
      store(square[i], squares + i * EACH), store(product[i], products + i * EACH);
    }
    Spread found = {0.0, 0.0, 0.0, 0.0, 0.0};
    double highest = 0.0;
    for (int i = 0; i < LANES; i++) {
      found.most = gaps[i] > found.most ? gaps[i] : found.most;
      found.shift = shifts[i] > found.shift ? shifts[i] : found.shift;
      found.square = squares[i] > found.square ? squares[i] : found.square;
      highest = products[i] > highest ? products[i] : highest;
    }
    found.most *= 0.5 * ABOVE, found.square *= 0.5 * ABOVE, found.shift *= ABOVE, found.middle = above_logarithm(highest);
    return found;
  }

  /// Add weight times (a - b) times the shares to `total`, whose last two rows are v(empty) and v(D).
  void add(double weight) const {
    Widest slope, part, sum, present, absent, empty[N], full[N];
    for (int i = 0; i < N; i++) empty[i] = full[i] = Widest{} + weight;
    for (int64_t k = 0; k < n_active; k++)
      for (int i = 0; i < N; i++) {
        const int64_t at = k * LANES + i * EACH;
        const double* const block = strip + k * STEP + i * EACH;
        load(a + at, present), load(total + at, sum);
        full[i] = full[i] * present;
        if (functional) {
          load(share + at, part);
          slope = present - 1.0;
        } else {
          load(block + BASE * LANES, absent), load(block + SLOPE * LANES, slope), load(block + SHARE * LANES, part);
          empty[i] = empty[i] * absent;
        }
        store(sum + weight * (slope * part), total + at);
      }
    for (int i = 0; i < N && n_active < n_players; i++) {
      load(share + (n_active - 1) * LANES + i * EACH, part), load(behind + n_active * LANES + i * EACH, sum);
      store(sum - weight * part, behind + n_active * LANES + i * EACH);
    }
    for (int i = 0; i < N; i++) {
      double *const first = total + n_players * LANES + i * EACH, *const last = first + LANES;
      load(first, sum), store(sum + empty[i], first);
      load(last, sum), store(sum + full[i], last);
    }
  }

  /// Add to each player what was added for it and all behind it.
  void add_behind() const {
    Widest running[N], part, sum;
    for (int i = 0; i < N; i++) running[i] = Widest{};
    for (int64_t k = 0; k < n_players; k++)
      for (int i = 0; i < N; i++) {
        const int64_t at = k * LANES + i * EACH;
        load(behind + at, part), load(total + at, sum);
        running[i] = running[i] + part;
        store(sum + running[i], total + at);
      }
  }
};

/// A row's factors at each rate, and at the nodes that stand for the first `count` rates, kept from one background row to the next.
struct KeptFactors {
  double* factors;   // (n_slots, n_numbers)
  int64_t* count;    // (n_slots,): of the first rates that a slot's node stands for, 0 for the rates themselves; -1 where it is empty
  int64_t n_slots, n_numbers;

  void forget() const {
    for (int64_t slot = 0; slot < n_slots; slot++) count[slot] = -1;
  }
  double* at(int64_t slot) const { return factors + (n_slots > 1 ? slot * n_numbers : 0); }
  /// Whether a slot's factors are known; they will be.
  bool take(int64_t slot, int64_t of_count) const {
    if (n_slots == 1) return false;
    const bool is_known = count[slot] == of_count;
    count[slot] = of_count;
    return is_known;
  }
};

/// Sort the players of a strip by their smallest distance: those that are gone at a rate are the last ones.
struct Order {
  double* nearest;   // (n_players,), growing
  int64_t* player;   // (n_players,)

  void sort(const double* distance, int64_t n_players) const {
    for (int64_t k = 0; k < n_players; k++) {
      double least = distance[k * LANES];
      for (int i = 1; i < LANES; i++) least = distance[k * LANES + i] < least ? distance[k * LANES + i] : least;
      int64_t place = k;
      for (; place > 0 && nearest[place - 1] > least; place--) nearest[place] = nearest[place - 1], player[place] = player[place - 1];
      nearest[place] = least, player[place] = k;
    }
  }

  /// The number of players that are not gone, and one more: it stands for all others.
  int64_t active(double rate, int64_t n_players) const {
    int64_t n = n_players;
    while (n > 0 && rate * nearest[n - 1] > GONE) n--;
    return n < n_players ? n + 1 : n;
  }
};

/// base to the power n, by squarings.
EXACTSHAP_INLINE double squared_power(double base, int64_t n) {
  double product = 1.0;
  for (; n > 0; n /= 2, base *= base)
    if (n % 2 == 1) product *= base;
  return product;
}

/// The end of the integral over t: the rest is below exp(-margin - log 16) of the height of a functional term,
///
///   int_T^1 c_j prod_{k != j} (1 - t c_k) dt <= int_T^1 exp(-t (sum_k c_k - 1)) dt,   c = 1 - a in [0, 1].
double end_of(double half_sum, double margin) {
  const double rate = 2.0 * half_sum - 1.0, end = rate > 1.0 ? (margin + 2.7726) / rate : 1.0;
  return end > 0.0 && end < 1.0 ? end : 1.0;
}

/// Copy a strip of distances; the last strip repeats its first term, and players behind the last have distance 0.
void load_distances(In<double, 2> distances, int64_t first, int64_t padded, const int64_t* player, double* strip) {
  const int64_t n_players = distances.size[0], left = distances.size[1] - first;
  for (int64_t k = 0; k < n_players; k++) {
    const double* const row = distances[player[k]].data + first;
    for (int64_t i = 0; i < LANES; i++) strip[k * LANES + i] = row[i < left ? i : 0];
  }
  memset(strip + n_players * LANES, 0, size_t((padded - n_players) * LANES) * sizeof(double));
}

/// The terms of a strip whose point is a background row: all of its distances are 0 and all absent factors 1. At no rate is such a
/// term gone, so that a strip with one of them would be swept at all rates, by large rules. The row's game with it is functional.
struct Coincident {
  bool* lanes;        // (n_background, LANES)
  double *all, *few;  // (LANES,): weights of the background rows that a term has the point of, and of those that others of its strip differ from
  int64_t n_background;

  /// Set `lanes` and the weights; return whether there is any.
  bool find(In<double, 3> outside, In<double, 1> weights, int64_t first) const {
    const int64_t left = outside.size[2] - first;
    bool any = false;
    for (int64_t i = 0; i < LANES; i++) all[i] = few[i] = 0.0;
    for (int64_t m = 0; m < n_background; m++) {
      bool* const here = lanes + m * LANES;
      for (int64_t i = 0; i < LANES; i++) here[i] = true;
      for (int64_t k = 0; k < outside.size[1]; k++)
        for (int64_t i = 0; i < LANES; i++) here[i] = here[i] && outside[m][k][first + (i < left ? i : 0)] == 0.0;
      for (int64_t i = 0; i < LANES; i++) {
        any = any || here[i];
        if (here[i]) all[i] += weights[m];
        if (here[i] && !whole(m)) few[i] += weights[m];
      }
    }
    return any;
  }

  /// Whether all terms of the strip have the point of a background row.
  bool whole(int64_t m) const {
    bool found = true;
    for (int64_t i = 0; i < LANES; i++) found = found && lanes[m * LANES + i];
    return found;
  }

  /// Give those of a background row the distances of the row: their values are 0, v(empty) = v(D).
  void hide(int64_t m, int64_t n_players, const double* inside, double* outside) const {
    for (int64_t i = 0; i < LANES; i++)
      for (int64_t k = 0; lanes[m * LANES + i] && k < n_players; k++) outside[k * LANES + i] = inside[k * LANES + i];
  }

  /// Weigh the sums of the functional game, less what hidden terms will add to v(empty) and v(D).
  void weigh(int64_t n_players, double* total) const {
    double *const empty = total + n_players * LANES, *const full = empty + LANES;
    for (int64_t i = 0; i < LANES; i++) {
      for (int64_t k = 0; k < n_players; k++) total[k * LANES + i] *= all[i];
      empty[i] = all[i] * empty[i] - few[i] * full[i];
      full[i] *= all[i] - few[i];
    }
  }
};

/// All rates of a mixture, for one strip of a row and a background row.
struct Rates {
  const Mixture& mixture;
  const BoundedRules& rules;
  KeptFactors kept;
  Order order;
  Sweep sweep;
  const Node* nodes;  // of all rules
  bool any_small;
  Array<double, 1> shrunk, reduced;  // nodes and weights of a rule (n_nodes,)
  Node* some_nodes;
  double* suffix;
  int64_t largest;  // number of nodes

  /// Add the values of the distances in `sweep`, times `share`.
  void add(double share) {
    const Span span = span_of(sweep.inside, sweep.outside, sweep.n_players);
    const int64_t covered = mixture.covered(span.most), n_rates = mixture.rates.size[0], n_low = mixture.low_rates.size[1];
    for (int64_t l = -n_low; l < n_rates - covered; l++) {
      const int64_t rank = covered + l;
      const double rate = l < 0 ? mixture.low_rates[covered][l + n_low] : mixture.rates[rank];
      double weight = l < 0 ? mixture.low_weights[covered][l + n_low] : mixture.weights[rank];
      if (weight == 0.0) continue;
      const bool last = l >= 0 && rate * span.step > GONE;  // all factors are 0 or 1, and those of larger rates the same
      if (last) weight = mixture.tails[rank];
      const double height = above_logarithm(weight) - rate * span.least;
      if (height > mixture.dropped) {
        sweep.n_active = sweep.functional ? order.active(rate, sweep.n_players) : sweep.n_players;
        const int64_t slot = l < 0 ? n_rates + n_low + l : rank;
        sweep.a = kept.at(slot);
        add_rate(rate, weight, height, kept.take(slot, l < 0 ? covered : 0));
        sweep.add(weight * share);
      }
      if (last) break;
    }
  }

 private:
  /// Set the shares of one rate.
  void add_rate(double rate, double weight, double height, bool is_known) {
    const Spread spread = sweep.spread(rate, is_known);
    int64_t rule = -1;
    double end = 1.0;
    if (sweep.functional) rule = rules.sparse(double(sweep.n_players) - 2.0 * spread.least, sweep.n_players, weight);
    if (rule < 0) {
      double bounds[MOST_RADII];
      if (sweep.functional && rules.uniform) end = end_of(spread.least, height - rules.allowed);
      Spread{end * spread.most, 0.0, spread.shift, spread.square, spread.middle}.fill_bounds(
          rules.gammas, height, above_logarithm(weight), bounds);
      rule = rules.smallest(bounds);
    }
    const int64_t first = rules.offsets[rule], stop = rules.offsets[rule + 1];
    largest = stop - first > largest ? stop - first : largest;
    if (sweep.functional) sum_functional(first, stop, end);
    else sum_rule(rules.nodes.slice(first, stop), rules.weights.slice(first, stop), sweep.strip, sweep.n_players);
  }

  void sum_functional(int64_t first, int64_t stop, double end) {
    const Node* chosen = nodes + first;
    bool small = any_small;
    if (const int64_t gone = sweep.n_players - sweep.n_active; gone > 0 || end < 1.0) {  // a player that is gone has the factor 1 - t
      for (int64_t q = first; q < stop; q++) {
        shrunk[q] = end * rules.nodes[q];
        reduced[q] = end * rules.weights[q] * squared_power(1.0 - shrunk[q], gone);
      }
      const In<double, 1> places = shrunk, shares = reduced;
      small = fill_nodes(places.slice(first, stop), shares.slice(first, stop), sweep.n_active, some_nodes);
      chosen = some_nodes;
    }
    if (small) sum_functional_rule<true>(chosen, stop - first, sweep.a, sweep.n_active, suffix, sweep.share);
    else sum_functional_rule<false>(chosen, stop - first, sweep.a, sweep.n_active, suffix, sweep.share);
  }
};

/// Add the values of single players (n_rows, n_players, n_outputs), v(empty) and v(D) (n_rows, n_outputs); set the largest number of nodes (n_rows,).
///
///   phi_j = sum_m w_m sum_i c_i sum_l omega_l (a_j - b_j) sum_q weight_q prod_{k != j} F_k(t_q),   F = b + t (a - b),
///   a_k = exp(-rho_l inside_rki),   b_k = exp(-rho_l outside_mki)
Status fill_mixture(In<double, 3> inside, In<double, 3> outside, In<double, 1> background_weights, In<double, 2> c, Mixture mixture,
                    BoundedRules rules, Out<double, 3> values, Out<double, 2> empty, Out<double, 2> full, Out<int64_t, 1> largest,
                    Context& context) {
  const int64_t n_rows = inside.size[0], n_players = inside.size[1], n_terms = inside.size[2], n_outputs = c.size[0];
  const int64_t n_background = outside.size[0], n_nodes = rules.nodes.size[0];
  EXACTSHAP_REQUIRE(mixture.fit() && rules.fit() && outside.size[1] == n_players && outside.size[2] == n_terms);
  EXACTSHAP_REQUIRE(background_weights.size[0] == n_background && c.size[1] == n_terms && largest.size[0] == n_rows);
  EXACTSHAP_REQUIRE(values.size[0] == n_rows && values.size[1] == n_players && values.size[2] == n_outputs);
  EXACTSHAP_REQUIRE(empty.size[0] == n_rows && empty.size[1] == n_outputs && full.size[0] == n_rows && full.size[1] == n_outputs);
  if (n_players == 0) return Status::done;
  const int64_t padded = (n_players + GROUP - 1) / GROUP * GROUP, n_numbers = padded * LANES;
  const int64_t n_all = mixture.rates.size[0] + mixture.low_rates.size[1];
  const int64_t n_slots = n_background > 1 && n_all <= KEPT / n_numbers ? n_all : 1;
  auto present = context.empty<double>(padded, LANES), absent = context.empty<double>(padded, LANES);
  auto a = context.empty<double>(n_slots, n_numbers), b = context.empty<double>(padded, LANES);
  auto counts = context.empty<int64_t>(n_slots), player = context.empty<int64_t>(n_players);
  auto strip = context.empty<double>(n_players, STEP), total = context.empty<double>(n_players + 2, LANES);
  auto suffix = context.empty<double>(n_players, MOST, LANES);
  auto share = context.empty<double>(n_players, LANES), behind = context.empty<double>(n_players, LANES);
  auto nodes = context.empty<Node>(n_nodes), some_nodes = context.empty<Node>(n_nodes);
  auto nearest = context.empty<double>(n_players), reduced = context.empty<double>(n_nodes), shrunk = context.empty<double>(n_nodes);
  auto lanes = context.empty<bool>(n_background, LANES);
  auto lane_weights = context.empty<double>(2, LANES);
  if (context.failed()) return Status::no_memory;
  const bool any_small = fill_nodes(rules.nodes, rules.weights, n_players, nodes.data);
  const Coincident coincident = {lanes.data, lane_weights[0].data, lane_weights[1].data, n_background};
  Rates rates = {mixture, rules, {a.data, counts.data, n_slots, n_numbers}, {nearest.data, player.data},
                 {present.data, absent.data, a.data, b.data, strip.data, share.data, total.data, behind.data, n_players, false, n_players},
                 nodes.data, any_small, shrunk, reduced, some_nodes.data, suffix.data, 0};
  for (int64_t start = 0; start < n_terms; start += LANES) {
    const bool any = coincident.find(outside, background_weights, start);
    for (int64_t r = 0; r < n_rows; r++) {
      for (int64_t k = 0; k < n_players; k++) player[k] = k;
      load_distances(inside[r], start, padded, player.data, present.data);
      total.fill(0.0), absent.fill(0.0);
      rates.kept.forget(), rates.largest = largest[r];
      if (any) {
        rates.order.sort(present.data, n_players);
        load_distances(inside[r], start, padded, player.data, present.data);
        rates.sweep.functional = true;
        behind.fill(0.0);
        rates.add(1.0);
        rates.sweep.add_behind();
        coincident.weigh(n_players, total.data);
        rates.kept.forget();  // those of players that were not gone
      }
      rates.sweep.functional = false;
      for (int64_t m = 0; m < n_background; m++) {
        if (context.interrupted()) return Status::interrupted;
        if (coincident.whole(m)) continue;
        load_distances(outside[m], start, padded, player.data, absent.data);
        coincident.hide(m, n_players, present.data, absent.data);
        rates.add(background_weights[m]);
      }
      largest[r] = rates.largest;
      const int64_t left = smaller(LANES, n_terms - start);
      for (int64_t o = 0; o < n_outputs; o++)
        for (int64_t i = 0; i < left; i++) {
          const double coefficient = c[o][start + i];
          for (int64_t k = 0; k < n_players; k++) values[r][player[k]][o] += coefficient * total[k][i];
          empty[r][o] += coefficient * total[n_players][i];
          full[r][o] += coefficient * total[n_players + 1][i];
        }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_mixture, fill_mixture)
