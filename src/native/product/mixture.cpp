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
constexpr int64_t KEPT = int64_t(1) << 20;  // numbers of a row's factors that are kept for all of the background: 8 MiB

/// The mixture, by growing rates, and for each number of its first terms the few nodes that stand for these up to a distance.
struct Mixture {
  In<double, 1> rates, weights, tails;  // (n_rates,); tails: the weights from here on, added up
  In<double, 1> reaches;                // (n_rates + 1,): the largest squared distance at which the nodes stand for the first terms
  In<double, 2> low_rates, low_weights;  // (n_rates + 1, n_low), by growing rates; a node of weight 0 is none
  double dropped;                       // the largest contribution that is left out
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

/// Rules of growing size, and the error (n_rules, n_spreads) of each, relative to the height of a term, for spreads up to a limit.
struct BoundedRules {
  In<double, 1> spreads;
  In<double, 2> errors;
  In<int64_t, 1> offsets;
  In<double, 1> nodes, weights;
  double allowed;
  EXACTSHAP_FIELDS(spreads, errors, offsets, nodes, weights, allowed)

  bool fit() const {
    const int64_t n_rules = errors.size[0];
    if (n_rules < 1 || spreads.size[0] < 1 || errors.size[1] != spreads.size[0] || offsets.size[0] != n_rules + 1) return false;
    for (int64_t r = 0; r < n_rules; r++)
      if (offsets[r + 1] <= offsets[r]) return false;
    return offsets[0] == 0 && offsets[n_rules] == nodes.size[0] && nodes.size[0] == weights.size[0];
  }

  /// The place of the smallest limit that is no smaller than a spread, from `place` on.
  int64_t place_of(double spread, int64_t place) const {
    while (place + 1 < spreads.size[0] && spreads[place] < spread) place++;
    return place;
  }

  /// The smallest rule whose error, of a term of this height, is allowed; the last one is exact.
  int64_t smallest(int64_t place, double height) const {
    int64_t rule = 0;
    while (rule + 1 < errors.size[0] && errors[rule][place] * height > allowed) rule++;
    return rule;
  }
};

/// The power of two next above exp(-x), for x >= 0.
EXACTSHAP_INLINE double above_exponential(double x) {
  const double halvings = x * 1.4426950408889634;
  if (!(halvings < 1000.0)) return 0.0;
  const uint64_t bits = uint64_t(1023 - int64_t(halvings)) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return power;
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
  int64_t n_players;
  bool functional;  // whether absent factors are 1
  int64_t n_active;  // players whose factors differ: those behind are gone, with factors 0 like the last of these

  /// Set the factors, those of the row unless they are known; return the largest half sum of |a - b| / max(a, b), which bounds the
  /// error of rules.
  double spread(double rate, bool is_known) const {
    const int64_t padded = (n_active + GROUP - 1) / GROUP * GROUP;
    if (!is_known) fill_factors(inside, rate, padded, a);
    if (!functional) fill_factors(outside, rate, padded, b);
    Widest gap[N], present, absent;
    for (int i = 0; i < N; i++) gap[i] = Widest{} + double(n_players - n_active);
    for (int64_t k = 0; k < n_active; k++)
      for (int i = 0; i < N; i++) {
        load(a + k * LANES + i * EACH, present);
        if (functional) {
          gap[i] = gap[i] + (1.0 - present);
          continue;
        }
        load(b + k * LANES + i * EACH, absent);
        const Widest slope = present - absent, size = slope < 0.0 ? -slope : slope, top = present > absent ? present : absent;
        gap[i] = gap[i] + size / top;
        store(absent, strip + k * STEP + BASE * LANES + i * EACH), store(slope, strip + k * STEP + SLOPE * LANES + i * EACH);
      }
    double gaps[LANES], largest = 0.0;
    for (int i = 0; i < N; i++) store(gap[i], gaps + i * EACH);
    for (int i = 0; i < LANES; i++) largest = gaps[i] > largest ? gaps[i] : largest;
    return 0.5 * largest;
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
    for (int64_t k = n_active; k < n_players; k++)
      for (int i = 0; i < N; i++) {
        load(share + (n_active - 1) * LANES + i * EACH, part), load(total + k * LANES + i * EACH, sum);
        store(sum - weight * part, total + k * LANES + i * EACH);
      }
    for (int i = 0; i < N; i++) {
      double *const first = total + n_players * LANES + i * EACH, *const last = first + LANES;
      load(first, sum), store(sum + empty[i], first);
      load(last, sum), store(sum + full[i], last);
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

/// Copy a strip of distances; the last strip repeats its first term, and players behind the last have distance 0.
void load_distances(In<double, 2> distances, int64_t first, int64_t padded, double* strip) {
  const int64_t n_players = distances.size[0], left = distances.size[1] - first;
  for (int64_t k = 0; k < n_players; k++)
    for (int64_t i = 0; i < LANES; i++) strip[k * LANES + i] = distances[k][first + (i < left ? i : 0)];
  memset(strip + n_players * LANES, 0, size_t((padded - n_players) * LANES) * sizeof(double));
}

/// Add the values of single players (n_rows, n_players, n_outputs), v(empty) and v(D) (n_rows, n_outputs); set the largest rule (n_rows,).
///
///   phi_j = sum_m w_m sum_i c_i sum_l omega_l (a_j - b_j) sum_q weight_q prod_{k != j} F_k(t_q),   F = b + t (a - b),
///   a_k = exp(-rho_l inside_rki),   b_k = exp(-rho_l outside_mki)
Status fill_mixture(In<double, 3> inside, In<double, 3> outside, In<double, 1> background_weights, In<double, 2> c, Mixture mixture,
                    BoundedRules rules, Out<double, 3> values, Out<double, 2> empty, Out<double, 2> full, Out<int64_t, 1> largest,
                    Context& context) {
  const int64_t n_rows = inside.size[0], n_players = inside.size[1], n_terms = inside.size[2], n_outputs = c.size[0];
  const int64_t n_background = outside.size[0], n_rates = mixture.rates.size[0], n_low = mixture.low_rates.size[1];
  EXACTSHAP_REQUIRE(mixture.fit() && rules.fit() && outside.size[1] == n_players && outside.size[2] == n_terms);
  EXACTSHAP_REQUIRE(background_weights.size[0] == n_background && c.size[1] == n_terms && largest.size[0] == n_rows);
  EXACTSHAP_REQUIRE(values.size[0] == n_rows && values.size[1] == n_players && values.size[2] == n_outputs);
  EXACTSHAP_REQUIRE(empty.size[0] == n_rows && empty.size[1] == n_outputs && full.size[0] == n_rows && full.size[1] == n_outputs);
  if (n_players == 0) return Status::done;
  const int64_t padded = (n_players + GROUP - 1) / GROUP * GROUP, n_nodes = rules.nodes.size[0];
  auto present = context.empty<double>(padded, LANES), absent = context.empty<double>(padded, LANES);
  const int64_t n_numbers = padded * LANES, n_all = n_rates + n_low;
  const int64_t n_slots = n_background > 1 && n_all <= KEPT / n_numbers ? n_all : 1;
  auto a = context.empty<double>(n_slots, n_numbers);
  auto b = context.empty<double>(padded, LANES);
  auto counts = context.empty<int64_t>(n_slots);
  auto strip = context.empty<double>(n_players, STEP), total = context.empty<double>(n_players + 2, LANES);
  auto suffix = context.empty<double>(n_players, MOST, LANES);
  auto share = context.empty<double>(n_players, LANES);
  auto nodes = context.empty<Node>(n_nodes), some_nodes = context.empty<Node>(n_nodes);
  auto sorted = context.zeros<double>(padded, LANES);
  auto nearest = context.empty<double>(n_players), reduced = context.empty<double>(n_nodes);
  auto player = context.empty<int64_t>(n_players);
  if (context.failed()) return Status::no_memory;
  const bool any_small = fill_nodes(rules.nodes, rules.weights, n_players, nodes.data);
  const Order order = {nearest.data, player.data};
  const KeptFactors kept = {a.data, counts.data, n_slots, n_numbers};
  Sweep sweep = {sorted.data, absent.data, a.data, b.data, strip.data, share.data, total.data, n_players, false, n_players};
  for (int64_t start = 0; start < n_terms; start += LANES)
    for (int64_t r = 0; r < n_rows; r++) {
      load_distances(inside[r], start, padded, present.data);
      total.fill(0.0);
      kept.forget();
      sweep.functional = n_background == 1;
      for (int64_t k = 0; sweep.functional && k < n_players; k++)
        for (int64_t i = 0; i < smaller(LANES, n_terms - start); i++)
          sweep.functional = sweep.functional && outside[0][k][start + i] == 0.0;
      for (int64_t k = 0; k < n_players; k++) player[k] = k;
      if (sweep.functional) order.sort(present.data, n_players);
      for (int64_t k = 0; k < n_players; k++)
        memcpy(sorted.data + k * LANES, present.data + player[k] * LANES, LANES * sizeof(double));
      for (int64_t m = 0; m < n_background; m++) {
        if (context.interrupted()) return Status::interrupted;
        load_distances(outside[m], start, padded, absent.data);
        const Span span = span_of(sorted.data, absent.data, n_players);
        const int64_t covered = mixture.covered(span.most);
        int64_t place = 0;
        for (int64_t l = -n_low; l < n_rates - covered; l++) {
          const int64_t rank = covered + l;
          double rate = l < 0 ? mixture.low_rates[covered][l + n_low] : mixture.rates[rank];
          double weight = l < 0 ? mixture.low_weights[covered][l + n_low] : mixture.weights[rank];
          if (weight == 0.0) continue;
          const bool last = l >= 0 && rate * span.step > GONE;  // all factors are 0 or 1, and those of larger rates the same
          if (last) weight = mixture.tails[rank];
          const double height = weight * above_exponential(rate * span.least);
          if (height > mixture.dropped) {
            sweep.n_active = sweep.functional ? order.active(rate, n_players) : n_players;
            const int64_t slot = l < 0 ? n_rates + n_low + l : rank;
            sweep.a = kept.at(slot);
            place = rules.place_of(sweep.spread(rate, kept.take(slot, l < 0 ? covered : 0)), place);
            const int64_t rule = rules.smallest(place, height), first = rules.offsets[rule], stop = rules.offsets[rule + 1];
            largest[r] = rule > largest[r] ? rule : largest[r];
            if (!sweep.functional) {
              sum_rule(rules.nodes.slice(first, stop), rules.weights.slice(first, stop), strip.data, n_players);
            } else {
              const Node* chosen = nodes.data + first;
              bool small = any_small;
              if (const int64_t gone = n_players - sweep.n_active; gone > 0) {  // each of these has the factor 1 - t
                for (int64_t q = first; q < stop; q++) reduced[q] = rules.weights[q] * squared_power(1.0 - rules.nodes[q], gone);
                small = fill_nodes(rules.nodes.slice(first, stop), In<double, 1>(reduced).slice(first, stop), sweep.n_active, some_nodes.data);
                chosen = some_nodes.data;
              }
              if (small) sum_functional_rule<true>(chosen, stop - first, a.data, sweep.n_active, suffix.data, share.data);
              else sum_functional_rule<false>(chosen, stop - first, a.data, sweep.n_active, suffix.data, share.data);
            }
            sweep.add(weight * background_weights[m]);
          }
          if (last) break;
        }
      }
      const int64_t left = smaller(LANES, n_terms - start);
      for (int64_t o = 0; o < n_outputs; o++)
        for (int64_t i = 0; i < left; i++) {
          const double coefficient = c[o][start + i];
          for (int64_t k = 0; k < n_players; k++) values[r][player[k]][o] += coefficient * total[k][i];
          empty[r][o] += coefficient * total[n_players][i];
          full[r][o] += coefficient * total[n_players + 1][i];
        }
    }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_mixture, fill_mixture)
