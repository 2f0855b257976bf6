// Trees as libraries store them, checked and laid out: breadth first, tree by tree.
#pragma once

#include <math.h>

#include "../common/kernel.h"

EXACTSHAP_BEGIN

/// What can be wrong with a node.
enum Fault : int64_t { NONE, LEFT, RIGHT, REACHED_TWICE, TOO_DEEP, FEATURE, THRESHOLD, VALUE, COVER, MISSING };

/// All trees of an ensemble; children are numbers within each tree, the trees' first nodes are at `offset (n_trees + 1,)`.
struct Stored {
  In<int64_t, 1> offset, root, feature, left, right;
  In<double, 1> threshold, cover;
  In<int8_t, 1> missing;
  In<bool, 1> zero_is_missing;
  In<double, 2> value;
  EXACTSHAP_FIELDS(offset, root, feature, left, right, threshold, cover, missing, zero_is_missing, value)

  bool fit() const {
    const int64_t n = left.size[0], n_trees = root.size[0];
    if (offset.size[0] != n_trees + 1 || offset[0] != 0 || offset[n_trees] != n) return false;
    for (int64_t k = 0; k < n_trees; k++)
      if (offset[k] > offset[k + 1] || root[k] < offset[k] || root[k] >= offset[k + 1]) return false;
    return feature.size[0] == n && right.size[0] == n && threshold.size[0] == n && cover.size[0] == n && missing.size[0] == n &&
           zero_is_missing.size[0] == n && value.size[0] == n;
  }
};

/// The nodes that roots reach, as FlatTrees holds them; `order` is each one's number in the forest.
struct Laid {
  Out<int64_t, 1> tree_start, order;
  Out<int32_t, 1> feature, left, right;
  Out<double, 1> threshold, cover;
  Out<int8_t, 1> missing;
  Out<bool, 1> zero_is_missing;
  Out<double, 2> value;
  EXACTSHAP_FIELDS(tree_start, order, feature, left, right, threshold, cover, missing, zero_is_missing, value)

  bool have_room(int64_t n) const {
    return order.size[0] == n && feature.size[0] == n && left.size[0] == n && right.size[0] == n && threshold.size[0] == n &&
           cover.size[0] == n && missing.size[0] == n && zero_is_missing.size[0] == n && value.size[0] == n;
  }
  bool fit(const Stored& forest) const {
    return tree_start.size[0] == forest.offset.size[0] && have_room(forest.left.size[0]) && value.size[1] == forest.value.size[1];
  }
};

/// Whether all children of tree k are nodes of it, and each node has two or none; else the fault and its node.
inline int64_t check_children(int64_t k, const Stored& forest, int64_t& node) {
  const int64_t start = forest.offset[k], n = forest.offset[k + 1] - start;
  for (node = start; node < start + n; node++) {
    const int64_t left = forest.left[node], right = forest.right[node];
    if (left < -1 || left >= n) return LEFT;
    if (right < -1 || right >= n || (right < 0) != (left < 0)) return RIGHT;
  }
  return 0;
}

/// Append the nodes of tree k that its root reaches to the order from `end` on, level by level, siblings side by side.
inline int64_t append_tree(int64_t k, const Stored& forest, int64_t max_depth, Array<bool, 1> seen, const Laid& laid, int64_t& end, int64_t& node) {
  int64_t head = end, depth = 1;
  laid.order[end++] = forest.root[k];
  seen[forest.root[k]] = true;
  for (int64_t level_end = end; head < end; head++) {
    const int64_t q = laid.order[head];
    if (head == level_end) {
      depth++;
      level_end = end;
      if (depth > max_depth) return node = q, TOO_DEEP;
    }
    laid.left[head] = laid.right[head] = -1;
    if (forest.left[q] < 0) continue;
    laid.left[head] = int32_t(end);
    laid.right[head] = int32_t(end + 1);
    const int64_t children[2] = {forest.left[q], forest.right[q]};
    for (const int64_t child : children) {
      const int64_t c = forest.offset[k] + child;
      if (seen[c]) return node = c, REACHED_TWICE;
      seen[c] = true;
      laid.order[end++] = c;
    }
  }
  return 0;
}

/// Write what the node at `place` holds: of a split its rule, of a leaf its values and cover. Covers of splits are those of their
/// children together, which come behind them.
inline void fill_node(int64_t place, const Stored& forest, const Laid& laid) {
  const int64_t q = laid.order[place], left = laid.left[place], n_outputs = forest.value.size[1];
  const bool split = left >= 0;
  laid.feature[place] = split ? int32_t(forest.feature[q]) : -1;
  laid.threshold[place] = split ? forest.threshold[q] : 0.0;
  laid.missing[place] = split ? forest.missing[q] : int8_t(0);
  laid.zero_is_missing[place] = split && forest.zero_is_missing[q];
  laid.cover[place] = split ? laid.cover[left] + laid.cover[left + 1] : forest.cover[q];
  for (int64_t o = 0; o < n_outputs; o++) laid.value[place][o] = split ? 0.0 : forest.value[q][o];
}

/// What is wrong with the numbers of the node at `place`, 0 if nothing.
inline int64_t check_node(int64_t place, const Stored& forest, int64_t n_features, const Laid& laid) {
  const int64_t feature = forest.feature[laid.order[place]];
  const bool split = laid.left[place] >= 0;
  if (split && (feature < 0 || feature >= n_features)) return FEATURE;
  if (isnan(laid.threshold[place])) return THRESHOLD;
  for (int64_t o = 0; o < laid.value.size[1]; o++)
    if (!isfinite(laid.value[place][o])) return VALUE;
  if (!(isfinite(laid.cover[place]) && laid.cover[place] >= 0.0)) return COVER;
  return laid.missing[place] < 0 || laid.missing[place] > 2 ? MISSING : NONE;
}

/// What is wrong with trees, 0 if nothing, and where: a node's number in the forest, and its place in the order where it has one.
struct Finding {
  int64_t fault = 0, node = 0, place = 0;
};

/// Check the trees and lay them out; `seen (n_nodes,)` is false before. Counts the nodes that roots reach.
inline Finding check_and_lay_out(const Stored& forest, const Laid& laid, int64_t n_features, int64_t max_depth, Array<bool, 1> seen,
                                 int64_t& n_reached) {
  Finding found;
  const int64_t n_trees = forest.root.size[0];
  n_reached = 0;
  for (int64_t k = 0; k < n_trees && found.fault == 0; k++) found.fault = check_children(k, forest, found.node);
  laid.tree_start[0] = 0;
  for (int64_t k = 0; k < n_trees && found.fault == 0; k++) {
    found.fault = append_tree(k, forest, max_depth, seen, laid, n_reached, found.node);
    laid.tree_start[k + 1] = n_reached;
  }
  if (found.fault != 0) return found;
  for (int64_t p = n_reached - 1; p >= 0; p--) fill_node(p, forest, laid);
  for (int64_t p = 0; p < n_reached && found.fault == 0; p++) {
    found.fault = check_node(p, forest, n_features, laid);
    if (found.fault != 0) found.place = p, found.node = laid.order[p];
  }
  return found;
}

EXACTSHAP_END
