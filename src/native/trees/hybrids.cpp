// Margins of hybrid rows: the columns of a coalition from an explained row, the others from a background row.
//
// At a node of player p, of which row x goes left as dx and background row z as dz, the hybrid of coalition S goes left as
//
//   p in S ? dx : dz
//
// Coalitions are bits of words: one walk through a tree splits the set of them wherever dx != dz, so that what 256 coalitions share
// is walked once. Every hybrid meets its leaves in the order of the trees: its margin has the bits of `sum_leaf_values`.

#include <string.h>

#include "../common/lanes.h"
#include "linear.h"
#include "routing.h"

EXACTSHAP_BEGIN

namespace {

constexpr int64_t WORDS = 4, BITS = 64, COALITIONS = WORDS * BITS;

/// A set of coalitions.
struct Set {
  uint64_t words[WORDS];

  EXACTSHAP_INLINE bool is_empty() const {
    uint64_t any = 0;
    for (int64_t w = 0; w < WORDS; w++) any |= words[w];
    return any == 0;
  }
};

/// The trees, the player of each node (anything at leaves) and the only output that each tree adds to, -1 for all.
struct HybridTrees {
  In<int64_t, 1> tree_start;
  In<int32_t, 1> left, right, player;
  In<double, 2> value;
  In<int32_t, 1> tree_output;
  EXACTSHAP_FIELDS(tree_start, left, right, player, value, tree_output)

  EXACTSHAP_INLINE int64_t n_trees() const { return tree_start.size[0] - 1; }
  EXACTSHAP_INLINE bool fit(int64_t n_players) const {
    const int64_t n = left.size[0];
    if (tree_start.size[0] < 1 || right.size[0] != n || player.size[0] != n || value.size[0] != n) return false;
    if (tree_output.size[0] != n_trees() || tree_start[0] != 0 || tree_start[n_trees()] != n) return false;
    for (int64_t k = 0; k < n_trees(); k++)
      if (tree_start[k] > tree_start[k + 1] || tree_output[k] < -1 || tree_output[k] >= value.size[1]) return false;
    for (int64_t q = 0; q < n; q++) {
      if ((left[q] < 0) != (right[q] < 0) || left[q] >= n || right[q] >= n) return false;
      if (left[q] >= 0 && (left[q] <= q || right[q] <= q || player[q] < 0 || player[q] >= n_players)) return false;
    }
    return true;
  }
  EXACTSHAP_INLINE int64_t largest() const {
    int64_t most = 0;
    for (int64_t k = 0; k < n_trees(); k++) most = tree_start[k + 1] - tree_start[k] > most ? tree_start[k + 1] - tree_start[k] : most;
    return most;
  }
};

/// Linear functions of leaves, none where they are constant, the players of their terms, and the cells of both rows: a term takes its
/// column from the row where its player is in the coalition, else from the background row.
struct HybridCells {
  LeafTerms terms;
  In<int32_t, 1> player;
  In<double, 1> row;
  In<double, 2> background;
  EXACTSHAP_FIELDS(terms, player, row, background)

  EXACTSHAP_INLINE bool are_there() const { return terms.offset.size[0] > 0; }
  EXACTSHAP_INLINE bool fit(int64_t n_nodes, int64_t n_outputs, int64_t n_background, int64_t n_players) const {
    if (!are_there()) return terms.column.size[0] == 0;
    return terms.fit() && terms.offset.size[0] == n_nodes && terms.offset.size[1] == n_outputs && player.size[0] == terms.column.size[0] &&
           lie_within(player, n_players) && background.size[0] == n_background && background.size[1] == row.size[0] &&
           lie_within(terms.column, row.size[0]);
  }
  /// Add the function of node q in the coalition whose bit is `bit` of word `word` of the members.
  EXACTSHAP_INLINE double function(int64_t q, int64_t o, int64_t i, const Set* members, int64_t word, uint64_t bit) const {
    double sum = terms.offset[q][o];
    for (int64_t e = terms.start[q]; e < terms.start[q + 1]; e++) {
      const bool from_row = (members[player[e]].words[word] & bit) != 0;
      const double x = from_row ? row[terms.column[e]] : background[i][terms.column[e]];
      if (x != x) return 0.0;
      sum += terms.coefficient[e][o] * x;
    }
    return sum;
  }
};

/// What is left to walk: a node and the coalitions that reach it.
struct Visit {
  int64_t node;
  Set set;
};

/// Write the leaf of each coalition of `every` in one tree to `leaf (COALITIONS,)`.
EXACTSHAP_INLINE void walk(int64_t root, const HybridTrees& trees, const uint8_t* of_row, const uint8_t* of_background,
                           const Set* members, const Set& every, Visit* stack, int32_t* __restrict leaf) {
  int64_t n = 1;
  stack[0] = {root, every};
  while (n > 0) {
    Visit at = stack[--n];
    int64_t q = at.node;
    while (trees.left[q] >= 0) {
      const bool row_left = of_row[q] != 0, background_left = of_background[q] != 0;
      if (row_left == background_left) {
        q = row_left ? trees.left[q] : trees.right[q];
        continue;
      }
      const Set& with = members[trees.player[q]];
      Set present, absent;
      for (int64_t w = 0; w < WORDS; w++) {
        present.words[w] = at.set.words[w] & with.words[w];
        absent.words[w] = at.set.words[w] & ~with.words[w];
      }
      const int64_t ways[2] = {trees.right[q], trees.left[q]};
      if (present.is_empty()) {
        q = ways[background_left];
      } else {
        if (!absent.is_empty()) stack[n++] = {ways[background_left], absent};
        at.set = present;
        q = ways[row_left];
      }
    }
    for (int64_t w = 0; w < WORDS; w++)
      for (uint64_t bits = at.set.words[w]; bits != 0; bits &= bits - 1) leaf[w * BITS + __builtin_ctzll(bits)] = int32_t(q);
  }
}

/// Add the margins of all hybrids to `out (n_background, n_outputs, n_coalitions)`.
///
/// `row (n_nodes,)` and `background (n_background, n_nodes)` say which way each row goes at each node, 1 left; bit c of
/// `members (n_players, n_words)` whether the player is in coalition c.
Status sum_hybrids(HybridTrees trees, In<uint8_t, 1> row, In<uint8_t, 2> background, In<uint64_t, 2> members, HybridCells cells,
                   Out<double, 3> out, Context& context) {
  const int64_t n_coalitions = out.size[2], n_players = members.size[0];
  EXACTSHAP_REQUIRE(trees.fit(n_players) && row.size[0] == trees.left.size[0] && background.size[1] == row.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == background.size[0] && out.size[1] == trees.value.size[1]);
  EXACTSHAP_REQUIRE(cells.fit(trees.left.size[0], out.size[1], out.size[0], n_players));
  EXACTSHAP_REQUIRE(members.size[1] * BITS >= n_coalitions && trees.left.size[0] < int64_t(1) << 31);
  auto stack = context.empty<Visit>(trees.largest() + 1);
  auto sets = context.empty<Set>(n_players);
  auto leaf = context.empty<int32_t>(COALITIONS);
  if (context.failed()) return Status::no_memory;
  for (int64_t start = 0; start < n_coalitions; start += COALITIONS) {
    const int64_t n = n_coalitions - start < COALITIONS ? n_coalitions - start : COALITIONS;
    Set every;
    for (int64_t w = 0; w < WORDS; w++) {
      const int64_t left = n - w * BITS;
      every.words[w] = left >= BITS ? ~uint64_t(0) : left > 0 ? (uint64_t(1) << left) - 1 : 0;
      for (int64_t p = 0; p < n_players; p++) sets[p].words[w] = left > 0 ? members[p][start / BITS + w] : 0;
    }
    for (int64_t k = 0; k < trees.n_trees(); k++) {
      const int64_t root = trees.tree_start[k], only = trees.tree_output[k];
      if (root == trees.tree_start[k + 1]) continue;
      for (int64_t i = 0; i < background.size[0]; i++) {
        if (context.interrupted()) return Status::interrupted;
        walk(root, trees, row.data, background[i].data, sets.data, every, stack.data, leaf.data);
        for (int64_t o = only < 0 ? 0 : only; o < (only < 0 ? out.size[1] : only + 1); o++) {
          double* const to = out[i][o].data + start;
          for (int64_t c = 0; c < n; c++) to[c] += trees.value[leaf[c]][o];
          if (!cells.are_there()) continue;
          for (int64_t c = 0; c < n; c++) to[c] += cells.function(leaf[c], o, i, sets.data, c / BITS, uint64_t(1) << c % BITS);
        }
      }
    }
  }
  return Status::done;
}

/// Coalitions of the first two players: one sum of four numbers adds to all of them.
constexpr uint32_t CUBE_LANES = 4;
constexpr int64_t MOST_BITS = 20;

/// A node, the players in all coalitions that reach it, and those in none.
struct Cube {
  int64_t node;
  uint32_t present, absent;
};

/// Add `value` to all coalitions of a cube in `to`, one number for each subset of `every`.
EXACTSHAP_INLINE void add_to_cube(double value, const Cube& cube, uint32_t every, double* __restrict to) {
  double lane[CUBE_LANES];
  for (uint32_t l = 0; l < CUBE_LANES; l++) {
    const uint32_t contradicts = (l & cube.absent) | (~l & cube.present & (CUBE_LANES - 1));
    lane[l] = contradicts != 0 ? 0.0 : value;
  }
  double* const first = to + (cube.present & ~(CUBE_LANES - 1));
  const uint32_t free = every & ~(cube.present | cube.absent) & ~(CUBE_LANES - 1);
  for (uint32_t set = free;; set = (set - 1) & free) {
    for (uint32_t l = 0; l < CUBE_LANES; l++) first[set + l] += lane[l];
    if (set == 0) break;
  }
}

/// Add the margins of the hybrids of all coalitions of some players to `out (n_background, n_outputs, n_coalitions)`.
///
/// Player p is in coalition c where bit `bit[p]` of c is set; of the others no node tells the row from the background. The leaves that
/// hybrids of one background row reach in a tree share the coalitions out among them: 2^n additions a tree, in the order of the trees.
Status sum_all_hybrids(HybridTrees trees, In<uint8_t, 1> row, In<uint8_t, 2> background, In<int32_t, 1> bit, Out<double, 3> out,
                       Context& context) {
  const int64_t n_coalitions = out.size[2], n_outputs = out.size[1];
  EXACTSHAP_REQUIRE(trees.fit(bit.size[0]) && row.size[0] == trees.left.size[0] && background.size[1] == row.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == background.size[0] && n_outputs == trees.value.size[1]);
  EXACTSHAP_REQUIRE(n_coalitions >= CUBE_LANES && n_coalitions <= int64_t(1) << MOST_BITS && (n_coalitions & (n_coalitions - 1)) == 0);
  for (int64_t p = 0; p < bit.size[0]; p++) EXACTSHAP_REQUIRE(bit[p] >= 0 && int64_t(1) << bit[p] < n_coalitions);
  auto stack = context.empty<Cube>(trees.largest() + 1);
  if (context.failed()) return Status::no_memory;
  const uint32_t every = uint32_t(n_coalitions - 1);
  for (int64_t i = 0; i < background.size[0]; i++) {
    const uint8_t* const of_background = background[i].data;
    for (int64_t k = 0; k < trees.n_trees(); k++) {
      if (context.interrupted()) return Status::interrupted;
      if (trees.tree_start[k] == trees.tree_start[k + 1]) continue;
      const int64_t only = trees.tree_output[k], first = only < 0 ? 0 : only, last = only < 0 ? n_outputs : only + 1;
      int64_t n = 1;
      stack[0] = {trees.tree_start[k], 0, 0};
      while (n > 0) {
        Cube at = stack[--n];
        while (trees.left[at.node] >= 0) {
          const int64_t q = at.node, ways[2] = {trees.right[q], trees.left[q]};
          const uint32_t player = uint32_t(1) << bit[trees.player[q]];
          const bool row_left = row[q] != 0, background_left = of_background[q] != 0;
          if (row_left != background_left && ((at.present | at.absent) & player) == 0) {
            stack[n++] = {ways[background_left], at.present, at.absent | player};
            at.present |= player;
          }
          at.node = ways[(at.present & player) != 0 ? row_left : background_left];
        }
        for (int64_t o = first; o < last; o++) add_to_cube(trees.value[at.node][o], at, every, out[i][o].data);
      }
    }
  }
  return Status::done;
}

/// A node where the row and the background row part: where each goes on, a fork or, below 0, ~leaf.
struct Fork {
  int32_t player, present, absent;
};

/// Return the first node at or below q where row and background row part, or its leaf as ~leaf.
EXACTSHAP_INLINE int64_t parting(int64_t q, const HybridTrees& trees, const uint8_t* of_row, const uint8_t* of_background) {
  while (trees.left[q] >= 0) {
    if ((of_row[q] != 0) != (of_background[q] != 0)) return q;
    q = of_row[q] != 0 ? trees.left[q] : trees.right[q];
  }
  return ~q;
}

/// Write the forks below `root` to `forks`, each before those below it; return how many. If none, `node[0]` is ~leaf.
EXACTSHAP_INLINE int64_t find_forks(int64_t root, const HybridTrees& trees, const uint8_t* of_row, const uint8_t* of_background,
                                    Fork* __restrict forks, int64_t* __restrict node) {
  const int64_t top = parting(root, trees, of_row, of_background);
  node[0] = top;
  if (top < 0) return 0;
  int64_t n = 1;
  for (int64_t k = 0; k < n; k++) {
    const int64_t q = node[k], ways[2] = {trees.right[q], trees.left[q]};
    int32_t child[2];
    for (int present = 0; present < 2; present++) {
      const bool left = (present != 0 ? of_row[q] : of_background[q]) != 0;
      const int64_t next = parting(ways[left], trees, of_row, of_background);
      child[present] = next < 0 ? int32_t(next) : int32_t(n);
      if (next >= 0) node[n++] = next;
    }
    forks[k] = {trees.player[q], child[1], child[0]};
  }
  return n;
}

constexpr int64_t LANES = int64_t(sizeof(Widest) / sizeof(double));  // orders side by side

/// What a fork knows of some orders: the prefixes first <= k < last of each that reach it, and the margins of its tree at the first and at
/// the last of them. Numbers of prefixes are doubles, so that they are compared in the lanes of the margins.
struct Prefixes {
  Widest first, last, value_first, value_last;
};

/// Where a fork leads to with its player, or without: a fork, or a leaf, which has one value at all prefixes.
struct Way {
  Prefixes* fork;  // nullptr at a leaf
  Widest value;
  EXACTSHAP_INLINE Widest first(int64_t v) const { return fork != nullptr ? fork[v].value_first : value; }
  EXACTSHAP_INLINE Widest last(int64_t v) const { return fork != nullptr ? fork[v].value_last : value; }
};

/// Say which prefixes go on to the forks below: those up to the entrance of the fork's player are without it.
EXACTSHAP_INLINE void split(const Widest* enters, const Prefixes* at, Prefixes* present, Prefixes* absent, int64_t n_vectors) {
  for (int64_t v = 0; v < n_vectors; v++) {
    const Widest enter = enters[v], first = at[v].first, last = at[v].last;
    if (present != nullptr) {
      present[v].first = first > enter ? first : enter;
      present[v].last = last;
    }
    if (absent != nullptr) {
      absent[v].first = first;
      absent[v].last = last < enter ? last : enter;
    }
  }
}

/// Write the margins at a fork's first and last prefix, and add what its player moves by entering between them to `moved (n_vectors,)`.
EXACTSHAP_INLINE void join(const Widest* enters, Prefixes* at, Way present, Way absent, int64_t n_vectors, Widest* moved) {
  const Widest zero = {};
  for (int64_t v = 0; v < n_vectors; v++) {
    const auto is_after = enters[v] > at[v].first, is_before = enters[v] < at[v].last;
    const Widest with = present.first(v), without = absent.last(v);
    moved[v] += is_after & is_before ? with - without : zero;
    at[v].value_first = is_after ? absent.first(v) : with;
    at[v].value_last = is_before ? present.last(v) : without;
  }
}

/// Write the margins of the hybrids along orders of the players to `out (n_background, n_outputs, n_orders, n_steps)`.
///
/// The player at `place (n_background, n_players, n_orders)` p is in the first k of an order where p < k < n_steps; players that no
/// node tells apart have place 0. A fork is reached by prefixes first <= k < last. Where its player enters between them, the margin moves
/// from that of the last prefix without the player to that of the first one with it; all else that moves it are the forks below.
Status sum_along_orders(HybridTrees trees, In<uint8_t, 1> row, In<uint8_t, 2> background, In<int32_t, 3> place, Out<double, 4> out,
                        Context& context) {
  const int64_t n_background = background.size[0], n_outputs = out.size[1], n_orders = out.size[2], n_players = place.size[1];
  const int64_t n_steps = out.size[3], n_vectors = (n_orders + LANES - 1) / LANES, most = trees.largest() + 1;
  EXACTSHAP_REQUIRE(trees.fit(n_players) && row.size[0] == trees.left.size[0] && background.size[1] == row.size[0]);
  EXACTSHAP_REQUIRE(out.size[0] == n_background && place.size[0] == n_background && place.size[2] == n_orders);
  EXACTSHAP_REQUIRE(n_outputs == trees.value.size[1] && n_steps > 0 && trees.left.size[0] < int64_t(1) << 31);
  auto forks = context.empty<Fork>(most);
  auto node = context.empty<int64_t>(most);
  auto enters = context.empty<Widest>(n_players * n_vectors), moved = context.empty<Widest>(n_outputs * n_players * n_vectors);
  auto prefixes = context.empty<Prefixes>(most * n_vectors);
  if (context.failed()) return Status::no_memory;
  const Widest zero = {};
  for (int64_t v = 0; v < n_vectors; v++) prefixes[v] = {zero, zero + double(n_steps), zero, zero};  // of all roots
  for (int64_t v = 0; v < n_players * n_vectors; v++) enters[v] = zero;
  for (int64_t i = 0; i < n_background; i++) {
    for (int64_t v = 0; v < n_outputs * n_players * n_vectors; v++) moved[v] = zero;
    for (int64_t p = 0; p < n_players; p++) {
      for (int64_t order = 0; order < n_orders; order++) {
        EXACTSHAP_REQUIRE(place[i][p][order] >= 0 && place[i][p][order] < n_steps);
        enters[p * n_vectors + order / LANES][order % LANES] = double(place[i][p][order]) + 1.0;
      }
    }
    for (int64_t k = 0; k < trees.n_trees(); k++) {
      if (context.interrupted()) return Status::interrupted;
      const int64_t root = trees.tree_start[k], only = trees.tree_output[k];
      if (root == trees.tree_start[k + 1]) continue;
      const int64_t n_forks = find_forks(root, trees, row.data, background[i].data, forks.data, node.data);
      const auto below = [&](int32_t next) { return next < 0 ? nullptr : prefixes.data + next * n_vectors; };
      for (int64_t f = 0; f < n_forks; f++) {
        const Fork fork = forks[f];
        if (fork.present < 0 && fork.absent < 0) continue;
        split(enters.data + fork.player * n_vectors, below(int32_t(f)), below(fork.present), below(fork.absent), n_vectors);
      }
      int64_t leaf = n_forks == 0 ? node[0] : 0;  // without any player
      while (leaf >= 0) leaf = forks[leaf].absent;
      for (int64_t o = only < 0 ? 0 : only; o < (only < 0 ? n_outputs : only + 1); o++) {
        const auto way = [&](int32_t next) { return Way{below(next), zero + (next < 0 ? trees.value[~next][o] : 0.0)}; };
        for (int64_t f = n_forks - 1; f >= 0; f--) {
          const Fork fork = forks[f];
          Widest* const to = moved.data + (o * n_players + fork.player) * n_vectors;
          join(enters.data + fork.player * n_vectors, below(int32_t(f)), way(fork.present), way(fork.absent), n_vectors, to);
        }
        for (int64_t order = 0; order < n_orders; order++) out[i][o][order][0] += trees.value[~leaf][o];
      }
    }
    for (int64_t o = 0; o < n_outputs; o++) {
      for (int64_t order = 0; order < n_orders; order++) {
        double* const along = out[i][o][order].data;
        const Widest* const of_order = moved.data + o * n_players * n_vectors + order / LANES;
        for (int64_t p = 0; p < n_players; p++)
          if (place[i][p][order] + 1 < n_steps) along[place[i][p][order] + 1] += of_order[p * n_vectors][order % LANES];
        for (int64_t step = 1; step < n_steps; step++) along[step] += along[step - 1];
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, sum_hybrids, sum_hybrids)
EXACTSHAP_KERNEL(trees, sum_all_hybrids, sum_all_hybrids)
EXACTSHAP_KERNEL(trees, sum_along_orders, sum_along_orders)
