// Sweeps over all coalitions of product games whose background is summed up beforehand.
//
// A coalition is a pair S = (S_2, S_1) of the high and the low players; its number has the low players in the low bits. No
// divisions and no fast-math; every sum runs in a fixed order, so that a row's bits do not depend on the other rows of its batch.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t TERMS = 32;    // terms of one tile: with SLICE coalitions each, their tables fill half of a core's second cache
constexpr int64_t SLICE = 4096;  // coalitions of one slice: what a row has in its first cache
constexpr int64_t LANES = 4;     // terms, or background rows, added in one pass over a slice
constexpr int64_t ROWS = 128;    // background rows of one pass

/// The number of players whose coalitions are counted by `size`, a power of two; -1 for other sizes.
int64_t players_of(int64_t size) {
  for (int64_t n = 0; n < 62; n++)
    if (int64_t(1) << n == size) return n;
  return -1;
}

/// Set `table (2^n_players,)` to the products over the members of every coalition, times `start`.
EXACTSHAP_INLINE void fill_present(const double* factors, int64_t n_players, double start, double* __restrict table) {
  table[0] = start;
  int64_t size = 1;
  for (int64_t j = 0; j < n_players; j++) {
    const double factor = factors[j];
    for (int64_t s = 0; s < size; s++) table[size + s] = table[s] * factor;
    size *= 2;
  }
}

/// Set `table (2^n_players,)` to the products over the players outside every coalition, times `start`.
EXACTSHAP_INLINE void fill_absent(const double* factors, int64_t n_players, double start, double* __restrict table) {
  table[0] = start;
  int64_t size = 1;
  for (int64_t j = 0; j < n_players; j++) {
    const double factor = factors[j];
    for (int64_t s = 0; s < size; s++) {
      table[size + s] = table[s];
      table[s] *= factor;
    }
    size *= 2;
  }
}

/// Add sum_z L_zu R_zv to `out (n_left, n_right)`; the number of z is a multiple of LANES.
void add_outer(Array<double, 2> left, Array<double, 2> right, Out<double, 2> out) {
  const int64_t n_right = right.size[1];
  for (int64_t z = 0; z < left.size[0]; z += LANES) {
    const double *const r0 = right[z].data, *const r1 = right[z + 1].data, *const r2 = right[z + 2].data, *const r3 = right[z + 3].data;
    for (int64_t u = 0; u < left.size[1]; u++) {
      const double a0 = left[z][u], a1 = left[z + 1][u], a2 = left[z + 2][u], a3 = left[z + 3][u];
      double* const out_u = out[u].data;
      for (int64_t v = 0; v < n_right; v++) out_u[v] += (a0 * r0[v] + a1 * r1[v]) + (a2 * r2[v] + a3 * r3[v]);
    }
  }
}

/// Add the background of every term to `out (n_terms, 2^n_high, 2^n_low)`:   M_l(S) = sum_z w_z prod_{j not in S} b_zlj
///
/// `b (n_terms, n_background, n_players)`. Cost: 2^d multiplications for each term and background row.
Status fill_folded(In<double, 3> b, In<double, 1> weights, int64_t n_low, Out<double, 3> out, Context& context) {
  const int64_t n_background = weights.size[0], n_players = b.size[2];
  EXACTSHAP_REQUIRE(b.size[0] <= out.size[0] && b.size[1] == n_background && n_low >= 0 && n_low <= n_players);
  EXACTSHAP_REQUIRE(players_of(out.size[2]) == n_low && players_of(out.size[1]) == n_players - n_low);
  auto low = context.zeros<double>(ROWS, out.size[2]), high = context.zeros<double>(ROWS, out.size[1]);
  if (context.failed()) return Status::no_memory;
  for (int64_t term = 0; term < b.size[0]; term++)
    for (int64_t start = 0; start < n_background; start += ROWS) {
      if (context.interrupted()) return Status::interrupted;
      const int64_t stop = smaller(start + ROWS, n_background);
      for (int64_t z = start; z < stop; z++) {
        const double* const factors = b[term][z].data;
        fill_absent(factors, n_low, 1.0, low[z - start].data);
        fill_absent(factors + n_low, n_players - n_low, weights[z], high[z - start].data);
      }
      const int64_t n_rows = stop - start, padded = (n_rows + LANES - 1) / LANES * LANES;
      high.slice(n_rows, padded).fill(0.0);
      add_outer(high.slice(0, padded), low, out[term]);
    }
  return Status::done;
}

/// Add sum_l H_l(S_2) L_l(S_1) M_l(S_2, S_1) for the S_2 from `first` on to `out (n_high, n_low)`.
void add_slice(Array<double, 2> high, Array<double, 2> low, In<double, 3> folded, int64_t n_terms, int64_t first, Out<double, 2> out) {
  for (int64_t u = 0; u < out.size[0]; u++)
    for (int64_t t = 0; t < n_terms; t += LANES) {
      const double h0 = high[t][first + u], h1 = high[t + 1][first + u], h2 = high[t + 2][first + u], h3 = high[t + 3][first + u];
      if (h0 == 0.0 && h1 == 0.0 && h2 == 0.0 && h3 == 0.0) continue;
      const double *const m0 = folded[t][first + u].data, *const m1 = folded[t + 1][first + u].data;
      const double *const m2 = folded[t + 2][first + u].data, *const m3 = folded[t + 3][first + u].data;
      const double *const l0 = low[t].data, *const l1 = low[t + 1].data, *const l2 = low[t + 2].data, *const l3 = low[t + 3].data;
      double* const out_u = out[u].data;
      for (int64_t v = 0; v < out.size[1]; v++)
        out_u[v] += (h0 * (l0[v] * m0[v]) + h1 * (l1[v] * m1[v])) + (h2 * (l2[v] * m2[v]) + h3 * (l3[v] * m3[v]));
    }
}

/// Add the values of all coalitions to `out (n_rows, n_outputs, 2^n_high, 2^n_low)`:
///
///   v_o(S) = sum_l c_ol M_l(S) prod_{j in S} a_lj
///
/// `a (n_rows, n_terms, n_players)`; `folded` as fill_folded leaves it, with zeros for further terms up to a multiple of LANES.
/// Cost: 3 operations for each row, term, output and coalition.
Status fill_coalitions(In<double, 3> a, In<double, 3> folded, In<double, 2> c, Out<double, 4> out, Context& context) {
  const int64_t n_rows = a.size[0], n_terms = a.size[1], n_outputs = c.size[0], n_high = out.size[2], n_low = out.size[3];
  const int64_t n_first = players_of(n_low), n_second = players_of(n_high);
  EXACTSHAP_REQUIRE(c.size[1] == n_terms && out.size[0] == n_rows && out.size[1] == n_outputs);
  EXACTSHAP_REQUIRE(n_first >= 0 && n_second >= 0 && n_first + n_second == a.size[2]);
  EXACTSHAP_REQUIRE(folded.size[0] >= (n_terms + LANES - 1) / LANES * LANES && folded.size[1] == n_high && folded.size[2] == n_low);
  const int64_t step = SLICE / n_low > 1 ? SLICE / n_low : 1;
  auto low = context.zeros<double>(TERMS, n_low), high = context.zeros<double>(TERMS, n_high);
  if (context.failed()) return Status::no_memory;
  for (int64_t start = 0; start < n_terms; start += TERMS) {
    const int64_t width = smaller(TERMS, n_terms - start), padded = (width + LANES - 1) / LANES * LANES;
    In<double, 3> part = folded.slice(start, start + padded);
    for (int64_t first = 0; first < n_high; first += step)
      for (int64_t r = 0; r < n_rows; r++) {
        if (context.interrupted()) return Status::interrupted;
        for (int64_t t = 0; t < width; t++) fill_present(a[r][start + t].data, n_first, 1.0, low[t].data);
        for (int64_t o = 0; o < n_outputs; o++) {
          for (int64_t t = 0; t < width; t++)
            fill_present(a[r][start + t].data + n_first, n_second, c[o][start + t], high[t].data);
          high.slice(width, padded).fill(0.0);
          add_slice(high, low, part, padded, first, out[r][o].slice(first, smaller(first + step, n_high)));
        }
      }
  }
  return Status::done;
}

/// The sum over the subsets L of T of (-1)^{|T| - |L|} v(S u L), largest first.
EXACTSHAP_INLINE double difference(const double* value, int64_t s, int64_t inside, const int64_t* sizes) {
  const int64_t size = sizes[inside];
  double change = 0.0;
  for (int64_t part = inside;; part = (part - 1) & inside) {
    const double v = value[s | part];
    change += (size - sizes[part]) % 2 == 0 ? v : -v;
    if (part == 0) return change;
  }
}

/// Set `out (n_rows, n_outputs, n_sets)` to the values of sets of one size, from v (n_rows, n_outputs, 2^d):
///
///   phi_T = sum_{S in D \ T} p(|S|) sum_{L in T} (-1)^{|T| - |L|} v(S u L)
///
/// `sets (n_sets,)` and coalitions are bit masks, `weights` p.
Status fill_set_values(In<double, 3> table, In<int64_t, 1> sets, In<double, 1> weights, Out<double, 3> out, Context& context) {
  const int64_t n_rows = table.size[0], n_outputs = table.size[1], n_coalitions = table.size[2], d = players_of(n_coalitions);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == n_outputs && out.size[2] == sets.size[0] && d >= 0);
  auto sizes = context.zeros<int64_t>(n_coalitions);
  if (context.failed()) return Status::no_memory;
  for (int64_t s = 1; s < n_coalitions; s++) sizes[s] = sizes[s >> 1] + (s & 1);
  for (int64_t t = 0; t < sets.size[0]; t++) {
    EXACTSHAP_REQUIRE(sets[t] >= 0 && sets[t] < n_coalitions);
    EXACTSHAP_REQUIRE(d - sizes[sets[t]] < weights.size[0]);
  }
  for (int64_t r = 0; r < n_rows; r++)
    for (int64_t o = 0; o < n_outputs; o++)
      for (int64_t t = 0; t < sets.size[0]; t++) {
        if (context.interrupted()) return Status::interrupted;
        double total = 0.0;
        for (int64_t s = 0; s < n_coalitions; s++)
          if ((s & sets[t]) == 0) total += weights[sizes[s]] * difference(table[r][o].data, s, sets[t], sizes.data);
        out[r][o][t] = total;
      }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_folded, fill_folded)
EXACTSHAP_KERNEL(product, fill_coalitions, fill_coalitions)
EXACTSHAP_KERNEL(product, fill_set_values, fill_set_values)
