// From the links of nodes to the paths of leaves.

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

/// What a leaf sees on its way up: `player` is -1 at leaves, `share` is cover(node) / cover(parent).
struct Above {
  In<int32_t, 1> parent;
  In<bool, 1> is_left;
  In<int32_t, 1> player;
  In<double, 1> share;
  EXACTSHAP_FIELDS(parent, is_left, player, share)
};

/// What is found: the number of distinct players of each leaf, the edges of all leaves, and at their offsets the players.
struct Found {
  Out<int64_t, 1> counts;
  Out<int32_t, 1> edge_node;
  Out<bool, 1> edge_left;
  Out<int32_t, 1> edge_slot, player;
  Out<double, 1> ratio;
  EXACTSHAP_FIELDS(counts, edge_node, edge_left, edge_slot, player, ratio)
};

/// Write the parent of each node, and whether it is a left child.
Status fill_parents(In<int32_t, 1> left, In<int32_t, 1> right, Out<int32_t, 1> parent, Out<bool, 1> is_left) {
  const int64_t n = left.size[0];
  EXACTSHAP_REQUIRE(right.size[0] == n && parent.size[0] == n && is_left.size[0] == n);
  for (int64_t q = 0; q < n; q++)
    if (left[q] >= 0) {
      if (left[q] >= n || right[q] < 0 || right[q] >= n) return Status::fault;
      parent[left[q]] = parent[right[q]] = int32_t(q);
      is_left[left[q]] = true;
    }
  return Status::done;
}

/// Write cover(node) / cover(parent) of all nodes but roots; 1/2 below an empty parent.
Status fill_shares(In<int32_t, 1> left, In<int32_t, 1> right, In<double, 1> cover, Out<double, 1> out) {
  const int64_t n = left.size[0];
  EXACTSHAP_REQUIRE(right.size[0] == n && cover.size[0] == n && out.size[0] == n);
  for (int64_t q = 0; q < n; q++)
    if (left[q] >= 0) {
      if (left[q] >= n || right[q] < 0 || right[q] >= n) return Status::fault;
      const bool is_empty = !(cover[q] > 0.0);
      out[left[q]] = is_empty ? 0.5 : cover[left[q]] / cover[q];
      out[right[q]] = is_empty ? 0.5 : cover[right[q]] / cover[q];
    }
  return Status::done;
}

/// Write the edges of one leaf from its root down, and the share of each one where the ratio of its player will be.
Status fill_edges(int64_t leaf, int64_t first, int64_t last, const Above& above, const Found& out) {
  int64_t e = last, q = leaf;
  for (; above.parent[q] >= 0; q = above.parent[q]) {
    if (e == first || above.parent[q] >= above.parent.size[0]) return Status::fault;
    e--;
    out.edge_node[e] = above.parent[q];
    out.edge_left[e] = above.is_left[q];
    out.ratio[e] = above.share[q];
  }
  return e == first ? Status::done : Status::fault;
}

/// Walk from each leaf to its root; write its edges from the root down, and its distinct players with their ratios:
///
///   b_lj = prod_{q -> c on the path, j_q = j} cover(c) / cover(q)
///
/// `player` and `ratio` are filled at the offsets of the edges; `counts[l]` tells how many of them leaf l uses.
Status fill_paths(In<int32_t, 1> leaves, In<int64_t, 1> edge_start, Above above, int64_t n_players, Found out, Context& context) {
  const int64_t n_nodes = above.parent.size[0], n_edges = out.edge_node.size[0];
  EXACTSHAP_REQUIRE(above.is_left.size[0] == n_nodes && above.player.size[0] == n_nodes && above.share.size[0] == n_nodes);
  EXACTSHAP_REQUIRE(edge_start.size[0] == leaves.size[0] + 1 && out.counts.size[0] == leaves.size[0]);
  EXACTSHAP_REQUIRE(out.edge_left.size[0] == n_edges && out.edge_slot.size[0] == n_edges);
  EXACTSHAP_REQUIRE(out.player.size[0] == n_edges && out.ratio.size[0] == n_edges && n_players >= 0);
  auto slot_of = context.empty<int32_t>(n_players);
  if (context.failed()) return Status::no_memory;
  slot_of.fill(-1);
  for (int64_t l = 0; l < leaves.size[0]; l++) {
    const int64_t first = edge_start[l], last = edge_start[l + 1];
    EXACTSHAP_REQUIRE(first >= 0 && first <= last && last <= n_edges && leaves[l] >= 0 && leaves[l] < n_nodes);
    if (const Status status = fill_edges(leaves[l], first, last, above, out); status != Status::done) return status;
    int32_t used = 0;
    for (int64_t e = first; e < last; e++) {
      const int32_t j = above.player[out.edge_node[e]];
      if (j < 0 || j >= n_players) return Status::fault;
      if (slot_of[j] < 0) {
        slot_of[j] = used;
        out.player[first + used] = j;
        out.ratio[first + used] = out.ratio[e];
        used++;
      } else {
        out.ratio[first + slot_of[j]] *= out.ratio[e];
      }
      out.edge_slot[e] = slot_of[j];
    }
    for (int64_t s = first; s < first + used; s++) slot_of[out.player[s]] = -1;
    out.counts[l] = used;
  }
  return Status::done;
}

/// The paths of all leaves (exactshap.trees.Paths).
struct Paths {
  In<int32_t, 1> node;
  In<int64_t, 1> start;
  In<int32_t, 1> player;
  In<double, 1> ratio;
  In<int64_t, 1> edge_start;
  In<int32_t, 1> edge_node;
  In<bool, 1> edge_left;
  In<int32_t, 1> edge_slot;
  EXACTSHAP_FIELDS(node, start, player, ratio, edge_start, edge_node, edge_left, edge_slot)
};

/// Clear `out (n_rows, n_leaves, n_players)`, full of ones, where a row fails a split on the player on the path.
Status fill_inside(In<uint8_t, 2> decisions, Paths paths, Out<double, 3> out) {
  const int64_t n_edges = paths.edge_node.size[0], n_leaves = out.size[1];
  EXACTSHAP_REQUIRE(decisions.size[1] == out.size[0] && paths.edge_left.size[0] == n_edges && paths.edge_slot.size[0] == n_edges);
  EXACTSHAP_REQUIRE(paths.start.size[0] == n_leaves + 1 && paths.edge_start.size[0] == n_leaves + 1);
  EXACTSHAP_REQUIRE(paths.edge_start[0] >= 0 && paths.edge_start[n_leaves] <= n_edges);
  for (int64_t l = 0; l < n_leaves; l++)
    for (int64_t e = paths.edge_start[l]; e < paths.edge_start[l + 1]; e++) {
      const int64_t slot = paths.start[l] + paths.edge_slot[e], q = paths.edge_node[e];
      if (slot < 0 || slot >= paths.player.size[0] || q < 0 || q >= decisions.size[0]) return Status::fault;
      const int64_t j = paths.player[slot];
      if (j < 0 || j >= out.size[2]) return Status::fault;
      for (int64_t i = 0; i < out.size[0]; i++)
        if ((decisions[q][i] != 0) != paths.edge_left[e]) out[i][l][j] = 0.0;
    }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, fill_parents, fill_parents)
EXACTSHAP_KERNEL(trees, fill_shares, fill_shares)
EXACTSHAP_KERNEL(trees, fill_paths, fill_paths)
EXACTSHAP_KERNEL(trees, fill_inside, fill_inside)
