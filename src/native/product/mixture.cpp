// Values of single players of games whose terms are mixtures of Gaussians of a distance: radial kernels.
//
// A term is sum_l w_l exp(-rho_l sum_k D_k) with the squared distances D of the row or of a background row in each player. Of the
// mixture a strip of terms takes what its distances can see: far hybrids see no large rate, near ones are as well off with a few nodes
// for all small rates together. What is left takes as few quadrature nodes as the a-priori bound, times its height, allows.

#include "bounded_rules.h"
#include "functional.h"
#include "strips.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t GROUP = TOGETHER * EACH > LANES ? TOGETHER * EACH / LANES : 1;  // players whose exponentials go together
constexpr int64_t BLOCK = 8;  // a multiple of every GROUP, so that no bit depends on the size of registers
constexpr double GONE = 40.0;   // exp(-40) = 4e-18: nothing beside 1
constexpr int64_t FEW_NODES = 8;  // so many are taken without a search for fewer
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

/// Set `factor` of players `first` to `stop` - 1 to exp(-rate distance), those near 1 by that many steps.
template <int STEPS>
EXACTSHAP_INLINE void fill_factors(const double* distance, double rate, int64_t first, int64_t stop, double* factor) {
  Widest some[TOGETHER];
  for (int64_t begin = first * LANES; begin < stop * LANES; begin += TOGETHER * EACH) {
    for (int i = 0; i < TOGETHER; i++) {
      load(distance + begin + i * EACH, some[i]);
      some[i] = -rounded(some[i] * rate);
    }
    if constexpr (STEPS > 0) exponentiate_near<STEPS>(some);
    else exponentiate(some);
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
  int64_t n_near, n_nearer;  // the first players with exponents up to NEAR and NEARER, in whole blocks

  /// Set the factors of the row at a rate.
  void fill(double rate) const {
    const int64_t near = smaller(n_near, n_active / BLOCK * BLOCK), nearer = smaller(n_nearer, near);
    fill_factors<2>(inside, rate, 0, nearer, a);
    fill_factors<3>(inside, rate, nearer, near, a);
    fill_factors<0>(inside, rate, near, (n_active + GROUP - 1) / GROUP * GROUP, a);
  }

  /// How far its factors are from 1.
  Gaps gaps() const {
    Widest sum[N], square[N], product[N], present;
    for (int i = 0; i < N; i++) sum[i] = square[i] = Widest{} + double(n_players - n_active), product[i] = Widest{} + 1.0;
    for (int64_t k = 0; k < n_active; k++)
      for (int i = 0; i < N; i++) {
        load(a + k * LANES + i * EACH, present);
        const Widest gap = 1.0 - present;
        sum[i] = sum[i] + gap, square[i] = square[i] + gap * gap, product[i] = product[i] * present;
      }
    Gaps found;
    for (int i = 0; i < N; i++) {
      store(sum[i], found.sum + i * EACH), store(square[i], found.square + i * EACH);
      store(product[i], found.product + i * EACH);
    }
    return found;
  }

  /// Set the factors, those of the row unless they are known; return how far they are from constants.
  Spread spread(double rate, bool is_known) const {
    const int64_t padded = (n_players + GROUP - 1) / GROUP * GROUP;
    if (!is_known) fill_factors<0>(inside, rate, 0, padded, a);
    fill_factors<0>(outside, rate, 0, padded, b);
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
    Spread found = {0.0, 0.0, 0.0, 0.0};
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

  /// Add weight times (a - 1) times its share to the total of a player.
  struct AddShare {
    double weight, *total;
    EXACTSHAP_INLINE void operator()(int64_t at, Widest a, Widest share) const {
      Widest sum;
      load(total + at, sum);
      store(sum + weight * ((a - 1.0) * share), total + at);
    }
  };

  /// Add what the shares of functional terms leave: v(empty), v(D), and the values of players that are gone.
  void add_rest(const double* product, double weight) const {
    double *const first = total + n_players * LANES, *const last = first + LANES;
    for (int i = 0; i < LANES; i++) first[i] += weight, last[i] += weight * product[i];
    for (int i = 0; i < LANES && n_active < n_players; i++) behind[n_active * LANES + i] -= weight * share[(n_active - 1) * LANES + i];
  }

  /// Add weight times (a - b) times the shares to `total`, whose last two rows are v(empty) and v(D).
  void add(double weight) const {
    Widest slope, part, sum, present, absent, empty[N], full[N];
    for (int i = 0; i < N; i++) empty[i] = full[i] = Widest{} + weight;
    for (int64_t k = 0; k < n_players; k++)
      for (int i = 0; i < N; i++) {
        const int64_t at = k * LANES + i * EACH;
        const double* const block = strip + k * STEP + i * EACH;
        load(a + at, present), load(total + at, sum);
        load(block + BASE * LANES, absent), load(block + SLOPE * LANES, slope), load(block + SHARE * LANES, part);
        full[i] = full[i] * present, empty[i] = empty[i] * absent;
        store(sum + weight * (slope * part), total + at);
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

/// Sort the players of each term of a strip by their distance: those that are gone at a rate are the last ones.
struct Order {
  double* nearest;   // (n_players,), growing: the smallest distance of any term from here on
  double* furthest;  // (n_players,), growing: the largest distance of any term up to here
  int64_t* player;   // (n_players, LANES)

  static constexpr int64_t BUCKETS = 32;

  void take_as_they_are(int64_t n_players) const {
    for (int64_t k = 0; k < n_players; k++)
      for (int i = 0; i < LANES; i++) player[k * LANES + i] = k;
  }

  /// By powers of two below the largest distance, which is as good as a full order.
  void sort(const double* distance, int64_t n_players) const {
    for (int i = 0; i < LANES; i++) {
      int64_t start[BUCKETS + 1] = {}, largest = 0;
      for (int64_t k = 0; k < n_players; k++) largest = power_of_two(distance[k * LANES + i]) > largest ? power_of_two(distance[k * LANES + i]) : largest;
      for (int64_t k = 0; k < n_players; k++) start[bucket(distance[k * LANES + i], largest) + 1]++;
      for (int64_t j = 0; j < BUCKETS; j++) start[j + 1] += start[j];
      for (int64_t k = 0; k < n_players; k++) player[start[bucket(distance[k * LANES + i], largest)]++ * LANES + i] = k;
    }
  }

  /// Set `ordered` to the distances in this order, from those of the players as they are.
  void arrange(const double* distance, int64_t n_players, double* ordered) const {
    for (int64_t k = 0; k < n_players; k++)
      for (int i = 0; i < LANES; i++) ordered[k * LANES + i] = distance[player[k * LANES + i] * LANES + i];
    double least = 1e308, most = 0.0;
    for (int64_t k = 0; k < n_players; furthest[k++] = most)
      for (int i = 0; i < LANES; i++) most = ordered[k * LANES + i] > most ? ordered[k * LANES + i] : most;
    for (int64_t k = n_players; k-- > 0; nearest[k] = least)
      for (int i = 0; i < LANES; i++) least = ordered[k * LANES + i] < least ? ordered[k * LANES + i] : least;
  }

  /// The number of players that are not gone, of the first n. `weight` is the logarithm of that of the rate.
  int64_t active(double rate, double weight, int64_t n) const {
    const double gone = weight < 0.0 ? GONE + weight : GONE;
    while (n > 0 && rate * nearest[n - 1] > gone) n--;
    return n;
  }

  /// The number of players, of the first n and in whole blocks, whose exponents are at most `limit`.
  int64_t near(double rate, double limit, int64_t n) const {
    for (n = n / BLOCK * BLOCK; n > 0 && rate * furthest[n - 1] > limit;) n -= BLOCK;
    return n;
  }

 private:
  static int64_t power_of_two(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return int64_t(bits >> 52);
  }
  static int64_t bucket(double x, int64_t largest) {
    const int64_t below = largest - power_of_two(x);
    return below < BUCKETS ? BUCKETS - 1 - below : 0;
  }
};

bool are_terms(In<int64_t, 2> terms) {
  for (int64_t r = 0; r < terms.size[0]; r++)
    for (int64_t i = 0; i < terms.size[1]; i++)
      if (terms[r][i] < 0 || terms[r][i] >= terms.size[1]) return false;
  return true;
}

/// Copy the distances of the terms of a strip, of which the last one repeats its first; players behind the last have distance 0.
void load_distances(In<double, 2> distances, const int64_t* terms, int64_t left, int64_t padded, const int64_t* player, double* strip) {
  const int64_t n_players = distances.size[0];
  for (int64_t k = 0; k < n_players; k++)
    for (int64_t i = 0; i < LANES; i++) strip[k * LANES + i] = distances[player[k * LANES + i]][terms[i < left ? i : 0]];
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

/// Nodes of rules for functional terms, and whether some are small.
struct Prepared {
  const Node* nodes;
  int64_t n_nodes;
  bool small;
};

/// All rates of a mixture, for one strip of a row and a background row.
struct Rates {
  const Mixture& mixture;
  const BoundedRules& rules;
  const ReferenceRules& references;
  KeptFactors kept;
  Order order;
  Sweep sweep;
  Prepared bounded_nodes, reference_nodes;
  Array<double, 1> reduced;  // weights of a rule (n_nodes,)
  Node* some_nodes;
  double* suffix;
  int64_t largest;  // number of nodes

  /// Add the values of the distances in `sweep`, times `share`.
  void add(double share) {
    const Span span = span_of(sweep.inside, sweep.outside, sweep.n_players);
    const int64_t covered = mixture.covered(span.most), n_rates = mixture.rates.size[0], n_low = mixture.low_rates.size[1];
    int64_t n_active = sweep.n_players;
    sweep.n_near = sweep.n_nearer = 0;
    for (int64_t l = -n_low; l < n_rates - covered; l++) {
      const int64_t rank = covered + l;
      const double rate = l < 0 ? mixture.low_rates[covered][l + n_low] : mixture.rates[rank];
      double weight = l < 0 ? mixture.low_weights[covered][l + n_low] : mixture.weights[rank];
      if (weight == 0.0) continue;
      const bool last = l >= 0 && rate * span.step > GONE;  // all factors are 0 or 1, and those of larger rates the same
      if (last) weight = mixture.tails[rank];
      const double height = above_logarithm(weight) - rate * span.least;
      if (height > mixture.dropped) {
        // Rates grow and the weights of all that follow fall: who is gone stays gone
        const double heaviest = l < 0 ? weight : mixture.tails[rank];
        if (sweep.functional) {
          if (l <= 0) n_active = sweep.n_near = sweep.n_nearer = sweep.n_players;
          n_active = order.active(rate, above_logarithm(heaviest), n_active);
          sweep.n_near = order.near(rate, NEAR, sweep.n_near), sweep.n_nearer = order.near(rate, NEARER, sweep.n_nearer);
        }
        sweep.n_active = n_active < sweep.n_players ? n_active + 1 : n_active;  // one more stands for all others
        const int64_t slot = l < 0 ? n_rates + n_low + l : rank;
        sweep.a = kept.at(slot);
        const bool is_known = kept.take(slot, l < 0 ? covered : 0);
        if (sweep.functional) add_functional(rate, weight, height);
        else add_rate(rate, weight, height, is_known, weight * share);
      }
      if (last) break;
    }
  }

 private:
  void add_rate(double rate, double weight, double height, bool is_known, double times) {
    const int64_t rule = smallest(sweep.spread(rate, is_known), height, weight);
    const int64_t first = rules.offsets[rule], stop = rules.offsets[rule + 1];
    sum_rule(rules.nodes.slice(first, stop), rules.weights.slice(first, stop), sweep.strip, sweep.n_players);
    largest = stop - first > largest ? stop - first : largest;
    sweep.add(times);
  }

  void add_functional(double rate, double weight, double height) {
    sweep.fill(rate);
    const Gaps gaps = sweep.gaps();
    int64_t rule = references.smallest(gaps, sweep.n_players, above_logarithm(weight), rules.allowed);
    if (rule >= 0) {
      sum_with(references, rule, reference_nodes, weight);
    } else {
      const int64_t last = rules.errors.size[0] - 1;
      double most = 0.0;
      for (int i = 0; i < LANES; i++) most = gaps.sum[i] > most ? gaps.sum[i] : most;
      rule = rules.offsets[last + 1] - rules.offsets[last] <= FEW_NODES ? last : smallest({0.5 * most, 1e300, 0.0, 0.0}, height, weight);
      sum_with(rules, rule, bounded_nodes, weight);
    }
    sweep.add_rest(gaps.product, weight);
  }

  /// The smallest rule whose error is allowed, else the exact one, which is the last: bounds may be infinite.
  int64_t smallest(const Spread& spread, double height, double weight) const {
    double bounds[MOST_RADII];
    spread.fill_bounds(rules.gammas, height, above_logarithm(weight), bounds);
    const int64_t rule = smallest_rule(rules.errors, bounds, rules.allowed), exact = rules.errors.size[0] - 1;
    return rule < exact ? rule : exact;
  }

  /// Take one of some rules. A player that is gone has the factor 1 - t; `prepared` are the nodes of all rules for when none is.
  template <class Rules>
  void sum_with(const Rules& of, int64_t rule, Prepared prepared, double weight) {
    const int64_t first = of.offsets[rule], stop = of.offsets[rule + 1], n_nodes = stop - first;
    const int64_t gone = sweep.n_players - sweep.n_active;
    if (gone == 0) return sum_nodes({prepared.nodes + first, n_nodes, prepared.small}, weight);
    for (int64_t q = first; q < stop; q++) reduced[q - first] = of.weights[q] * power(1.0 - of.nodes[q], gone);
    const In<double, 1> shares = reduced;
    const bool small = fill_nodes(of.nodes.slice(first, stop), shares.slice(0, n_nodes), sweep.n_active, some_nodes);
    sum_nodes({some_nodes, n_nodes, small}, weight);
  }

  void sum_nodes(Prepared chosen, double weight) {
    const Sweep::AddShare deliver = {weight, sweep.total};
    chosen.small ? sum_functional_rule<true>(chosen.nodes, chosen.n_nodes, sweep.a, sweep.n_active, suffix, sweep.share, deliver)
                 : sum_functional_rule<false>(chosen.nodes, chosen.n_nodes, sweep.a, sweep.n_active, suffix, sweep.share, deliver);
    largest = chosen.n_nodes > largest ? chosen.n_nodes : largest;
  }
};

/// Add the values of single players (n_rows, n_players, n_outputs), v(empty) and v(D) (n_rows, n_outputs); set the largest number of nodes (n_rows,).
///
///   phi_j = sum_m w_m sum_i c_i sum_l omega_l (a_j - b_j) sum_q weight_q prod_{k != j} F_k(t_q),   F = b + t (a - b),
///   a_k = exp(-rho_l inside_rki),   b_k = exp(-rho_l outside_mki)
///
/// `terms (n_rows, n_terms)` is the order in which a row takes them: neighbours share rules. It must be 0, 1, ... unless all of `outside` is 0.
Status fill_mixture(In<double, 3> inside, In<double, 3> outside, In<double, 1> background_weights, In<double, 2> c, In<int64_t, 2> terms, Mixture mixture,
                    BoundedRules rules, ReferenceRules references, Out<double, 3> values, Out<double, 2> empty, Out<double, 2> full, Out<int64_t, 1> largest,
                    Context& context) {
  const int64_t n_rows = inside.size[0], n_players = inside.size[1], n_terms = inside.size[2], n_outputs = c.size[0];
  const int64_t n_background = outside.size[0], n_nodes = rules.nodes.size[0] + references.nodes.size[0];  // more than a rule has
  EXACTSHAP_REQUIRE(mixture.fit() && rules.fit() && references.fit() && outside.size[1] == n_players && outside.size[2] == n_terms);
  EXACTSHAP_REQUIRE(background_weights.size[0] == n_background && c.size[1] == n_terms && largest.size[0] == n_rows);
  EXACTSHAP_REQUIRE(values.size[0] == n_rows && values.size[1] == n_players && values.size[2] == n_outputs);
  EXACTSHAP_REQUIRE(empty.size[0] == n_rows && empty.size[1] == n_outputs && full.size[0] == n_rows && full.size[1] == n_outputs);
  EXACTSHAP_REQUIRE(terms.size[0] == n_rows && terms.size[1] == n_terms && are_terms(terms));
  if (n_players == 0) return Status::done;
  const int64_t padded = (n_players + GROUP - 1) / GROUP * GROUP, n_numbers = padded * LANES;
  const int64_t n_all = mixture.rates.size[0] + mixture.low_rates.size[1];
  const int64_t n_slots = n_background > 1 && n_all <= KEPT / n_numbers ? n_all : 1;
  auto present = context.empty<double>(padded, LANES), absent = context.empty<double>(padded, LANES);
  auto a = context.empty<double>(n_slots, n_numbers), b = context.empty<double>(padded, LANES);
  auto counts = context.empty<int64_t>(n_slots);
  auto player = context.empty<int64_t>(n_players, LANES);
  auto strip = context.empty<double>(n_players, STEP), total = context.empty<double>(n_players + 2, LANES);
  auto suffix = context.empty<double>(n_players, MOST, LANES);
  auto share = context.empty<double>(n_players, LANES), behind = context.empty<double>(n_players, LANES);
  auto nodes = context.empty<Node>(rules.nodes.size[0]), reference_nodes = context.empty<Node>(references.nodes.size[0]);
  auto some_nodes = context.empty<Node>(n_nodes);
  auto nearest = context.empty<double>(n_players), furthest = context.empty<double>(n_players), reduced = context.empty<double>(n_nodes);
  auto lanes = context.empty<bool>(n_background, LANES);
  auto lane_weights = context.empty<double>(2, LANES);
  if (context.failed()) return Status::no_memory;
  const bool small = fill_nodes(rules.nodes, rules.weights, n_players, nodes.data);
  const bool small_too = fill_nodes(references.nodes, references.weights, n_players, reference_nodes.data);
  const Coincident coincident = {lanes.data, lane_weights[0].data, lane_weights[1].data, n_background};
  Rates rates = {mixture, rules, references, {a.data, counts.data, n_slots, n_numbers}, {nearest.data, furthest.data, player.data},
                 {present.data, absent.data, a.data, b.data, strip.data, share.data, total.data, behind.data, n_players, false, n_players, 0, 0},
                 {nodes.data, rules.nodes.size[0], small}, {reference_nodes.data, references.nodes.size[0], small_too},
                 reduced, some_nodes.data, suffix.data, 0};
  for (int64_t start = 0; start < n_terms; start += LANES) {
    const int64_t left = smaller(LANES, n_terms - start);
    const bool any = coincident.find(outside, background_weights, start);
    for (int64_t r = 0; r < n_rows; r++) {
      rates.order.take_as_they_are(n_players);
      load_distances(inside[r], terms[r].data + start, left, padded, player.data, present.data);
      total.fill(0.0);
      rates.kept.forget(), rates.largest = largest[r];
      if (any) {
        memcpy(absent.data, present.data, size_t(n_players * LANES) * sizeof(double));
        rates.order.sort(absent.data, n_players);
        rates.order.arrange(absent.data, n_players, present.data);
        rates.sweep.functional = true;
        absent.fill(0.0), behind.fill(0.0);
        rates.add(1.0);
        rates.sweep.add_behind();
        coincident.weigh(n_players, total.data);
        rates.kept.forget();  // those of players that were not gone
      }
      rates.sweep.functional = false;
      for (int64_t m = 0; m < n_background; m++) {
        if (context.interrupted()) return Status::interrupted;
        if (coincident.whole(m)) continue;
        load_distances(outside[m], terms[r].data + start, left, padded, player.data, absent.data);
        coincident.hide(m, n_players, present.data, absent.data);
        rates.add(background_weights[m]);
      }
      largest[r] = rates.largest;
      for (int64_t o = 0; o < n_outputs; o++)
        for (int64_t i = 0; i < left; i++) {
          const double coefficient = c[o][terms[r][start + i]];
          for (int64_t k = 0; k < n_players; k++) values[r][player[k][i]][o] += coefficient * total[k][i];
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
