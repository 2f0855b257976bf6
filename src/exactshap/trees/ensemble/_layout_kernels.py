"""Compiled order of nodes: breadth first, tree by tree."""

from __future__ import annotations

from numba import njit

__all__ = ["REACHED_TWICE", "TOO_DEEP", "fill_breadth_first", "sum_covers"]

REACHED_TWICE, TOO_DEEP = 1, 2


@njit(nogil=True, cache=True, error_model="numpy")
def fill_breadth_first(left, right, offset, roots, max_depth, seen, order, new_left):
    """Write the reached nodes to ``order`` and the new number of each one's left child (-1 at leaves) to ``new_left``.

    ``left`` and ``right`` (n_nodes,) are checked numbers within each tree, ``offset`` (n_trees + 1,) the trees' first nodes,
    ``seen`` is False everywhere. Returns how many nodes were reached, a fault (0 if there is none) and its node.
    """
    end = 0
    for k in range(roots.shape[0]):
        head, depth = end, 1
        order[end] = roots[k]
        seen[roots[k]] = True
        end += 1
        level_end = end
        while head < end:
            if head == level_end:
                depth += 1
                level_end = end
                if depth > max_depth:
                    return end, TOO_DEEP, order[head]
            q = order[head]
            new_left[head] = -1
            if left[q] >= 0:
                new_left[head] = end
                for child in (left[q], right[q]):
                    c = offset[k] + child
                    if seen[c]:
                        return end, REACHED_TWICE, c
                    seen[c] = True
                    order[end] = c
                    end += 1
            head += 1
    return end, 0, 0


@njit(nogil=True, cache=True, error_model="numpy")
def sum_covers(left, cover):
    """Replace the cover of each internal node by the sum of its children's, from the last node to the first."""
    for q in range(left.shape[0] - 1, -1, -1):
        if left[q] >= 0:
            cover[q] = cover[left[q]] + cover[left[q] + 1]
