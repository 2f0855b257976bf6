// Values of sets of players by quadrature along the paths, leaf by leaf.

#include "groups.h"

EXACTSHAP_BEGIN

namespace {

/// Room for one leaf of m players and `width` rows.
struct Lanes {
  int64_t m, width, size;
  double *inside, *slopes, *factors;  // a, a - b, F: (m, width)
  double *suffix, *running, *shares;  // (m + 1, width), (size + 1, width), (n_sets, width)
  int64_t* position;
};

/// Write a (as `inside`) and a - b of the leaf's players for the rows from `start` on.
void fill_factors(Array<uint8_t, 2> decisions, int64_t offset, int64_t l, const Leaves& leaves, int64_t start, const Lanes& lanes) {
  const int64_t width = lanes.width;
  for (int64_t i = 0; i < lanes.m * width; i++) lanes.inside[i] = 1.0;
  for (int64_t e = leaves.edge_start[l]; e < leaves.edge_start[l + 1]; e++) {
    const uint8_t* const decided = decisions[leaves.edge_node[e] - offset].data + start;
    const uint8_t passed = leaves.edge_left[e] ? 1 : 0;
    double* const inside = lanes.inside + leaves.edge_slot[e] * width;
    for (int64_t r = 0; r < width; r++) inside[r] = decided[r] != passed ? 0.0 : inside[r];
  }
  for (int64_t k = 0; k < lanes.m; k++) {
    const double b = leaves.ratio[leaves.start[l] + k];
    for (int64_t i = k * width; i < (k + 1) * width; i++) lanes.slopes[i] = lanes.inside[i] - b;
  }
}

/// Write the factors at one node t of the rule, and their products from each player on.
void fill_suffix(double t, const double* b, const Lanes& lanes) {
  const int64_t width = lanes.width;
  for (int64_t r = 0; r < width; r++) lanes.suffix[lanes.m * width + r] = 1.0;
  for (int64_t k = lanes.m - 1; k >= 0; k--) {
    const double outside = (1.0 - t) * b[k];
    double *__restrict const factor = lanes.factors + k * width, *__restrict const product = lanes.suffix + k * width;
    const double *const inside = lanes.inside + k * width, *const next = product + width;
    for (int64_t r = 0; r < width; r++) {
      factor[r] = t * inside[r] + outside;
      product[r] = next[r] * factor[r];
    }
  }
}

/// Add the products of all sets of `size` slots, in lexicographic order, to `shares (n_sets, width)`.
///
/// A stack of running products, one per member, visits each set with one multiplication per step. Level 0 of `running` is set.
void add_sets(const Lanes& lanes) {
  const int64_t m = lanes.m, width = lanes.width, size = lanes.size;
  int64_t level = 0;
  double* __restrict share = lanes.shares;
  lanes.position[0] = 0;
  while (level >= 0) {
    const int64_t k = lanes.position[level];
    double* __restrict const running = lanes.running + level * width;
    if (k > m - (size - level)) {
      level--;
      if (level < 0) break;
      const int64_t j = lanes.position[level];
      double* __restrict const above = lanes.running + level * width;
      for (int64_t r = 0; r < width; r++) above[r] *= lanes.factors[j * width + r];
      lanes.position[level] = j + 1;
    } else if (level == size - 1) {
      const double *const slope = lanes.slopes + k * width, *const suffix = lanes.suffix + (k + 1) * width;
      const double* const factor = lanes.factors + k * width;
      for (int64_t r = 0; r < width; r++) {
        share[r] += running[r] * slope[r] * suffix[r];
        running[r] *= factor[r];
      }
      lanes.position[level] = k + 1;
      share += width;
    } else {
      double* __restrict const below = running + width;
      for (int64_t r = 0; r < width; r++) below[r] = running[r] * lanes.slopes[k * width + r];
      lanes.position[level + 1] = k + 1;
      level++;
    }
  }
}

/// Move `chosen (size,)`, ascending positions below m, to the lexicographically next set.
void next_set(int64_t* chosen, int64_t size, int64_t m) {
  int64_t i = size - 1;
  while (i >= 0 && chosen[i] == m - size + i) i--;
  if (i < 0) return;
  chosen[i]++;
  for (int64_t k = i + 1; k < size; k++) chosen[k] = chosen[k - 1] + 1;
}

/// Add the shares of one leaf's sets, times its values, to the rows from `start` on.
void add_shares(const Lanes& lanes, int64_t n_sets, const int32_t* players, In<double, 1> value, In<int64_t, 2> binomials,
                In<int64_t, 1> offsets, int64_t start, int64_t* chosen, Out<double, 3> out) {
  const int64_t d = binomials.size[0] - 1, size = lanes.size;
  for (int64_t i = 0; i < size; i++) chosen[i] = i;
  for (int64_t s = 0; s < n_sets; s++) {
    int64_t rank = offsets[size] + binomials[d][size] - 1;
    for (int64_t i = 0; i < size; i++) rank -= binomials[d - 1 - players[chosen[i]]][size - i];
    const double* const share = lanes.shares + s * lanes.width;
    for (int64_t o = 0; o < value.size[0]; o++) {
      double* __restrict const to = out[rank][o].data + start;
      const double c = value[o];
      for (int64_t r = 0; r < lanes.width; r++) to[r] += c * share[r];
    }
    next_set(chosen, size, lanes.m);
  }
}

/// The number of sets of `size` of m players.
int64_t choose(int64_t m, int64_t size) {
  int64_t n_sets = 1;
  for (int64_t i = 0; i < size; i++) n_sets = n_sets * (m - i) / (i + 1);
  return m < size ? 0 : n_sets;
}

/// A rule's nodes and weights, and where the sets of each size start among all sets.
struct SetRule {
  int64_t size;
  In<double, 1> nodes, weights;
  In<int64_t, 2> binomials;
  In<int64_t, 1> offsets;
  EXACTSHAP_FIELDS(size, nodes, weights, binomials, offsets)
};

/// Add the values of all sets of one size to `out (n_sets, n_outputs, n_rows)`, leaf by leaf:
///
///   phi_T = sum_l c_l sum_q omega_q prod_{j in T} (a_lj - b_lj) prod_{k not in T} F_lk(t_q)
///
/// No division, so that nodes may be 0 or 1. `columns (n_features, n_rows)` go `n_lanes` rows at a time. Cost
/// O(sum over leaves of n_nodes C(m, size)) per row.
Status sweep_leaf_sets(In<double, 2> columns, Forest forest, Leaves leaves, SetRule rule, int64_t n_lanes, Out<double, 3> out, Context& context) {
  const int64_t n_rows = columns.size[1], size = rule.size;
  EXACTSHAP_REQUIRE(forest.fit() && leaves.fit() && rule.nodes.size[0] == rule.weights.size[0] && n_lanes > 0 && size > 0);
  EXACTSHAP_REQUIRE(rule.binomials.size[1] > size && rule.offsets.size[0] > size + 1 && out.size[0] >= rule.offsets[size + 1]);
  EXACTSHAP_REQUIRE(out.size[1] == forest.value.size[1] && out.size[2] == n_rows);
  const int64_t lanes = smaller(n_lanes, n_rows);
  int64_t most = 0;
  for (int64_t l = 0; l < leaves.count(); l++) most = leaves.n_players(l) > most ? leaves.n_players(l) : most;
  auto decisions = context.zeros<uint8_t>(forest.largest_tree(), n_rows);
  auto pairs = context.empty<double>(int64_t(3), most, lanes);
  auto suffix = context.empty<double>(most + 1, lanes), running = context.empty<double>(size + 1, lanes);
  auto shares = context.empty<double>(choose(most, size), lanes);
  auto position = context.empty<int64_t>(size + 1), chosen = context.empty<int64_t>(size);
  if (context.failed()) return Status::no_memory;
  int64_t l = 0;
  for (int64_t tree = 0; tree < forest.n_trees(); tree++) {
    const int64_t offset = forest.tree_start[tree], end = forest.tree_start[tree + 1];
    if (!decide_nodes(columns, offset, end, forest.nodes, decisions)) return Status::fault;
    for (; l < leaves.count() && leaves.node[l] < end; l++) {
      const int64_t m = leaves.n_players(l), n_sets = choose(m, size);
      const double* const b = leaves.ratio.data + leaves.start[l];
      for (int64_t start = 0; start < n_rows && n_sets > 0; start += lanes) {
        if (context.interrupted()) return Status::interrupted;
        const Lanes room{m, smaller(lanes, n_rows - start), size, pairs[0].data, pairs[1].data, pairs[2].data,
                         suffix.data, running.data, shares.data, position.data};
        for (int64_t i = 0; i < n_sets * room.width; i++) shares.data[i] = 0.0;
        fill_factors(decisions, offset, l, leaves, start, room);
        for (int64_t q = 0; q < rule.nodes.size[0]; q++) {
          fill_suffix(rule.nodes[q], b, room);
          for (int64_t r = 0; r < room.width; r++) room.running[r] = rule.weights[q];
          add_sets(room);
        }
        add_shares(room, n_sets, leaves.player.data + leaves.start[l], forest.value[leaves.node[l]], rule.binomials, rule.offsets, start,
                   chosen.data, out);
      }
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(tree_solver, sweep_leaf_sets, sweep_leaf_sets)
