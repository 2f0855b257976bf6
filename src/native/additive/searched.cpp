// Terms of one and two players that are tables over bins: bins are searched, and values looked up and added up, in one pass over the rows.

#include <math.h>

#include "lookups.h"
#include "search.h"

EXACTSHAP_BEGIN

namespace {

/// Terms of one output each of whose columns is a player.
struct Tables {
  Lookups singles, pairs;

  EXACTSHAP_FIELDS(singles, pairs)
};

/// What the values of sets are within a term, and where they go.
struct Shares {
  In<double, 1> weights;   // p(0) of a player that is alone; p(0) and p(1) of one of two; p(0) of both together
  In<int64_t, 2> singles;  // (n_singles, 1): where the player of each term stands among the sets
  In<int64_t, 2> pairs;    // (n_pairs, 2 or 3): where the first and the second do, and the two together, at order 2

  EXACTSHAP_FIELDS(weights, singles, pairs)
};

/// Whether terms of K players have the bins that their tables are made for, each table in C order over the columns inside.
template <int K>
bool fit(const Lookups& lookups, const Bins& bins) {
  if (!are_lookups(lookups, bins.n_terms()) || lookups.shape.size[1] != K || lookups.strides.size[1] != 1 << K) return false;
  if (lookups.folded.size[1] != 1) return false;
  for (int64_t t = 0; t < lookups.term.size[0]; t++) {
    const int64_t first = bins.way_start[lookups.term[t]];
    if (bins.way_start[lookups.term[t] + 1] - first != K) return false;
    for (int p = 0; p < K; p++) {
      if (bins.n_cuts(bins.way[first + p]) + 2 > lookups.shape[t][p]) return false;
      for (int code = 0; code < 1 << K; code++) {
        const int64_t expected = (code >> p & 1) == 0 ? 0 : p == K - 1 || code == 1 << p ? 1 : lookups.shape[t][K - 1];
        if (lookups.strides[t][code][p + 1] != expected) return false;
      }
    }
  }
  return true;
}

bool are_shares(const Shares& shares, const Tables& tables, int64_t n_sets) {
  if (shares.weights.size[0] != 4 || shares.singles.size[0] != tables.singles.term.size[0]) return false;
  if (shares.pairs.size[0] != tables.pairs.term.size[0] || shares.singles.size[1] != 1) return false;
  const bool known = shares.pairs.size[1] == 2 || shares.pairs.size[1] == 3;
  return known && lie_within(shares.singles, n_sets) && lie_within(shares.pairs, n_sets);
}

/// Some rows: their bins (n_ways, TILE), values (n_rows, n_sets), and what is added up over the terms.
struct Rows {
  int64_t n_rows, n_sets;
  const int64_t* found;
  double* values;
  double empty, full[TILE], scale[TILE];

  EXACTSHAP_INLINE void add(const double* added, int64_t position) {
    double* const target = values + position;
    for (int64_t i = 0; i < n_rows; i++) target[i * n_sets] += added[i];
  }
};

/// Add a term of one player:   phi_j += p(0) (v(j) - v(empty))
EXACTSHAP_INLINE void add_single(const double* tables, In<int64_t, 2> strides, const int64_t* bin, double weight, int64_t position,
                                 Rows& rows) {
  const double without = tables[strides[0][0]], least = fabs(without);
  const double* const table = tables + strides[1][0];
  double value[TILE];
  for (int64_t i = 0; i < rows.n_rows; i++) {
    const double with = table[bin[i]];
    value[i] = 0.0 + weight * (with - without);  // 0.0 + x: never minus zero
    rows.full[i] += with;
    rows.scale[i] += larger(least, fabs(with));
  }
  rows.empty += without;
  rows.add(value, position);
}

/// Add a term of two players:   phi_j += p(0) (v(j) - v(empty)) + p(1) (v(both) - v(other)),   and of both what is left
EXACTSHAP_INLINE void add_pair(const double* tables, In<int64_t, 2> strides, const int64_t* a, const int64_t* b, const double* weights,
                               In<int64_t, 1> positions, Rows& rows) {
  const double none = tables[strides[0][0]], least = fabs(none), alone = weights[1], joining = weights[2], joint = weights[3];
  const double* const first = tables + strides[1][0];
  const double* const second = tables + strides[2][0];
  const double* const whole = tables + strides[3][0];
  const int64_t stride = strides[3][1];
  double value[2][TILE], together[TILE];
  for (int64_t i = 0; i < rows.n_rows; i++) {
    const double one = first[a[i]], other = second[b[i]], both = whole[stride * a[i] + b[i]];
    value[0][i] = 0.0 + alone * (one - none) + joining * (both - other);
    value[1][i] = 0.0 + alone * (other - none) + joining * (both - one);
    together[i] = 0.0 + joint * ((both - one) - (other - none));
    rows.full[i] += both;
    rows.scale[i] += larger(larger(larger(least, fabs(one)), fabs(other)), fabs(both));
  }
  rows.empty += none;
  rows.add(value[0], positions[0]);
  rows.add(value[1], positions[1]);
  if (positions.size[0] == 3) rows.add(together, positions[2]);
}

EXACTSHAP_INLINE void add_terms(const Tables& tables, const Bins& bins, const Shares& shares, Rows& rows) {
  const auto bin = [&](int64_t term, int64_t p) { return rows.found + bins.way[bins.way_start[term] + p] * TILE; };
  const Lookups &singles = tables.singles, &pairs = tables.pairs;
  for (int64_t t = 0; t < singles.term.size[0]; t++)
    add_single(singles.folded.data, singles.strides[t], bin(singles.term[t], 0), shares.weights[0], shares.singles[t][0], rows);
  for (int64_t t = 0; t < pairs.term.size[0]; t++)
    add_pair(pairs.folded.data, pairs.strides[t], bin(pairs.term[t], 0), bin(pairs.term[t], 1), shares.weights.data, shares.pairs[t], rows);
}

/// Set the values of the sets within terms, `out (n_rows, n_sets, 1)`, and the ends of the games, as `add_lookups` adds them up: first the
/// terms of one player, then those of two. `scale (n_rows,)` is the sum of the largest magnitudes of each term.
Status fill_searched(In<double, 2> X, Bins bins, Tables tables, Shares shares, Out<double, 3> out, Out<double, 2> empty,
                     Out<double, 2> full, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = X.size[0], n_sets = out.size[1];
  EXACTSHAP_REQUIRE(are_bins(bins, X.size[1]) && fit<1>(tables.singles, bins) && fit<2>(tables.pairs, bins));
  EXACTSHAP_REQUIRE(are_shares(shares, tables, n_sets) && out.size[2] == 1 && empty.size[1] == 1 && full.size[1] == 1);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  auto found = context.empty<int64_t>(bins.n_ways() * TILE);
  if (context.failed()) return Status::no_memory;
  for (int64_t start = 0; start < n_rows; start += TILE) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t count = smaller(TILE, n_rows - start);
    find_tile(X, start, count, bins, found.data);
    Rows rows = {count, n_sets, found.data, out[start].data, 0.0, {}, {}};
    out.slice(start, start + count).fill(0.0);
    add_terms(tables, bins, shares, rows);
    for (int64_t i = 0; i < count; i++) {
      empty[start + i][0] = rows.empty;
      full[start + i][0] = rows.full[i];
      scale[start + i] = rows.scale[i];
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_searched, fill_searched)
