// Leaves with linear functions by tables: the values of each leaf for every set of players that a row may pass (see linear.h).
//
// With A the players that a row passes at a leaf, n(S) the weight of the background rows that pass all players outside S and s(S) the same
// sum with the function's value in place of 1, all its parts from the background and those of players in S left out,
//
//   v(S) = [S in A] (s(S) + sum_k l_k(x) [k in S] n(S)),
//
// a table of one game, and of one for each part, which a row weighs by its l_k(x).

#include "../common/lanes.h"
#include "linear.h"
#include "tables.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t ROWS = 256;  // at a time: their numbers and decisions stay in the first caches
constexpr int64_t LANES = 4;  // values of sets are padded to so many

EXACTSHAP_INLINE int64_t padded(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

/// What is tabulated: the sets of leaf l are `sets[set_start[l]:set_start[l + 1]]`, places among all sets, and its cells begin at
/// `table_start[l]`, for each A one of `(1 + n_parts) padded(n_sets) + 2` numbers: the values of all sets in the games above, one game after
/// another, then the magnitude and the weight of the background rows that meet a row there.
struct LinearTables {
  In<int64_t, 1> set_start, sets, table_start;
  EXACTSHAP_FIELDS(set_start, sets, table_start)

  EXACTSHAP_INLINE int64_t n_sets(int64_t l) const { return set_start[l + 1] - set_start[l]; }
  EXACTSHAP_INLINE int64_t width(int64_t l, const LeafParts& parts) const { return (1 + parts.count(l)) * padded(n_sets(l)) + 2; }
  EXACTSHAP_INLINE bool fit(const Leaves& leaves, const LeafParts& parts, int64_t n_cells) const {
    const int64_t n = leaves.count();
    if (set_start.size[0] != n + 1 || table_start.size[0] != n + 1 || sets.size[0] != set_start[n] || table_start[n] != n_cells) return false;
    for (int64_t l = 0; l < n; l++) {
      if (leaves.n_players(l) > 30) return false;
      if (table_start[l + 1] - table_start[l] != width(l, parts) << leaves.n_players(l)) return false;
    }
    return true;
  }
};

/// Room for one leaf: tables of 2^m.
struct Room {
  double *weight, *size, *game, *some, *values;
};

/// Write n(S), the magnitudes and s(S) of leaf l.
void fill_games(int64_t l, int64_t m, const LeafParts& parts, const Patterns& patterns, const Room& room) {
  const int64_t n_cells = int64_t(1) << m, first = patterns.start[l], last = patterns.start[l + 1], n_parts = parts.count(l);
  for (int64_t s = 0; s < n_cells; s++) room.weight[s] = room.size[s] = 0.0;
  for (int64_t p = first; p < last; p++) {
    room.weight[patterns.failed[p]] = patterns.weight[p];
    room.size[patterns.failed[p]] = patterns.size[p];
  }
  sum_subsets(room.weight, m, 0);
  sum_subsets(room.size, m, 0);
  for (int64_t s = 0; s < n_cells; s++) room.game[s] = parts.offset[l] * room.weight[s];
  for (int64_t k = 0; k < n_parts; k++) {
    const int64_t bit = int64_t(parts.bit[parts.part_start[l] + k]);
    const double* const moments = patterns.moment.data + patterns.moment_start[l] + k;
    for (int64_t s = 0; s < n_cells; s++) room.some[s] = 0.0;
    for (int64_t p = first; p < last; p++) room.some[patterns.failed[p]] = moments[(p - first) * n_parts];
    sum_subsets(room.some, m, bit);
    for (int64_t s = 0; s < n_cells; s++)
      if ((s & bit) == 0) room.game[s] += room.some[s];
  }
}

/// Write the values of all sets of one leaf's players in one of its games to `out`, cells `width` apart.
void fill_values(const double* game, int64_t m, In<double, 3> weights, double* values, int64_t width, double* __restrict out) {
  const int64_t n_cells = int64_t(1) << m;
  int64_t set = 0;
  for (int64_t size = 1; size <= smaller(weights.size[0] - 1, m); size++)
    for (int64_t T = (int64_t(1) << size) - 1; T < n_cells; T = next_mask(T), set++) {
      fill_set_values(game, m, T, weights[size][m], values);
      for (int64_t A = 0; A < n_cells; A++) out[A * width + set] = values[A];
    }
}

/// Write which sets each leaf has; with `write` false only how many. In the order of `fill_values`.
Status fill_leaf_sets(Leaves leaves, int64_t order, In<int64_t, 2> binomials, In<int64_t, 1> offsets, bool write, Out<int64_t, 1> set_start,
                      Out<int64_t, 1> sets) {
  EXACTSHAP_REQUIRE(leaves.fit() && set_start.size[0] == leaves.count() + 1 && offsets.size[0] == order + 2 && binomials.size[1] == order + 1);
  EXACTSHAP_REQUIRE(!write || sets.size[0] == set_start[leaves.count()]);
  EXACTSHAP_REQUIRE(lie_within(leaves.player, binomials.size[0] - 1));
  for (int64_t l = 0, n = 0; l < leaves.count(); l++) {
    const int64_t m = leaves.n_players(l);
    EXACTSHAP_REQUIRE(m <= 30);
    for (int64_t size = 1; size <= smaller(order, m); size++)
      for (int64_t T = (int64_t(1) << size) - 1; T < int64_t(1) << m; T = next_mask(T), n++)
        if (write) sets[n] = set_rank(T, size, leaves.player.data + leaves.start[l], binomials, offsets);
    if (!write) set_start[l + 1] = n;
  }
  return Status::done;
}

/// Write the tables of all leaves to `out`. `weights[size, m, s]` is p(s) for sets of `size` on m players.
Status fill_linear_tables(Leaves leaves, LeafParts parts, Patterns patterns, In<double, 3> weights, LinearTables tables, Out<double, 1> out,
                          Context& context) {
  const int64_t most = most_players(leaves);
  EXACTSHAP_REQUIRE(leaves.fit() && patterns.fit(leaves, parts) && tables.fit(leaves, parts, out.size[0]) && weights.size[1] > most);
  EXACTSHAP_REQUIRE(weights.size[2] == weights.size[1]);
  for (int64_t k = 0; k < parts.bit.size[0]; k++) EXACTSHAP_REQUIRE(parts.bit[k] != 0);
  auto scratch = context.empty<double>(int64_t(5), int64_t(1) << most);
  if (context.failed()) return Status::no_memory;
  const Room room{scratch[0].data, scratch[1].data, scratch[2].data, scratch[3].data, scratch[4].data};
  for (int64_t l = 0; l < leaves.count(); l++) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t m = leaves.n_players(l), n_cells = int64_t(1) << m, width = tables.width(l, parts), each = padded(tables.n_sets(l));
    double* const cells = out.data + tables.table_start[l];
    fill_games(l, m, parts, patterns, room);
    fill_values(room.game, m, weights, room.values, width, cells);
    for (int64_t k = 0; k < parts.count(l); k++) {
      const int64_t bit = int64_t(parts.bit[parts.part_start[l] + k]);
      for (int64_t s = 0; s < n_cells; s++) room.game[s] = (s & bit) != 0 ? room.weight[s] : 0.0;
      fill_values(room.game, m, weights, room.values, width, cells + (1 + k) * each);
    }
    for (int64_t A = 0; A < n_cells; A++) {
      cells[A * width + width - 2] = room.size[A];
      cells[A * width + width - 1] = room.weight[A];
    }
  }
  return Status::done;
}

/// Write the parts of n rows at leaf l, part by part, to `values (n_parts, ROWS)`, their magnitudes to `sizes`; note the players whose
/// columns are missing. The sums are those of `LeafParts::part`, several rows side by side.
template <bool HAS_GAPS>
EXACTSHAP_APART void fill_parts(int64_t l, In<double, 2> columns, int64_t start, int64_t n, const LeafParts& parts, double* __restrict values,
                                double* __restrict sizes, uint16_t* __restrict failed) {
  for (int64_t i = 0; i < n; i++) sizes[i] = 0.0;
  for (int64_t k = parts.part_start[l]; k < parts.part_start[l + 1]; k++, values += ROWS) {
    for (int64_t i = 0; i < n; i++) values[i] = 0.0;
    for (int64_t e = parts.term_start[k]; e < parts.term_start[k + 1]; e++) {
      const double* const x = columns[parts.column[e]].data + start;
      const double c = parts.coefficient[e];
      for (int64_t i = 0; i < n; i++) {
        const bool is_missing = HAS_GAPS && x[i] != x[i];
        const double term = is_missing ? 0.0 : c * x[i];
        values[i] += term;
        sizes[i] += fabs(term);
      }
      if (HAS_GAPS)
        for (int64_t i = 0; i < n; i++) failed[i] = uint16_t(failed[i] | (x[i] != x[i] ? parts.bit[k] : 0));
    }
  }
}

/// Add the cells that rows meet to `out (n_rows, n_sets)` and `scale (n_rows,)`; `columns (n_features, n_rows)`.
Status sweep_linear_tables(In<double, 2> columns, Forest forest, Leaves leaves, LeafParts parts, LinearTables tables, In<double, 1> cells,
                           Out<double, 2> out, Out<double, 1> scale, Context& context) {
  using Vector = Doubles<LANES>::Vector;
  const int64_t n_rows = columns.size[1];
  EXACTSHAP_REQUIRE(forest.fit() && leaves.fit() && parts.fit(leaves, columns.size[0]) && tables.fit(leaves, parts, cells.size[0]));
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && scale.size[0] == n_rows && lie_within(tables.sets, out.size[1]) && most_players(leaves) <= 16);
  auto of_rows = context.empty<double>(parts.most() + 1, ROWS);
  auto met = context.empty<int32_t>(ROWS);
  int64_t most = 0;
  for (int64_t l = 0; l < leaves.count(); l++) most = padded(tables.n_sets(l)) > most ? padded(tables.n_sets(l)) : most;
  auto sums = context.empty<double>(most);
  if (context.failed()) return Status::no_memory;
  const auto fill_of_rows = has_gaps(columns) ? fill_parts<true> : fill_parts<false>;
  return meet_leaves<uint16_t>(columns, forest, leaves, ROWS, context, [&](int64_t l, int64_t start, int64_t n, uint16_t* failed) {
    const int64_t n_parts = parts.count(l), n_sets = tables.n_sets(l), each = padded(n_sets), width = tables.width(l, parts);
    const int64_t all = (int64_t(1) << leaves.n_players(l)) - 1;
    const int64_t* const sets = tables.sets.data + tables.set_start[l];
    const double* const of_leaf = cells.data + tables.table_start[l];
    const double *const sizes = of_rows[n_parts].data, *const of_row = of_rows.data;
    fill_of_rows(l, columns, start, n, parts, of_rows.data, of_rows[n_parts].data, failed);
    int64_t n_met = 0;
    for (int64_t i = 0; i < n; i++) {  // those that some background row can meet
      met[n_met] = int32_t(i);
      n_met += of_leaf[(all & ~failed[i]) * width + width - 1] != 0.0;
    }
    for (int64_t r = 0; r < n_met; r++) {
      const int64_t i = met[r];
      const double* const cell = of_leaf + (all & ~failed[i]) * width;
      for (int64_t j = 0; j < each; j += LANES) {
        Vector sum, values;
        load(cell + j, sum);
        const double* of_part = cell + each + j;
        const double* l_k = of_row + i;
        for (int64_t k = 0; k < n_parts; k++, of_part += each, l_k += ROWS) {
          load(of_part, values);
          sum += values * *l_k;
        }
        __builtin_memcpy(sums.data + j, &sum, sizeof sum);
      }
      double* const to = out[start + i].data;
      for (int64_t j = 0; j < n_sets; j++) to[sets[j]] += sums[j];
      scale[start + i] += cell[width - 2] + cell[width - 1] * sizes[i];
    }
  });
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, fill_leaf_sets, fill_leaf_sets)
EXACTSHAP_KERNEL(tree_solver, fill_linear_tables, fill_linear_tables)
EXACTSHAP_KERNEL(tree_solver, sweep_linear_tables, sweep_linear_tables)
