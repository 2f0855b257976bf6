// The rows of one tree, reduced to their distinct decision vectors where that pays, and the residuals that they meet.
#pragma once

#include "units.h"

EXACTSHAP_BEGIN

constexpr int64_t PATTERN_BITS = 15;  // trees with at most so many splits are reduced, if that pays
constexpr int64_t MOST_NODES = 2 * PATTERN_BITS + 1;
constexpr int64_t DENSE_BITS = 7;     // with at most so many, all decision vectors are taken, whether they occur or not
constexpr int64_t LANES = 4;          // sums that do not wait for each other

/// What all games know of the rows.
struct Rows {
  In<uint8_t, 2> decisions;  // (n_nodes, n_rows): whether a row goes left, from the first chosen tree on
  In<double, 1> weights;     // (n_rows,)
  bool averaged;             // whether every tree meets a residual of its own (else the trees are boosted)
  EXACTSHAP_FIELDS(decisions, weights, averaged)

  /// Whether they belong to `n_nodes` nodes and `residual`.
  bool fit(int64_t n_nodes, Array<const double, 1> residual) const {
    return decisions.size[0] == n_nodes && decisions.size[1] == weights.size[0] && residual.size[0] == weights.size[0];
  }
};

/// Whether all weights are 1.
inline bool all_ones(In<double, 1> weights) {
  for (int64_t i = 0; i < weights.size[0]; i++)
    if (weights[i] != 1.0) return false;
  return true;
}

/// The patterns of one tree, with scratch for the largest.
struct Patterns {
  Array<const uint8_t, 2> decisions;        // (n_nodes, n): per pattern
  Array<double, 1> predictions, linear;     // (n,): the tree's own, and the sums of the linear weights
  Array<double, 1> counts;                  // (n,): the sums of the row weights
  int64_t n;                                // patterns, or rows
  bool by_row;                              // whether each row is a pattern of its own

  Patterns(int64_t n_rows, Context& context) {
    const int64_t most = 2 * n_rows < int64_t(1) << PATTERN_BITS ? 2 * n_rows : int64_t(1) << PATTERN_BITS;
    const int64_t longest = n_rows > most ? n_rows : most;
    predictions = context.empty<double>(longest);
    linear = context.empty<double>(longest);
    counts = context.empty<double>(longest);
    reduced_ = context.empty<uint8_t>(MOST_NODES * most);
    pattern_ = context.empty<uint16_t>(n_rows);
    cells_ = context.empty<uint16_t>(most);
    rank_ = context.empty<uint16_t>(most);
    lanes_ = context.empty<double>(2, LANES, most);
  }

  void find(In<uint8_t, 2> rows, In<int32_t, 1> feature);
  void advance(const Rows& rows, Array<double, 1> residual, double empty);

  int64_t longest() const { return linear.size[0]; }
  double sum_linear() const {
    double total = 0.0;
    for (int64_t x = 0; x < n; x++) total += linear[x];
    return total;
  }

 private:
  Array<uint8_t, 1> reduced_;
  Array<uint16_t, 1> pattern_, cells_, rank_;
  Array<double, 3> lanes_;

  void fill_cells(In<uint8_t, 2> rows, In<int32_t, 1> feature);
  int64_t number_cells(int64_t n_cells);
  void reduce(In<int32_t, 1> feature);
};

/// Write the decision vector of each row in one tree, as a number, to the patterns: bit b is the b-th split.
inline void Patterns::fill_cells(In<uint8_t, 2> rows, In<int32_t, 1> feature) {
  uint16_t* __restrict const pattern = pattern_.data;
  for (int64_t i = 0; i < pattern_.size[0]; i++) pattern[i] = 0;
  int shift = 0;
  for (int64_t q = 0; q < feature.size[0]; q++) {
    if (feature[q] < 0) continue;
    const uint8_t* __restrict const went_left = rows[q].data;
    for (int64_t i = 0; i < pattern_.size[0]; i++) pattern[i] = uint16_t(pattern[i] | uint16_t(went_left[i]) << shift);
    shift++;
  }
}

/// List the distinct cells in ascending order; replace each row's cell by its number among them. Return how many there are.
inline int64_t Patterns::number_cells(int64_t n_cells) {
  Array<uint16_t, 1> rank = rank_.slice(0, n_cells);
  rank.fill(0);
  for (int64_t i = 0; i < pattern_.size[0]; i++) rank[pattern_[i]] = 1;
  int64_t found = 0;
  for (int64_t c = 0; c < n_cells; c++)
    if (rank[c] != 0) {
      cells_[found] = uint16_t(c);
      rank[c] = uint16_t(found++);
    }
  for (int64_t i = 0; i < pattern_.size[0]; i++) pattern_[i] = rank[pattern_[i]];
  return found;
}

/// Write the decisions of each pattern.
inline void Patterns::reduce(In<int32_t, 1> feature) {
  const uint16_t* __restrict const cells = cells_.data;
  int shift = 0;
  for (int64_t q = 0; q < feature.size[0]; q++) {
    if (feature[q] < 0) continue;
    uint8_t* __restrict const row = reduced_.data + q * n;
    for (int64_t x = 0; x < n; x++) row[x] = uint8_t(cells[x] >> shift & 1);
    shift++;
  }
  decisions = Array<const uint8_t, 2>{reduced_.data, {feature.size[0], n}};
}

/// Reduce the rows of one tree to patterns: all its decision vectors if they are few, else those that occur.
///
/// Where the tree has too many splits, the rows themselves.
inline void Patterns::find(In<uint8_t, 2> rows, In<int32_t, 1> feature) {
  const int64_t n_rows = rows.size[1];
  int64_t n_splits = 0;
  for (int64_t q = 0; q < feature.size[0]; q++) n_splits += feature[q] >= 0;
  by_row = feature.size[0] > MOST_NODES || int64_t(1) << n_splits > 2 * n_rows;
  if (by_row) {
    decisions = rows;
    n = n_rows;
    return;
  }
  fill_cells(rows, feature);
  n = int64_t(1) << n_splits;
  if (n_splits <= DENSE_BITS) {
    for (int64_t c = 0; c < n; c++) cells_[c] = uint16_t(c);
  } else {
    n = number_cells(n);
  }
  reduce(feature);
}

/// Write the linear weights -2 r_k w of one tree's rows to `linear` and move `residual` on.
///
/// Boosted: r_k is the residual, which then loses the tree's prediction. Averaged: `residual` is the base y - M - G / 2 of all
/// trees and r_k = y - M - (G - g_k) / 2 + m_k with g = f - m the centred tree: the mean over all orders of the trees.
inline void advance_rows(In<double, 1> predictions, const Rows& rows, Array<double, 1> residual, double empty,
                         Array<double, 1> linear) {
  for (int64_t i = 0; i < residual.size[0]; i++) {
    double met = residual[i];
    if (rows.averaged)
      met += 0.5 * (predictions[i] + empty);
    else
      residual[i] = met - predictions[i];
    linear[i] = -2.0 * met * rows.weights[i];
  }
}

/// As advance_rows; sum the linear weights and the row weights by pattern, in lanes that do not wait for each other.
inline void Patterns::advance(const Rows& rows, Array<double, 1> residual, double empty) {
  if (by_row) return advance_rows(predictions, rows, residual, empty, linear);
  Array<double, 2> sums = lanes_[0], sizes = lanes_[1];
  for (int64_t lane = 0; lane < LANES; lane++) {
    sums[lane].slice(0, n).fill(0.0);
    sizes[lane].slice(0, n).fill(0.0);
  }
  for (int64_t i = 0; i < residual.size[0]; i++) {
    const int64_t x = pattern_[i], lane = i & (LANES - 1);
    double met = residual[i];
    if (rows.averaged)
      met += 0.5 * (predictions[x] + empty);
    else
      residual[i] = met - predictions[x];
    sums[lane][x] += -2.0 * met * rows.weights[i];
    sizes[lane][x] += rows.weights[i];
  }
  for (int64_t x = 0; x < n; x++) {
    linear[x] = (sums[0][x] + sums[1][x]) + (sums[2][x] + sums[3][x]);
    counts[x] = (sizes[0][x] + sizes[1][x]) + (sizes[2][x] + sizes[3][x]);
  }
}

EXACTSHAP_END
