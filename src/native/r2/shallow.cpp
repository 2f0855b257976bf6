// The tree-by-tree game of R2 for trees of depth at most 3: all coalitions of a tree at once, from its two halves.
//
// Each tree is filled up to seven splits (root; the left child and its two children; the right child and its two), which give a
// row a *cell* of seven bits: 3 for the left half, 3 for the right half, 1 for the root. Rows are counted per cell once; with
// F_L[s, c] the value of the left half in cell c when the splits of bit set s are known (F_R likewise), b_L + b_R = 1 the root's
// cover shares, N the row weights and R the linear weights -2 w r,
//
//   g(S) = sum_left N F_L^2 + R F_L + sum_right N F_R^2 + R F_R   if the root's player is in S, otherwise
//   g(S) = b_L^2 sum N F_L^2 + b_L sum R F_L + b_R^2 sum N F_R^2 + b_R sum R F_R + 2 b_L b_R (F_L N F_R')[s_L, s_R]
//
// two products of 8 x 8 matrices instead of pairs of leaves. A player that splits more than once owns several bits of s.

#include "../common/lanes.h"
#include "../trees/routing.h"
#include "columns.h"
#include "units.h"

EXACTSHAP_BEGIN

namespace {

constexpr int SPLITS = 7, HALF = 8, CELLS = 128, ROOT_BIT = 6;
constexpr int64_t TILE = 128, CELL_BYTES = 1 << 20;      // rows that are columns at a time; cells of trees at a time
constexpr int PLACES = 2 * SPLITS + 1;                   // of the heap: splits, then leaves
constexpr int BIT_OF[SPLITS] = {6, 0, 3, 1, 2, 4, 5};    // heap position of a split -> its bit of a cell

/// One tree, filled up to seven splits.
struct Halves {
  int32_t node[PLACES];         // heap position -> node, repeated below leaves
  double share[SPLITS];         // cover share of the left child of the split at a bit, 1 below leaves
  int64_t mask[SPLITS];         // bits of the splits of each player
  int32_t player[SPLITS];       // players of the tree
  int present;                  // bits of all splits
  int size;                     // cells of a half that rows can be in, and sets of its splits: 1, 2 or HALF
  double known[2][HALF][HALF];  // value of either half, [side][cell][splits known]
  double sums[2][4][HALF];      // N and R of a half's cells among its own rows, then among all rows
  double counts[HALF][HALF];    // N, [left cell][right cell]
  double product[2][HALF][HALF];  // F_L N and F_L N F_R'
  double part[2][2][HALF];      // g of either half, [side][root's player in S or out of it][splits known]
  int64_t image[CELLS];         // coalition of players -> splits known
  double game[CELLS];

  int64_t fill_tree(int64_t root, const Trees& trees, int8_t* bit);
  void fill_half(int side, In<double, 1> value);
  void fill_predictions(double* out) const;
  void fill_game(int64_t m);
  template <int SIZE> void sum_cells(const double* cell_counts, const double* linear);
  template <int SIZE> void fill_parts(int side, double root_share);
  template <int SIZE> void fill_product(double factor);
  template <int SIZE> void fill_sums(const double* cell_counts, const double* linear);
  void add_shapley(int64_t m, const double* half_weights, Out<double, 1> out);
};

/// Fill the tree up to seven splits; list its players with the bits of their splits and return their number. Write the bit of each
/// split to that of its node, counted from `root` on.
int64_t Halves::fill_tree(int64_t root, const Trees& trees, int8_t* bit) {
  int64_t m = 0;
  present = 0;
  node[0] = int32_t(root);
  for (int place = 0; place < SPLITS; place++) {
    const int32_t q = node[place], l = trees.left[q], r = trees.right[q];
    const int b = BIT_OF[place];
    if ((place > 0 && q == node[(place - 1) / 2]) || l < 0) {
      node[2 * place + 1] = node[2 * place + 2] = q;
      share[b] = 1.0;
      continue;
    }
    node[2 * place + 1] = l;
    node[2 * place + 2] = r;
    share[b] = trees.share[l];
    bit[q - root] = int8_t(b);
    present |= 1 << b;
    const int32_t p = trees.player_of_node[q];
    int64_t a = 0;
    while (a < m && player[a] != p) a++;
    if (a == m) {
      player[m] = p;
      mask[m++] = 0;
    }
    mask[a] |= int64_t(1) << b;
  }
  const int inside = (present | present >> 3) & (HALF - 1);
  size = inside > 1 ? HALF : inside + 1;
  return m;
}

/// What a split can be worth: as long as it is not known (0, 1), and known, where a row went right (2) or left (3).
EXACTSHAP_INLINE void fill_worths(double share, double if_left, double if_right, double* worth) {
  worth[0] = worth[1] = share * if_left + (1.0 - share) * if_right;
  worth[2] = if_right, worth[3] = if_left;
}

/// Write the value of one half for all sets of known splits and all cells; bit 0 is its top split, 1 and 2 those below.
void Halves::fill_half(int side, In<double, 1> value) {
  const int leaf = SPLITS + 4 * side, n_below = size == HALF ? 4 : 1, n_top = size == 1 ? 1 : 4;
  double one[4], two[4], top[4];
  fill_worths(share[3 * side + 1], value[node[leaf]], value[node[leaf + 1]], one);
  fill_worths(share[3 * side + 2], value[node[leaf + 2]], value[node[leaf + 3]], two);
  for (int i = 0; i < n_below; i++)
    for (int j = 0; j < n_below; j++) {
      fill_worths(share[3 * side], one[i], two[j], top);
      const int x = (i & 1) << 1 | (j & 1) << 2, s = (i >> 1) << 1 | (j >> 1) << 2;
      for (int k = 0; k < n_top; k++) known[side][x | (k & 1)][s | k >> 1] = top[k];
    }
}

/// Write the tree's prediction in each cell.
void Halves::fill_predictions(double* out) const {
  for (int r = 0; r < size; r++)
    for (int l = 0; l < size; l++) {
      out[r * HALF + l] = known[1][r][size - 1];
      out[(1 << ROOT_BIT) + r * HALF + l] = known[0][l][size - 1];
    }
}

/// Sum N and R over what either half does not see; keep N of both halves together.
template <int SIZE>
void Halves::sum_cells(const double* cell_counts, const double* linear) {
  for (auto& side : sums)
    for (auto& sum : side)
      for (int x = 0; x < SIZE; x++) sum[x] = 0.0;
  for (int r = 0; r < SIZE; r++)
    for (int l = 0; l < SIZE; l++) {
      const int right = r * HALF + l, left = (1 << ROOT_BIT) + r * HALF + l;
      const double both = cell_counts[left] + cell_counts[right], both_linear = linear[left] + linear[right];
      counts[l][r] = both;
      sums[0][0][l] += cell_counts[left];
      sums[0][1][l] += linear[left];
      sums[0][2][l] += both;
      sums[0][3][l] += both_linear;
      sums[1][0][r] += cell_counts[right];
      sums[1][1][r] += linear[right];
      sums[1][2][r] += both;
      sums[1][3][r] += both_linear;
    }
}

/// Write g of one half alone: with the root's player known (own rows), and without (all rows, `root_share` of them).
template <int SIZE>
void Halves::fill_parts(int side, double root_share) {
  double routed[SIZE] = {}, averaged[SIZE] = {};
  for (int x = 0; x < SIZE; x++) {
    const double own = sums[side][0][x], linear = sums[side][1][x], all = sums[side][2][x] * root_share, all_linear = sums[side][3][x];
    for (int s = 0; s < SIZE; s++) {
      const double f = known[side][x][s];
      routed[s] += f * (own * f + linear);
      averaged[s] += root_share * f * (all * f + all_linear);
    }
  }
  memcpy(part[side][0], routed, sizeof routed);
  memcpy(part[side][1], averaged, sizeof averaged);
}

/// Write `factor` F_L N F_R' to `product[1]`, [splits known on the left][on the right].
template <int SIZE>
void Halves::fill_product(double factor) {
  for (int s = 0; s < SIZE; s++) {
    for (int r = 0; r < SIZE; r++) product[0][s][r] = product[1][s][r] = 0.0;
    for (int l = 0; l < SIZE; l++)
      for (int r = 0; r < SIZE; r++) product[0][s][r] += factor * known[0][l][s] * counts[l][r];
    for (int r = 0; r < SIZE; r++)
      for (int t = 0; t < SIZE; t++) product[1][s][t] += product[0][s][r] * known[1][r][t];
  }
}

/// Write the sums that the game is made of, from rows summed by cell. Cells beyond `SIZE` have none: they would only add zeros.
template <int SIZE>
void Halves::fill_sums(const double* cell_counts, const double* linear) {
  const double root_share = share[ROOT_BIT];
  sum_cells<SIZE>(cell_counts, linear);
  fill_parts<SIZE>(0, root_share);
  fill_parts<SIZE>(1, 1.0 - root_share);
  fill_product<SIZE>(2.0 * root_share * (1.0 - root_share));
}

/// Write g(S) for all coalitions of the tree's `m` players.
void Halves::fill_game(int64_t m) {
  image[0] = 0;
  for (int64_t k = 0; k < m; k++)
    for (int64_t x = 0; x < int64_t(1) << k; x++) image[(int64_t(1) << k) + x] = image[x] | mask[k];
  for (int64_t x = 0; x < int64_t(1) << m; x++) {
    const int64_t s = image[x] & (HALF - 1), t = image[x] >> 3 & (HALF - 1);
    game[x] = image[x] >> ROOT_BIT != 0 ? part[0][0][s] + part[1][0][t] : part[0][1][s] + part[1][1][t] + product[1][s][t];
  }
}

/// Add sum_{S with k} h(|S|) g(S) - T to `out`; the game is used up. See pairs.h for h and T.
void Halves::add_shapley(int64_t m, const double* half_weights, Out<double, 1> out) {
  const int64_t cells = int64_t(1) << m;
  double common = (game[0] - game[cells - 1]) / double(m);
  for (int64_t x = 0; x < cells; x++) game[x] *= half_weights[cells + x];
  for (int64_t k = m - 1; k >= 0; k--) {
    const int64_t step = int64_t(1) << k;
    double total = 0.0;
    for (int64_t x = 0; x < step; x++) {
      total += game[step + x];
      game[x] += game[step + x];
    }
    out[player[k]] += total;
    common += total / double(m);
  }
  for (int64_t k = 0; k < m; k++) out[player[k]] -= common;
}

/// The rows of all trees.
struct Table {
  In<double, 2> X;        // (n_rows, n_features)
  In<int64_t, 1> used;    // the columns that are split on
  In<double, 1> weights;  // (n_rows,)
  bool single_precision;  // whether the trees compare in float32
  bool averaged;          // whether every tree meets a residual of its own (else the trees are boosted)
  EXACTSHAP_FIELDS(X, used, weights, single_precision, averaged)
};

/// Write the cell of each of `n` rows to `cells (n,)`, from their `columns (n_used, TILE)`. `bit` is that of each node, -1 at leaves.
void fill_cells(In<double, 2> columns, int64_t n, int64_t start, int64_t stop, const Nodes& nodes, const int8_t* bit,
                uint8_t* __restrict cells) {
  uint8_t went_left[TILE];
  memset(cells, 0, size_t(n));
  for (int64_t q = start; q < stop; q++) {
    if (bit[q] < 0) continue;
    decide(columns[nodes.feature[q]].data, q, nodes, went_left, n);
    const uint8_t mask = uint8_t(1 << bit[q]);  // no shift of bytes: there is no vector instruction for it
    for (int64_t i = 0; i < n; i++) cells[i] = uint8_t(cells[i] | (uint8_t(-went_left[i]) & mask));
  }
}

/// Write the cells of trees `first` to `last` - 1 to `cells (..., n_rows)`; `columns (n_used, TILE)` is scratch.
void fill_cells(const Table& rows, int64_t first, int64_t last, const Trees& trees, const Nodes& nodes, const int8_t* bit,
                Array<double, 2> columns, Out<uint8_t, 2> cells) {
  const int64_t n_rows = rows.X.size[0];
  for (int64_t i = 0; i < n_rows; i += TILE) {
    const int64_t n = n_rows - i < TILE ? n_rows - i : TILE;
    copy_columns(rows.X.slice(i, i + n), rows.used, rows.single_precision, columns);
    for (int64_t k = first; k < last; k++)
      fill_cells(columns, n, trees.tree_start[k], trees.tree_start[k + 1], nodes, bit, cells[k - first].data + i);
  }
}

typedef double Pair __attribute__((vector_size(16)));

/// The rows of one tree, summed by cell.
struct Cells {
  double predictions[CELLS], counts[CELLS], linear[CELLS];  // the tree's value; sums of w and of -2 w r
  Pair lane[CELLS][4];  // sums of w and w r: neighbouring rows of one cell do not wait for each other

  double advance(const uint8_t* cells, int present, const Table& rows, double empty, Array<double, 1> residual);
};

/// Sum row weights and linear weights by cell, and move `residual` on, as Patterns::advance of patterns.h. Cells are sets of the bits
/// of `present`. Return the sum of w r.
double Cells::advance(const uint8_t* cells, int present, const Table& rows, double empty, Array<double, 1> residual) {
  const double kept = rows.averaged ? 0.0 : 1.0;
  memset(counts, 0, sizeof counts);
  memset(linear, 0, sizeof linear);
  for (int x = 0, next = -1; next != 0; x = next) {
    memset(lane[x], 0, sizeof lane[x]);
    next = (x - present) & present;
  }
  for (int64_t i = 0; i < residual.size[0]; i++) {
    const uint8_t x = cells[i] & (CELLS - 1);
    const double r = residual[i], weight = rows.weights[i];
    residual[i] = r - kept * predictions[x];
    lane[x][i & 3] += Pair{weight, r * weight};
  }
  double met = 0.0;
  for (int x = 0, next = -1; next != 0; x = next) {
    const Pair sums = (lane[x][0] + lane[x][1]) + (lane[x][2] + lane[x][3]);
    counts[x] = sums[0];
    double total = sums[1];
    if (rows.averaged) total += 0.5 * (predictions[x] + empty) * counts[x];
    linear[x] = -2.0 * total;
    met += total;
    next = (x - present) & present;
  }
  return met;
}

/// Whether all trees fit into seven splits, of columns that are there and of players among the first `n_players`.
bool are_shallow(const Trees& trees, const Nodes& nodes, int64_t n_columns, int64_t n_players) {
  for (int64_t k = 0; k < trees.empty.size[0]; k++) {
    const int64_t start = trees.tree_start[k], stop = trees.tree_start[k + 1];
    if (stop <= start || stop - start > PLACES) return false;
    for (int64_t q = start; q < stop; q++)
      if (trees.left[q] >= 0 && !(trees.left[q] > q && trees.left[q] < stop && trees.right[q] > q && trees.right[q] < stop &&
                                  trees.player_of_node[q] >= 0 && trees.player_of_node[q] < n_players &&
                                  nodes.feature[q] >= 0 && nodes.feature[q] < n_columns))
        return false;
  }
  return true;
}

/// Add the tree-by-tree game of all trees, as add_residual_trees, where none is deeper than 3.
Status add_shallow_trees(Trees trees, Nodes nodes, Table rows, In<double, 1> half_weights, Out<double, 1> residual,
                         Out<double, 1> met, Out<double, 1> out, Context& context) {
  const int64_t n_rows = residual.size[0], n_trees = trees.empty.size[0];
  EXACTSHAP_REQUIRE(trees.fit(0, n_trees) && nodes.fit() && nodes.feature.size[0] == trees.left.size[0]);
  EXACTSHAP_REQUIRE(rows.X.size[0] == n_rows && rows.weights.size[0] == n_rows && lie_within(rows.used, rows.X.size[1]));
  EXACTSHAP_REQUIRE(met.size[0] == n_trees && half_weights.size[0] >= 2 * CELLS);
  EXACTSHAP_REQUIRE(are_shallow(trees, nodes, rows.used.size[0], out.size[0]));
  const int64_t chunk = n_rows * n_trees <= CELL_BYTES ? n_trees : CELL_BYTES / n_rows > 0 ? CELL_BYTES / n_rows : 1;
  auto cells = context.empty<uint8_t>(chunk, n_rows);
  auto columns = context.empty<double>(rows.used.size[0], TILE);
  auto bit = context.empty<int8_t>(trees.left.size[0]);
  if (context.failed()) return Status::no_memory;
  Halves halves;
  Cells sums;
  bit.fill(-1);
  for (int64_t k = 0; k < n_trees; k++) halves.fill_tree(trees.tree_start[k], trees, bit.data + trees.tree_start[k]);
  for (int64_t k = 0; k < n_trees; k++) {
    if (context.interrupted()) return Status::interrupted;
    if (k % chunk == 0) fill_cells(rows, k, k + chunk < n_trees ? k + chunk : n_trees, trees, nodes, bit.data, columns, cells);
    const int64_t m = halves.fill_tree(trees.tree_start[k], trees, bit.data + trees.tree_start[k]);
    halves.fill_half(0, trees.value);
    halves.fill_half(1, trees.value);
    halves.fill_predictions(sums.predictions);
    met[k] = sums.advance(cells[k % chunk].data, halves.present, rows, trees.empty[k], residual);
    if (m == 0) continue;
    if (halves.size == 1)
      halves.fill_sums<1>(sums.counts, sums.linear);
    else if (halves.size == 2)
      halves.fill_sums<2>(sums.counts, sums.linear);
    else
      halves.fill_sums<HALF>(sums.counts, sums.linear);
    halves.fill_game(m);
    halves.add_shapley(m, half_weights.data, out);
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(r2, add_shallow_trees, add_shallow_trees)
