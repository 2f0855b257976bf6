// Rows through tables of trees: which cells they meet, tree after tree, and the sums of these.

#include "../common/lanes.h"
#include "walk.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

EXACTSHAP_BEGIN

namespace {

constexpr int64_t SPARSE = 16;                   // cells for each row of a table that is not worth reading ahead as a whole
constexpr int64_t SPREAD[] = {int64_t(1) << 20, int64_t(1) << 19};  // cells for each row of tables that are looked up row after row
constexpr int64_t LARGE = 4096, AHEAD = 8;       // cells of a table that does not fit into the first cache; rows whose cells are asked for
constexpr int64_t CACHED = int64_t(1) << 15;     // cells of tables that stay in the second cache beside those to come
constexpr int64_t SUMS = 1536, LEAST_ROWS = 16;  // sums that leave room for tables in the first cache; rows at a time, at least
constexpr int64_t PARTS = 5;                     // of the rows, at least, that are worth meeting the same tables again
constexpr int64_t ROOM = 7;                      // cells behind the last table that a register may read
constexpr int64_t POLL = 16;                     // trees between two looks at the clock

// --- look-ups --------------------------------------------------------------------------------------------------------

/// What is looked up: groups first_group to last_group - 1, whose tables lie in `cells`.
struct Look {
  const TableRows& rows;
  int64_t first_group, last_group;
  const double* cells;

  EXACTSHAP_INLINE int64_t n_cells(int64_t g) const { return rows.table_start[g + 1] - rows.table_start[g]; }
  EXACTSHAP_INLINE const double* table(int64_t g) const { return cells + (rows.table_start[g] - rows.table_start[first_group]); }
  EXACTSHAP_INLINE const double* cell(int64_t g, int64_t code) const { return table(g) + code * rows.n_columns(g); }
};

/// Ask for cells before they are read.
EXACTSHAP_INLINE void ask_for(const double* cell, int64_t n_columns) {
  __builtin_prefetch(cell);
  __builtin_prefetch(cell + n_columns - 1);
}

/// Ask for the cells of a row in groups first to last - 1.
EXACTSHAP_INLINE void ask_for_cells(const Look& look, int64_t first, int64_t last, const uint16_t* codes, int64_t stride) {
  for (int64_t g = first; g < last; g++, codes += stride) ask_for(look.cell(g, *codes), look.rows.n_columns(g));
}

/// Ask for the whole tables of groups first to last - 1: cells in random order are waited for one by one.
EXACTSHAP_INLINE void ask_for_tables(const Look& look, int64_t first, int64_t last, int64_t n_rows) {
  for (int64_t g = first; g < last; g++) {
    const int64_t n_cells = look.n_cells(g);
    if (n_cells > SPARSE * n_rows) continue;
    const double* const table = look.table(g);
    for (int64_t c = 0; c < n_cells; c += 8) __builtin_prefetch(table + c);
  }
}

#if defined(__AVX512F__)
/// Eight sums, to which the next cells are added: each to the column that its bit in the mask stands for.
EXACTSHAP_INLINE __m512d plus_cells(__m512d sums, __mmask8 mask, const double* cell) {
  __m512d cells = _mm512_loadu_pd(cell);  // up to seven behind the last one: tables end with room for them
  __asm__("" : "+v"(cells));              // apart: an instruction that reads and expands takes twice as long
  return _mm512_add_pd(sums, _mm512_maskz_expand_pd(mask, cells));
}
#endif

/// Add the cells of a row in groups first to last - 1 to its sums: in `REGISTERS` of eight, or in memory one by one (0).
template <int REGISTERS>
EXACTSHAP_INLINE void add_cells(const Look& look, int64_t first, int64_t last, const uint16_t* codes, int64_t stride, double* total) {
#if defined(__AVX512F__)
  if constexpr (REGISTERS > 0) {
    __m512d sums[REGISTERS];
    for (int k = 0; k < REGISTERS; k++) sums[k] = _mm512_loadu_pd(total + 8 * k);
    for (int64_t g = first; g < last; g++, codes += stride) {
      const double* cell = look.cell(g, *codes);
      const uint8_t* const masks = look.rows.masks[g].data;
      for (int k = 0; k < REGISTERS; k++) {
        sums[k] = plus_cells(sums[k], masks[k], cell);
        cell += __builtin_popcount(masks[k]);
      }
    }
    for (int k = 0; k < REGISTERS; k++) _mm512_storeu_pd(total + 8 * k, sums[k]);
    return;
  }
#endif
  for (int64_t g = first; g < last; g++, codes += stride) {
    const double* const cell = look.cell(g, *codes);
    const int64_t* const columns = look.rows.columns.data + look.rows.column_start[g];
    for (int64_t c = 0, n = look.rows.n_columns(g); c < n; c++) total[columns[c]] += cell[c];
  }
}

/// Add the cells of all rows in some groups from `first` on to their sums, `total (n_rows, width)`.
template <int REGISTERS, int GROUPS>
EXACTSHAP_APART void add_groups(const Look& look, int64_t first, const uint16_t* codes, int64_t stride, Array<double, 2> total) {
#if defined(__AVX512F__)
  if constexpr (REGISTERS > 0) {
    const double* table[GROUPS][REGISTERS];
    __mmask8 mask[GROUPS][REGISTERS];
    __m512i source[GROUPS][REGISTERS];
    int64_t n_columns[GROUPS], n_ahead[GROUPS];
    const int64_t n_rows = total.size[0];
    for (int i = 0; i < GROUPS; i++) {
      const double* cell = look.table(first + i);
      n_columns[i] = look.rows.n_columns(first + i);
      n_ahead[i] = look.n_cells(first + i) > SPARSE * n_rows ? n_rows - AHEAD : 0;
      for (int k = 0; k < REGISTERS; k++) {
        mask[i][k] = look.rows.masks[first + i][k];
        source[i][k] = _mm512_maskz_expand_epi64(mask[i][k], _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
        table[i][k] = cell;
        cell += __builtin_popcount(mask[i][k]);
      }
    }
    double* sums_of = total.data;
    for (int64_t r = 0; r < n_rows; r++, sums_of += 8 * REGISTERS) {
      __m512d sums[REGISTERS];
      for (int i = 0; i < GROUPS; i++)
        if (r < n_ahead[i]) ask_for(table[i][0] + codes[i * stride + r + AHEAD] * n_columns[i], n_columns[i]);
      for (int k = 0; k < REGISTERS; k++) sums[k] = _mm512_loadu_pd(sums_of + 8 * k);
      for (int i = 0; i < GROUPS; i++) {
        const int64_t place = codes[i * stride + r] * n_columns[i];
        for (int k = 0; k < REGISTERS; k++) {
          const __m512d cells = _mm512_loadu_pd(table[i][k] + place);
          sums[k] = _mm512_add_pd(sums[k], _mm512_maskz_permutexvar_pd(mask[i][k], source[i][k], cells));
        }
      }
      for (int k = 0; k < REGISTERS; k++) _mm512_storeu_pd(sums_of + 8 * k, sums[k]);
    }
    return;
  }
#endif
  for (int64_t g = first; g < first + GROUPS; g++, codes += stride) {
    const int64_t n_columns = look.rows.n_columns(g), n_rows = total.size[0], width = total.size[1];
    const int64_t* const columns = look.rows.columns.data + look.rows.column_start[g];
    const double* const table = look.table(g);
    const int64_t n_ahead = look.n_cells(g) > LARGE ? n_rows - AHEAD : 0;
    double* sums_of = total.data;
    for (int64_t r = 0; r < n_rows; r++, sums_of += width) {
      const double* const cell = table + codes[r] * n_columns;
      if (r < n_ahead) ask_for(table + codes[r + AHEAD] * n_columns, n_columns);
      for (int64_t c = 0; c < n_columns; c++) sums_of[columns[c]] += cell[c];
    }
  }
}

/// Add a tree's cells to the sums of each row, `total (n_rows, width)`, row after row: a row's cells are asked for one row before.
template <int REGISTERS>
EXACTSHAP_APART void add_rows(const Look& look, const Met& met, Array<double, 2> total) {
  const int64_t n_rows = total.size[0];
  for (int64_t r = 0; r < n_rows; r++) {
    if (r + 1 < n_rows) ask_for_cells(look, met.first, met.last, met.codes + r + 1, met.stride);
    add_cells<REGISTERS>(look, met.first, met.last, met.codes + r, met.stride, total[r].data);
  }
}

/// Cells that are asked for little by little, while others are read.
struct Ahead {
  const double *next, *end;

  /// Ask for one of `left` equal shares of what has not been asked for yet.
  EXACTSHAP_INLINE void ask(int64_t left) {
    const double* const stop = next + ((end - next) / left + 7) / 8 * 8;
    for (; next < stop && next < end; next += 8) __builtin_prefetch(next, 0, 2);  // into the second cache
  }
};

/// The first group behind as many from `first` on as stay in the second cache with their tables, two at least.
EXACTSHAP_INLINE int64_t end_of_cached(const Look& look, int64_t first, int64_t last) {
  int64_t end = smaller(first + 2, last);
  while (end < last && look.rows.table_start[end + 1] - look.rows.table_start[first] <= CACHED) end++;
  return end;
}

/// Add the cells of all rows in groups first to last - 1 to their sums, two groups after the other, `ask(g)` for tables before each two.
template <int REGISTERS, class Ask>
EXACTSHAP_INLINE void add_by_two(const Look& look, int64_t first, int64_t last, const uint16_t* codes, int64_t stride, Array<double, 2> total,
                                 Ask ask) {
  for (int64_t g = first; g < last; g += 2, codes += 2 * stride) {
    ask(g);
    (g + 1 < last ? add_groups<REGISTERS, 2> : add_groups<REGISTERS, 1>)(look, g, codes, stride, total);
  }
}

/// Add the cells of rows in the groups of a tree, `at_once` rows at a time: tables are asked for while the first of them are looked up in
/// those before.
template <int REGISTERS>
EXACTSHAP_INLINE void add_tree(const Look& look, const Met& met, Array<double, 2> total, int64_t at_once) {
  const int64_t n_rows = total.size[0];
  ask_for_tables(look, met.first, smaller(met.first + 2, met.last), n_rows);
  for (int64_t row = 0; row < n_rows; row += at_once) {
    const auto part = total.slice(row, smaller(row + at_once, n_rows));
    const auto ask = [&](int64_t g) {
      if (row == 0) ask_for_tables(look, g + 2, smaller(g + 4, met.last), n_rows);
    };
    add_by_two<REGISTERS>(look, met.first, met.last, met.codes + row, met.stride, part, ask);
  }
}

/// The same for a tree whose tables leave the second cache: some groups after others, while the tables of those to come are asked for,
/// little by little, as far as that cache has room for them.
template <int REGISTERS>
EXACTSHAP_INLINE void add_large_tree(const Look& look, const Met& met, Array<double, 2> total, int64_t at_once) {
  const int64_t n_rows = total.size[0], n_parts = (n_rows + at_once - 1) / at_once;
  for (int64_t first = met.first, last; first < met.last; first = last) {
    last = end_of_cached(look, first, met.last);
    const double *const next = look.table(last), *const end = look.table(look.last_group);
    Ahead ahead{next, next + smaller(next - look.table(first), end - next)};
    int64_t left = n_parts * ((last - first + 1) / 2);
    const uint16_t* const codes = met.codes + (first - met.first) * met.stride;
    for (int64_t row = 0; row < n_rows; row += at_once) {
      const auto part = total.slice(row, smaller(row + at_once, n_rows));
      add_by_two<REGISTERS>(look, first, last, codes + row, met.stride, part, [&](int64_t) { ahead.ask(left--); });
    }
  }
}

/// Add a tree's cells to the sums of many rows, two groups after the other.
template <int REGISTERS>
EXACTSHAP_APART void add_tables(const Look& look, const Met& met, Array<double, 2> total) {
  const int64_t n_rows = total.size[0], in_cache = SUMS / total.size[1] > LEAST_ROWS ? SUMS / total.size[1] : LEAST_ROWS;
  const bool is_large = look.rows.table_start[met.last] - look.rows.table_start[met.first] > CACHED, are_many = n_rows >= PARTS * in_cache;
  if (is_large && are_many)
    add_large_tree<REGISTERS>(look, met, total, in_cache);
  else
    add_tree<REGISTERS>(look, met, total, are_many ? 2 * in_cache : n_rows);
}

// --- sweeps ----------------------------------------------------------------------------------------------------------

/// Add the cells of rows in the groups that are looked up to their sums, `total (n_rows, width)`.
///
/// While a tree's cells are on their way, the codes in the next tree are worked out.
template <class Rows, int REGISTERS>
Status sweep_rows(In<double, 2> columns, const Tables& tables, const Look& look, Array<double, 2> total, Context& context) {
  const Routes& routes = tables.routes;
  const int64_t n_rows = columns.size[1], padded = (n_rows + Rows::LANES - 1) / Rows::LANES * Rows::LANES;
  auto x = context.empty<double>(columns.size[0], padded);
  auto failed = context.empty<typename Rows::Code>(tables.forest.largest_tree() * smaller(padded, AT_ONCE));
  auto codes = context.empty<uint16_t>(int64_t(2), routes.most_groups() * padded);
  auto right = context.zeros<uint8_t>(Rows::LANES == 1 ? routes.longest_walk() + AT_A_TIME : 0);
  if (context.failed()) return Status::no_memory;
  const bool is_plain = !pad(columns, routes.single_precision, x) && routes.is_plain;
  const int64_t n_cells = look.rows.table_start[look.last_group] - look.rows.table_start[look.first_group];
  const auto add = n_rows > 1 && n_rows * SPREAD[REGISTERS > 0] > n_cells ? add_tables<REGISTERS> : add_rows<REGISTERS>;
  Met before{0, 0, nullptr, padded};
  for (int64_t tree = tables.groups.tree[look.first_group]; tree <= tables.groups.tree[look.last_group - 1]; tree++) {
    if (tree % POLL == 0 && context.interrupted()) return Status::interrupted;
    uint16_t* const to = codes[tree % 2].data;
    const int64_t first = routes.group_start[tree];
    const Met met{first > look.first_group ? first : look.first_group, smaller(routes.group_start[tree + 1], look.last_group), to, padded};
    walk_all<Rows>(tree, x, is_plain, tables, met, {failed.data, right.data}, to);
    ask_for_cells(look, met.first, met.last, to, padded);
    if (before.first < before.last) add(look, before, total);
    before = met;
  }
  add(look, before, total);
  return Status::done;
}

template <int REGISTERS>
Status sweep_in(In<double, 2> columns, const Tables& tables, const Look& look, Out<double, 2> out, Context& context) {
  const auto sweep_all = columns.size[1] == 1 ? sweep_rows<One, REGISTERS> : sweep_rows<Many, REGISTERS>;
  if (REGISTERS == 0) return sweep_all(columns, tables, look, out, context);
  auto total = context.zeros<double>(out.size[0], int64_t(8 * REGISTERS));
  if (context.failed()) return Status::no_memory;
  const size_t row = size_t(out.size[1]) * sizeof(double);
  for (int64_t r = 0; r < out.size[0]; r++) __builtin_memcpy(total[r].data, out[r].data, row);
  const Status status = sweep_all(columns, tables, look, total, context);
  for (int64_t r = 0; r < out.size[0]; r++) __builtin_memcpy(out[r].data, total[r].data, row);
  return status;
}

/// Add the cells of each row's codes to `out (n_rows, n_results)`, group after group.
///
/// `columns (n_features, n_rows)`. A row costs one look-up per set of players of each group.
Status sweep(In<double, 2> columns, Tables tables, TableRows rows, int64_t first_group, int64_t last_group, In<double, 1> cells,
             Out<double, 2> out, Context& context) {
  EXACTSHAP_REQUIRE(tables.fit() && rows.fit(tables.groups) && are_groups(first_group, last_group, tables.groups));
  EXACTSHAP_REQUIRE(cells.size[0] == rows.table_start[last_group] - rows.table_start[first_group] + ROOM && out.size[0] == columns.size[1]);
  EXACTSHAP_REQUIRE(out.size[1] == (rows.offsets[rows.offsets.size[0] - 1] + 1) * tables.forest.value.size[1] + 1);
  EXACTSHAP_REQUIRE(columns.size[0] == tables.routes.n_features && out.size[1] <= (rows.masks.size[1] > 0 ? 8 * rows.masks.size[1] : out.size[1]));
  if (first_group == last_group || columns.size[1] == 0) return Status::done;
  const Look look{rows, first_group, last_group, cells.data};
#if defined(__AVX512F__)
  switch (rows.masks.size[1]) {
    case 1: return sweep_in<1>(columns, tables, look, out, context);
    case 2: return sweep_in<2>(columns, tables, look, out, context);
    case 3: return sweep_in<3>(columns, tables, look, out, context);
    case 4: return sweep_in<4>(columns, tables, look, out, context);
  }
#endif
  return sweep_in<0>(columns, tables, look, out, context);
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep, sweep)
