// Values leaf by leaf for many rows at a time (see patterns.h).

#include "patterns.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t MANY = 4;    // where more than one in so many background rows are left, a split sends all of them on at once
constexpr int64_t BATCH = 512;  // rows that are looked up together: what belongs to them stays in the first-level cache

/// Room for blocks of `n_rows` rows; what is (n_levels, ...) belongs to the node of each level on the current path.
struct Work {
  Array<uint32_t, 2> row_codes;       // (n_levels, n_rows): players failed on the way
  Array<uint8_t, 2> went;             // (n_levels, n_rows): whether the row goes left at the split
  Array<uint32_t, 2> codes;           // (n_levels, n_background): players failed by the background rows that are still there
  Array<uint8_t, 2> background_went;  // (n_levels, n_background)
  Array<int32_t, 2> index;            // (n_levels, n_background): which background rows those are
  Array<int64_t, 1> n_codes;          // (n_levels,)
  Array<uint32_t, 1> patterns;        // (n_background,): at one leaf
  Array<double, 1> mass;              // (n_background,)
  Array<int64_t, 1> bucket;           // (2^h + 1,): where the patterns with the same h lowest bits start
  Array<double, 2> tables;            // (4, 2^m): g, P, P + Y, masses of patterns
  Array<uint32_t, 1> found;           // (n_background,): patterns that are disjoint from a row's, and their masses
  Array<double, 1> masses;
  Array<int64_t, 1> slots;            // (n_levels,): bit of the player of the split
  Array<int64_t, 1> n_players;        // (n_levels + 1,): distinct players above it
  int64_t players[WIDTH];             // those of the bits
};

/// The leaf that is solved.
struct Leaf {
  int64_t m;
  In<double, 1> value;
  double magnitude;
};

/// The bits of `code` at the set bits of `inside`, moved together.
EXACTSHAP_INLINE uint32_t compress(uint32_t code, uint32_t inside, int64_t n_players) {
  uint32_t out = 0, k = 0;
  for (int64_t s = 0; s < n_players; s++)
    if ((inside >> s) & 1u) out |= ((code >> s) & 1u) << k++;
  return out;
}

/// Fill g(A), the sum of N(F), P and P + Y for the sets A of the players of the mask `inside`: each pattern adds to those that hold it.
void fill_tables(int64_t n, uint32_t inside, int64_t n_players, In<double, 2> weights, const Work& work) {
  const int64_t m = count(inside), size = int64_t(1) << m;
  double *__restrict const g = work.tables[0].data, *__restrict const P = work.tables[1].data, *__restrict const both = work.tables[2].data;
  for (int64_t s = 0; s < size; s++) g[s] = P[s] = both[s] = 0.0;
  n = merge(work.patterns.data, work.mass.data, n, work.tables[3].data);
  double gains[WIDTH + 1], sums[WIDTH + 1];
  for (int64_t i = 0; i < n; i++) {
    const uint32_t pattern = work.patterns[i];
    if ((pattern & ~inside) != 0) continue;
    const int64_t F = m == n_players ? pattern : compress(pattern, inside, n_players), f = count(uint32_t(F));
    const double mass = work.mass[i];
    for (int64_t a = f; a <= m; a++) {
      const Ends end = ends(f, a, n_players, weights);
      gains[a] = mass * end.with_all, sums[a] = mass * end.both;
    }
    const int64_t others = (size - 1) & ~F;
    for (int64_t more = others; more >= 0; more = more > 0 ? (more - 1) & others : -1) {
      const int64_t A = F | more, a = count(uint32_t(A));
      g[A] += mass;
      P[A] += gains[a];
      both[A] += sums[a];
    }
  }
}

/// Add the values of one batch of rows of a dense leaf, whose players of the mask `inside` have tables, from row `first` on.
void look_up(const uint32_t* row_codes, int64_t n_rows, uint32_t inside, const Leaf& leaf, const Work& work, int64_t first,
             Out<double, 3> out, double* __restrict scale) {
  const double *const g = work.tables[0].data, *const P = work.tables[1].data, *const both = work.tables[2].data;
  const bool is_whole = count(inside) == leaf.m;
  uint32_t cells[BATCH];
  double gain[BATCH], value[BATCH];
  for (int64_t r = 0; r < n_rows; r++) cells[r] = ~row_codes[r] & inside;
  for (int64_t r = 0; r < n_rows && !is_whole; r++) cells[r] = compress(cells[r], inside, leaf.m);
  for (int64_t r = 0; r < n_rows; r++) {
    gain[r] = P[cells[r]];
    scale[first + r] += leaf.magnitude * g[cells[r]];
  }
  uint32_t k = 0;
  for (int64_t s = 0; s < leaf.m; s++) {
    const uint32_t has_table = (inside >> s) & 1u, kept = ~(has_table ? uint32_t(1) << k : 0u);
    k += has_table;
    for (int64_t r = 0; r < n_rows; r++) value[r] = gain[r] - both[cells[r] & kept];
    for (int64_t o = 0; o < leaf.value.size[0]; o++) {
      const double c = leaf.value[o];
      double* __restrict const total = out[o][work.players[s]].data + first;
      if (c != 0.0)
        for (int64_t r = 0; r < n_rows; r++) total[r] += c * value[r];
    }
  }
}

/// Solve a dense leaf for all rows by one table of what some row satisfies; `missed` is what all rows fail.
void solve_dense(In<uint32_t, 1> row_codes, uint32_t missed, int64_t n, const Leaf& leaf, In<double, 2> weights, const Work& work,
                 Out<double, 3> out, Out<double, 1> scale) {
  const uint32_t inside = all_of(leaf.m) & ~missed;
  const int64_t n_rows = row_codes.size[0];
  fill_tables(n, inside, leaf.m, weights, work);
  for (int64_t r = 0; r < n_rows; r += BATCH)
    look_up(row_codes.data + r, smaller(BATCH, n_rows - r), inside, leaf, work, r, out, scale.data);
}

/// Sort the background's patterns at a leaf by their lowest bits, stably, into `work.bucket`.
void sort_patterns(In<uint32_t, 1> codes, const int32_t* index, In<double, 1> weights, int64_t n_low, const Work& work) {
  const int64_t n_buckets = int64_t(1) << n_low;
  const uint32_t low = uint32_t(n_buckets - 1);
  int64_t* const bucket = work.bucket.data;
  for (int64_t b = 0; b <= n_buckets; b++) bucket[b] = 0;
  for (int64_t i = 0; i < codes.size[0]; i++) bucket[(codes[i] & low) + 1] += 1;
  for (int64_t b = 0; b < n_buckets; b++) bucket[b + 1] += bucket[b];
  for (int64_t i = 0; i < codes.size[0]; i++) {
    const int64_t at = bucket[codes[i] & low]++;
    work.patterns[at] = codes[i], work.mass[at] = weights[index[i]];
  }
  for (int64_t b = n_buckets; b > 0; b--) bucket[b] = bucket[b - 1];
  bucket[0] = 0;
}

/// List the patterns that are disjoint from E: only buckets whose lowest bits are so are looked at. Returns their number.
EXACTSHAP_INLINE int64_t find_disjoint(uint32_t E, int64_t n_low, const Work& work) {
  const int64_t free = int64_t(~E & uint32_t((int64_t(1) << n_low) - 1));
  int64_t n = 0;
  for (int64_t low = free; low >= 0; low = low > 0 ? (low - 1) & free : -1)
    for (int64_t i = work.bucket[low]; i < work.bucket[low + 1]; i++) {
      work.found[n] = work.patterns[i], work.masses[n] = work.mass[i];
      n += (work.patterns[i] & E) == 0 ? 1 : 0;
    }
  return n;
}

/// Solve a sparse leaf for all rows.
void solve_sparse(In<uint32_t, 1> row_codes, int64_t n_low, const Leaf& leaf, In<double, 2> weights, const Work& work, Out<double, 3> out,
                  Out<double, 1> scale) {
  for (int64_t r = 0; r < row_codes.size[0]; r++) {
    const uint32_t E = row_codes[r];
    const int64_t n = find_disjoint(E, n_low, work), e = count(E);
    double gains[WIDTH] = {}, loss = 0.0, total = 0.0;
    for (int64_t i = 0; i < n; i++) {
      const uint32_t F = work.found[i];
      const double mass = work.masses[i];
      const int64_t f = count(F);
      const double gain = f > 0 ? mass * weights[e + f][f - 1] : 0.0;
      loss += e > 0 ? mass * weights[e + f][f] : 0.0;
      total += mass;
      for (int s = 0; s < WIDTH; s++) gains[s] += gain * double(int32_t((F >> s) & 1u));
    }
    scale[r] += leaf.magnitude * total;
    for (int64_t s = 0; s < leaf.m; s++) {
      const double value = (E >> s) & 1u ? -loss : gains[s];
      for (int64_t o = 0; o < leaf.value.size[0]; o++) out[o][work.players[s]][r] += leaf.value[o] * value;
    }
  }
}

/// Write the patterns below one side of the split at `level` to `level + 1`; return what all rows fail.
///
/// Background rows that no row is disjoint from are left out.
uint32_t descend(int64_t level, int64_t side, const Work& work) {
  const uint32_t bit = bit_of(work.slots[level]);
  const uint8_t wanted = uint8_t(1 - side);
  const int64_t n_rows = work.row_codes.size[1], n_codes = work.n_codes[level];
  const uint32_t* const above = work.row_codes[level].data;
  uint32_t* __restrict const here = work.row_codes[level + 1].data;
  const uint8_t* const went = work.went[level].data;
  uint32_t missed = 0xFFFFFFFFu;
  for (int64_t r = 0; r < n_rows; r++) {
    const uint32_t code = above[r] | (went[r] == wanted ? 0u : bit);
    here[r] = code;
    missed &= code;
  }
  const uint32_t* const codes = work.codes[level].data;
  const int32_t* const index = work.index[level].data;
  const uint8_t* const background_went = work.background_went[level].data;
  uint32_t* __restrict const codes_below = work.codes[level + 1].data;
  int32_t* __restrict const index_below = work.index[level + 1].data;
  int64_t n = 0;
  for (int64_t i = 0; i < n_codes; i++) {
    const int32_t z = index[i];
    const uint32_t code = codes[i] | (background_went[z] == wanted ? 0u : bit);
    codes_below[n] = code, index_below[n] = z;
    n += (code & missed) == 0 ? 1 : 0;
  }
  work.n_codes[level + 1] = n;
  return missed;
}

/// Begin at a root: no player has failed a split.
void start(const Work& work) {
  work.row_codes[0].fill(0);
  work.n_codes[0] = work.patterns.size[0];
  work.n_players[0] = 0;
  for (int64_t i = 0; i < work.patterns.size[0]; i++) work.codes[0][i] = 0, work.index[0][i] = int32_t(i);
}

/// Send all rows, and the background rows that are still there, through a split.
void decide_all(int64_t step, int64_t level, const Steps& steps, In<double, 2> columns, In<double, 2> background, const Work& work) {
  const int64_t column = steps.nodes.feature[step], n = work.n_codes[level];
  decide(columns[column].data, step, steps.nodes, work.went[level].data, columns.size[1]);
  if (n * MANY > background.size[1]) {
    decide(background[column].data, step, steps.nodes, work.background_went[level].data, background.size[1]);
    return;
  }
  const Split split = split_of(step, steps.nodes);
  for (int64_t i = 0; i < n; i++) {
    const int64_t z = work.index[level][i];
    work.background_went[level][z] = goes_left(background[column][z], split);
  }
}

/// Solve a leaf below `level - 1`.
void solve_leaf(int64_t level, const Leaf& leaf, uint32_t missed, const Background& background, const Work& work, Out<double, 3> out,
                Out<double, 1> scale) {
  const int64_t n = work.n_codes[level];
  const In<uint32_t, 1> row_codes = work.row_codes[level], codes = In<uint32_t, 1>(work.codes[level]).slice(0, n);
  const int32_t* const index = work.index[level].data;
  if (leaf.m > background.n_dense) {
    sort_patterns(codes, index, background.weights_of, background.n_low, work);
    solve_sparse(row_codes, background.n_low, leaf, background.weights, work, out, scale);
    return;
  }
  for (int64_t k = 0; k < n; k++) work.patterns[k] = codes[k], work.mass[k] = background.weights_of[index[k]];
  solve_dense(row_codes, missed, n, leaf, background.weights, work, out, scale);
}

/// Go through one tree's splits, `first` to `last - 1`. Only those that some hybrid of a row and a background row reaches are looked at.
Status sweep_tree(int64_t first, int64_t last, In<double, 2> columns, const Background& background, const Steps& steps, Work& work,
                  Out<double, 3> out, Out<double, 1> scale, Context& context) {
  for (int64_t step = first; step < last; step++) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t level = steps.level[step], above = steps.above[step];
    if (level == 0)
      start(work);
    else
      descend(level - 1, steps.is_right[step] ? 1 : 0, work);
    const int64_t slot = above > 0 ? work.slots[above - 1] : work.n_players[level];
    if (work.n_codes[level] == 0 || slot >= WIDTH) {
      step = steps.end[step] - 1;
      continue;
    }
    const int64_t m = work.n_players[level] + (above == 0 ? 1 : 0);
    work.slots[level] = slot, work.n_players[level + 1] = m;
    work.players[slot] = background.player_of[steps.nodes.feature[step]];
    decide_all(step, level, steps, columns, background.columns, work);
    for (int64_t side = 0; side < 2; side++) {
      const In<double, 1> value = steps.value[step][side];
      if (!steps.is_leaf[step][side] || !(largest(value) > 0.0)) continue;
      const uint32_t missed = descend(level, side, work);
      if (work.n_codes[level + 1] > 0) solve_leaf(level + 1, {m, value, largest(value)}, missed, background, work, out, scale);
    }
  }
  return Status::done;
}

/// Add the values of single players of all trees to `out (n_outputs, n_players, n_rows)`, the magnitudes to `scale`.
///
/// `columns (n_features, n_rows)`. Cost O(n_splits (n_rows + n_background)) and, for each dense leaf, O(sum of 2^(m - f) over its
/// patterns + m n_rows), for each sparse one its disjoint pairs and the others in their buckets.
Status sweep_leaves(In<double, 2> columns, Steps steps, Background background, Out<double, 3> out, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = columns.size[1], n = background.count(), n_levels = steps.n_levels() + 1;
  EXACTSHAP_REQUIRE(background.fit(steps, out.size[1]) && steps.fit(columns.size[0], background.player_of));
  EXACTSHAP_REQUIRE(out.size[0] == steps.value.size[2] && out.size[2] == n_rows && scale.size[0] == n_rows);
  Work work{context.empty<uint32_t>(n_levels, n_rows), context.empty<uint8_t>(n_levels, n_rows), context.empty<uint32_t>(n_levels, n),
            context.empty<uint8_t>(n_levels, n), context.empty<int32_t>(n_levels, n), context.empty<int64_t>(n_levels),
            context.empty<uint32_t>(n), context.empty<double>(n), context.empty<int64_t>((int64_t(1) << background.n_low) + 1),
            context.zeros<double>(int64_t(4), int64_t(1) << background.n_dense), context.empty<uint32_t>(n + 1),
            context.empty<double>(n + 1), context.empty<int64_t>(n_levels), context.empty<int64_t>(n_levels + 1), {}};
  if (context.failed()) return Status::no_memory;
  for (int64_t tree = 0; tree < steps.n_trees(); tree++) {
    const Status status =
        sweep_tree(steps.tree_start[tree], steps.tree_start[tree + 1], columns, background, steps, work, out, scale, context);
    if (status != Status::done) return status;
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep_leaves, sweep_leaves)
