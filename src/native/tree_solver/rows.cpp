// Quadrature along the paths for one row at a time: the bits of sweep_paths without its coefficients.
//
// Coefficients for three states at every split pay off for many rows, of single players. One row has one state, and its factors are made as it walks:
// all nodes of the rule at once, `n` of them in whole registers, the last ones of weight 0.

#include "../common/lanes.h"
#include "quadrature.h"

EXACTSHAP_BEGIN

namespace {

enum Kept { PRODUCT = 0, SUM = 2, INVERSE = 4, ROWS = 5 };  // at each level: products and sums of both sides, 1 / F below the edge taken

/// Room for the walk of one row. Index 0 of a level is above the root.
struct Walk {
  double* work;                     // (n_levels + 1, ROWS, n_nodes)
  const double** before;            // where the inverse factors above a split are
  int64_t *state, *side_at, *player_at;
  double *outside, *taken;          // products of cover ratios: above a split, and on the side taken
  double (*product)[2];             // of the largest factors of both sides
  double (*magnitude)[2];           // the same, times the magnitudes of leaves; then sums
  double* gains;                    // of one split, node by node
};

constexpr int EACH = int(sizeof(Widest) / sizeof(double));  // nodes in one register

/// Write the products of both sides of an open split, and their sums where they are leaves (`c` 0.0 elsewhere).
EXACTSHAP_INLINE void enter(const double* h, const double* before, double* down, int64_t n, int64_t taken, double b_taken, double b_other,
                            double c_taken, double c_other, const double* rule) {
  double *const to = down + taken * n, *const fro = down + (1 - taken) * n, *const inverse = down + INVERSE * n;
  for (int64_t k = 0; k < n; k += EACH) {
    Widest t, rest, product, above;
    load(rule + NODES * n + k, t), load(rule + REST * n + k, rest), load(h + k, product), load(before + k, above);
    const Widest factor = t + rest * b_taken, ratio = factor * above, other = rest * b_other * above;
    store(product * ratio, to + k), store(product * other, fro + k);
    store(product * (ratio * c_taken), to + SUM * n + k), store(product * (other * c_other), fro + SUM * n + k);
    store(1.0 / factor, inverse + k);
  }
}

/// Do the same at a split on a player that the row failed above.
EXACTSHAP_INLINE void pass_on(const double* h, double* down, int64_t n, double left, double right, double c_left, double c_right) {
  const double of_left = left * c_left, of_right = right * c_right;
  for (int64_t k = 0; k < n; k += EACH) {
    Widest product;
    load(h + k, product);
    store(product * left, down + k), store(product * right, down + n + k);
    store(product * of_left, down + 2 * n + k), store(product * of_right, down + 3 * n + k);
  }
}

/// Add the sums of both sides of a finished open split to `up`, and its gain at each node to `gains`.
EXACTSHAP_INLINE void leave(const double* down, const double* before, double* up, int64_t n, int64_t taken, double outside, double b_taken,
                            double* gains, const double* rule) {
  const double *const to = down + (SUM + taken) * n, *const fro = down + (SUM + 1 - taken) * n, *const inverse = down + INVERSE * n;
  for (int64_t k = 0; k < n; k += EACH) {
    Widest above, of_taken, of_other, below, lost;
    load(before + k, above), load(to + k, of_taken), load(fro + k, of_other), load(inverse + k, below), load(rule + LOST * n + k, lost);
    store(of_taken + of_other, up + k);
    const Widest won = rounded((1.0 - b_taken) * below) - rounded((1.0 - outside) * above), missed = lost - (1.0 - outside) * above;
    store(rounded(of_taken * won) + rounded(of_other * missed), gains + k);
  }
}

/// Go through one split: products of both sides, and sums where they are leaves.
EXACTSHAP_INLINE void open(const double* x, int64_t step, int64_t output, const Steps& steps, In<int32_t, 1> player_of, const double* rule,
                           int64_t n, const Walk& walk) {
  const int64_t level = steps.level[step] + int64_t(1), above = steps.above[step], column = steps.nodes.feature[step];
  const int64_t side = steps.is_right[step] ? 1 : 0, row = ROWS * n;
  walk.side_at[level - 1] = side;
  const int64_t taken = goes_left(x[column], step, steps.nodes) ? LEFT : RIGHT;
  const bool is_failed = above > 0 && walk.state[above] != walk.side_at[above];
  walk.state[level] = is_failed ? int64_t(FAILED) : taken, walk.player_at[level] = player_of[column];
  double* const down = walk.work + level * row;
  const double* const h = down - row + side * n;
  const double* const share = steps.share[step].data;
  const In<double, 1> values[2] = {steps.value[step][0], steps.value[step][1]};
  double left = share[0], right = share[1];
  if (is_failed) {
    pass_on(h, down, n, left, right, values[0][output], values[1][output]);
  } else {
    const double outside = walk.taken[above], b_taken = outside * share[taken], b_other = outside * share[1 - taken];
    walk.outside[level] = outside, walk.taken[level] = b_taken;
    walk.before[level] = walk.work + above * row + INVERSE * n;
    enter(h, walk.before[level], down, n, taken, b_taken, b_other, values[taken][output], values[1 - taken][output], rule);
    left = taken == LEFT ? 1.0 : b_other, right = taken == LEFT ? b_other : 1.0;
  }
  const double product = walk.product[level - 1][side];
  walk.product[level][0] = product * left, walk.product[level][1] = product * right;
  walk.magnitude[level][0] = product * (left * largest(values[0])), walk.magnitude[level][1] = product * (right * largest(values[1]));
}

/// Hand the sums of a finished split to the one above; add its gain at the first `n_nodes` nodes to its player, one after the other.
EXACTSHAP_INLINE void close(int64_t done, const double* rule, int64_t n, int64_t n_nodes, const Walk& walk, double* total) {
  double *const down = walk.work + done * ROWS * n, *const up = down - ROWS * n + (SUM + walk.side_at[done - 1]) * n;
  if (walk.state[done] == FAILED) {
    const double* const of_left = down + SUM * n;
    for (int64_t k = 0; k < n; k += EACH) {
      Widest left, right;
      load(of_left + k, left), load(of_left + n + k, right);
      store(left + right, up + k);
    }
  } else {
    leave(down, walk.before[done], up, n, walk.state[done], walk.outside[done], walk.taken[done], walk.gains, rule);
    double of_player = total[walk.player_at[done]];
    for (int64_t k = 0; k < n_nodes; k++) of_player += walk.gains[k];
    total[walk.player_at[done]] = of_player;
  }
  walk.magnitude[done - 1][walk.side_at[done - 1]] = walk.magnitude[done][0] + walk.magnitude[done][1];
}

/// The distinct players above the split that is open, in slots, and (a - b) / F of each at the nodes of the rule, slots side by side.
struct Above {
  int64_t n_slots;       // of a level, at most, in whole registers
  double* slope;         // (n_nodes, n_slots)
  double* sums;          // (n_slots,)
  int64_t* player;       // (n_slots,)
  int64_t *count, *own;  // (n_levels + 1,): slots in use, and that of the split's own player
  double* taken;         // (n_levels + 1, n_nodes): (a - b) / F below the edge that the row takes
  double* covered;       // (n_levels + 1, n_nodes): what was in a split's own slot, of a split above on the same player

  EXACTSHAP_INLINE void put(const double* values, int64_t slot, int64_t n_nodes) const {
    for (int64_t k = 0; k < n_nodes; k++) slope[k * n_slots + slot] = values[k];
  }
};

/// Put the player of the split above into its slot, as the edge to here leaves it, and choose the slot of a split that was opened.
EXACTSHAP_INLINE void list_above(int64_t step, const Steps& steps, const double* rule, int64_t n, int64_t n_nodes, const Walk& walk,
                                 const Above& above) {
  const int64_t level = steps.level[step] + int64_t(1), parent = level - 1, same = steps.above[step];
  int64_t count = 0;
  if (parent > 0) {
    const int64_t own = above.own[parent];
    // A player that fails has (a - b) / F = -1 / (1 - t) from there on, whatever b is.
    const bool fails = walk.state[parent] == FAILED || walk.state[parent] != walk.side_at[parent];
    above.put(fails ? rule + LOST * n : above.taken + parent * n, own, n_nodes);
    above.player[own] = walk.player_at[parent];
    count = above.count[parent] > own + 1 ? above.count[parent] : own + 1;
  }
  const int64_t own = above.own[level] = same > 0 ? above.own[same] : count;
  above.count[level] = count;
  if (same > 0)
    for (int64_t k = 0; k < n_nodes; k++) above.covered[level * n + k] = above.slope[k * above.n_slots + own];
  if (walk.state[level] == FAILED) return;
  const double b = walk.taken[level];
  const double* const inverse = walk.work + level * ROWS * n + INVERSE * n;
  double* const taken = above.taken + level * n;
  for (int64_t k = 0; k < n; k++) taken[k] = (1.0 - b) * inverse[k];
}

/// Add the gains of a finished split times (a - b) / F of each other player above it to the pairs of both, one node after the other.
///
/// The pair of players i < j is at first_pair[i] + j.
EXACTSHAP_INLINE void add_pairs(int64_t done, int64_t n_nodes, const int64_t* first_pair, const Walk& walk, const Above& above, double* pairs) {
  const int64_t j = walk.player_at[done], count = above.count[done];
  for (int64_t s = 0; s < count; s += EACH) {
    Widest sum = {};
    for (int64_t k = 0; k < n_nodes; k++) {
      Widest slope;
      load(above.slope + k * above.n_slots + s, slope);
      sum += rounded(walk.gains[k] * slope);
    }
    store(sum, above.sums + s);
  }
  for (int64_t s = 0; s < count; s++) {
    if (s == above.own[done]) continue;
    const int64_t i = above.player[s], low = smaller(i, j);
    pairs[first_pair[low] + (i + j - low)] += above.sums[s];
  }
}

/// Room for the walks of single rows: what is at each level, and the rule in whole registers.
struct Room {
  int64_t n_nodes, n;
  Array<double, 1> work, ratios, gains, total;
  Array<double, 2> rule;
  Array<int64_t, 1> numbers;
  Array<const double*, 1> before;
  Array<double[2], 1> pairs;

  Room(In<double, 2> given, int64_t n_levels, int64_t n_players, Context& context)
      : n_nodes(given.size[1]), n((n_nodes + EACH - 1) / EACH * EACH), work(context.empty<double>((n_levels + 1) * ROWS * n)),
        ratios(context.empty<double>(2 * (n_levels + 1))), gains(context.empty<double>(n)), total(context.zeros<double>(n_players)),
        rule(context.zeros<double>(int64_t(4), n)), numbers(context.zeros<int64_t>(3 * (n_levels + 1))),
        before(context.empty<const double*>(n_levels + 1)), pairs(context.empty<double[2]>(2 * (n_levels + 1))) {
    if (context.failed()) return;
    work.fill(1.0);
    ratios.fill(1.0);
    for (int64_t i = 0; i < pairs.size[0]; i++) pairs[i][0] = pairs[i][1] = 1.0;
    rule[NODES].fill(0.5), rule[REST].fill(0.5);
    for (int64_t row = 0; row < 4; row++)
      for (int64_t k = 0; k < n_nodes; k++) rule[row][k] = given[row][k];
    for (int64_t k = 0; k < n; k++) work[k] = rule[WEIGHTS][k];
  }

  Walk walk(int64_t n_levels) const {
    int64_t* const number = numbers.data;
    return {work.data, before.data, number, number + n_levels + 1, number + 2 * (n_levels + 1), ratios.data,
            ratios.data + n_levels + 1, pairs.data, pairs.data + n_levels + 1, gains.data};
  }
};

/// Add the values of pairs of players of all trees to `out (n_pairs, n_outputs, n_rows)`, row by row of `X (n_rows, n_features)`; and those
/// of single players under the same rule to `singles (n_players, n_outputs, n_rows)` and `scale`, with the bits of sweep_rows, unless
/// `singles` is empty.
///
/// Along an edge on player j only (a - b) / F of j changes, so that each split adds, for the players i above it,
///
///   phi_ij = sum_q omega_q sum_{e on j} (a_i - b_i) / F_i ((a_j - b_j) / F_j |_e - (a_j - b_j) / F_j |_{above e}) S_e(t_q)
///
/// O(n_splits n_nodes depth) per row: what a split gains is there already for single players.
Status sweep_pairs(In<double, 2> X, Steps steps, In<int32_t, 1> player_of, In<double, 2> rule, Out<double, 3> out, int64_t n_players,
                   Out<double, 3> singles, Out<double, 1> scale, Context& context) {
  const int64_t n_outputs = out.size[1], n_rows = X.size[0], n_levels = steps.n_levels(), n_pairs = n_players * (n_players - 1) / 2;
  EXACTSHAP_REQUIRE(steps.fit(X.size[1], player_of) && steps.value.size[2] == n_outputs && rule.size[0] == 4);
  EXACTSHAP_REQUIRE(out.size[0] == n_pairs && out.size[2] == n_rows && lie_within(player_of, n_players));
  const bool with_singles = singles.size[0] > 0;
  EXACTSHAP_REQUIRE(!with_singles || (singles.size[0] == n_players && singles.size[1] == n_outputs && singles.size[2] == n_rows));
  EXACTSHAP_REQUIRE(scale.size[0] == n_rows);
  const Room room(rule, n_levels, n_players, context);
  const int64_t n = room.n, n_slots = (n_levels + EACH) / EACH * EACH;
  auto values = context.empty<double>(n_players), pairs = context.empty<double>(n_pairs);
  auto slopes = context.zeros<double>((room.n_nodes + 1) * n_slots), at_levels = context.empty<double>(2 * (n_levels + 1) * n);
  auto numbers = context.zeros<int64_t>(n_slots + 2 * (n_levels + 1)), first_pair = context.empty<int64_t>(n_players);
  if (context.failed()) return Status::no_memory;
  for (int64_t i = 0; i < n_players; i++) first_pair[i] = i * n_players - i * (i + 1) / 2 - i - 1;
  const Walk walk = room.walk(n_levels);
  int64_t* const number = numbers.data + n_slots;
  const Above above{n_slots, slopes.data + n_slots, slopes.data, numbers.data, number, number + n_levels + 1,
                    at_levels.data, at_levels.data + (n_levels + 1) * n};
  for (int64_t o = 0; o < n_outputs; o++)
    for (int64_t i = 0; i < n_rows; i++) {
      if (context.interrupted()) return Status::interrupted;
      double size = 0.0;
      pairs.fill(0.0), values.fill(0.0);
      for (int64_t tree = 0; tree < steps.n_trees(); tree++) {
        const int64_t first = steps.tree_start[tree], last = steps.tree_start[tree + 1];
        if (first == last) continue;
        room.total.fill(0.0);
        for (int64_t step = first; step < last; step++) {
          open(X[i].data, step, o, steps, player_of, room.rule.data, n, walk);
          list_above(step, steps, room.rule.data, n, room.n_nodes, walk, above);
          const int64_t next = step + 1 < last ? steps.level[step + 1] : 0;
          for (int64_t done = steps.level[step] + 1; done > next; done--) {
            close(done, room.rule.data, n, room.n_nodes, walk, room.total.data);
            if (walk.state[done] != FAILED) add_pairs(done, room.n_nodes, first_pair.data, walk, above, pairs.data);
            if (above.own[done] < above.count[done]) above.put(above.covered + done * n, above.own[done], room.n_nodes);
          }
        }
        size += walk.magnitude[0][0];
        for (int64_t j = 0; j < n_players; j++) values[j] += room.total[j];
      }
      for (int64_t p = 0; p < n_pairs; p++) out[p][o][i] += pairs[p];
      for (int64_t j = 0; j < n_players && with_singles; j++) singles[j][o][i] += values[j];
      if (o == 0 && with_singles) scale[i] += size;
    }
  return Status::done;
}

/// Add the values of single players of all trees to `out (n_players, n_outputs, n_rows)`, the sums of magnitudes to `scale`, row by
/// row of `X (n_rows, n_features)`.
Status sweep_rows(In<double, 2> X, Steps steps, In<int32_t, 1> player_of, In<double, 2> rule, Out<double, 3> out, Out<double, 1> scale,
                  Context& context) {
  const int64_t n_players = out.size[0], n_outputs = out.size[1], n_rows = X.size[0], n_levels = steps.n_levels();
  EXACTSHAP_REQUIRE(steps.fit(X.size[1], player_of) && steps.value.size[2] == n_outputs && rule.size[0] == 4);
  EXACTSHAP_REQUIRE(out.size[2] == n_rows && scale.size[0] == n_rows && lie_within(player_of, n_players));
  const Room room(rule, n_levels, n_players, context);
  auto values = context.empty<double>(n_players);
  if (context.failed()) return Status::no_memory;
  const Walk walk = room.walk(n_levels);
  const Array<double, 1> total = room.total;
  for (int64_t o = 0; o < n_outputs; o++)
    for (int64_t i = 0; i < n_rows; i++) {
      if (context.interrupted()) return Status::interrupted;
      double size = 0.0;
      values.fill(0.0);
      for (int64_t tree = 0; tree < steps.n_trees(); tree++) {
        const int64_t first = steps.tree_start[tree], last = steps.tree_start[tree + 1];
        if (first == last) continue;
        total.fill(0.0);
        for (int64_t step = first; step < last; step++) {
          open(X[i].data, step, o, steps, player_of, room.rule.data, room.n, walk);
          const int64_t next = step + 1 < last ? steps.level[step + 1] : 0;
          for (int64_t done = steps.level[step] + 1; done > next; done--) close(done, room.rule.data, room.n, room.n_nodes, walk, total.data);
        }
        size += walk.magnitude[0][0];
        for (int64_t j = 0; j < n_players; j++) values[j] += total[j];
      }
      for (int64_t j = 0; j < n_players; j++) out[j][o][i] += values[j];
      if (o == 0) scale[i] += size;
    }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep_rows, sweep_rows)
EXACTSHAP_KERNEL(tree_solver, sweep_pairs, sweep_pairs)
