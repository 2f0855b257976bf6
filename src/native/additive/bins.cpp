// Terms that are tables over bins: which cell a row falls into, and what its coalitions are worth.

#include "../common/kernel.h"
#include "../common/numbers.h"

EXACTSHAP_BEGIN

namespace {

/// How columns are cut into bins, perhaps several ways each, and how terms number their cells.
struct Bins {
  In<double, 1> cuts;        // ascending, of one way of cutting after the other
  In<int64_t, 1> cut_start;  // way w has cuts[cut_start[w]:cut_start[w + 1]]
  In<int64_t, 1> column;     // that it cuts
  In<int64_t, 1> way_start;  // term l uses the ways way[way_start[l]:way_start[l + 1]]
  In<int64_t, 1> way;
  In<int64_t, 1> stride;  // of each of them in the number of a cell

  EXACTSHAP_FIELDS(cuts, cut_start, column, way_start, way, stride)

  int64_t n_ways() const { return column.size[0]; }
  int64_t n_terms() const { return way_start.size[0] - 1; }
  int64_t n_cuts(int64_t w) const { return cut_start[w + 1] - cut_start[w]; }
};

/// Whether `start` cuts `size` places into as many pieces as it says, in order.
bool are_starts(In<int64_t, 1> start, int64_t n_pieces, int64_t size) {
  if (start.size[0] != n_pieces + 1 || start[0] != 0 || start[n_pieces] != size) return false;
  for (int64_t k = 0; k < n_pieces; k++)
    if (start[k] > start[k + 1]) return false;
  return true;
}

/// Whether nothing leads outside.
bool are_bins(const Bins& bins, int64_t n_columns) {
  const int64_t n_ways = bins.n_ways(), n_used = bins.way.size[0];
  if (bins.n_terms() < 0 || !are_starts(bins.cut_start, n_ways, bins.cuts.size[0])) return false;
  if (!are_starts(bins.way_start, bins.n_terms(), n_used) || bins.stride.size[0] != n_used) return false;
  return lie_within(bins.column, n_columns) && lie_within(bins.way, n_ways);
}

constexpr int64_t TILE = 64;  // rows whose searches run side by side

/// The bins of some rows in one way of cutting, `bins[i]` = 0 for a missing value, else 1 + #{cuts <= x}.
///
/// Each search takes the same steps, whatever it finds: a branch on the data would be guessed wrong every other time.
EXACTSHAP_INLINE void find_bins(const double* __restrict x, int64_t n_rows, const Bins& all, int64_t w, int64_t* __restrict bins) {
  const double* const cuts = all.cuts.data + all.cut_start[w];
  for (int64_t i = 0; i < n_rows; i++) bins[i] = 0;
  for (int64_t left = all.n_cuts(w); left > 0; left /= 2) {  // it is one of bins[i] + 0, ..., left
    const int64_t half = (left + 1) / 2;
    for (int64_t i = 0; i < n_rows; i++) bins[i] += cuts[bins[i] + half - 1] <= x[i] ? half : 0;
  }
  for (int64_t i = 0; i < n_rows; i++) bins[i] = x[i] != x[i] ? 0 : 1 + bins[i];
}

/// Find the bins of rows from `start` on in every way of cutting, `found (n_ways, TILE)`.
EXACTSHAP_INLINE void find_tile(In<double, 2> X, int64_t start, int64_t n_rows, const Bins& bins, int64_t* found) {
  double x[TILE];
  const int64_t n_columns = X.size[1];
  for (int64_t w = 0; w < bins.n_ways(); w++) {
    const double* const column = X.data + start * n_columns + bins.column[w];
    if (w == 0 || bins.column[w] != bins.column[w - 1])
      for (int64_t i = 0; i < n_rows; i++) x[i] = column[i * n_columns];
    find_bins(x, n_rows, bins, w, found + w * TILE);
  }
}

/// Terms of equally many players with the background folded in: one table for each coalition of a term's players.
struct Lookups {
  In<int64_t, 1> term;     // which of a row's cells belongs to it
  In<int64_t, 2> shape;    // (n_terms, n_columns): bins of its columns; 1 where there are fewer columns
  In<int64_t, 3> strides;  // (n_terms, n_codes, 1 + n_columns): where a coalition's table starts, its strides, 0 for columns outside
  In<double, 2> folded;    // (n_places, n_outputs): all tables

  EXACTSHAP_FIELDS(term, shape, strides, folded)
};

/// Whether every coalition's table lies in `n_places` places, whatever the bins.
bool are_strides(In<int64_t, 2> strides, In<int64_t, 1> shape, int64_t n_places) {
  for (int64_t code = 0; code < strides.size[0]; code++) {
    int64_t last = strides[code][0];
    if (last < 0) return false;
    for (int64_t p = 0; p < shape.size[0]; p++) {
      int64_t reach;
      if (shape[p] < 1 || strides[code][p + 1] < 0 || __builtin_mul_overflow(strides[code][p + 1], shape[p] - 1, &reach) ||
          __builtin_add_overflow(last, reach, &last))
        return false;
    }
    if (last >= n_places) return false;
  }
  return true;
}

bool are_lookups(const Lookups& lookups, int64_t n_cells) {
  const int64_t n_terms = lookups.term.size[0];
  if (lookups.shape.size[0] != n_terms || lookups.strides.size[0] != n_terms) return false;
  if (lookups.strides.size[2] != lookups.shape.size[1] + 1) return false;
  for (int64_t t = 0; t < n_terms; t++) {
    if (lookups.term[t] < 0 || lookups.term[t] >= n_cells) return false;
    if (!are_strides(lookups.strides[t], lookups.shape[t], lookups.folded.size[0])) return false;
  }
  return true;
}

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
///
/// Cells of 32 bits are divided as such, which takes a third of the time of 64.
template <class T>
EXACTSHAP_INLINE bool look_up(T cell, int64_t n_columns, const int64_t* shape, In<int64_t, 2> strides, In<double, 2> folded,
                              int64_t* bins, Out<double, 2> out) {
  const int64_t n_codes = out.size[0], n_outputs = out.size[1];
  if (cell < 0) return false;
  for (int64_t p = n_columns - 1; p >= 0; p--) {
    const T left = cell < shape[p] ? 0 : cell / T(shape[p]);  // a division takes longer than all else
    bins[p] = cell - left * T(shape[p]);
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
      const T cell = cells[i][lookups.term[t]];
      EXACTSHAP_REQUIRE(look_up(cell, bins.size[0], lookups.shape[t].data, lookups.strides[t], lookups.folded, bins.data, out[t][i]));
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(additive, fill_cells, fill_cells<int32_t>, fill_cells<int64_t>)
EXACTSHAP_KERNEL(additive, fill_lookups, fill_lookups<int32_t>, fill_lookups<int64_t>)
