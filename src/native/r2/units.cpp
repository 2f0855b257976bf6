// Units: the terms of a tree's game, half as many as its leaves, and the bits by which rows enter them.

#include "units.h"

EXACTSHAP_BEGIN

namespace {

/// Whether node `q` is a unit: two leaf children, or a leaf whose sibling is internal, or a lone root.
bool is_unit(int64_t q, In<int32_t, 1> parent, In<int32_t, 1> left, In<int32_t, 1> right) {
  if (left[q] >= 0) return left[left[q]] < 0 && left[right[q]] < 0;
  if (parent[q] < 0) return true;
  const int64_t sibling = int64_t(left[parent[q]]) + right[parent[q]] - q;
  return left[sibling] >= 0;
}

/// Write the first unit of every tree to `start (n_trees + 1,)` and node depths to `depths`; return the largest depth.
Status count_units(In<int64_t, 1> tree_start, In<int32_t, 1> parent, In<int32_t, 1> left, In<int32_t, 1> right,
                   Out<int32_t, 1> depths, Out<int64_t, 1> start, int64_t& deepest) {
  const int64_t n = parent.size[0];
  deepest = 0;
  EXACTSHAP_REQUIRE(left.size[0] == n && right.size[0] == n && depths.size[0] == n && tree_start.size[0] > 0);
  EXACTSHAP_REQUIRE(start.size[0] == tree_start.size[0] && tree_start[tree_start.size[0] - 1] == n);
  start[0] = 0;
  for (int64_t k = 0; k < tree_start.size[0] - 1; k++) {
    int64_t found = 0;
    for (int64_t q = tree_start[k]; q < tree_start[k + 1]; q++) {
      depths[q] = parent[q] < 0 ? 0 : depths[parent[q]] + 1;
      if (!is_unit(q, parent, left, right)) continue;
      found++;
      deepest = depths[q] > deepest ? depths[q] : deepest;
    }
    start[k + 1] = start[k] + found;
  }
  return Status::done;
}

/// The slot of player `p` among the first `used` of unit `u`, or `used` if it has none.
int32_t slot_of(int64_t u, int32_t p, int32_t used, const Units& units) {
  for (int32_t slot = 0; slot < used; slot++)
    if (units.player[u][slot] == p) return slot;
  return used;
}

/// Write the edges above unit `u` from the root down, its prefix players and their cover ratios; return their number.
int32_t fill_path(int64_t u, In<int32_t, 1> parent, const Trees& trees, const Units& units) {
  int32_t q = units.node[u];
  for (int64_t e = units.depth[u] - 1; e >= 0; e--) {
    const int32_t above = parent[q];
    units.path_node[u][e] = above;
    units.path_left[u][e] = trees.left[above] == q;
    q = above;
  }
  int32_t used = 0;
  for (int64_t e = 0; e < units.depth[u]; e++) {
    const int64_t child = e + 1 == units.depth[u] ? units.node[u] : units.path_node[u][e + 1];
    const int32_t p = trees.player_of_node[units.path_node[u][e]], slot = slot_of(u, p, used, units);
    if (slot == used) {
      units.player[u][slot] = p;
      units.beta[u][slot] = 1.0;
      used++;
    }
    units.beta[u][slot] *= trees.share[child];
    units.path_slot[u][e] = slot;
  }
  return used;
}

/// Add the split of unit `u` on its own player: the product of its two leaves' sides.
void fill_bottom(int64_t u, const Trees& trees, const Units& units) {
  const int64_t q = units.node[u], l = trees.left[q], r = trees.right[q];
  const int32_t used = units.size[u][0], slot = slot_of(u, trees.player_of_node[q], used, units);
  if (slot == used) {
    units.player[u][slot] = trees.player_of_node[q];
    units.beta[u][slot] = 1.0;
    units.size[u][1] = used + 1;
  }
  units.beta[u][slot] *= trees.share[l] * trees.value[l] + trees.share[r] * trees.value[r];
  units.value[u][0] = trees.value[l];
  units.value[u][1] = trees.value[r];
  units.value[u][2] = 1.0;
  units.size[u][2] = slot;
}

/// Fill every array of `units` but `tree_start`; `parent` and `depths (n_nodes,)`, the latter and `tree_start` by count_units.
Status fill_units(Trees trees, In<int32_t, 1> parent, In<int32_t, 1> depths, Units units) {
  const int64_t n_trees = trees.tree_start.size[0] - 1;
  EXACTSHAP_REQUIRE(n_trees >= 0 && trees.fit(0, n_trees) && units.fit() && units.tree_start.size[0] == n_trees + 1);
  EXACTSHAP_REQUIRE(parent.size[0] == trees.feature.size[0] && depths.size[0] == trees.feature.size[0]);
  int64_t u = 0;
  for (int64_t k = 0; k < n_trees; k++)
    for (int64_t q = trees.tree_start[k]; q < trees.tree_start[k + 1]; q++) {
      if (!is_unit(q, parent, trees.left, trees.right)) continue;
      EXACTSHAP_REQUIRE(u < units.constant() && depths[q] < units.player.size[1]);
      units.tree[u] = int32_t(k);
      units.node[u] = int32_t(q);
      units.depth[u] = depths[q];
      const int32_t used = fill_path(u, parent, trees, units);
      units.size[u][0] = units.size[u][1] = used;
      units.size[u][2] = -1;
      units.value[u][0] = units.value[u][1] = 1.0;
      units.value[u][2] = trees.value[q];
      if (trees.left[q] >= 0) fill_bottom(u, trees, units);
      u++;
    }
  return Status::done;
}

/// As write_codes.
Status fill_codes(int64_t first, int64_t last, Units units, In<uint8_t, 2> decisions, int64_t offset, Out<uint16_t, 2> codes) {
  EXACTSHAP_REQUIRE(units.fit() && first >= 0 && first <= last && last <= units.constant());
  EXACTSHAP_REQUIRE(codes.size[0] == last - first && codes.size[1] == decisions.size[1]);
  EXACTSHAP_REQUIRE(splits_within(units, first, last, offset, decisions.size[0]));
  write_codes(first, last, units, decisions, offset, codes);
  return Status::done;
}

/// As write_alphas.
Status fill_alphas(int64_t first, int64_t last, Units units, In<uint8_t, 2> decisions, int64_t offset, Out<double, 3> alphas) {
  EXACTSHAP_REQUIRE(units.fit() && first >= 0 && first <= last && last <= units.constant());
  EXACTSHAP_REQUIRE(alphas.size[0] >= last - first && alphas.size[1] == units.player.size[1]);
  EXACTSHAP_REQUIRE(alphas.size[2] == decisions.size[1] && splits_within(units, first, last, offset, decisions.size[0]));
  write_alphas(first, last, units, decisions, offset, alphas);
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(r2, count_units, count_units)
EXACTSHAP_KERNEL(r2, fill_units, fill_units)
EXACTSHAP_KERNEL(r2, fill_codes, fill_codes)
EXACTSHAP_KERNEL(r2, fill_alphas, fill_alphas)
