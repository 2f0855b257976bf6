// Leaves with linear functions, row by row and pattern by pattern: any number of players, any order (see linear.h).

#include "linear.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t ROWS = 256;  // at a time: their numbers and decisions stay in the first caches

// --- the background --------------------------------------------------------------------------------------------------

/// Numbers of patterns by their bits: an open table of twice as many places as rows, empty ones hold -1.
struct PatternNumbers {
  Array<int64_t, 1> place;
  Array<uint64_t, 1> pattern;  // by number
  int64_t n;

  PatternNumbers(int64_t n_rows, Context& context) : n(0) {
    int64_t size = 2;
    while (size < 2 * n_rows) size *= 2;
    place = context.empty<int64_t>(size);
    pattern = context.empty<uint64_t>(n_rows);
    if (!context.failed()) place.fill(-1);
  }
  EXACTSHAP_INLINE int64_t slot_of(uint64_t failed) const {
    const uint64_t mask = uint64_t(place.size[0] - 1);
    uint64_t slot = (failed * 0x9E3779B97F4A7C15u) >> 32 & mask;
    while (place[int64_t(slot)] >= 0 && pattern[place[int64_t(slot)]] != failed) slot = (slot + 1) & mask;
    return int64_t(slot);
  }
  /// The number of a pattern, in order of first appearance.
  EXACTSHAP_INLINE int64_t number(uint64_t failed) {
    const int64_t slot = slot_of(failed);
    if (place[slot] < 0) {
      place[slot] = n;
      pattern[n++] = failed;
    }
    return place[slot];
  }
  void clear() {
    for (int64_t i = n - 1; i >= 0; i--) place[slot_of(pattern[i])] = -1;
    n = 0;
  }
};

/// What is written of the patterns of all leaves, see Patterns.
struct EmptyPatterns {
  Out<int64_t, 1> start, moment_start;
  Out<uint64_t, 1> failed;
  Out<double, 1> weight, size, moment;
  EXACTSHAP_FIELDS(start, moment_start, failed, weight, size, moment)
};

/// Write the patterns of background rows, `columns (n_features, n_background)`; with `write` false only where each leaf's start.
Status fill_patterns(In<double, 2> columns, In<double, 1> weights, Forest forest, Leaves leaves, LeafParts parts, bool write,
                     EmptyPatterns out, Context& context) {
  const int64_t n_rows = columns.size[1];
  EXACTSHAP_REQUIRE(forest.fit() && leaves.fit() && parts.fit(leaves, columns.size[0]) && weights.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.start.size[0] == leaves.count() + 1 && out.moment_start.size[0] == leaves.count() + 1);
  EXACTSHAP_REQUIRE(!write || (out.failed.size[0] == out.start[leaves.count()] && out.weight.size[0] == out.failed.size[0] &&
                               out.size.size[0] == out.failed.size[0] && out.moment.size[0] == out.moment_start[leaves.count()]));
  PatternNumbers numbers(n_rows, context);
  auto moments = context.empty<double>(parts.most());
  if (context.failed()) return Status::no_memory;
  if (!write) out.start[0] = out.moment_start[0] = 0;
  const auto count_rows = [&](int64_t l, int64_t, int64_t, const uint64_t* failed) {
    const int64_t first = parts.part_start[l], n_parts = parts.count(l), start = out.start[l];
    for (int64_t i = 0; i < n_rows; i++) {
      uint64_t E = failed[i];
      double size = fabs(parts.offset[l]);
      for (int64_t k = 0; k < n_parts; k++) moments[k] = parts.part(first + k, columns.data + i, n_rows, size, E);
      const int64_t number = numbers.number(E);
      if (!write) continue;
      out.failed[start + number] = E;
      out.weight[start + number] += weights[i];
      out.size[start + number] += weights[i] * size;
      double* const to = out.moment.data + out.moment_start[l] + number * n_parts;
      for (int64_t k = 0; k < n_parts; k++) to[k] += weights[i] * moments[k];
    }
    if (!write) {
      out.start[l + 1] = start + numbers.n;
      out.moment_start[l + 1] = out.moment_start[l] + numbers.n * n_parts;
    }
    numbers.clear();
  };
  return meet_leaves<uint64_t>(columns, forest, leaves, n_rows > 0 ? n_rows : 1, context, count_rows);
}

// --- rows ------------------------------------------------------------------------------------------------------------

/// A leaf as one row meets it: the players F that it fails, and the parts l_k(x).
struct RowAtLeaf {
  int64_t l, n_parts;
  uint64_t F;
  double size;  // of the function's magnitudes in this row
  const double* parts;
  const uint64_t* bits;
};

/// One pattern E beside the row: the constant game's factor, and l_k(x) N(E) - M_k(E) of every part.
struct Meeting {
  double C, sum_of_rises;
  int64_t n_free;
};

EXACTSHAP_INLINE Meeting meet(const RowAtLeaf& row, double offset, uint64_t E, double weight, const double* moments, double* __restrict rises) {
  Meeting met{offset * weight, 0.0, 0};
  for (int64_t k = 0; k < row.n_parts; k++) {
    const uint64_t bit = row.bits[k];
    const double of_row = row.parts[k] * weight;
    const bool from_row = (E & bit) != 0, is_free = ((E | row.F) & bit) == 0;
    met.C += from_row ? of_row : moments[k];
    rises[k] = is_free ? of_row - moments[k] : 0.0;
    met.sum_of_rises += rises[k];
    met.n_free += is_free ? 1 : 0;
  }
  return met;
}

/// Which rows meet which leaves: leaf l those of `rows[group[l]]`, all where there are none.
struct Chosen {
  In<int64_t, 1> group;
  In<bool, 2> rows;
  EXACTSHAP_FIELDS(group, rows)

  EXACTSHAP_INLINE bool are_all() const { return rows.size[0] == 0; }
  EXACTSHAP_INLINE bool fit(const Leaves& leaves, int64_t n_rows) const {
    return are_all() || (group.size[0] == leaves.count() && rows.size[1] == n_rows && lie_within(group, rows.size[0]));
  }
};

/// Call `add(row i, RowAtLeaf)` for every row at every leaf that it meets.
template <class Add>
Status sweep_rows(In<double, 2> columns, const Forest& forest, const Leaves& leaves, const LeafParts& parts, const Chosen& chosen,
                  Context& context, Add add) {
  const int64_t n_rows = columns.size[1];
  auto of_row = context.empty<double>(parts.most());
  if (context.failed()) return Status::no_memory;
  return meet_leaves<uint64_t>(columns, forest, leaves, ROWS, context, [&](int64_t l, int64_t start, int64_t n, const uint64_t* failed) {
    const int64_t first = parts.part_start[l], n_parts = parts.count(l);
    for (int64_t i = 0; i < n; i++) {
      if (!chosen.are_all() && !chosen.rows[chosen.group[l]][start + i]) continue;
      RowAtLeaf row{l, n_parts, failed[i], 0.0, of_row.data, parts.bit.data + first};
      for (int64_t k = 0; k < n_parts; k++) of_row[k] = parts.part(first + k, columns.data + start + i, n_rows, row.size, row.F);
      add(start + i, row);
    }
  });
}

/// Add the values of single players, and the magnitudes that are added up, to `out (n_rows, n_players)` and `scale (n_rows,)`.
///
/// `columns (n_features, n_rows)`; `weights[m, s]` is p(s) on m players. Of a game [E in S] [S n F empty], players of E gain
/// p_{e + f}(e - 1) and players of F lose p_{e + f}(e).
Status sweep_linear_leaves(In<double, 2> columns, Forest forest, Leaves leaves, LeafParts parts, Patterns patterns, Chosen chosen, In<double, 2> weights,
                           Out<double, 2> out, Out<double, 1> scale, Context& context) {
  EXACTSHAP_REQUIRE(forest.fit() && leaves.fit() && parts.fit(leaves, columns.size[0]) && patterns.fit(leaves, parts));
  EXACTSHAP_REQUIRE(chosen.fit(leaves, columns.size[1]) && out.size[0] == columns.size[1] && scale.size[0] == out.size[0]);
  EXACTSHAP_REQUIRE(lie_within(leaves.player, out.size[1]));
  EXACTSHAP_REQUIRE(lie_within(parts.player, out.size[1]));
  for (int64_t l = 0; l < leaves.count(); l++) EXACTSHAP_REQUIRE(leaves.n_players(l) + 1 < weights.size[0]);
  EXACTSHAP_REQUIRE(weights.size[0] == weights.size[1]);
  auto rises = context.empty<double>(parts.most());
  if (context.failed()) return Status::no_memory;
  return sweep_rows(columns, forest, leaves, parts, chosen, context, [&](int64_t i, const RowAtLeaf& row) {
    const int64_t l = row.l, f = __builtin_popcountll(row.F), first_part = parts.part_start[l];
    const int32_t* const players = leaves.player.data + leaves.start[l];
    double* const to = out[i].data;
    double gains[PATTERN_BITS], loss = 0.0;
    const int64_t m = leaves.n_players(l);
    for (int64_t j = 0; j < m; j++) gains[j] = 0.0;
    const double* moments = patterns.moment.data + patterns.moment_start[l];
    for (int64_t p = patterns.start[l]; p < patterns.start[l + 1]; p++, moments += row.n_parts) {
      const uint64_t E = patterns.failed[p];
      if ((E & row.F) != 0) continue;
      const int64_t e = __builtin_popcountll(E);
      const Meeting met = meet(row, parts.offset[l], E, patterns.weight[p], moments, rises.data);
      const double* const of_all = weights[e + f].data;
      const double* const with_one = weights[e + f + 1].data;
      double gain = met.sum_of_rises * with_one[e];
      if (e > 0) gain += met.C * of_all[e - 1];
      if (f > 0) loss += met.C * of_all[e] + met.sum_of_rises * with_one[e + 1];
      for (uint64_t bits = E; bits != 0; bits &= bits - 1) gains[__builtin_ctzll(bits)] += gain;
      if (met.n_free > 0)
        for (int64_t k = 0; k < row.n_parts; k++) to[parts.player[first_part + k]] += rises[k] * with_one[e];
      scale[i] += patterns.size[p] + patterns.weight[p] * row.size;
    }
    for (int64_t j = 0; j < m; j++) to[players[j]] += (row.F >> j) & 1 ? -loss : gains[j];
  });
}

/// Add the values of sets of up to `order` players of one game C [E in S] [S n F empty] to `out`:
///
///   phi_T = C (-1)^{|T n F|} p_{|T|}(|E \ T|)   for T in E + F
EXACTSHAP_INLINE void add_sets(double C, uint64_t E, uint64_t F, const int32_t* players, In<double, 3> weights, In<int64_t, 2> binomials,
                               In<int64_t, 1> offsets, double* out) {
  int32_t members[PATTERN_BITS];
  uint64_t inside = 0;
  int64_t n = 0;
  for (uint64_t bits = E | F; bits != 0; bits &= bits - 1) {
    const int64_t j = __builtin_ctzll(bits);
    inside |= (E >> j & 1) << n;
    members[n++] = players[j];
  }
  const int64_t e = __builtin_popcountll(E), order = weights.size[0] - 1;
  int64_t chosen[PATTERN_BITS];
  for (int64_t size = 1; size <= smaller(order, n); size++) {
    for (int64_t i = 0; i < size; i++) chosen[i] = i;
    for (;;) {
      const int64_t d = binomials.size[0] - 1;
      int64_t rank = offsets[size] + binomials[d][size] - 1, n_inside = 0;
      for (int64_t i = 0; i < size; i++) {
        rank -= binomials[d - 1 - members[chosen[i]]][size - i];
        n_inside += int64_t(inside >> chosen[i] & 1);
      }
      const double value = C * weights[size][n][e - n_inside];
      out[rank] += (size - n_inside) % 2 == 0 ? value : -value;
      int64_t i = size - 1;
      while (i >= 0 && chosen[i] == n - size + i) i--;
      if (i < 0) break;
      chosen[i]++;
      for (int64_t k = i + 1; k < size; k++) chosen[k] = chosen[k - 1] + 1;
    }
  }
}

/// Add the values of all sets of players as `sweep_linear_leaves` does of single ones, to `out (n_rows, n_sets)`.
///
/// `weights[size, m, s]` is p(s) for sets of `size` on m players. Every part's player must have a bit.
Status sweep_linear_sets(In<double, 2> columns, Forest forest, Leaves leaves, LeafParts parts, Patterns patterns, Chosen chosen, In<double, 3> weights,
                         In<int64_t, 2> binomials, In<int64_t, 1> offsets, Out<double, 2> out, Out<double, 1> scale, Context& context) {
  const int64_t order = weights.size[0] - 1, n_players = binomials.size[0] - 1;
  EXACTSHAP_REQUIRE(forest.fit() && leaves.fit() && parts.fit(leaves, columns.size[0]) && patterns.fit(leaves, parts) && order >= 1);
  EXACTSHAP_REQUIRE(chosen.fit(leaves, columns.size[1]) && out.size[0] == columns.size[1] && scale.size[0] == out.size[0]);
  EXACTSHAP_REQUIRE(lie_within(leaves.player, n_players));
  EXACTSHAP_REQUIRE(offsets.size[0] == order + 2 && binomials.size[1] == order + 1 && out.size[1] == offsets[order + 1]);
  for (int64_t l = 0; l < leaves.count(); l++) EXACTSHAP_REQUIRE(leaves.n_players(l) < weights.size[1]);
  for (int64_t k = 0; k < parts.bit.size[0]; k++) EXACTSHAP_REQUIRE(parts.bit[k] != 0);
  EXACTSHAP_REQUIRE(weights.size[1] == weights.size[2]);
  auto rises = context.empty<double>(parts.most());
  if (context.failed()) return Status::no_memory;
  return sweep_rows(columns, forest, leaves, parts, chosen, context, [&](int64_t i, const RowAtLeaf& row) {
    const int64_t l = row.l;
    const int32_t* const players = leaves.player.data + leaves.start[l];
    const double* moments = patterns.moment.data + patterns.moment_start[l];
    for (int64_t p = patterns.start[l]; p < patterns.start[l + 1]; p++, moments += row.n_parts) {
      const uint64_t E = patterns.failed[p];
      if ((E & row.F) != 0) continue;
      const Meeting met = meet(row, parts.offset[l], E, patterns.weight[p], moments, rises.data);
      add_sets(met.C, E, row.F, players, weights, binomials, offsets, out[i].data);
      for (int64_t k = 0; k < row.n_parts; k++)
        if (((E | row.F) & row.bits[k]) == 0) add_sets(rises[k], E | row.bits[k], row.F, players, weights, binomials, offsets, out[i].data);
      scale[i] += patterns.size[p] + patterns.weight[p] * row.size;
    }
  });
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, fill_patterns, fill_patterns)
EXACTSHAP_KERNEL(tree_solver, sweep_linear_leaves, sweep_linear_leaves)
EXACTSHAP_KERNEL(tree_solver, sweep_linear_sets, sweep_linear_sets)
