// Sums over all coalitions of products of factors on few players each: one pass forwards and one backwards through the cliques of an
// elimination, for a register of terms and background rows at a time.

#include "../common/kernel.h"
#include "../common/lanes.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t LANES = 8;          // terms and background rows at a time
constexpr int64_t CELL = 2 * LANES;   // their real parts, then their imaginary parts
constexpr int64_t WIDTH = int64_t(sizeof(Widest) / sizeof(double));

/// An order of players. The states of a clique are numbers with one bit for each of its players, those of its separator (all but the player
/// that is eliminated) the same without that bit.
struct Plan {
  In<int64_t, 1> size;    // players of each clique
  In<int64_t, 1> own;     // the bit of the player that is eliminated
  In<int64_t, 1> player;  // that player
  In<int64_t, 1> parent;  // the clique that takes the message; -1 for the last
  In<int64_t, 1> start;   // where the states of each clique begin, of all cliques one after the other
  In<int64_t, 1> places;  // where the states of the parent begin, for each clique
  In<int64_t, 1> onto;    // for each of those the state of the separator that it agrees with
  EXACTSHAP_FIELDS(size, own, player, parent, start, places, onto)
};

/// out = a b, lane by lane.
EXACTSHAP_INLINE void multiply(const double* a, const double* b, double* out) {
  for (int64_t i = 0; i < LANES; i += WIDTH) {
    Widest ar, ai, br, bi;
    load(a + i, ar);
    load(a + LANES + i, ai);
    load(b + i, br);
    load(b + LANES + i, bi);
    store(rounded(ar * br) - rounded(ai * bi), out + i);
    store(rounded(ar * bi) + rounded(ai * br), out + LANES + i);
  }
}

/// out = w0 a + w1 b.
EXACTSHAP_INLINE void mix(double w0, const double* a, double w1, const double* b, double* out) {
  for (int64_t i = 0; i < CELL; i += WIDTH) {
    Widest left, right;
    load(a + i, left);
    load(b + i, right);
    store(rounded(left * w0) + rounded(right * w1), out + i);
  }
}

/// out += w a.
EXACTSHAP_INLINE void add(double w, const double* a, double* out) {
  for (int64_t i = 0; i < CELL; i += WIDTH) {
    Widest left, sum;
    load(a + i, left);
    load(out + i, sum);
    store(sum + rounded(left * w), out + i);
  }
}

EXACTSHAP_INLINE void copy(const double* a, double* out) { __builtin_memcpy(out, a, CELL * sizeof(double)); }

EXACTSHAP_INLINE void set_one(double* out) {
  for (int64_t i = 0; i < CELL; i++) out[i] = i < LANES ? 1.0 : 0.0;
}

/// The state of a clique whose player of `bit` is out, from a state of the others.
EXACTSHAP_INLINE int64_t with_gap(int64_t state, int64_t bit) {
  const int64_t low = state & ((int64_t(1) << bit) - 1);
  return ((state - low) << 1) + low;
}

struct Cells {
  double *factors, *products;  // of all states of all cliques
  double *up, *down;           // messages: of all states of all separators, half as many
  double *behind;              // of all states of each clique's parent: the product of the messages of later children
  double *before, *whole;      // scratch: of one clique, and of one state
};

/// Players' weights by state at one node: of separators, and of the parent's players that are not in the clique.
struct Weights {
  const double *in, *out;           // (n_players,)
  const double *separator, *rest;
};

/// Set all messages towards the last clique, and the products of each clique's factor with those of its children.
void forward(const Plan& plan, int64_t n, const Weights& weights, const Cells& cells) {
  for (int64_t s = 0; s < plan.start[n] * CELL; s++) cells.products[s] = cells.factors[s];
  for (int64_t k = 0; k < n; k++) {
    double* const table = cells.products + plan.start[k] * CELL;
    double* const message = cells.up + plan.start[k] / 2 * CELL;
    const int64_t half = int64_t(1) << (plan.size[k] - 1), bit = int64_t(1) << plan.own[k];
    const double in = weights.in[plan.player[k]], out = weights.out[plan.player[k]];
    for (int64_t s = 0; s < half; s++) {
      const int64_t state = with_gap(s, plan.own[k]);
      mix(out, table + state * CELL, in, table + (state + bit) * CELL, message + s * CELL);
    }
    const int64_t p = plan.parent[k];
    if (p < 0) continue;
    double* const above = cells.products + plan.start[p] * CELL;
    const int64_t* const onto = plan.onto.data + plan.places[k];
    for (int64_t s = 0, states = int64_t(1) << plan.size[p]; s < states; s++) multiply(above + s * CELL, message + onto[s] * CELL, above + s * CELL);
  }
}

/// Set the messages of clique k to its children `first, next[first], ...`, given its own from above.
void send_down(const Plan& plan, int64_t k, int64_t last, const int64_t* earlier, const int64_t* later, int64_t first, const Weights& weights,
               const Cells& cells) {
  const int64_t states = int64_t(1) << plan.size[k], own = plan.own[k];
  for (int64_t c = last; c >= 0; c = earlier[c]) {
    double* const behind = cells.behind + plan.places[c] * CELL;
    const int64_t next = later[c];
    for (int64_t s = 0; s < states; s++) {
      if (next < 0)
        set_one(behind + s * CELL);
      else
        multiply(cells.behind + (plan.places[next] + s) * CELL, cells.up + (plan.start[next] / 2 + plan.onto[plan.places[next] + s]) * CELL,
                 behind + s * CELL);
    }
  }
  const double *const factor = cells.factors + plan.start[k] * CELL, *const above = cells.down + plan.start[k] / 2 * CELL;
  for (int64_t s = 0; s < states; s++) {
    const int64_t low = s & ((int64_t(1) << own) - 1), rest = ((s >> (own + 1)) << own) + low;
    multiply(factor + s * CELL, above + rest * CELL, cells.before + s * CELL);
  }
  for (int64_t c = first; c >= 0; c = later[c]) {
    double* const message = cells.down + plan.start[c] / 2 * CELL;
    const int64_t half = int64_t(1) << (plan.size[c] - 1), place = plan.places[c];
    for (int64_t i = 0; i < half * CELL; i++) message[i] = 0.0;
    for (int64_t s = 0; s < states; s++) {
      const int64_t to = plan.onto[place + s];
      multiply(cells.before + s * CELL, cells.behind + (place + s) * CELL, cells.whole);
      add(weights.rest[place + s], cells.whole, message + to * CELL);
      if (later[c] >= 0) multiply(cells.before + s * CELL, cells.up + (plan.start[c] / 2 + to) * CELL, cells.before + s * CELL);
    }
  }
}

/// Add the derivative of every player, times `weight` and the mass of each lane, to `out (n_players,)`.
void backward(const Plan& plan, int64_t n, const int64_t* first, const int64_t* last, const int64_t* earlier, const int64_t* later,
              const Weights& weights, const Cells& cells, const double* mass, double weight, double* out) {
  for (int64_t k = n - 1; k >= 0; k--) {
    const double *const table = cells.products + plan.start[k] * CELL, *const above = cells.down + plan.start[k] / 2 * CELL;
    const int64_t half = int64_t(1) << (plan.size[k] - 1), bit = int64_t(1) << plan.own[k];
    if (plan.parent[k] < 0)
      for (int64_t s = 0; s < half; s++) set_one(cells.down + (plan.start[k] / 2 + s) * CELL);
    double sum[CELL] = {}, rise[CELL], product[CELL];
    for (int64_t s = 0; s < half; s++) {
      const int64_t state = with_gap(s, plan.own[k]);
      mix(-1.0, table + state * CELL, 1.0, table + (state + bit) * CELL, rise);
      multiply(rise, above + s * CELL, product);
      add(weights.separator[plan.start[k] / 2 + s], product, sum);
    }
    multiply(sum, mass, product);
    double total = 0.0;
    for (int64_t i = 0; i < LANES; i++) total += product[i];
    out[plan.player[k]] += weight * total;
    if (first[k] >= 0) send_down(plan, k, last[k], earlier, later, first[k], weights, cells);
  }
}

/// Whether the plan leads nowhere else than into its own tables.
bool fits(const Plan& plan, int64_t n, int64_t n_players) {
  if (plan.size.size[0] != n || plan.own.size[0] != n || plan.player.size[0] != n || plan.parent.size[0] != n) return false;
  if (plan.start.size[0] != n + 1 || plan.places.size[0] != n + 1 || plan.start[0] != 0 || plan.places[0] != 0) return false;
  for (int64_t k = 0; k < n; k++) {
    const int64_t p = plan.parent[k];
    if (plan.size[k] < 1 || plan.size[k] > 30 || plan.own[k] < 0 || plan.own[k] >= plan.size[k]) return false;
    if (plan.player[k] < 0 || plan.player[k] >= n_players || p < -1 || p >= n || (p >= 0 && p <= k)) return false;
    if (plan.start[k + 1] - plan.start[k] != int64_t(1) << plan.size[k]) return false;
  }
  for (int64_t k = 0; k < n; k++) {
    const int64_t p = plan.parent[k], states = p < 0 ? 0 : int64_t(1) << plan.size[p];
    if (plan.places[k + 1] - plan.places[k] != states || plan.places[k + 1] > plan.onto.size[0]) return false;
    for (int64_t s = plan.places[k]; s < plan.places[k + 1]; s++)
      if (plan.onto[s] < 0 || plan.onto[s] >= int64_t(1) << (plan.size[k] - 1)) return false;
  }
  return true;
}

/// Add the values of single players in   v(S) = sum_e Re mass_e prod_k F_ke(S in clique k)   to `out (n_players,)`.
///
/// `real`, `imaginary (n_states, n_elements)` are the factors of all cliques, `mass (2, n_elements)` real and imaginary parts. A player is in
/// with weight `weights (n_nodes, 2, n_players)[:, 1]` and out with [:, 0] at each node; `separator (n_nodes, n_states / 2)` are products of those
/// for the states of separators, `rest (n_nodes, n_places)` for the states of each clique's parent over players that are not in the clique.
Status fill_elimination(In<double, 2> real, In<double, 2> imaginary, In<double, 2> mass, Plan plan, In<double, 3> weights, In<double, 2> separator,
                        In<double, 2> rest, In<double, 1> node_weights, Out<double, 1> out, Context& context) {
  const int64_t n = plan.size.size[0], n_elements = real.size[1], n_states = real.size[0], n_nodes = node_weights.size[0];
  EXACTSHAP_REQUIRE(fits(plan, n, out.size[0]) && plan.start[n] == n_states && imaginary.size[0] == n_states && imaginary.size[1] == n_elements);
  EXACTSHAP_REQUIRE(mass.size[0] == 2 && mass.size[1] == n_elements && weights.size[0] == n_nodes && weights.size[1] == 2);
  EXACTSHAP_REQUIRE(weights.size[2] == out.size[0] && separator.size[0] == n_nodes && separator.size[1] == n_states / 2);
  EXACTSHAP_REQUIRE(rest.size[0] == n_nodes && rest.size[1] == plan.places[n]);
  auto factors = context.empty<double>(n_states, CELL), products = context.empty<double>(n_states, CELL);
  auto up = context.empty<double>(n_states / 2, CELL), down = context.empty<double>(n_states / 2, CELL);
  auto behind = context.empty<double>(plan.places[n], CELL), before = context.empty<double>(n_states, CELL);
  auto whole = context.empty<double>(2, CELL);
  auto tree = context.empty<int64_t>(4, n);  // first and last child, and brothers on either side
  if (context.failed()) return Status::no_memory;
  int64_t *const first = tree[0].data, *const last = tree[1].data, *const earlier = tree[2].data, *const later = tree[3].data;
  for (int64_t i = 0; i < 4 * n; i++) tree.data[i] = -1;
  for (int64_t k = 0; k < n; k++) {
    const int64_t p = plan.parent[k];
    if (p < 0) continue;
    earlier[k] = last[p];
    (last[p] < 0 ? first[p] : later[last[p]]) = k;
    last[p] = k;
  }
  const Cells cells = {factors.data, products.data, up.data, down.data, behind.data, before.data, whole[0].data};
  double* const masses = whole[1].data;
  for (int64_t start = 0; start < n_elements; start += LANES) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t i = 0; i < LANES; i++) {
      const bool is_there = start + i < n_elements;
      const int64_t e = is_there ? start + i : n_elements - 1;
      masses[i] = is_there ? mass[0][e] : 0.0;
      masses[LANES + i] = is_there ? mass[1][e] : 0.0;
      for (int64_t s = 0; s < n_states; s++) {
        factors[s][i] = real[s][e];
        factors[s][LANES + i] = imaginary[s][e];
      }
    }
    for (int64_t q = 0; q < n_nodes; q++) {
      const Weights at = {weights[q][1].data, weights[q][0].data, separator[q].data, rest[q].data};
      forward(plan, n, at, cells);
      backward(plan, n, first, last, earlier, later, at, cells, masses, node_weights[q], out.data);
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_elimination, fill_elimination)
