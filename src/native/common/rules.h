// Quadrature rules as kernels read them.
#pragma once

#include "kernel.h"

EXACTSHAP_BEGIN

/// Quadrature rules of growing size, one behind the other; rule r serves spreads up to `limits[r]`, the last one all others.
struct GradedRules {
  In<double, 1> limits;
  In<int64_t, 1> offsets;
  In<double, 1> nodes, weights;
  EXACTSHAP_FIELDS(limits, offsets, nodes, weights)

  /// Whether every rule has nodes, and a multiple of `together` of them.
  bool fit(int64_t together) const {
    const int64_t n_rules = limits.size[0];
    if (n_rules < 1 || offsets.size[0] != n_rules + 1 || offsets[0] != 0 || weights.size[0] != nodes.size[0]) return false;
    for (int64_t r = 0; r < n_rules; r++)
      if (offsets[r + 1] <= offsets[r] || (offsets[r + 1] - offsets[r]) % together != 0) return false;
    return offsets[n_rules] == nodes.size[0];
  }

  int64_t smallest(double spread) const {
    int64_t rule = 0;
    while (rule + 1 < limits.size[0] && limits[rule] < spread) rule++;
    return rule;
  }
};

EXACTSHAP_END
