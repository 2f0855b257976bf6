// The two games of R2 as sums over unit pairs: which pairs, which rows, which residuals.

#include "pairs.h"
#include "patterns.h"
#include "quadrature.h"

EXACTSHAP_BEGIN

namespace {

/// Write h_m(|y|) for all bit sets y of m <= `largest` players to `out[2^m + y]`; h(0) = h(m) = 1/m by definition.
Status fill_half_weights(int64_t largest, Out<double, 1> out, Context& context) {
  EXACTSHAP_REQUIRE(largest >= 0 && largest < 40 && out.size[0] == int64_t(2) << largest);
  auto h = context.empty<double>(largest + 1);
  auto size = context.zeros<uint8_t>(int64_t(1) << largest);
  if (context.failed()) return Status::no_memory;
  for (int64_t y = 1; y < int64_t(1) << largest; y++) size[y] = uint8_t(size[y >> 1] + (y & 1));
  for (int64_t m = 1; m <= largest; m++) {
    h[0] = h[m] = 1.0 / double(m);
    if (m > 1) h[1] = 1.0 / double(m - 1);
    for (int64_t s = 2; s < m; s++) h[s] = h[s - 1] * double(s - 1) / double(m - s);
    for (int64_t y = 0; y < int64_t(1) << m; y++) out[(int64_t(1) << m) + y] = h[size[y]];
  }
  return Status::done;
}

/// Write the value of the leaf that each pattern reaches to `out (n_patterns,)`; for trees too deep for codes.
void walk_predictions(int64_t root, const Trees& trees, In<uint8_t, 2> decisions, int64_t offset, Out<double, 1> out) {
  for (int64_t i = 0; i < decisions.size[1]; i++) {
    int64_t q = root;
    while (trees.feature[q] >= 0) q = decisions[q - offset][i] != 0 ? trees.left[q] : trees.right[q];
    out[i] = trees.value[q];
  }
}

/// Write what units `first` to `last` - 1 predict for each pattern, from their codes, to `out (n_patterns,)`.
void sum_predictions(int64_t first, int64_t last, const Units& units, In<uint16_t, 2> codes, double* __restrict out) {
  const int64_t n = codes.size[1];
  for (int64_t i = 0; i < n; i++) out[i] = 0.0;
  for (int64_t u = first; u < last; u++) {
    const uint16_t* __restrict const code = codes[u - first].data;
    const uint16_t full = uint16_t((1 << units.size[u][0]) - 1);
    const double if_left = units.value[u][2] * units.value[u][0], if_right = units.value[u][2] * units.value[u][1];
    for (int64_t i = 0; i < n; i++) out[i] += (code[i] & full) == full ? (code[i] > full ? if_left : if_right) : 0.0;
  }
}

bool have_codes(int64_t first, int64_t last, const Units& units) {
  for (int64_t u = first; u < last; u++)
    if (units.size[u][0] >= CODE_BITS) return false;
  return true;
}

/// Add the pairs of one tree's units and their linear terms.
void add_tables(int64_t first, int64_t last, In<uint16_t, 2> codes, const Coded& squares, const Coded& linear, const Units& units,
                In<int32_t, 1> player_of_node, Tables& tables) {
  for (int64_t u = first; u < last; u++)
    for (int64_t v = u - 1; v < last; v++) {  // first the linear term
      const bool is_linear = v < u;
      Coded rows = is_linear ? linear : squares;
      rows.code_u = codes[u - first].data;
      if (!is_linear) rows.code_w = codes[v - first].data;
      const int64_t apart = v > u ? parting_player(u, v, units, player_of_node) : -1;
      tables.add(u, is_linear ? units.constant() : v, apart, v > u ? 2.0 : 1.0, rows);
    }
}

/// Add the tree-by-tree game of trees `first` to `last` - 1 to `out (n_players,)`, moving `residual` on:
///
///   out_j = sum_k Shapley_j(sum_i omega_i (f_kS(x_i)^2 - 2 r_ki f_kS(x_i)))
///
/// Pairs that lose by table are left to add_tree_rows: give their number. `met (n_trees,)` gets sum_i w_i r_ki.
Status add_residual_trees(int64_t first, int64_t last, Trees trees, Units units, Rows rows, In<double, 1> half_weights,
                          Out<double, 1> residual, Out<double, 1> met, Out<double, 1> out, int64_t& left_over, Context& context) {
  const int64_t n_rows = residual.size[0];
  EXACTSHAP_REQUIRE(trees.fit(first, last) && units.fit() && units.tree_start.size[0] == trees.tree_start.size[0]);
  EXACTSHAP_REQUIRE(rows.fit(trees.count_nodes(first, last), residual) && met.size[0] == trees.empty.size[0]);
  Tables tables(units, half_weights, n_rows, out, context);
  Patterns patterns(n_rows, context);
  auto codes = context.empty<uint16_t>(units.count_most(first, last), patterns.longest());
  auto blank = context.zeros<uint16_t>(patterns.longest());
  if (context.failed()) return Status::no_memory;
  EXACTSHAP_REQUIRE(tables.fit());
  const bool ones = all_ones(rows.weights);
  for (int64_t k = first; k < last; k++) {
    if (context.interrupted()) return Status::interrupted;
    const int64_t start = trees.tree_start[k], stop = trees.tree_start[k + 1], offset = trees.tree_start[first];
    const int64_t first_unit = units.tree_start[k], last_unit = units.tree_start[k + 1];
    patterns.find(rows.decisions.slice(start - offset, stop - offset), trees.feature.slice(start, stop));
    Array<uint16_t, 2> code = {codes.data, {last_unit - first_unit, patterns.n}};
    write_codes(first_unit, last_unit, units, patterns.decisions, start, code);
    if (have_codes(first_unit, last_unit, units))
      sum_predictions(first_unit, last_unit, units, code, patterns.predictions.data);
    else
      walk_predictions(start, trees, patterns.decisions, start, patterns.predictions);
    patterns.advance(rows, residual, trees.empty[k]);
    met[k] = -0.5 * patterns.sum_linear();
    const Coded squares = {nullptr, nullptr, patterns.by_row ? rows.weights.data : patterns.counts.data, patterns.n,
                           ones && patterns.by_row};
    const Coded linear = {nullptr, blank.data, patterns.linear.data, patterns.n, false};
    add_tables(first_unit, last_unit, code, squares, linear, units, trees.player_of_node, tables);
  }
  left_over = tables.left_over;
  return Status::done;
}

/// What the quadrature of one block of rows is given.
struct Block {
  In<double, 3> alphas;           // from the first unit on
  In<double, 1> weights, linear;  // (n_rows,)
  int64_t losers_of;              // n > 0: only those pairs that a table of n rows does not win
};

/// Add each row's shares of all pairs among units `first` to `last` - 1 and of their linear terms.
Status sum_rows(int64_t first, int64_t last, const Block& block, const Units& units, In<int32_t, 1> player_of_node, Sweep& sweep,
                Context& context) {
  Join join;
  for (int64_t u = first; u < last; u++) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t v = u - 1; v < last; v++) {  // first the linear term
      const bool is_linear = v < u;
      if (block.losers_of > 0) {
        const bool part = v > u && units.tree[u] == units.tree[v];
        const int64_t apart = part ? parting_player(u, v, units, player_of_node) : -1;
        if (table_wins(u, is_linear ? units.constant() : v, apart, block.losers_of, units, join)) continue;
      }
      sweep.add(u, is_linear ? -1 : v, v > u ? 2.0 : 1.0, block.alphas[u - first], block.alphas[(is_linear ? u : v) - first],
                is_linear ? block.linear : block.weights);
    }
  }
  return Status::done;
}

/// Add each row's shares of the tree-by-tree game of some trees to `out (n_players, n_rows)`, for one block of rows.
///
/// With `losers_of` = n > 0 only those pairs that a table of n rows does not win.
Status add_tree_rows(int64_t first, int64_t last, Trees trees, Units units, Rows rows, int64_t losers_of, Rules rules,
                     Out<double, 1> residual, Out<double, 2> out, Context& context) {
  const int64_t n = residual.size[0];
  EXACTSHAP_REQUIRE(trees.fit(first, last) && units.fit() && units.tree_start.size[0] == trees.tree_start.size[0]);
  EXACTSHAP_REQUIRE(rows.fit(trees.count_nodes(first, last), residual));
  Sweep sweep(units, rules, n, out, context);
  auto predictions = context.empty<double>(n), linear = context.empty<double>(n);
  auto alphas = context.empty<double>(units.count_most(first, last), units.player.size[1], n);
  if (context.failed()) return Status::no_memory;
  EXACTSHAP_REQUIRE(sweep.fit());
  const int64_t offset = trees.tree_start[first];
  for (int64_t k = first; k < last; k++) {
    const int64_t first_unit = units.tree_start[k], last_unit = units.tree_start[k + 1];
    walk_predictions(trees.tree_start[k], trees, rows.decisions, offset, predictions);
    advance_rows(predictions, rows, residual, trees.empty[k], linear);
    write_alphas(first_unit, last_unit, units, rows.decisions, offset, alphas);
    const Block block = {alphas, rows.weights, linear, losers_of};
    const Status status = sum_rows(first_unit, last_unit, block, units, trees.player_of_node, sweep, context);
    if (status != Status::done) return status;
  }
  return Status::done;
}

/// Add each row's shares of all pairs of units of the ensemble and of their linear terms to `out (n_players, n_rows)`.
///
/// `alphas` as fill_alphas writes them for all units; `losers_of` as in add_tree_rows.
Status add_ensemble_rows(In<double, 3> alphas, In<double, 1> weights, In<double, 1> linear, Units units,
                         In<int32_t, 1> player_of_node, int64_t losers_of, Rules rules, Out<double, 2> out, Context& context) {
  const int64_t n = weights.size[0];
  EXACTSHAP_REQUIRE(units.fit() && alphas.size[0] == units.constant() && alphas.size[1] == units.player.size[1]);
  EXACTSHAP_REQUIRE(alphas.size[2] == n && linear.size[0] == n);
  Sweep sweep(units, rules, n, out, context);
  if (context.failed()) return Status::no_memory;
  EXACTSHAP_REQUIRE(sweep.fit());
  return sum_rows(0, units.constant(), Block{alphas, weights, linear, losers_of}, units, player_of_node, sweep, context);
}

/// Add to `out (n_players,)` the pairs of units of tree `k` with all units not before them, as far as they go by table.
///
/// `codes (n_units, n_rows)` of the whole ensemble. Give the number of pairs left for quadrature.
Status add_ensemble_tree(int64_t k, In<uint16_t, 2> codes, In<double, 1> weights, In<double, 1> linear, Units units,
                         In<int32_t, 1> player_of_node, In<double, 1> half_weights, Out<double, 1> out, int64_t& left_over,
                         Context& context) {
  const int64_t n = weights.size[0];
  EXACTSHAP_REQUIRE(units.fit() && k >= 0 && k < units.tree_start.size[0] - 1 && codes.size[0] == units.constant());
  EXACTSHAP_REQUIRE(codes.size[1] == n && linear.size[0] == n);
  Tables tables(units, half_weights, n, out, context);
  auto blank = context.zeros<uint16_t>(n);
  if (context.failed()) return Status::no_memory;
  EXACTSHAP_REQUIRE(tables.fit());
  const Coded squares = {nullptr, nullptr, weights.data, n, all_ones(weights)};
  for (int64_t u = units.tree_start[k]; u < units.tree_start[k + 1]; u++)
    tables.add(u, units.constant(), -1, 1.0, Coded{codes[u].data, blank.data, linear.data, n, false});
  for (int64_t h = k; h < units.tree_start.size[0] - 1; h++)
    for (int64_t u = units.tree_start[k]; u < units.tree_start[k + 1]; u++) {
      if (context.interrupted()) return Status::interrupted;
      for (int64_t w = h == k ? u : units.tree_start[h]; w < units.tree_start[h + 1]; w++) {
        Coded rows = squares;
        rows.code_u = codes[u].data;
        rows.code_w = codes[w].data;
        tables.add(u, w, h == k && u != w ? parting_player(u, w, units, player_of_node) : -1, u == w ? 1.0 : 2.0, rows);
      }
    }
  left_over = tables.left_over;
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(r2, fill_half_weights, fill_half_weights)
EXACTSHAP_KERNEL(r2, add_residual_trees, add_residual_trees)
EXACTSHAP_KERNEL(r2, add_tree_rows, add_tree_rows)
EXACTSHAP_KERNEL(r2, add_ensemble_rows, add_ensemble_rows)
EXACTSHAP_KERNEL(r2, add_ensemble_tree, add_ensemble_tree)
