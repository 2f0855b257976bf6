// Walks of a row and a background row together: interventional values of trees too deep for tables.
//
// A leaf is reached by a hybrid of the two rows if the players on its path that only the row satisfies are inside the coalition and
// those that only the background row satisfies are outside; all others are dummies.

#include "groups.h"

EXACTSHAP_BEGIN

namespace {

enum Role : int8_t { FREE = 0, INSIDE = 1, OUTSIDE = 2 };  // of a player on the path: both agree so far, only x passes, only z passes

/// One tree with the splits' players, and the way of both rows at its nodes from `offset` on.
struct Pair {
  const Nodes& nodes;
  In<int32_t, 1> player;
  int64_t offset;
  const uint8_t *of_row, *of_background;

  EXACTSHAP_INLINE bool row_goes_left(int64_t q) const { return of_row[q - offset] != 0; }
  EXACTSHAP_INLINE bool background_goes_left(int64_t q) const { return of_background[q - offset] != 0; }
};

/// The players on which the rows differ on the current path, one level each, and the other child of the split where they first did.
struct Path {
  int8_t* role;
  int64_t *other, *owner;
  int64_t level, n_inside;

  /// Go from node q down to a leaf, on the row's side where the rows part.
  EXACTSHAP_INLINE int64_t descend(int64_t q, const Pair& pair) {
    for (int64_t j; (j = pair.player[q]) >= 0;) {
      const bool by_x = pair.row_goes_left(q), by_z = pair.background_goes_left(q);
      if (by_x != by_z && role[j] == FREE) {
        role[j] = INSIDE;
        n_inside++;
        owner[level] = j;
        other[level] = by_z ? pair.nodes.left[q] : pair.nodes.right[q];
        level++;
      }
      q = (role[j] == OUTSIDE ? by_z : by_x) ? pair.nodes.left[q] : pair.nodes.right[q];
    }
    return q;
  }
};

/// Sums that come back up the walk, one level each.
struct Sums {
  bool* is_second;
  double *gains, *losses;
};

/// Add the values of single players for one pair of rows in one tree and output to `out (n_players,)`; return the sum of magnitudes.
double walk_pair(double weight, const Pair& pair, Path path, const Sums& sums, const double* value, int64_t stride, In<double, 2> weights,
                 double scale, double* out) {
  int64_t q = pair.offset, n_outside = 0;
  for (;;) {
    const int64_t before = path.level;
    q = path.descend(q, pair);
    for (int64_t k = before; k < path.level; k++) sums.is_second[k] = false;
    const int64_t n_active = path.n_inside + n_outside;
    const double c = value[q * stride];
    double gain = path.n_inside > 0 ? c * weights[n_active][path.n_inside - 1] : 0.0;
    double loss = n_outside > 0 ? c * weights[n_active][path.n_inside] : 0.0;
    scale += weight * fabs(c);
    while (path.level > 0 && sums.is_second[path.level - 1]) {
      const int64_t k = path.level - 1, j = path.owner[k];
      out[j] -= weight * loss;
      gain = gain + sums.gains[k], loss = loss + sums.losses[k];
      path.role[j] = FREE;
      n_outside--;
      path.level--;
    }
    if (path.level == 0) return scale;
    const int64_t k = path.level - 1, j = path.owner[k];
    out[j] += weight * gain;
    sums.gains[k] = gain, sums.losses[k] = loss, sums.is_second[k] = true;
    path.role[j] = OUTSIDE;
    path.n_inside--, n_outside++;
    q = path.other[k];
  }
}

/// Write the decisions of rows at the nodes of one tree to `out (n_rows, n_nodes)`, by way of `turned (n_nodes, n_rows)`.
bool decide_rows(In<double, 2> columns, int64_t first, int64_t last, const Nodes& nodes, Array<uint8_t, 2> turned, uint8_t* out) {
  if (!decide_nodes(columns, first, last, nodes, turned)) return false;
  for (int64_t i = 0; i < columns.size[1]; i++)
    for (int64_t q = 0; q < last - first; q++) out[i * (last - first) + q] = nodes.feature[first + q] < 0 ? 0 : turned[q][i];
  return true;
}

/// Whether the arguments of both kernels belong together.
bool fit(In<double, 2> columns, In<double, 2> background, In<double, 1> weights_of, const Forest& forest, In<int32_t, 1> player,
         Out<double, 3> out, Out<double, 2> scale) {
  const int64_t n_rows = columns.size[1], n_outputs = forest.value.size[1];
  return forest.fit() && player.size[0] == forest.value.size[0] && background.size[1] == weights_of.size[0] &&
         out.size[0] == n_rows && out.size[2] == n_outputs && scale.size[0] == n_rows && scale.size[1] == n_outputs;
}

/// The most splits on one path of the ensemble could part the rows: room for so many players.
int64_t most_levels(const Forest& forest, int64_t n_players) { return smaller(forest.largest_tree(), n_players) + 1; }

/// Whether all players are among `n_players`.
bool are_players(In<int32_t, 1> player, int64_t n_players) {
  for (int64_t q = 0; q < player.size[0]; q++)
    if (player[q] >= n_players) return false;
  return true;
}

/// Walk each row with each background row through each tree; add the sums over the background to `out (n_rows, n_values, n_outputs)`
/// and the magnitudes to `scale (n_rows, n_outputs)`.
///
/// `add_pair(weight, pair, path, value, stride, size, total)` adds one pair of rows to `total (n_values,)` and returns `size` with its
/// magnitudes; `columns (n_features, n_rows)`, `background (n_features, n_background)`.
template <class AddPair>
Status walk_rows(In<double, 2> columns, In<double, 2> background, In<double, 1> background_weights, const Forest& forest,
                 In<int32_t, 1> player, int64_t n_players, Out<double, 3> out, Out<double, 2> scale, AddPair add_pair, Context& context) {
  const int64_t n_rows = columns.size[1], n_background = background.size[1], n_values = out.size[1], n_outputs = out.size[2];
  const int64_t n_levels = most_levels(forest, n_players), n_nodes = forest.largest_tree();
  auto turned = context.empty<uint8_t>(n_nodes, n_rows > n_background ? n_rows : n_background);
  auto of_rows = context.empty<uint8_t>(n_rows, n_nodes), of_background = context.empty<uint8_t>(n_background, n_nodes);
  auto role = context.zeros<int8_t>(n_players + 1);
  auto other = context.empty<int64_t>(n_levels), owner = context.empty<int64_t>(n_levels);
  auto total = context.empty<double>(n_values);
  if (context.failed()) return Status::no_memory;
  for (int64_t tree = 0; tree < forest.n_trees(); tree++) {
    const int64_t first = forest.tree_start[tree], last = forest.tree_start[tree + 1];
    Array<uint8_t, 2> some = turned;
    some.size[1] = n_rows;
    if (!decide_rows(columns, first, last, forest.nodes, some, of_rows.data)) return Status::fault;
    some.size[1] = n_background;
    if (!decide_rows(background, first, last, forest.nodes, some, of_background.data)) return Status::fault;
    for (int64_t o = 0; o < n_outputs; o++)
      for (int64_t i = 0; i < n_rows; i++) {
        if (context.interrupted()) return Status::interrupted;
        double size = 0.0;
        total.fill(0.0);
        for (int64_t m = 0; m < n_background; m++) {
          const Pair pair{forest.nodes, player, first, of_rows.data + i * (last - first), of_background.data + m * (last - first)};
          size = add_pair(background_weights[m], pair, Path{role.data, other.data, owner.data, 0, 0}, forest.value.data + o, n_outputs,
                          size, total.data);
        }
        for (int64_t j = 0; j < n_values; j++) out[i][j][o] += total[j];
        scale[i][o] += size;
      }
  }
  return Status::done;
}

/// Add the values of single players to `out (n_rows, n_players, n_outputs)` and magnitudes to `scale (n_rows, n_outputs)`:
///
///   phi_j = sum_m w_m (sum_{l: j in I_l} c_l p(|I_l| - 1) - sum_{l: j in O_l} c_l p(|I_l|))
///
/// I and O are the players inside and outside, p(s) is `weights[|I| + |O|, s]`. Sums come back up the walk, so that a pair of rows
/// costs O(visited nodes).
Status walk_singles(In<double, 2> columns, In<double, 2> background, In<double, 1> background_weights, Forest forest,
                    In<int32_t, 1> player, In<double, 2> weights, Out<double, 3> out, Out<double, 2> scale, Context& context) {
  const int64_t n_players = out.size[1], n_levels = most_levels(forest, n_players);
  EXACTSHAP_REQUIRE(fit(columns, background, background_weights, forest, player, out, scale) && are_players(player, n_players));
  EXACTSHAP_REQUIRE(weights.size[0] > 0 && weights.size[0] == weights.size[1]);
  auto is_second = context.empty<bool>(n_levels);
  auto gains = context.empty<double>(n_levels), losses = context.empty<double>(n_levels);
  if (context.failed()) return Status::no_memory;
  const Sums sums{is_second.data, gains.data, losses.data};
  const auto add_pair = [&](double weight, const Pair& pair, Path path, const double* value, int64_t stride, double size, double* total) {
    return walk_pair(weight, pair, path, sums, value, stride, weights, size, total);
  };
  return walk_rows(columns, background, background_weights, forest, player, n_players, out, scale, add_pair, context);
}

/// Where the sets of each size start among all sets, and p(s) for sets of `size` among m active players: `weights[size, m, s]`.
struct SetWeights {
  In<double, 3> weights;
  In<int64_t, 2> binomials;
  In<int64_t, 1> offsets;
  EXACTSHAP_FIELDS(weights, binomials, offsets)
};

/// The active players at a leaf, ascending.
struct Active {
  int64_t* player;
  bool* is_inside;
  int64_t* chosen;
};

/// Add the values of all sets of active players at one leaf to `out (n_sets,)`: p(s) up to the sign.
///
///   phi_T = (-1)^{|T n O|} c p_{|T|}(|I \ T|)
void add_leaf_sets(const Active& active, int64_t n_active, int64_t n_inside, const SetWeights& sets, double coefficient, double* out) {
  const int64_t d = sets.binomials.size[0] - 1, order = sets.weights.size[0] - 1;
  int64_t* const chosen = active.chosen;
  for (int64_t size = 1; size <= smaller(order, n_active); size++) {
    for (int64_t i = 0; i < size; i++) chosen[i] = i;
    for (;;) {
      int64_t rank = sets.offsets[size] + sets.binomials[d][size] - 1, inside = 0;
      double sign = coefficient;
      for (int64_t i = 0; i < size; i++) {
        rank -= sets.binomials[d - 1 - active.player[chosen[i]]][size - i];
        if (active.is_inside[chosen[i]])
          inside++;
        else
          sign = -sign;
      }
      out[rank] += sign * sets.weights[size][n_active][n_inside - inside];
      int64_t i = size - 1;
      while (i >= 0 && chosen[i] == n_active - size + i) i--;
      if (i < 0) break;
      chosen[i]++;
      for (int64_t k = i + 1; k < size; k++) chosen[k] = chosen[k - 1] + 1;
    }
  }
}

/// Insert a player into the ascending list of active ones.
EXACTSHAP_INLINE void insert(const Active& active, int64_t n_active, int64_t j, bool inside) {
  int64_t k = n_active;
  for (; k > 0 && active.player[k - 1] > j; k--) {
    active.player[k] = active.player[k - 1];
    active.is_inside[k] = active.is_inside[k - 1];
  }
  active.player[k] = j, active.is_inside[k] = inside;
}

/// Add the values of all sets for one pair of rows in one tree and output to `out (n_sets,)`; return the sum of magnitudes.
double walk_pair_sets(double weight, const Pair& pair, Path path, const Active& active, const double* value, int64_t stride,
                      const SetWeights& sets, double scale, double* out) {
  int64_t q = pair.offset;
  for (;;) {
    q = path.descend(q, pair);
    for (int64_t k = 0; k < path.level; k++) insert(active, k, path.owner[k], path.role[path.owner[k]] == INSIDE);
    const double coefficient = weight * value[q * stride];
    scale += fabs(coefficient);
    add_leaf_sets(active, path.level, path.n_inside, sets, coefficient, out);
    for (; path.level > 0 && path.role[path.owner[path.level - 1]] != INSIDE; path.level--) path.role[path.owner[path.level - 1]] = FREE;
    if (path.level == 0) return scale;
    path.role[path.owner[path.level - 1]] = OUTSIDE;
    path.n_inside--;
    q = path.other[path.level - 1];
  }
}

/// Add the values of all sets of 1..order players to `out (n_rows, n_sets, n_outputs)`: as walk_singles, at the leaves.
Status walk_sets(In<double, 2> columns, In<double, 2> background, In<double, 1> background_weights, Forest forest, In<int32_t, 1> player,
                 SetWeights sets, Out<double, 3> out, Out<double, 2> scale, Context& context) {
  const int64_t n_players = sets.binomials.size[0] - 1, order = sets.weights.size[0] - 1, n_levels = most_levels(forest, n_players);
  EXACTSHAP_REQUIRE(fit(columns, background, background_weights, forest, player, out, scale) && are_players(player, n_players));
  EXACTSHAP_REQUIRE(order >= 1 && sets.binomials.size[1] == order + 1 && sets.offsets.size[0] == order + 2);
  EXACTSHAP_REQUIRE(sets.offsets[order + 1] == out.size[1]);
  auto in_order = context.empty<int64_t>(n_levels), chosen = context.empty<int64_t>(order);
  auto is_inside = context.empty<bool>(n_levels);
  if (context.failed()) return Status::no_memory;
  const Active active{in_order.data, is_inside.data, chosen.data};
  const auto add_pair = [&](double weight, const Pair& pair, Path path, const double* value, int64_t stride, double size, double* total) {
    return walk_pair_sets(weight, pair, path, active, value, stride, sets, size, total);
  };
  return walk_rows(columns, background, background_weights, forest, player, n_players, out, scale, add_pair, context);
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, walk_singles, walk_singles)
EXACTSHAP_KERNEL(tree_solver, walk_sets, walk_sets)
