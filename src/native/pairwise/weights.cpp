// What each pair of rows weighs in HSIC, and weighted sums of the pairs' contributions over either side.

#include "tile.h"

EXACTSHAP_BEGIN

namespace {

/// Set `out (n_rows, n_padded)` to k[i, i'] - offset[i] - offset[i'] for i' > i, else 0.
///
/// With suitable offsets this is the doubly centred kernel matrix of HSIC, made where it is needed and never stored.
Status fill_products(Factors factors, In<double, 1> offset, Block block, Out<double, 2> out, Context& context) {
  EXACTSHAP_REQUIRE(factors.fit() && block.fit(factors.n_rows()) && offset.size[0] == factors.n_rows());
  EXACTSHAP_REQUIRE(out.size[0] == block.height() && out.size[1] == block.padded());
  Tile lanes(factors, context);
  if (context.failed()) return Status::no_memory;
  for (int64_t tile = 0; tile < block.padded(); tile += LANES) {
    const int64_t left = block.first + tile, width = block.width(tile);
    lanes.load(left, width);
    for (int64_t row = block.start; row < block.stop; row++) {
      if ((row & 15) == 0 && context.interrupted()) return Status::interrupted;
      fill_centred(lanes, factors, offset, row, left, width, out[row - block.start].data + tile);
    }
  }
  return Status::done;
}

/// Whether all of `rows[start:stop]` are rows.
bool lie_within(In<int32_t, 1> rows, int64_t start, int64_t stop) {
  for (int64_t i = start; i < stop; i++)
    if (rows[i] < 0 || rows[i] >= rows.size[0]) return false;
  return true;
}

/// Set `out (n_permutations, n_rows, n_padded)` to what `fill_products` gives for permuted rows, on both sides of the diagonal.
Status fill_permuted_weights(Factors factors, In<double, 1> offset, In<int32_t, 2> permutations, Block block, Out<double, 3> out,
                             Context& context) {
  EXACTSHAP_REQUIRE(factors.fit() && block.fit(factors.n_rows()) && offset.size[0] == factors.n_rows());
  EXACTSHAP_REQUIRE(permutations.size[1] == factors.n_rows() && out.size[0] == permutations.size[0]);
  EXACTSHAP_REQUIRE(out.size[1] == block.height() && out.size[2] == block.padded());
  Tile lanes(factors, context);
  if (context.failed()) return Status::no_memory;
  double product[LANES], shift[LANES];
  for (int64_t b = 0; b < permutations.size[0]; b++) {
    const In<int32_t, 1> order = permutations[b];
    EXACTSHAP_REQUIRE(lie_within(order, block.start, block.stop) && lie_within(order, block.first, block.last));
    for (int64_t tile = 0; tile < block.padded(); tile += LANES) {
      const int32_t* const rows = order.data + block.first + tile;
      const int64_t width = block.width(tile);
      lanes.load(rows, width);
      for (int64_t i = 0; i < LANES; i++) shift[i] = i < width ? offset[rows[i]] : 0.0;
      for (int64_t row = block.start; row < block.stop; row++) {
        if ((row & 15) == 0 && context.interrupted()) return Status::interrupted;
        const int64_t source = order[row];
        lanes.fill_factor(source, 0, factors.n_columns(), product);
        const double here = offset[source];
        double* __restrict const given = out[b][row - block.start].data + tile;
        for (int i = 0; i < LANES; i++) given[i] = product[i] - here - shift[i];
      }
    }
  }
  return Status::done;
}

/// Add the weighted sums of `values (n_players, n_rows, n_padded)` over either side, `weights (n_rows, n_padded)`: over the padded
/// axis to `to_rows (n_players, ...)` from its column `first_row` on, over the rows to `to_columns (n_players, ...)` from
/// `first_column` on. The two may be one array.
Status add_sides(In<double, 3> values, In<double, 2> weights, Out<double, 2> to_rows, int64_t first_row, Out<double, 2> to_columns,
                 int64_t first_column, Context& context) {
  const int64_t n_players = values.size[0], n_rows = values.size[1], n_padded = values.size[2];
  EXACTSHAP_REQUIRE(weights.size[0] == n_rows && weights.size[1] == n_padded && n_padded % LANES == 0);
  EXACTSHAP_REQUIRE(to_rows.size[0] == n_players && first_row >= 0 && first_row <= to_rows.size[1] - n_rows);
  EXACTSHAP_REQUIRE(to_columns.size[0] == n_players && first_column >= 0 && first_column <= to_columns.size[1] - n_padded);
  for (int64_t j = 0; j < n_players; j++) {
    double* const columns = to_columns[j].data + first_column;
    for (int64_t r = 0; r < n_rows; r++) {
      if ((r & 15) == 0 && context.interrupted()) return Status::interrupted;
      for (int64_t tile = 0; tile < n_padded; tile += LANES) {
        const double *const value = values[j][r].data + tile, *const weight = weights[r].data + tile;
        Widest weighted[LANES / EACH], by;
        for (int i = 0; i < LANES / EACH; i++) {
          load(value + i * EACH, weighted[i]), load(weight + i * EACH, by);
          weighted[i] = weighted[i] * by;
        }
        to_rows[j][first_row + r] += add_lanes(weighted, columns + tile);
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(pairwise, fill_products, fill_products)
EXACTSHAP_KERNEL(pairwise, fill_permuted_weights, fill_permuted_weights)
EXACTSHAP_KERNEL(pairwise, add_sides, add_sides)
