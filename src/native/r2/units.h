// Ensembles and their units as the kernels of R2 read them. What the arrays mean: `decompose/r2/_games.py`.
#pragma once

#include "../common/kernel.h"

EXACTSHAP_BEGIN

constexpr int64_t CODE_BITS = 16;  // a unit with as many prefix players or more has no code: it goes by quadrature

/// One output, nodes numbered through all trees: children are -1 at leaves.
struct Trees {
  In<int64_t, 1> tree_start;
  In<int32_t, 1> feature, left, right;
  In<double, 1> value;
  In<int32_t, 1> player_of_node;
  In<double, 1> share, empty;
  EXACTSHAP_FIELDS(tree_start, feature, left, right, value, player_of_node, share, empty)

  /// Whether the sizes agree and `first` to `last` - 1 are trees of it.
  bool fit(int64_t first, int64_t last) const {
    const int64_t n = feature.size[0];
    return left.size[0] == n && right.size[0] == n && value.size[0] == n && player_of_node.size[0] == n && share.size[0] == n &&
           first >= 0 && first <= last && last < tree_start.size[0] && empty.size[0] == tree_start.size[0] - 1 &&
           tree_start[0] == 0 && tree_start[tree_start.size[0] - 1] == n;
  }
  /// Nodes of the trees `first` to `last` - 1.
  int64_t count_nodes(int64_t first, int64_t last) const { return tree_start[last] - tree_start[first]; }
};

/// All units of an ensemble, and the constant 1 as the last: `fill_units` writes them, everything else reads.
struct Units {
  Out<int64_t, 1> tree_start;
  Out<int32_t, 1> tree, node;
  Out<int32_t, 2> size;  // prefix players, players, slot of the unit's own player
  Out<int32_t, 2> player;
  Out<double, 2> beta, value;
  Out<int32_t, 1> depth;
  Out<int32_t, 2> path_node;
  Out<uint8_t, 2> path_left;
  Out<int32_t, 2> path_slot;
  EXACTSHAP_FIELDS(tree_start, tree, node, size, player, beta, value, depth, path_node, path_left, path_slot)

  bool fit() const {
    const int64_t n = node.size[0], width = player.size[1];
    return n > 0 && tree_start.size[0] > 0 && tree_start[tree_start.size[0] - 1] == n - 1 && tree.size[0] == n &&
           size.size[0] == n && size.size[1] == 3 && player.size[0] == n && beta.size[0] == n && beta.size[1] == width &&
           value.size[0] == n && value.size[1] == 3 && depth.size[0] == n && path_node.size[0] == n &&
           path_node.size[1] == width && path_left.size[0] == n && path_left.size[1] == width && path_slot.size[0] == n &&
           path_slot.size[1] == width;
  }
  int64_t constant() const { return node.size[0] - 1; }  // the unit that is 1

  /// Players of the unit that has most.
  int64_t count_players() const {
    int64_t most = 0;
    for (int64_t u = 0; u < node.size[0]; u++) most = size[u][1] > most ? size[u][1] : most;
    return most;
  }
  /// Whether all players are among the first `n_players`.
  bool players_within(int64_t n_players) const {
    for (int64_t u = 0; u < node.size[0]; u++)
      for (int64_t k = 0; k < size[u][1]; k++)
        if (player[u][k] < 0 || player[u][k] >= n_players) return false;
    return true;
  }
  /// Units of the tree that has most, of `first` to `last` - 1.
  int64_t count_most(int64_t first, int64_t last) const {
    int64_t most = 0;
    for (int64_t k = first; k < last; k++)
      most = tree_start[k + 1] - tree_start[k] > most ? tree_start[k + 1] - tree_start[k] : most;
    return most;
  }
};

/// Whether all splits above and of the units `first` to `last` - 1 are among `n_nodes` nodes from `offset` on.
inline bool splits_within(const Units& units, int64_t first, int64_t last, int64_t offset, int64_t n_nodes) {
  for (int64_t u = first; u < last; u++) {
    for (int64_t e = 0; e < units.depth[u]; e++)
      if (units.path_node[u][e] < offset || units.path_node[u][e] >= offset + n_nodes) return false;
    if (units.node[u] < offset || units.node[u] >= offset + n_nodes) return false;
  }
  return true;
}

/// The player of the node at which two units of one tree part.
inline int64_t parting_player(int64_t u, int64_t w, const Units& units, In<int32_t, 1> player_of_node) {
  const uint8_t *const left_u = units.path_left[u].data, *const left_w = units.path_left[w].data;
  int64_t e = 0;
  while (left_u[e] == left_w[e]) e++;
  return player_of_node[units.path_node[u][e]];
}

/// Write the codes of units `first` to `last` - 1 to `codes (n_units, n_patterns)`, one bit per slot.
///
/// Bit k: the row passes every split on prefix player k; the bit after them: it goes left at the unit's own split.
/// `decisions (n_nodes, n_patterns)` starts at node `offset`. Units with more players than a code has bits are left alone.
inline void write_codes(int64_t first, int64_t last, const Units& units, In<uint8_t, 2> decisions, int64_t offset,
                        Out<uint16_t, 2> codes) {
  const int64_t n = codes.size[1];
  for (int64_t u = first; u < last; u++) {
    if (units.size[u][0] >= CODE_BITS) continue;
    uint16_t* __restrict const code = codes[u - first].data;
    const uint16_t full = uint16_t((1 << units.size[u][0]) - 1);
    for (int64_t i = 0; i < n; i++) code[i] = full;
    for (int64_t e = 0; e < units.depth[u]; e++) {
      const uint8_t* __restrict const went_left = decisions[units.path_node[u][e] - offset].data;
      const uint16_t bit = uint16_t(1 << units.path_slot[u][e]);
      const uint8_t wanted = units.path_left[u][e];
      for (int64_t i = 0; i < n; i++) code[i] = uint16_t(code[i] & ~(went_left[i] != wanted ? bit : 0));
    }
    if (units.size[u][2] >= 0) {
      const uint8_t* __restrict const went_left = decisions[units.node[u] - offset].data;
      const uint16_t bit = uint16_t(1 << units.size[u][0]);
      for (int64_t i = 0; i < n; i++) code[i] = uint16_t(code[i] | (went_left[i] != 0 ? bit : 0));
    }
  }
}

/// Write alpha_uk of units `first` to `last` - 1 to `alphas (n_units, width, n_rows)`: bits, times the leaf value at the bottom.
inline void write_alphas(int64_t first, int64_t last, const Units& units, In<uint8_t, 2> decisions, int64_t offset,
                         Out<double, 3> alphas) {
  const int64_t n = alphas.size[2];
  for (int64_t u = first; u < last; u++) {
    Out<double, 2> alpha = alphas[u - first];
    for (int64_t k = 0; k < units.size[u][1]; k++) alpha[k].fill(1.0);
    for (int64_t e = 0; e < units.depth[u]; e++) {
      const uint8_t* __restrict const went_left = decisions[units.path_node[u][e] - offset].data;
      const uint8_t wanted = units.path_left[u][e];
      double* __restrict const row = alpha[units.path_slot[u][e]].data;
      for (int64_t i = 0; i < n; i++) row[i] = went_left[i] == wanted ? row[i] : 0.0;
    }
    if (units.size[u][2] >= 0) {
      const uint8_t* __restrict const went_left = decisions[units.node[u] - offset].data;
      double* __restrict const row = alpha[units.size[u][2]].data;
      const double if_left = units.value[u][0], if_right = units.value[u][1];
      for (int64_t i = 0; i < n; i++) row[i] *= went_left[i] != 0 ? if_left : if_right;
    }
  }
}

EXACTSHAP_END
