// Terms that are tables over bins: which cell a row falls into, and what its coalitions are worth.

#include "lookups.h"
#include "search.h"
#include "sets.h"

EXACTSHAP_BEGIN

namespace {

/// Set `out (n_rows, n_terms)` to the number of each row's cell:   sum_w stride_w bin_w(x)
template <class T>
Status fill_cells(In<double, 2> X, Bins bins, Out<T, 2> out, Context& context) {
  EXACTSHAP_REQUIRE(are_bins(bins, X.size[1]) && out.size[0] == X.size[0] && out.size[1] == bins.n_terms());
  auto found = context.empty<int64_t>(bins.n_ways() * TILE);
  if (context.failed()) return Status::no_memory;
  for (int64_t start = 0; start < X.size[0]; start += TILE) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t n_rows = X.size[0] - start < TILE ? X.size[0] - start : TILE;
    find_tile(X, start, n_rows, bins, found.data);
    for (int64_t l = 0; l < bins.n_terms(); l++) {
      int64_t cell[TILE] = {};
      for (int64_t u = bins.way_start[l]; u < bins.way_start[l + 1]; u++) {
        const int64_t* const bin = found.data + bins.way[u] * TILE;
        for (int64_t i = 0; i < n_rows; i++) cell[i] += bins.stride[u] * bin[i];
      }
      for (int64_t i = 0; i < n_rows; i++) out[start + i][l] = T(cell[i]);
    }
  }
  return Status::done;
}

/// Look up the coalition values of a term's cell:   out[A] = folded[start_A + sum_{p in A} stride_{A,p} bin_p]
EXACTSHAP_INLINE bool look_up(int64_t cell, int64_t n_columns, const int64_t* shape, In<int64_t, 2> strides, In<double, 2> folded,
                              int64_t* bins, Out<double, 2> out) {
  const int64_t n_codes = out.size[0], n_outputs = out.size[1];
  if (cell < 0) return false;
  for (int64_t p = n_columns - 1; p >= 0; p--) {
    const int64_t left = cell < shape[p] ? 0 : cell / shape[p];  // a division takes longer than all else
    bins[p] = cell - left * shape[p];
    cell = left;
  }
  for (int64_t code = 0; code < n_codes; code++) {
    const int64_t* const stride = strides.data + code * (n_columns + 1);
    int64_t place = stride[0];
    for (int64_t p = 0; p < n_columns; p++) place += stride[p + 1] * bins[p];
    for (int64_t o = 0; o < n_outputs; o++) out.data[code * n_outputs + o] = folded.data[place * n_outputs + o];
  }
  return true;
}

/// Look up all coalition values of some terms: `out (n_terms, n_rows, 2^|I|, n_outputs)`.
///
/// `cells (n_rows, n_cells)` numbers the bins of a row in C order within the shape of each term.
template <class T>
Status fill_lookups(In<T, 2> cells, Lookups lookups, Out<double, 4> out, Context& context) {
  const int64_t n_rows = cells.size[0], n_terms = lookups.term.size[0];
  EXACTSHAP_REQUIRE(are_lookups(lookups, cells.size[1]) && out.size[0] == n_terms && out.size[1] == n_rows);
  EXACTSHAP_REQUIRE(out.size[2] == lookups.strides.size[1] && out.size[3] == lookups.folded.size[1]);
  auto bins = context.empty<int64_t>(lookups.shape.size[1]);
  if (context.failed()) return Status::no_memory;
  for (int64_t t = 0; t < n_terms; t++) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t i = 0; i < n_rows; i++) {
      const int64_t cell = int64_t(cells[i][lookups.term[t]]);
      EXACTSHAP_REQUIRE(look_up(cell, bins.size[0], lookups.shape[t].data, lookups.strides[t], lookups.folded, bins.data, out[t][i]));
    }
  }
  return Status::done;
}

/// Where values are added up, of some rows.
struct Sums {
  Out<double, 3> values;
  Out<double, 2> empty, full;
  Out<double, 1> scale;
};

/// Look up one term's coalition values in some rows, and add them to those rows'. COLUMNS: of a term each of whose columns is a player,
/// of a model with one output, so that everything unrolls; 0 for all others.
template <int COLUMNS, class T>
EXACTSHAP_INLINE bool add_term(In<T, 2> cells, int64_t start, int64_t stop, const Lookups& lookups, int64_t t, const Sets& sets,
                               const int64_t* position, int64_t* scratch, double* found, double* work, Sums& sums) {
  const int64_t n_columns = COLUMNS > 0 ? COLUMNS : lookups.shape.size[1];
  const int64_t n_codes = COLUMNS > 0 ? 1 << COLUMNS : lookups.strides.size[1], n_outputs = COLUMNS > 0 ? 1 : lookups.folded.size[1];
  const int64_t place = lookups.term[t], n_cells = cells.size[1], n_sets = sums.values.size[1];
  const int64_t* const shape = lookups.shape[t].data;
  const auto strides = lookups.strides[t];
  int64_t fixed[COLUMNS > 0 ? COLUMNS : 1];
  double table[COLUMNS > 0 ? 1 << COLUMNS : 1];
  int64_t* const bins = COLUMNS > 0 ? fixed : scratch;
  double* const values = COLUMNS > 0 ? table : found;
  for (int64_t i = start; i < stop; i++) {
    const int64_t cell = int64_t(cells.data[i * n_cells + place]);
    if (!look_up(cell, n_columns, shape, strides, lookups.folded, bins, Out<double, 2>{values, {n_codes, n_outputs}})) return false;
    add_table(values, n_codes, n_outputs, sets, position, work, sums.values.data + i * n_sets * n_outputs, sums.empty.data + i * n_outputs,
              sums.full.data + i * n_outputs, sums.scale[i]);
  }
  return true;
}

/// The same values looked up and at once added to those of their rows, as `fill_sets` does it with all of them, and in its order.
template <class T>
Status add_lookups(In<T, 2> cells, Lookups lookups, Sets sets, In<int64_t, 2> positions, Out<double, 3> out, Out<double, 2> empty,
                   Out<double, 2> full, Out<double, 1> scale, Context& context) {
  const int64_t n_rows = cells.size[0], n_terms = lookups.term.size[0];
  const int64_t n_codes = lookups.strides.size[1], n_outputs = lookups.folded.size[1], n_columns = lookups.shape.size[1];
  EXACTSHAP_REQUIRE(are_lookups(lookups, cells.size[1]) && are_sets(sets, n_codes) && are_positions(positions, n_terms, sets, out.size[1]));
  EXACTSHAP_REQUIRE(out.size[0] == n_rows && empty.size[0] == n_rows && full.size[0] == n_rows && scale.size[0] == n_rows);
  EXACTSHAP_REQUIRE(out.size[2] == n_outputs && empty.size[1] == n_outputs && full.size[1] == n_outputs);
  auto bins = context.empty<int64_t>(n_columns);
  auto found = context.empty<double>(n_codes * n_outputs), work = context.empty<double>(n_codes);
  if (context.failed()) return Status::no_memory;
  Sums sums = {out, empty, full, scale};
  const bool single = n_columns == 1 && n_codes == 2 && n_outputs == 1, pair = n_columns == 2 && n_codes == 4 && n_outputs == 1;
  const auto add = single ? add_term<1, T> : pair ? add_term<2, T> : add_term<0, T>;
  const int64_t step = n_codes > 64 ? 1 : TILE;  // rows whose values stay in the nearest cache
  for (int64_t start = 0; start < n_rows; start += step) {
    const int64_t stop = start + step < n_rows ? start + step : n_rows;
    for (int64_t t = 0; t < n_terms; t++) {
      if ((n_codes > 64 || t == 0) && context.interrupted()) return Status::interrupted;
      EXACTSHAP_REQUIRE(add(cells, start, stop, lookups, t, sets, positions[t].data, bins.data, found.data, work.data, sums));
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, add_lookups, add_lookups<int32_t>, add_lookups<int64_t>)
EXACTSHAP_KERNEL(additive, fill_cells, fill_cells<int32_t>, fill_cells<int64_t>)
EXACTSHAP_KERNEL(additive, fill_lookups, fill_lookups<int32_t>, fill_lookups<int64_t>)
