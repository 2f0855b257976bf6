// Monomials with the background folded in: their coalition values are made where they are added up, a tile of rows at a time.

#include "sets.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t TILE = 64;    // rows side by side; those that are missing in the last tile are zeros
constexpr int64_t MOST = 8;     // players of a term, whose coalition values for a tile stay in a core's caches
constexpr int64_t PATIENCE = 16;  // terms between two looks for a signal

/// Terms of k players: factor p of a term is the product of `columns ** powers` of its p-th player.
struct Monomials {
  In<int64_t, 3> columns, powers;  // (n_terms, k, n_columns_of_player); power 0 where there are fewer columns
  In<double, 2> coefficients;      // (n_terms, n_outputs)
  In<double, 2> moments;           // (n_terms, 2^k): the background's mean of the factors outside of each coalition

  EXACTSHAP_FIELDS(columns, powers, coefficients, moments)

  int64_t n_terms() const { return columns.size[0]; }
  int64_t n_players() const { return columns.size[1]; }
};

bool are_monomials(const Monomials& terms, int64_t n_columns) {
  const int64_t n_terms = terms.n_terms(), k = terms.n_players();
  for (int d = 0; d < 3; d++)
    if (terms.powers.size[d] != terms.columns.size[d]) return false;
  if (k < 1 || k > MOST || terms.columns.size[2] < 1 || terms.coefficients.size[0] != n_terms) return false;
  if (terms.moments.size[0] != n_terms || terms.moments.size[1] != int64_t(1) << k) return false;
  return lie_within(terms.columns, n_columns) && lie_within(terms.powers, INT32_MAX);
}

/// A tile of rows, transposed: what is added up (..., TILE), and scratch.
struct Tile {
  int64_t n_columns, n_powers, n_outputs;
  double* powers;   // (n_columns, n_powers, TILE): x^0, x^1, ...
  double* values;   // (n_sets, n_outputs, TILE)
  double* empty;    // (n_outputs, TILE)
  double* full;
  double* scale;    // (TILE,)
  double* factors;  // (k, TILE): where players have several columns
  double* table;    // (2^k, TILE)
  double* work;     // (2^k / 2, TILE)
  double largest[TILE];

  EXACTSHAP_INLINE double* value_of(int64_t position, int64_t output) const { return values + (position * n_outputs + output) * TILE; }
  EXACTSHAP_INLINE const double* power_of(int64_t column, int64_t power) const { return powers + (column * n_powers + power) * TILE; }
};

/// Fill the table of powers, each the one below times x.
EXACTSHAP_INLINE void fill_powers(In<double, 2> X, int64_t start, int64_t count, const Tile& tile) {
  for (int64_t j = 0; j < tile.n_columns; j++) {
    double x[TILE] = {};
    for (int64_t i = 0; i < count; i++) x[i] = X[start + i][j];
    double* power = tile.powers + j * tile.n_powers * TILE;
    for (int64_t i = 0; i < TILE; i++) power[i] = 1.0;
    for (int64_t p = 1; p < tile.n_powers; p++, power += TILE)
      for (int64_t i = 0; i < TILE; i++) power[TILE + i] = power[i] * x[i];
  }
}

/// Return the factor of one player, (TILE,): a power of its column, or the product of several, made in `out`.
EXACTSHAP_INLINE const double* factor_of(In<int64_t, 1> columns, In<int64_t, 1> powers, const Tile& tile, double* __restrict out) {
  const double* const first = tile.power_of(columns[0], powers[0]);
  if (columns.size[0] == 1) return first;
  for (int64_t i = 0; i < TILE; i++) out[i] = first[i];
  for (int64_t q = 1; q < columns.size[0]; q++) {
    const double* const next = tile.power_of(columns[q], powers[q]);
    for (int64_t i = 0; i < TILE; i++) out[i] *= next[i];
  }
  return out;
}

/// Add one output of a term of one player:   phi_j += p(0) (v(j) - v(empty))
EXACTSHAP_APART void add_single(const double* __restrict factor, const double* moments, double coefficient, double weight,
                                double* __restrict value, double* __restrict empty, double* __restrict full, double* __restrict largest) {
  const double none = moments[0] * coefficient, least = fabs(none), moment = moments[1];
  for (int64_t i = 0; i < TILE; i++) {
    const double one = moment * factor[i] * coefficient;
    value[i] += 0.0 + weight * (one - none);  // 0.0 + x: never minus zero
    empty[i] += none;
    full[i] += one;
    largest[i] = larger(larger(largest[i], least), fabs(one));
  }
}

/// What one output of a term of two players is, by coalitions.
struct Pair {
  const double *first, *second;  // factors (TILE,)
  double none, moments[4], coefficient;

  EXACTSHAP_INLINE double one(int64_t i) const { return moments[1] * first[i] * coefficient; }
  EXACTSHAP_INLINE double other(int64_t i) const { return moments[2] * second[i] * coefficient; }
  EXACTSHAP_INLINE double both(int64_t i) const { return moments[3] * first[i] * second[i] * coefficient; }
};

/// Add it to both players:   phi_j += p(0) (v(j) - v(empty)) + p(1) (v(both) - v(other))
EXACTSHAP_APART void add_pair(const Pair pair, double alone, double joining, double* __restrict value_a, double* __restrict value_b,
                              double* __restrict empty, double* __restrict full, double* __restrict largest) {
  const double none = pair.none, least = fabs(none);
  for (int64_t i = 0; i < TILE; i++) {
    const double one = pair.one(i), other = pair.other(i), both = pair.both(i);
    value_a[i] += 0.0 + alone * (one - none) + joining * (both - other);
    value_b[i] += 0.0 + alone * (other - none) + joining * (both - one);
    empty[i] += none;
    full[i] += both;
    largest[i] = larger(larger(larger(larger(largest[i], least), fabs(one)), fabs(other)), fabs(both));
  }
}

/// Add what the two are worth together.
EXACTSHAP_APART void add_together(const Pair pair, double joint, double* __restrict value) {
  const double none = pair.none;
  for (int64_t i = 0; i < TILE; i++) value[i] += 0.0 + joint * ((pair.both(i) - pair.one(i)) - (pair.other(i) - none));
}

/// Fill the coalition values of one output of a term, as (2^k, TILE).
EXACTSHAP_INLINE void fill_table(const double* const* factors, int64_t k, const double* moments, double coefficient,
                                 double* __restrict table) {
  for (int64_t code = 0; code < int64_t(1) << k; code++, table += TILE) {
    for (int64_t i = 0; i < TILE; i++) table[i] = moments[code];
    for (int64_t p = 0; p < k; p++) {
      const double* const factor = factors[p];
      if (code >> p & 1)
        for (int64_t i = 0; i < TILE; i++) table[i] *= factor[i];
    }
    for (int64_t i = 0; i < TILE; i++) table[i] *= coefficient;
  }
}

/// Add the value of one set, as `set_value` finds that of a row: differences over its players, then the weighted sum.
EXACTSHAP_APART void add_set(const double* table, int64_t n_codes, const int64_t* players, int64_t size, const double* weights,
                             double* work, double* __restrict value) {
  for (int64_t m = size - 1; m > 0; m--, n_codes /= 2) {  // highest bit first: the lower ones keep their places
    const int64_t bit = int64_t(1) << players[m];
    double* out = work;
    for (int64_t start = 0; start < n_codes; start += 2 * bit)
      for (int64_t code = start; code < start + bit; code++, out += TILE)
        for (int64_t i = 0; i < TILE; i++) out[i] = table[(code + bit) * TILE + i] - table[code * TILE + i];
    table = work;
  }
  const int64_t bit = int64_t(1) << players[0];
  double sum[TILE] = {};
  for (int64_t start = 0; start < n_codes; start += 2 * bit)
    for (int64_t code = start; code < start + bit; code++, weights++)
      for (int64_t i = 0; i < TILE; i++) sum[i] += *weights * (table[(code + bit) * TILE + i] - table[code * TILE + i]);
  for (int64_t i = 0; i < TILE; i++) value[i] += sum[i];
}

/// Add one output of a term of any number of players.
void add_term(const double* const* factors, int64_t k, const double* moments, double coefficient, const Sets& sets,
              In<int64_t, 1> positions, int64_t output, Tile& tile) {
  const int64_t n_codes = int64_t(1) << k;
  fill_table(factors, k, moments, coefficient, tile.table);
  const double* const whole = tile.table + (n_codes - 1) * TILE;
  double* const empty = tile.empty + output * TILE;
  double* const full = tile.full + output * TILE;
  for (int64_t i = 0; i < TILE; i++) empty[i] += tile.table[i];
  for (int64_t i = 0; i < TILE; i++) full[i] += whole[i];
  for (int64_t code = 0; code < n_codes; code++)
    for (int64_t i = 0; i < TILE; i++) tile.largest[i] = larger(tile.largest[i], fabs(tile.table[code * TILE + i]));
  for (int64_t s = 0; s < sets.sizes.size[0]; s++)
    add_set(tile.table, n_codes, sets.members[s].data, sets.sizes[s], sets.weights[sets.sizes[s]].data, tile.work,
            tile.value_of(positions[s], output));
}

/// Add one output of term l; sets of one player come first, in order.
EXACTSHAP_INLINE void add_output(const Monomials& terms, int64_t l, int64_t o, const double* const* factors, const Sets& sets,
                                 In<int64_t, 1> positions, Tile& tile) {
  const int64_t k = terms.n_players();
  const double coefficient = terms.coefficients[l][o];
  const double *const moments = terms.moments[l].data, *const weights = sets.weights[1].data;
  double *const empty = tile.empty + o * TILE, *const full = tile.full + o * TILE, *const first = tile.value_of(positions[0], o);
  if (k == 1) {
    add_single(factors[0], moments, coefficient, weights[0], first, empty, full, tile.largest);
  } else if (k == 2) {
    const Pair pair = {factors[0], factors[1], moments[0] * coefficient, {moments[0], moments[1], moments[2], moments[3]}, coefficient};
    add_pair(pair, weights[0], weights[1], first, tile.value_of(positions[1], o), empty, full, tile.largest);
    if (positions.size[0] == 3) add_together(pair, sets.weights[2][0], tile.value_of(positions[2], o));
  } else {
    add_term(factors, k, moments, coefficient, sets, positions, o, tile);
  }
}

EXACTSHAP_INLINE void add_monomial(const Monomials& terms, int64_t l, const Sets& sets, In<int64_t, 1> positions, Tile& tile) {
  const double* factors[MOST];
  for (int64_t p = 0; p < terms.n_players(); p++)
    factors[p] = factor_of(terms.columns[l][p], terms.powers[l][p], tile, tile.factors + p * TILE);
  for (int64_t i = 0; i < TILE; i++) tile.largest[i] = 0.0;
  for (int64_t o = 0; o < tile.n_outputs; o++) add_output(terms, l, o, factors, sets, positions, tile);
  for (int64_t i = 0; i < TILE; i++) tile.scale[i] += tile.largest[i];
}

/// Copy rows (count, width) to (width, TILE), with zeros where rows are missing, and back.
EXACTSHAP_INLINE void take(const double* rows, int64_t count, int64_t width, double* __restrict out) {
  for (int64_t c = 0; c < width; c++)
    for (int64_t i = 0; i < TILE; i++) out[c * TILE + i] = i < count ? rows[i * width + c] : 0.0;
}

EXACTSHAP_INLINE void give(const double* __restrict tile, int64_t count, int64_t width, double* __restrict rows) {
  for (int64_t c = 0; c < width; c++)
    for (int64_t i = 0; i < count; i++) rows[i * width + c] = tile[c * TILE + i];
}

/// Whether the sets are all of one player, in order, before others: what terms of one and two players go by.
bool start_with_singles(const Sets& sets, int64_t k) {
  if (sets.sizes.size[0] < k) return false;
  for (int64_t p = 0; p < k; p++)
    if (sets.sizes[p] != 1 || sets.members[p][0] != p) return false;
  return k > 2 || (sets.sizes.size[0] <= 2 * k - 1 && (sets.sizes.size[0] == k || sets.sizes[k] == 2));
}

/// Add the values of the sets within monomials, the same bits as of their coalition values in `fill_sets`.
///
///   v(S) = c m(I without S) prod_{p in S} f_p(x)
Status add_monomials(In<double, 2> X, Monomials terms, Sets sets, In<int64_t, 2> positions, Out<double, 3> out, Out<double, 2> empty,
                     Out<double, 2> full, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = X.size[0], n_outputs = out.size[2], n_values = out.size[1] * n_outputs;
  EXACTSHAP_REQUIRE(are_monomials(terms, X.size[1]) && terms.coefficients.size[1] == n_outputs);
  const int64_t k = terms.n_players(), n_codes = int64_t(1) << k;
  EXACTSHAP_REQUIRE(are_sets(sets, n_codes) && start_with_singles(sets, k) && are_positions(positions, terms.n_terms(), sets, out.size[1]));
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(empty.size[1] == n_outputs && full.size[1] == n_outputs);
  int64_t degree = 0;
  for (int64_t t = 0, n = terms.powers.count(); t < n; t++) degree = terms.powers.data[t] > degree ? terms.powers.data[t] : degree;
  Tile tile = {X.size[1], degree + 1, n_outputs, context.empty<double>(X.size[1], degree + 1, TILE).data,
               context.empty<double>(n_values, TILE).data, context.empty<double>(n_outputs, TILE).data,
               context.empty<double>(n_outputs, TILE).data, context.empty<double>(TILE).data, context.empty<double>(k, TILE).data,
               context.empty<double>(n_codes, TILE).data, context.empty<double>(n_codes / 2, TILE).data, {}};
  if (context.failed()) return Status::no_memory;
  for (int64_t start = 0; start < n_rows; start += TILE) {
    const int64_t count = smaller(TILE, n_rows - start);
    fill_powers(X, start, count, tile);
    take(out[start].data, count, n_values, tile.values);
    take(empty[start].data, count, n_outputs, tile.empty);
    take(full[start].data, count, n_outputs, tile.full);
    take(scale.data + start, count, 1, tile.scale);
    for (int64_t l = 0; l < terms.n_terms(); l++) {
      if (l % PATIENCE == 0 && context.interrupted()) return Status::interrupted;
      add_monomial(terms, l, sets, positions[l], tile);
    }
    give(tile.values, count, n_values, out[start].data);
    give(tile.empty, count, n_outputs, empty[start].data);
    give(tile.full, count, n_outputs, full[start].data);
    give(tile.scale, count, 1, scale.data + start);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, add_monomials, add_monomials)
