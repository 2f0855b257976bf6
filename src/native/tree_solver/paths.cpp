// Quadrature along the paths for many rows at a time (see quadrature.h).

#include "quadrature.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t ALL = -1;  // outputs

/// What is filled for one tree and one output: what a split does to a row of each of the three states, node by node,
/// `out (n_steps, 4, 3, n_nodes + 1)`.
///
/// Kinds: 0 and 1 the ratio of the player's factor below the left and right edge to that above, times the value of a leaf (1 for
/// `output` ALL); 2 and 3 their gains. The extra node carries magnitudes: the ratio of the largest factors, without gains.
///
/// `slopes (n_steps, 2, n_nodes)` becomes (a - b) / F below each edge of the rows that take it, if there is room for it.
void fill_coefficients(int64_t first, int64_t last, const Steps& steps, int64_t output, In<double, 2> rule, int64_t* side_at,
                       Array<double, 2> outside_at, double* before, Array<double, 4> out, Array<double, 3> slopes) {
  const int64_t n = rule.size[1];
  for (int64_t step = first; step < last; step++) {
    const int64_t level = steps.level[step], above = steps.above[step];
    if (level > 0) side_at[level - 1] = steps.is_right[step] ? 1 : 0;
    const double outside = above > 0 ? outside_at[above][side_at[above - 1]] : 1.0;
    for (int64_t k = 0; k < n; k++) before[k] = 1.0 / passed(rule[NODES][k], rule[REST][k], outside);
    for (int64_t side = 0; side < 2; side++) {
      const double share = steps.share[step][side], b = outside * share;
      const bool is_leaf = steps.is_leaf[step][side];
      const double value = is_leaf && output != ALL ? steps.value[step][side][output] : 1.0;
      const double magnitude = is_leaf ? largest(steps.value[step][side]) : 1.0;
      outside_at[level + 1][side] = b;
      const auto edge = out[step - first][side], gains = out[step - first][2 + side];
      double *const taken = edge[side].data, *const other = edge[1 - side].data, *const failed = edge[FAILED].data;
      double *const gain_taken = gains[side].data, *const gain_other = gains[1 - side].data;
      for (int64_t k = 0; k < n; k++) {
        const double rest = rule[REST][k], below = passed(rule[NODES][k], rest, b);
        taken[k] = below * before[k] * value;
        other[k] = rest * b * before[k] * value;
        failed[k] = share * value;
        gain_taken[k] = gain(b, 1.0 / below, outside, before[k]);
        gain_other[k] = loss(rule[LOST][k], outside, before[k]);
        if (slopes.size[0] > 0) slopes[step - first][side][k] = (1.0 - b) * (1.0 / below);
      }
      taken[n] = magnitude, other[n] = b * magnitude, failed[n] = share * magnitude;
      for (int64_t state = 0; state < 3; state++) gains[state][n] = 0.0;
    }
  }
}

/// Room for one block of rows, `width` of them; products and sums are `(n_levels + 1, ..., n_nodes + 1, width)`.
struct Block {
  int64_t width;
  Array<uint8_t, 1> went;
  Array<int64_t, 2> states;
  Array<double, 3> products;
  Array<double, 4> sums;
  Array<double, 2> total;  // (n_players, width)
  Array<int64_t, 1> side_at, position;
};

// Loops over the rows of a block, apart: inlined, gcc finds no vector instructions for them.

EXACTSHAP_APART void start_states(const uint8_t* __restrict went, int64_t* __restrict here, int64_t width) {
  for (int64_t r = 0; r < width; r++) here[r] = went[r] ? LEFT : RIGHT;
}

EXACTSHAP_APART void fail_states(const int64_t* __restrict above, int64_t side, int64_t* __restrict here, int64_t width) {
  for (int64_t r = 0; r < width; r++) here[r] = above[r] == side ? here[r] : int64_t(FAILED);
}

EXACTSHAP_APART void multiply_lanes(const int64_t* __restrict state, double left, double right, double failed, const double* __restrict from,
                                     double* __restrict to, int64_t width) {
  for (int64_t r = 0; r < width; r++) {
    const double ratio = state[r] == LEFT ? left : right;
    to[r] = from[r] * (state[r] == FAILED ? failed : ratio);
  }
}

/// What a row that goes left, and one that goes right, gains on one side of a split.
struct Gains {
  double left, right;
};

EXACTSHAP_APART void finish_lanes(const int64_t* __restrict state, Gains on_left, Gains on_right, const double* __restrict left,
                                   const double* __restrict right, double* __restrict to, double* __restrict total, int64_t width) {
  for (int64_t r = 0; r < width; r++) {
    const double left_gain = state[r] == LEFT ? on_left.left : on_left.right;
    const double right_gain = state[r] == LEFT ? on_right.left : on_right.right;
    const double change = left[r] * left_gain + right[r] * right_gain;
    total[r] += state[r] == FAILED ? 0.0 : change;
    to[r] = left[r] + right[r];
  }
}

/// Write the states at a split of the rows with `values` on its column to `states[level + 1]`.
EXACTSHAP_INLINE void fill_state(const double* values, int64_t step, const Steps& steps, const Block& block) {
  int64_t* const here = block.states[steps.level[step] + 1].data;
  const int64_t above = steps.above[step];
  decide(values, step, steps.nodes, block.went.data, block.width);
  start_states(block.went.data, here, block.width);
  if (above > 0) fail_states(block.states[above].data, block.side_at[above - 1], here, block.width);
}

/// Multiply the products of the split above by the ratios of an edge: products below it, or the sum of a leaf.
void multiply(In<double, 2> ratios, const int64_t* state, In<double, 2> above, Out<double, 2> here) {
  for (int64_t k = 0; k < here.size[0]; k++)
    multiply_lanes(state, ratios[LEFT][k], ratios[RIGHT][k], ratios[FAILED][k], above[k].data, here[k].data, here.size[1]);
}

/// Add the sums of both sides of a split to `out`, and give their gain to the split's player.
void finish(In<double, 2> left_gains, In<double, 2> right_gains, const int64_t* state, In<double, 3> sides, Out<double, 2> out, double* total) {
  for (int64_t k = 0; k < out.size[0]; k++)
    finish_lanes(state, {left_gains[LEFT][k], left_gains[RIGHT][k]}, {right_gains[LEFT][k], right_gains[RIGHT][k]}, sides[0][k].data,
                 sides[1][k].data, out[k].data, total, out.size[1]);
}

/// Walk one tree down and up for one block of rows; `finish_split(level, place)` is called for each split when its sums are there, and
/// adds them to those of the split above. `enter_split(step)` is called on the way down.
template <class Enter, class Finish>
void sweep_block(In<double, 2> columns, int64_t start, int64_t first, int64_t last, const Steps& steps, Array<double, 4> coefficients,
                 const Block& block, Enter enter_split, Finish finish_split) {
  for (int64_t step = first; step < last; step++) {
    const int64_t i = step - first, level = steps.level[step], column = steps.nodes.feature[step];
    block.position[level] = i;
    if (level > 0) {
      const int64_t side = block.side_at[level - 1] = steps.is_right[step] ? 1 : 0;
      multiply(coefficients[block.position[level - 1]][side], block.states[level].data, block.products[level - 1], block.products[level]);
    }
    fill_state(columns[column].data + start, step, steps, block);
    enter_split(step);
    for (int64_t side = 0; side < 2; side++)
      if (steps.is_leaf[step][side])
        multiply(coefficients[i][side], block.states[level + 1].data, block.products[level], block.sums[level + 1][side]);
    const int64_t next = step + 1 < last ? steps.level[step + 1] : 0;
    for (int64_t done = level; done >= next; done--) finish_split(done, block.position[done]);
  }
}

/// The same room for fewer rows.
Block narrowed(Block block, int64_t width) {
  block.width = block.went.size[0] = block.states.size[1] = block.products.size[2] = block.sums.size[3] = block.total.size[1] = width;
  return block;
}

/// Room for `n_nodes` nodes of the rule and up to `width` rows, for each of which `n_totals` numbers are added up.
Block room_of(int64_t width, int64_t n_levels, int64_t n_nodes, int64_t n_totals, Context& context) {
  return {width, context.empty<uint8_t>(width), context.empty<int64_t>(n_levels + 1, width),
          context.empty<double>(n_levels, n_nodes + 1, width), context.empty<double>(n_levels + 1, int64_t(2), n_nodes + 1, width),
          context.empty<double>(n_totals, width), context.empty<int64_t>(n_levels), context.empty<int64_t>(n_levels)};
}

/// Write the products above the root: the rule's weights, and 1 for the magnitudes.
void start_products(In<double, 2> rule, const Block& block) {
  const int64_t n = rule.size[1];
  for (int64_t k = 0; k < n; k++) block.products[0][k].fill(rule[WEIGHTS][k]);
  block.products[0][n].fill(1.0);
}

/// Add the values of single players of all trees to `out (n_players, n_outputs, n_rows)`, the sums of magnitudes to `scale`.
///
/// `columns (n_features, n_rows)` go `n_lanes` rows at a time; each keeps its own order of operations.
Status sweep_paths(In<double, 2> columns, Steps steps, In<int32_t, 1> player_of, In<double, 2> rule, int64_t n_lanes, Out<double, 3> out,
                   Out<double, 1> scale, Context& context) {
  const int64_t n_rows = columns.size[1], n = rule.size[1], n_players = out.size[0], n_outputs = out.size[1], n_levels = steps.n_levels();
  EXACTSHAP_REQUIRE(steps.fit(columns.size[0], player_of) && steps.value.size[2] == n_outputs && rule.size[0] == 4 && n_lanes > 0);
  EXACTSHAP_REQUIRE(out.size[2] == n_rows && scale.size[0] == n_rows);
  for (int64_t j = 0; j < player_of.size[0]; j++) EXACTSHAP_REQUIRE(player_of[j] >= 0 && player_of[j] < n_players);
  const int64_t width = smaller(n_lanes, n_rows);
  auto coefficients = context.empty<double>(steps.largest_tree(), int64_t(4), int64_t(3), n + 1);
  auto total = context.empty<double>(n_players, n_rows), outside_at = context.empty<double>(n_levels + 1, int64_t(2));
  auto before = context.empty<double>(n), size = context.empty<double>(n_rows);
  const Block room = room_of(width, n_levels, n, n_players, context);
  if (context.failed()) return Status::no_memory;
  for (int64_t o = 0; o < n_outputs; o++) {
    total.fill(0.0);
    size.fill(0.0);
    for (int64_t tree = 0; tree < steps.n_trees(); tree++) {
      const int64_t first = steps.tree_start[tree], last = steps.tree_start[tree + 1];
      if (first == last) continue;
      fill_coefficients(first, last, steps, o, rule, room.side_at.data, outside_at, before.data, coefficients, {});
      for (int64_t start = 0; start < n_rows; start += n_lanes) {
        if (context.interrupted()) return Status::interrupted;
        const Block block = narrowed(room, smaller(n_lanes, n_rows - start));
        block.total.fill(0.0);
        start_products(rule, block);
        const auto finish_split = [&](int64_t level, int64_t place) {
          const int64_t j = player_of[steps.nodes.feature[first + place]];
          finish(coefficients[place][2], coefficients[place][3], block.states[level + 1].data, block.sums[level + 1],
                 block.sums[level][level > 0 ? block.side_at[level - 1] : 0], block.total[j].data);
        };
        sweep_block(columns, start, first, last, steps, coefficients, block, [](int64_t) {}, finish_split);
        for (int64_t r = 0; r < block.width; r++) size[start + r] += block.sums[0][0][n][r];
        for (int64_t j = 0; j < n_players; j++)
          for (int64_t r = 0; r < block.width; r++) total[j][start + r] += block.total[j][r];
      }
    }
    for (int64_t j = 0; j < n_players; j++)
      for (int64_t r = 0; r < n_rows; r++) out[j][o][r] += total[j][r];
    for (int64_t r = 0; r < n_rows && o == 0; r++) scale[r] += size[r];
  }
  return Status::done;
}

/// The distinct players above the split of each level, in slots: the level of the last split on each.
struct Above {
  int64_t n_slots;
  int64_t* level;        // (n_levels, n_slots)
  int64_t *count, *own;  // (n_levels,): slots in use, and that of the split's own player

  /// List them for a split that is entered: those above its parent, and the parent's own.
  EXACTSHAP_INLINE void list(int64_t step, const Steps& steps) const {
    const int64_t here = steps.level[step], same = steps.above[step];
    count[here] = 0;
    if (here > 0) {
      const int64_t parent = here - 1;
      for (int64_t s = 0; s < count[parent]; s++) level[here * n_slots + s] = level[parent * n_slots + s];
      level[here * n_slots + own[parent]] = parent;
      count[here] = count[parent] > own[parent] + 1 ? count[parent] : own[parent] + 1;
    }
    own[here] = same > 0 ? own[same - 1] : count[here];
  }
};

/// Write the gains of a split at one node of the rule, 0 for rows that failed its player above.
EXACTSHAP_APART void gain_lanes(const int64_t* __restrict state, Gains on_left, Gains on_right, const double* __restrict left,
                                 const double* __restrict right, double* __restrict to, double* __restrict gains, int64_t width) {
  for (int64_t r = 0; r < width; r++) {
    const double left_gain = state[r] == LEFT ? on_left.left : on_left.right;
    const double right_gain = state[r] == LEFT ? on_right.left : on_right.right;
    const double change = left[r] * left_gain + right[r] * right_gain;
    gains[r] = state[r] == FAILED ? 0.0 : change;
    to[r] = left[r] + right[r];
  }
}

/// Write sum_q slope[q] gains[q] (n_nodes, width) of each row to `out`, one node after the other.
EXACTSHAP_APART void dot_lanes(const double* slope, int64_t n_nodes, const double* __restrict gains, double* __restrict out, int64_t width) {
  for (int64_t r = 0; r < width; r++) out[r] = 0.0;
  for (int64_t k = 0; k < n_nodes; k++) {
    const double factor = slope[k];
    const double* __restrict const of_node = gains + k * width;
    for (int64_t r = 0; r < width; r++) out[r] += factor * of_node[r];
  }
}

/// Add to a pair what rows gain that pass all splits on the player above, and those that do not.
EXACTSHAP_APART void choose_lanes(const int64_t* __restrict state, int64_t side, const double* __restrict passed, const double* __restrict failed,
                                   double* __restrict pair, int64_t width) {
  for (int64_t r = 0; r < width; r++) pair[r] += state[r] == side ? passed[r] : failed[r];
}

/// Write `passed` for rows that pass all splits on a player, `failed` for the others.
EXACTSHAP_APART void pick_lanes(const int64_t* __restrict state, int64_t side, const double* __restrict passed, const double* __restrict failed,
                                 double* __restrict out, int64_t width) {
  for (int64_t r = 0; r < width; r++) out[r] = state[r] == side ? passed[r] : failed[r];
}

/// Add value[o] weight[r] to `total (n_outputs, width)`.
EXACTSHAP_APART void add_outputs(In<double, 1> value, const double* __restrict weight, double* __restrict total, int64_t width) {
  for (int64_t o = 0; o < value.size[0]; o++, total += width) {
    const double factor = value[o];
    for (int64_t r = 0; r < width; r++) total[r] += factor * weight[r];
  }
}

/// Add the values of single players of all trees to `out (n_players, n_outputs, n_rows)`, leaf by leaf and for all outputs at once.
///
///   phi_j = sum_l v_l sum_q omega_q prod_k F_lk(t_q) (a_lj - b_lj) / F_lj(t_q)
///
/// The last factor is -1 / (1 - t) for all players that a row fails. sweep_paths repeats its walk for each output, this adds for each
/// leaf and player: O(n_leaves depth (n_nodes + n_outputs)) per row.
Status sweep_outputs(In<double, 2> columns, Steps steps, In<int32_t, 1> player_of, In<double, 2> rule, int64_t n_lanes, Out<double, 3> out,
                     Out<double, 1> scale, Context& context) {
  const int64_t n_rows = columns.size[1], n = rule.size[1], n_players = out.size[0], n_outputs = out.size[1], n_levels = steps.n_levels();
  EXACTSHAP_REQUIRE(steps.fit(columns.size[0], player_of) && steps.value.size[2] == n_outputs && rule.size[0] == 4 && n_lanes > 0);
  EXACTSHAP_REQUIRE(out.size[2] == n_rows && scale.size[0] == n_rows && lie_within(player_of, n_players));
  const int64_t width = smaller(n_lanes, n_rows);
  auto coefficients = context.empty<double>(steps.largest_tree(), int64_t(4), int64_t(3), n + 1);
  auto slopes = context.empty<double>(steps.largest_tree(), int64_t(2), n);
  auto outside_at = context.empty<double>(n_levels + 1, int64_t(2));
  auto before = context.empty<double>(n);
  const Block room = room_of(width, n_levels, n, n_players * n_outputs, context);
  auto weights = context.empty<double>(int64_t(3), width);
  auto numbers = context.zeros<int64_t>((n_levels + 2) * n_levels);
  if (context.failed()) return Status::no_memory;
  const Above above{n_levels, numbers.data, numbers.data + n_levels * n_levels, numbers.data + (n_levels + 1) * n_levels};
  for (int64_t start = 0; start < n_rows; start += n_lanes) {
    const Block block = narrowed(room, smaller(n_lanes, n_rows - start));
    const int64_t lanes = block.width;
    double *const failed = weights[0].data, *const passed = weights[1].data, *const weight = weights[2].data;
    block.total.fill(0.0);
    for (int64_t tree = 0; tree < steps.n_trees(); tree++) {
      if (context.interrupted()) return Status::interrupted;
      const int64_t first = steps.tree_start[tree], last = steps.tree_start[tree + 1];
      if (first == last) continue;
      fill_coefficients(first, last, steps, ALL, rule, room.side_at.data, outside_at, before.data, coefficients, slopes);
      start_products(rule, block);
      const auto add_leaf = [&](int64_t level, int64_t place, int64_t side) {
        const auto leaf = block.sums[level + 1][side];
        const auto give = [&](int64_t at, int64_t on) {
          const int64_t j = player_of[steps.nodes.feature[first + block.position[at]]];
          dot_lanes(slopes[block.position[at]][on].data, n, leaf.data, passed, lanes);
          pick_lanes(block.states[at + 1].data, on, passed, failed, weight, lanes);
          add_outputs(steps.value[first + place][side], weight, block.total[j * n_outputs].data, lanes);
        };
        dot_lanes(rule[LOST].data, n, leaf.data, failed, lanes);
        for (int64_t s = 0; s < above.count[level]; s++) {
          const int64_t at = above.level[level * n_levels + s];
          if (s != above.own[level]) give(at, block.side_at[at]);
        }
        give(level, side);
        for (int64_t r = 0; r < lanes; r++) scale[start + r] += leaf[n][r];
      };
      const auto finish_split = [&](int64_t level, int64_t place) {
        for (int64_t side = 0; side < 2; side++)
          if (steps.is_leaf[first + place][side]) add_leaf(level, place, side);
      };
      sweep_block(columns, start, first, last, steps, coefficients, block, [&](int64_t step) { above.list(step, steps); }, finish_split);
    }
    for (int64_t j = 0; j < n_players; j++)
      for (int64_t o = 0; o < n_outputs; o++)
        for (int64_t r = 0; r < lanes; r++) out[j][o][start + r] += block.total[j * n_outputs + o][r];
  }
  return Status::done;
}

/// Add `n` numbers of each row to its total, one after the other.
EXACTSHAP_APART void add_lanes(const double* __restrict gains, int64_t n, double* __restrict total, int64_t width) {
  for (int64_t k = 0; k < n; k++)
    for (int64_t r = 0; r < width; r++) total[r] += gains[k * width + r];
}

/// Add the values of pairs of players of all trees to `out (n_pairs, n_outputs, n_rows)`, and those of single players and `scale` unless
/// `singles` is empty: sweep_pairs of rows.cpp for many rows.
Status sweep_path_pairs(In<double, 2> columns, Steps steps, In<int32_t, 1> player_of, In<double, 2> rule, int64_t n_lanes, Out<double, 3> out,
                        int64_t n_players, Out<double, 3> singles, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = columns.size[1], n = rule.size[1], n_outputs = out.size[1], n_levels = steps.n_levels();
  const int64_t n_pairs = n_players * (n_players - 1) / 2;
  EXACTSHAP_REQUIRE(steps.fit(columns.size[0], player_of) && steps.value.size[2] == n_outputs && rule.size[0] == 4 && n_lanes > 0);
  EXACTSHAP_REQUIRE(out.size[0] == n_pairs && out.size[2] == n_rows && lie_within(player_of, n_players));
  const bool with_singles = singles.size[0] > 0;
  EXACTSHAP_REQUIRE(!with_singles || (singles.size[0] == n_players && singles.size[1] == n_outputs && singles.size[2] == n_rows));
  EXACTSHAP_REQUIRE(scale.size[0] == n_rows);
  const int64_t width = smaller(n_lanes, n_rows);
  auto coefficients = context.empty<double>(steps.largest_tree(), int64_t(4), int64_t(3), n + 1);
  auto slopes = context.empty<double>(steps.largest_tree(), int64_t(2), n);
  auto outside_at = context.empty<double>(n_levels + 1, int64_t(2));
  auto before = context.empty<double>(n);
  const Block room = room_of(width, n_levels, n, n_pairs, context);
  auto gains = context.empty<double>(n + 3, width);
  auto of_tree = context.empty<double>(n_players, width), of_players = context.empty<double>(n_players + 1, width);
  auto numbers = context.zeros<int64_t>((n_levels + 2) * n_levels);
  if (context.failed()) return Status::no_memory;
  const Above above{n_levels, numbers.data, numbers.data + n_levels * n_levels, numbers.data + (n_levels + 1) * n_levels};
  for (int64_t o = 0; o < n_outputs; o++)
    for (int64_t start = 0; start < n_rows; start += n_lanes) {
      const Block block = narrowed(room, smaller(n_lanes, n_rows - start));
      const int64_t lanes = block.width;
      double *const failed = gains.data + (n + 1) * lanes, *const passed = failed + lanes;
      block.total.fill(0.0), of_players.fill(0.0);
      double* const size = of_players[n_players].data;
      for (int64_t tree = 0; tree < steps.n_trees(); tree++) {
        if (context.interrupted()) return Status::interrupted;
        const int64_t first = steps.tree_start[tree], last = steps.tree_start[tree + 1];
        if (first == last) continue;
        fill_coefficients(first, last, steps, o, rule, room.side_at.data, outside_at, before.data, coefficients, slopes);
        start_products(rule, block);
        of_tree.fill(0.0);
        const auto finish_split = [&](int64_t level, int64_t place) {
          const int64_t* const state = block.states[level + 1].data;
          const auto sides = block.sums[level + 1];
          const auto up = block.sums[level][level > 0 ? block.side_at[level - 1] : 0];
          const auto on_left = coefficients[place][2], on_right = coefficients[place][3];
          for (int64_t k = 0; k <= n; k++)
            gain_lanes(state, {on_left[LEFT][k], on_left[RIGHT][k]}, {on_right[LEFT][k], on_right[RIGHT][k]}, sides[0][k].data,
                       sides[1][k].data, up[k].data, gains.data + k * lanes, lanes);
          dot_lanes(rule[LOST].data, n, gains.data, failed, lanes);
          const int64_t j = player_of[steps.nodes.feature[first + place]];
          if (with_singles) add_lanes(gains.data, n, of_tree[j].data, lanes);
          for (int64_t s = 0; s < above.count[level]; s++) {
            if (s == above.own[level]) continue;
            const int64_t at = above.level[level * n_levels + s], side = block.side_at[at];
            const int64_t i = player_of[steps.nodes.feature[first + block.position[at]]], low = smaller(i, j), high = i + j - low;
            dot_lanes(slopes[block.position[at]][side].data, n, gains.data, passed, lanes);
            choose_lanes(block.states[at + 1].data, side, passed, failed,
                         block.total[low * n_players - low * (low + 1) / 2 + high - low - 1].data, lanes);
          }
        };
        sweep_block(columns, start, first, last, steps, coefficients, block, [&](int64_t step) { above.list(step, steps); }, finish_split);
        for (int64_t r = 0; r < lanes; r++) size[r] += block.sums[0][0][n][r];
        for (int64_t j = 0; j < n_players && with_singles; j++)
          for (int64_t r = 0; r < lanes; r++) of_players[j][r] += of_tree[j][r];
      }
      for (int64_t p = 0; p < n_pairs; p++)
        for (int64_t r = 0; r < lanes; r++) out[p][o][start + r] += block.total[p][r];
      for (int64_t j = 0; j < n_players && with_singles; j++)
        for (int64_t r = 0; r < lanes; r++) singles[j][o][start + r] += of_players[j][r];
      for (int64_t r = 0; r < lanes && o == 0 && with_singles; r++) scale[start + r] += size[r];
    }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep_paths, sweep_paths)
EXACTSHAP_KERNEL(tree_solver, sweep_outputs, sweep_outputs)
EXACTSHAP_KERNEL(tree_solver, sweep_path_pairs, sweep_path_pairs)
