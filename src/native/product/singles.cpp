// Values of single players of product games: the quadrature of every term, background row and node of the rule.
//
// With f = b + t (a - b) a node costs a term and player 8 operations. Several nodes go together for a strip of terms whose products
// fill the registers, and what belongs to one player of a strip lies together: all of it stays in the first-level cache for d = 100.

#include "strips.h"
#include "tiles.h"

EXACTSHAP_BEGIN

namespace {

/// Copy the terms of one player: base = b, slope = a - b. Whole registers are written, as they will be read.
template <class T>
EXACTSHAP_INLINE void load_block(const T* inside, const T* outside, T* block) {
  using Pack = typename Register<T>::Type;
  constexpr int EACH = int(sizeof(Pack) / sizeof(T));
  Pack present, absent;
  for (int i = 0; i < LANES; i += EACH) {
    load(inside + i, present), load(outside + i, absent);
    store(absent, block + BASE * LANES + i), store(present - absent, block + SLOPE * LANES + i);
  }
}

/// Copy a tile, strip after strip; the last strip is padded with zeros.
template <class T>
EXACTSHAP_INLINE void load_strips(In<T, 2> a, In<T, 2> b, int64_t start, T* strips) {
  const int64_t n_players = a.size[0], width = smaller(TILE, a.size[1] - start), whole = width / LANES * LANES;
  T inside[LANES] = {}, outside[LANES] = {};
  for (int64_t k = 0; k < n_players; k++) {
    const T *const present = a[k].data + start, *const absent = b[k].data + start;
    T* block = strips + k * STEP;
    for (int64_t i = 0; i < whole; i += LANES, block += n_players * STEP) load_block(present + i, absent + i, block);
    if (whole == width) continue;
    for (int64_t i = whole; i < width; i++) inside[i - whole] = present[i], outside[i - whole] = absent[i];
    load_block(inside, outside, block);
  }
}

/// Add the values of one background row to those of the strip from `first` on.
template <class T>
EXACTSHAP_INLINE void add_shares(T weight, const T* strip, int64_t first, Array<T, 2> total) {
  using Pack = typename Register<T>::Type;
  Pack slope, share, sum;
  for (int64_t k = 0; k < total.size[0]; k++, strip += STEP)
    for (int i = 0; i < LANES; i += int(sizeof(Pack) / sizeof(T))) {
      T* const at = total[k].data + first + i;
      load(strip + SLOPE * LANES + i, slope), load(strip + SHARE * LANES + i, share), load(at, sum);
      store(sum + weight * (slope * share), at);
    }
}

/// Add the values of single players, one for each of `rows` of `a`, player and output, to `out (n_chosen, n_players, n_outputs)`.
///
///   phi_j = sum_m w_m sum_l c_l (a_lj - b_mlj) sum_q omega_q prod_{k != j} F_mlk(t_q),   F = b + t (a - b)
template <class T>
Status fill_singles(In<T, 3> a, In<T, 3> b, In<T, 2> c, In<double, 1> weights, In<int64_t, 1> rows,
                    In<double, 1> nodes, In<double, 1> node_weights, Out<double, 3> out, Context& context) {
  const int64_t n_rows = rows.size[0], n_players = a.size[1], n_terms = a.size[2], n_outputs = c.size[0], n_nodes = nodes.size[0];
  EXACTSHAP_REQUIRE(fit(a, b, c, weights) && n_nodes == node_weights.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && out.size[1] == n_players && out.size[2] == n_outputs);
  for (int64_t r = 0; r < n_rows; r++) EXACTSHAP_REQUIRE(rows[r] >= 0 && rows[r] < a.size[0]);
  if (n_players == 0 || n_nodes == 0) return Status::done;
  auto strips = context.empty<T>(TILE / LANES, n_players * STEP);
  auto total = context.empty<T>(n_players, TILE), coefficient = context.empty<T>(n_outputs, TILE);
  if (context.failed()) return Status::no_memory;
  for (int64_t start = 0; start < n_terms; start += TILE) {  // all rows of a tile while its background is in cache
    load_coefficients(c, start, coefficient);
    for (int64_t r = 0; r < n_rows; r++) {
      total.fill(T(0.0));
      for (int64_t m = 0; m < weights.size[0]; m++) {
        if (context.interrupted()) return Status::interrupted;
        load_strips(a[rows[r]], b[m], start, strips.data);
        for (int64_t first = 0; first < TILE && start + first < n_terms; first += LANES) {
          sum_rule(nodes, node_weights, strips[first / LANES].data, n_players);
          add_shares(T(weights[m]), strips[first / LANES].data, first, total);
        }
      }
      if (weights.size[0] > 0) add_tile(total, coefficient, out[r]);
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(product, fill_singles, fill_singles<double>, fill_singles<Complex>)
