// Values leaf by leaf for one row at a time: the bits of sweep_leaves without tables for all rows.
//
// Only splits that some hybrid of the row and a background row reaches are looked at, with the background rows that are still there:
// the pairs of disjoint patterns (see patterns.h) are found on the way down.

#include "patterns.h"

EXACTSHAP_BEGIN

namespace {

/// The background rows that are still there at one level: players failed, their numbers, whether they go left.
struct Level {
  uint32_t *code, *index, *went;
};

/// Room for one row; what is (n_levels,) belongs to the split of each level on the current path.
struct Work {
  Array<uint32_t, 3> rows;     // (n_levels, 3, n_background)
  uint32_t* patterns;          // (n_background,): at one leaf
  double *mass, *mass_of;      // (n_background,), (2^m,): masses of patterns, 0.0 between leaves
  uint32_t* failed;            // players that the row failed above
  bool* left;                  // whether it goes left
  int64_t *n_rows, *slots, *n_players;
  int64_t players[WIDTH];      // those of the bits
  double values[WIDTH];

  EXACTSHAP_INLINE Level level(int64_t k) const { return {rows[k][0].data, rows[k][1].data, rows[k][2].data}; }
};

/// Copy the background rows that are disjoint from the row on one side of a split to the next level; return their number.
EXACTSHAP_APART int64_t filter(Level above, uint32_t side, uint32_t bit, uint32_t E, int64_t n, Level below) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t code = above.code[i] | (above.went[i] != side ? 0u : bit);
    below.code[kept] = code, below.index[kept] = above.index[i];
    kept += (code & E) == 0 ? 1 : 0;
  }
  return kept;
}

/// Do the same where that side is a leaf: write patterns and weights.
EXACTSHAP_APART int64_t gather(Level above, uint32_t side, uint32_t bit, uint32_t E, int64_t n, const double* weights_of, uint32_t* patterns,
                               double* mass) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t code = above.code[i] | (above.went[i] != side ? 0u : bit);
    patterns[kept] = code, mass[kept] = weights_of[above.index[i]];
    kept += (code & E) == 0 ? 1 : 0;
  }
  return kept;
}

/// Add `value` to those of all players outside F, of the first `padded`, a multiple of eight.
EXACTSHAP_APART void add_outside(uint32_t F, double value, int64_t padded, double* values) {
  for (int64_t s = 0; s < padded; s += 8) {
    double lane[8];
    for (int i = 0; i < 8; i++) lane[i] = (F >> (s + i)) & 1u ? 0.0 : value;
    for (int i = 0; i < 8; i++) values[s + i] += lane[i];
  }
}

/// Write the values of a dense leaf's players for value 1 to `work.values`; return the mass of the pairs.
EXACTSHAP_APART double fill_dense(uint32_t E, int64_t m, int64_t n, In<double, 2> weights, Work& work) {
  const uint32_t A = all_of(m) & ~E;
  const int64_t a = count(A);
  double *const values = work.values, gain = 0.0, lost = 0.0, total = 0.0;
  for (int64_t s = 0; s < WIDTH; s++) values[s] = 0.0;
  n = merge(work.patterns, work.mass, n, work.mass_of);
  for (int64_t i = 0; i < n; i++) {
    const uint32_t F = work.patterns[i];
    const int64_t f = count(F);
    const double mass = work.mass[i];
    const Ends end = ends(f, a, m, weights);
    gain = gain + mass * end.with_all, lost = lost + mass * end.both, total = total + mass;
    double both = 0.0;
    if (f < a) both = ends(f, a - 1, m, weights).both;
    both *= mass;
    add_outside(F, both, (m + 7) / 8 * 8, values);
  }
  for (int64_t s = 0; s < m; s++) values[s] = gain - ((A >> s) & 1u ? values[s] : lost);
  return total;
}

/// Sort the patterns by their lowest bits, the largest first, stably: the order of the buckets.
void sort(uint32_t* patterns, double* mass, int64_t n, int64_t n_low) {
  const uint32_t low = uint32_t((int64_t(1) << n_low) - 1);
  for (int64_t i = 1; i < n; i++) {
    const uint32_t F = patterns[i];
    const double weight = mass[i];
    int64_t k = i;
    for (; k > 0 && (patterns[k - 1] & low) < (F & low); k--) patterns[k] = patterns[k - 1], mass[k] = mass[k - 1];
    patterns[k] = F, mass[k] = weight;
  }
}

/// Write the values of a sparse leaf's players for value 1 to `work.values`; return the mass of the pairs.
EXACTSHAP_APART double fill_sparse(uint32_t E, int64_t m, int64_t n, int64_t n_low, In<double, 2> weights, Work& work) {
  sort(work.patterns, work.mass, n, n_low);
  const int64_t e = count(E);
  double *const values = work.values, loss = 0.0, total = 0.0;
  for (int64_t s = 0; s < m; s++) values[s] = 0.0;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t F = work.patterns[i];
    const double mass = work.mass[i];
    const int64_t f = count(F);
    const double gain = f > 0 ? mass * weights[e + f][f - 1] : 0.0;
    loss += e > 0 ? mass * weights[e + f][f] : 0.0;
    total += mass;
    for (int64_t s = 0; s < m; s++) values[s] += gain * double(int32_t((F >> s) & 1u));
  }
  for (int64_t s = 0; s < m; s++) values[s] = (E >> s) & 1u ? -loss : values[s];
  return total;
}

/// Write which of the background rows that are still there go left, by their `values` of the split's column.
EXACTSHAP_APART void decide_left(const double* values, Split split, int64_t n, Level here) {
  const bool is_plain = split.category_start < 0 && !split.zero_is_missing;
  const bool missing_left = goes_left(double(NAN), split);
  for (int64_t i = 0; i < n && !is_plain; i++) here.went[i] = goes_left(values[here.index[i]], split);
  if (!is_plain) return;
  for (int64_t i = 0; i < n; i++) {
    const double x = values[here.index[i]];
    here.went[i] = (x < split.threshold) | (split.less_equal & (x == split.threshold)) | (missing_left & (x != x));
  }
}

/// Add the values of the leaves below a split to `out (n_outputs, n_players)`; return `scale` with their magnitudes.
double add_leaves(int64_t step, int64_t level, int64_t m, const Steps& steps, const Background& background, Work& work, Array<double, 2> out,
                  double scale) {
  for (int64_t side = 0; side < 2; side++) {
    if (!steps.is_leaf[step][side]) continue;
    const uint32_t bit = bit_of(work.slots[level]), E = work.failed[level] | (work.left[level] == (side == 1) ? bit : 0u);
    const int64_t n = gather(work.level(level), uint32_t(side), bit, E, work.n_rows[level], background.weights_of.data,
                             work.patterns, work.mass);
    if (n == 0) continue;
    const double total = m <= background.n_dense ? fill_dense(E, m, n, background.weights, work)
                                                 : fill_sparse(E, m, n, background.n_low, background.weights, work);
    const In<double, 1> value = steps.value[step][side];
    for (int64_t o = 0; o < value.size[0]; o++)
      for (int64_t s = 0; s < m; s++) out[o][work.players[s]] += value[o] * work.values[s];
    scale += largest(value) * total;
  }
  return scale;
}

/// Walk all trees for the row x; add values to `out (n_outputs, n_players)` and return `scale` with the magnitudes.
double sweep_row(const double* x, const Steps& steps, const Background& background, Work& work, Array<double, 2> out, double scale) {
  work.n_rows[0] = background.count(), work.n_players[0] = 0, work.failed[0] = 0;
  const Level root = work.level(0);
  for (int64_t i = 0; i < background.count(); i++) root.code[i] = 0, root.index[i] = uint32_t(i);
  for (int64_t step = 0; step < steps.level.size[0]; step++) {
    const int64_t level = steps.level[step], above = steps.above[step], column = steps.nodes.feature[step];
    if (level > 0) {
      const uint32_t side = steps.is_right[step] ? 1 : 0, bit = bit_of(work.slots[level - 1]);
      work.failed[level] = work.failed[level - 1] | (work.left[level - 1] == steps.is_right[step] ? bit : 0u);
      work.n_rows[level] = filter(work.level(level - 1), side, bit, work.failed[level], work.n_rows[level - 1], work.level(level));
    }
    const int64_t slot = above > 0 ? work.slots[above - 1] : work.n_players[level], n = work.n_rows[level];
    if (n == 0 || slot >= WIDTH) {
      step = steps.end[step] - 1;
      continue;
    }
    const int64_t m = work.n_players[level] + (above == 0 ? 1 : 0);
    work.slots[level] = slot, work.n_players[level + 1] = m, work.players[slot] = background.player_of[column];
    const Split split = split_of(step, steps.nodes);
    work.left[level] = goes_left(x[column], split);
    decide_left(background.columns[column].data, split, n, work.level(level));
    scale = add_leaves(step, level, m, steps, background, work, out, scale);
  }
  return scale;
}

/// Add the values of single players of all trees to `out (n_outputs, n_players, n_rows)`, the magnitudes to `scale`, row by row of
/// `X (n_rows, n_features)`.
Status sweep_leaf_rows(In<double, 2> X, Steps steps, Background background, Out<double, 3> out, Out<double, 1> scale, Context& context) {
  const int64_t n = background.count(), n_levels = steps.n_levels() + 1, n_outputs = out.size[0], n_players = out.size[1];
  EXACTSHAP_REQUIRE(background.fit(steps, n_players) && steps.fit(X.size[1], background.player_of));
  EXACTSHAP_REQUIRE(n_outputs == steps.value.size[2] && out.size[2] == X.size[0] && scale.size[0] == X.size[0]);
  auto rows = context.empty<uint32_t>(n_levels, int64_t(3), n);
  auto patterns = context.empty<uint32_t>(n + 1), failed = context.zeros<uint32_t>(n_levels);
  auto mass = context.empty<double>(n + 1), mass_of = context.zeros<double>(int64_t(1) << background.n_dense);
  auto left = context.zeros<bool>(n_levels);
  auto numbers = context.zeros<int64_t>(3 * (n_levels + 1));
  auto total = context.empty<double>(n_outputs, n_players);
  if (context.failed()) return Status::no_memory;
  int64_t* const number = numbers.data;
  Work work{rows, patterns.data, mass.data, mass_of.data, failed.data, left.data, number, number + n_levels + 1,
            number + 2 * (n_levels + 1), {}, {}};
  for (int64_t i = 0; i < X.size[0]; i++) {
    if (context.interrupted()) return Status::interrupted;
    total.fill(0.0);
    scale[i] = sweep_row(X[i].data, steps, background, work, total, scale[i]);
    for (int64_t o = 0; o < n_outputs; o++)
      for (int64_t j = 0; j < n_players; j++) out[o][j][i] = total[o][j];
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep_leaf_rows, sweep_leaf_rows)
