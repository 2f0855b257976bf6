// Order of nodes: breadth first, tree by tree.

#include "../common/kernel.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t REACHED_TWICE = 1, TOO_DEEP = 2;

/// What the order of nodes is made of, and where it is written.
struct Links {
  In<int64_t, 1> left, right, offset;
  int64_t max_depth;
  Out<bool, 1> seen;
  Out<int64_t, 1> order;
  Out<int32_t, 1> new_left;
  EXACTSHAP_FIELDS(left, right, offset, max_depth, seen, order, new_left)
};

/// Append the nodes of tree k that its root reaches to `order` from `end` on, level by level.
Status append_tree(int64_t k, int64_t root, const Links& links, int64_t& end, int64_t& fault, int64_t& node) {
  const int64_t n = links.left.size[0];
  int64_t head = end, depth = 1;
  if (root < 0 || root >= n || links.seen[root]) return Status::fault;
  links.order[end++] = root;
  links.seen[root] = true;
  for (int64_t level_end = end; head < end; head++) {
    if (head == level_end) {
      depth++;
      level_end = end;
      if (depth > links.max_depth) return fault = TOO_DEEP, node = links.order[head], Status::done;
    }
    const int64_t q = links.order[head];
    links.new_left[head] = -1;
    if (links.left[q] < 0) continue;
    links.new_left[head] = int32_t(end);
    const int64_t children[2] = {links.left[q], links.right[q]};
    for (const int64_t child : children) {
      const int64_t c = links.offset[k] + child;
      if (c < 0 || c >= n) return Status::fault;
      if (links.seen[c]) return fault = REACHED_TWICE, node = c, Status::done;
      links.seen[c] = true;
      links.order[end++] = c;
    }
  }
  return Status::done;
}

/// Write the reached nodes to `order` and the new number of each one's left child (-1 at leaves) to `new_left`.
///
/// `left` and `right (n_nodes,)` are checked numbers within each tree, `offset (n_trees + 1,)` the trees' first nodes, `seen` is
/// false everywhere. Gives how many nodes were reached, a fault (0 if there is none) and its node.
Status fill_breadth_first(In<int64_t, 1> roots, Links links, int64_t& n_reached, int64_t& fault, int64_t& node) {
  n_reached = fault = node = 0;
  const int64_t n = links.left.size[0];
  EXACTSHAP_REQUIRE(links.right.size[0] == n && links.seen.size[0] == n && links.order.size[0] == n);
  EXACTSHAP_REQUIRE(links.new_left.size[0] == n && links.offset.size[0] == roots.size[0] + 1);
  for (int64_t k = 0; k < roots.size[0] && fault == 0; k++)
    if (const Status status = append_tree(k, roots[k], links, n_reached, fault, node); status != Status::done) return status;
  return Status::done;
}

/// Replace the cover of each internal node by the sum of its children's, from the last node to the first.
Status sum_covers(In<int32_t, 1> left, Out<double, 1> cover) {
  EXACTSHAP_REQUIRE(left.size[0] == cover.size[0]);
  for (int64_t q = left.size[0] - 1; q >= 0; q--)
    if (left[q] >= 0) {
      if (left[q] + int64_t(1) >= cover.size[0]) return Status::fault;
      cover[q] = cover[left[q]] + cover[left[q] + 1];
    }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, fill_breadth_first, fill_breadth_first)
EXACTSHAP_KERNEL(trees, sum_covers, sum_covers)
