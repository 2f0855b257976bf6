// Unit pairs by histograms over joint patterns and a coalition-space transform.
//
// For two units u, w (or one and itself, or one and the constant 1) and weighted rows i
//
//   g(S) = sum_i omega_i prod_{k in S} alpha_uk(x_i) alpha_wk(x_i) prod_{k not in S} beta_uk beta_wk
//
// is a game on the m players of the pair. A row enters by its two codes only, so rows are counted per joint code first; the counts
// become g(S) for all S at once by superset sums, and the Shapley values of g follow from one folding pass:
//
//   phi_k = sum_{S with k} h(|S|) g(S) - T,   T = (sum_k sum_{S with k} h(|S|) g(S) - g(D) + g(empty)) / m,
//   h(s) = (s - 1)! (m - 1 - s)! / (m - 1)!
//
// Two units of one tree part at a node; no row passes both its sides, so g(S) = 0 for every S with that node's player ("apart"),
// which leaves the table. Cost: one increment per row plus m 2^m additions, never a product of the two.
#pragma once

#include "../common/lanes.h"
#include "join.h"

EXACTSHAP_BEGIN

constexpr int64_t SMALL_BITS = 6;  // 64 cells: what quadrature costs for some ten rows
constexpr int64_t MAX_BITS = 16;   // largest table: 2^16 cells, 512 KiB: what fits into a second-level cache

/// The rows of one pair: their codes in either unit and their weights, which are not read where all are 1.
struct Coded {
  const uint16_t *code_u, *code_w;
  const double* weights;
  int64_t n;
  bool ones;
};

/// Add up the weights of the rows of each joint index.
EXACTSHAP_INLINE void count_rows(const Coded& rows, const uint32_t* lookup_u, const uint32_t* lookup_w, double* table) {
  const uint16_t *const code_u = rows.code_u, *const code_w = rows.code_w;
  if (rows.ones) {
    for (int64_t i = 0; i < rows.n; i++) table[lookup_u[code_u[i]] & lookup_w[code_w[i]]] += 1.0;
  } else {
    const double* const weights = rows.weights;
    for (int64_t i = 0; i < rows.n; i++) table[lookup_u[code_u[i]] & lookup_w[code_w[i]]] += weights[i];
  }
}

/// Replace N[A] by the sum of N[B] over all B that contain A, on the lowest `n_axes` bits; in place.
EXACTSHAP_INLINE void sum_supersets(double* table, int64_t n_axes, int64_t size) {
  int64_t done = 0;
  if (n_axes >= 3) {
    done = 3;
    for (int64_t start = 0; start < size; start += 8) {
      double* const a = table + start;
      for (int i = 0; i < 4; i++) a[i] += a[i + 4];
      a[0] += a[2], a[1] += a[3], a[4] += a[6], a[5] += a[7];
      a[0] += a[1], a[2] += a[3], a[4] += a[5], a[6] += a[7];
    }
  }
  for (int64_t k = done; k < n_axes; k++) {
    const int64_t step = int64_t(1) << k;
    for (int64_t x = 0; x < size; x += 2 * step) add_range(table, x, x + step, step);
  }
}

/// The sum of `values[0:size]` in eight interleaved partial sums, which the processor adds side by side.
EXACTSHAP_INLINE double sum_lanes(const double* values, int64_t size) {
  double s[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  int64_t x = 0;
  for (; x + 8 <= size; x += 8)
    for (int i = 0; i < 8; i++) s[i] += values[x + i];
  double total = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
  for (; x < size; x++) total += values[x];
  return total;
}

/// Write constant times the product of beta over the normal axes outside S, for all S, by doubling.
EXACTSHAP_INLINE void fill_outside(double constant, int64_t n, const double* axis_beta, double* outside) {
  outside[0] = constant;
  for (int64_t k = 0; k < n; k++) {
    const double beta = axis_beta[k];
    const int64_t step = int64_t(1) << k;
    double *__restrict const low = outside, *__restrict const high = outside + step;
    for (int64_t x = 0; x < step; x++) {
      high[x] = low[x];
      low[x] *= beta;
    }
  }
}

/// The terms of S = {} and of S = all players.
struct Ends {
  double none, every;
};

/// Weigh the common case, two bottom axes with a bit each: h(|S|) g(S) summed over the bottoms to planes 1.
///
/// Planes 2 and 3 get the parts with the first and the second bottom player in S; plane 0 is the product of beta outside S.
inline Ends weigh_two(const double* __restrict table, int64_t size, const double* __restrict half, const double (*mix)[16],
                      Array<double, 2> planes) {
  const double* __restrict const outside = planes[0].data;
  double *__restrict const fold = planes[1].data, *__restrict const one = planes[2].data, *__restrict const other = planes[3].data;
  const double e0 = mix[0][0], e1 = mix[0][1], e2 = mix[0][2], e3 = mix[0][3];
  const double u0 = mix[1][0], u1 = mix[1][1], u2 = mix[1][2], u3 = mix[1][3];
  const double w0 = mix[2][0], w1 = mix[2][1], w2 = mix[2][2], w3 = mix[2][3];
  const double b0 = mix[3][0], b1 = mix[3][1], b2 = mix[3][2], b3 = mix[3][3];
  const double *const second = table + size, *const third = table + 2 * size, *const fourth = table + 3 * size;
  for (int64_t x = 0; x < size; x++) {
    const double n0 = table[x], n1 = second[x], n2 = third[x], n3 = fourth[x];
    const double scale = outside[x], h1 = scale * half[size + x];
    const double both = (b0 * n0 + b1 * n1 + b2 * n2 + b3 * n3) * (scale * half[3 * size + x]);
    const double with_first = (u0 * n0 + u1 * n1 + u2 * n2 + u3 * n3) * h1 + both;
    const double with_second = (w0 * n0 + w1 * n1 + w2 * n2 + w3 * n3) * h1;
    one[x] = with_first;
    fold[x] = (e0 * n0 + e1 * n1 + e2 * n2 + e3 * n3) * (scale * half[x]) + with_first + with_second;
    other[x] = with_second + both;
  }
  const int64_t last = size - 1;
  const double none = (e0 * table[0] + e1 * second[0] + e2 * third[0] + e3 * fourth[0]) * outside[0] * half[0];
  const double every = b0 * table[last] + b1 * second[last] + b2 * third[last] + b3 * fourth[last];
  return Ends{none, every * outside[last] * half[3 * size + last]};
}

/// Add one bottom pattern's `term (size,)` to planes 1 (all), 2 (the first bottom player in S) and 3 (the second).
EXACTSHAP_INLINE void add_term(int64_t pattern, const double* __restrict term, int64_t size, Array<double, 2> planes) {
  double *__restrict const fold = planes[1].data, *__restrict const one = planes[2].data, *__restrict const other = planes[3].data;
  if (pattern == 0) {
    for (int64_t x = 0; x < size; x++) fold[x] = term[x];
  } else if (pattern == 1) {
    for (int64_t x = 0; x < size; x++) fold[x] += term[x], one[x] = term[x];
  } else if (pattern == 2) {
    for (int64_t x = 0; x < size; x++) fold[x] += term[x], other[x] = term[x];
  } else {
    for (int64_t x = 0; x < size; x++) fold[x] += term[x], one[x] += term[x], other[x] += term[x];
  }
}

/// Weigh any number of bottom axes and top bits; as weigh_two, one bottom pattern after another.
inline Ends weigh_any(const double* __restrict table, int64_t size, int64_t bottoms, int64_t top, const double* half,
                      const double (*mix)[16], Array<double, 2> planes) {
  const double* __restrict const outside = planes[0].data;
  double* __restrict const term = planes[4].data;
  Ends ends = {0.0, 0.0};
  for (int64_t o = 0; o < int64_t(1) << bottoms; o++) {
    const double* __restrict const h = half + ((int64_t(1) << ((o & 1) + (o >> 1))) - 1) * size;
    for (int64_t x = 0; x < size; x++) term[x] = 0.0;
    for (int64_t t = 0; t < int64_t(1) << top; t++) {
      const double factor = mix[o][t];
      const double* const block = table + t * size;
      if (factor != 0.0)
        for (int64_t x = 0; x < size; x++) term[x] += factor * block[x];
    }
    for (int64_t x = 0; x < size; x++) term[x] = term[x] * outside[x] * h[x];
    add_term(o, term, size, planes);
    if (o == 0) ends.none = term[0];
    ends.every = term[size - 1];
  }
  return ends;
}

/// Whether quadrature row by row costs less than a table (or the table does not fit). Small tables always win.
EXACTSHAP_INLINE bool rows_are_cheaper(int64_t n, int64_t bottoms, int64_t top, int64_t n_rows) {
  const int64_t m = n + bottoms + 1;
  const double by_table = double(n_rows) + 0.25 * double(n + 6) * double(int64_t(1) << (n + top));
  const double by_rows = double(n_rows) * double(m) * double((m + 1) / 2);
  return n + top > MAX_BITS || (n + top > SMALL_BITS && by_table > by_rows);
}

/// Find the axes of a pair; return whether its table wins, against quadrature of `n_rows` rows.
inline bool table_wins(int64_t u, int64_t w, int64_t apart, int64_t n_rows, const Units& units, Join& join) {
  if (units.size[u][0] >= CODE_BITS || units.size[w][0] >= CODE_BITS) return false;
  join.find(u, w, apart, units);
  return !rows_are_cheaper(join.n, join.count_bottoms(), join.count_top(), n_rows);
}

/// The sums of all pairs that go by table, with the scratch of one call.
class Tables {
 public:
  int64_t left_over;  // pairs that lost: they are left for quadrature

  /// `half` as fill_half_weights writes it; `n_rows` is what quadrature would have to go through; `out (n_players,)`.
  Tables(const Units& units, In<double, 1> half, int64_t n_rows, Out<double, 1> out, Context& context)
      : left_over(0), units_(units), half_(half), n_rows_(n_rows), out_(out) {
    const int64_t width = units.count_players(), bits = 2 * width + 2 < MAX_BITS ? 2 * width + 2 : MAX_BITS;
    lookups_ = context.empty<uint32_t>(2, int64_t(1) << (width + 1 < CODE_BITS ? width + 1 : CODE_BITS));
    planes_ = context.empty<double>(5, int64_t(1) << bits);
    table_ = context.empty<double>(int64_t(1) << bits);
  }
  /// Whether there is a half weight for every coalition of a pair and a place for every player.
  bool fit() const { return half_.size[0] >= 4 * table_.size[0] && units_.players_within(out_.size[0]); }

  void add(int64_t u, int64_t w, int64_t apart, double factor, const Coded& rows);

 private:
  Units units_;
  In<double, 1> half_;
  int64_t n_rows_;
  Out<double, 1> out_;
  Join join_;
  Array<uint32_t, 2> lookups_;  // (2, n_codes): code of either unit -> bits of the joint index
  Array<double, 2> planes_;     // (5, n_cells): see share_out
  Array<double, 1> table_;      // (n_cells,)
  double sums_[SLOTS];          // sum over S with k of h g

  void share_out(int64_t apart);
};

/// Turn superset sums into Shapley values of the pair's game and add them to `out`.
///
/// Planes: the product of beta outside S (filled), h(|S|) g(S) summed over the bottom axes, its parts with the first and the
/// second bottom player in S, and one bottom pattern.
inline void Tables::share_out(int64_t apart) {
  const int64_t n = join_.n, bottoms = join_.count_bottoms(), top = join_.count_top(), size = int64_t(1) << n;
  const int64_t m = n + bottoms + (apart >= 0 ? 1 : 0);
  const double* const weights = half_.data + (int64_t(1) << m);
  const Ends ends = bottoms == 2 && top == 2 ? weigh_two(table_.data, size, weights, join_.mix, planes_)
                                             : weigh_any(table_.data, size, bottoms, top, weights, join_.mix, planes_);
  double* const fold = planes_[1].data;
  double common = 0.0;
  for (int64_t k = n - 1; k >= 0; k--) {
    const int64_t step = int64_t(1) << k;
    sums_[k] = sum_lanes(fold + step, step);
    common += sums_[k];
    add_range(fold, 0, step, step);
  }
  for (int64_t k = 0; k < bottoms; k++) {
    sums_[n + k] = sum_lanes(planes_[2 + k].data, size);
    common += sums_[n + k];
  }
  common = common / double(m) + ends.none - (apart < 0 ? ends.every : 0.0);
  for (int64_t k = 0; k < n + bottoms; k++) out_[join_.axis_player[k]] += sums_[k] - common;
  if (apart >= 0) out_[apart] -= common;
}

/// Add `factor` times the Shapley values of the pair's game, unless quadrature is cheaper.
inline void Tables::add(int64_t u, int64_t w, int64_t apart, double factor, const Coded& rows) {
  if (!table_wins(u, w, apart, n_rows_, units_, join_)) {
    left_over++;
    return;
  }
  const int64_t n = join_.n, bottoms = join_.count_bottoms();
  if (n + bottoms == 0 && apart < 0) return;
  if (join_.own[0] >= 0) join_.axis_player[n] = int32_t(join_.own[0]);
  if (join_.own[1] >= 0) join_.axis_player[n + bottoms - 1] = int32_t(join_.own[1]);
  join_.lay_out(u, w, units_, lookups_);
  const int64_t cells = int64_t(1) << (n + join_.count_top());
  table_.slice(0, cells).fill(0.0);
  count_rows(rows, lookups_[0].data, lookups_[1].data, table_.data);
  sum_supersets(table_.data, n, cells);
  fill_outside(factor * join_.constant * units_.value[u][2] * units_.value[w][2], n, join_.axis_beta, planes_[0].data);
  share_out(apart);
}

EXACTSHAP_END
