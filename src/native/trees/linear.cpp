// Linear functions of leaves: what rows get beyond the constant values of the leaves that they reach.

#include <math.h>

#include "linear.h"

EXACTSHAP_BEGIN

namespace {

/// Add the linear functions of the reached leaves, `leaves (n_rows, n_trees)`, tree after tree, to `out (n_rows, n_outputs)`.
///
/// Where `sizes (n_rows,)` is given, the magnitudes that are added up go there.
Status add_leaf_functions(In<double, 2> X, In<int32_t, 2> leaves, LeafTerms terms, Out<double, 2> out, Out<double, 1> sizes, Context& context) {
  const int64_t n_outputs = out.size[1], n_nodes = terms.offset.size[0];
  EXACTSHAP_REQUIRE(terms.fit() && terms.offset.size[1] == n_outputs && X.size[0] == out.size[0] && leaves.size[0] == out.size[0]);
  EXACTSHAP_REQUIRE(lie_within(terms.column, X.size[1]) && lie_within(leaves, n_nodes) && (sizes.size[0] == 0 || sizes.size[0] == out.size[0]));
  for (int64_t i = 0; i < out.size[0]; i++) {
    if (context.interrupted()) return Status::interrupted;
    for (int64_t k = 0; k < leaves.size[1]; k++) {
      const int64_t q = leaves[i][k];
      if (terms.is_missing(q, X[i].data, 1)) continue;
      double size = 0.0;
      for (int64_t o = 0; o < n_outputs; o++) {
        double sum = terms.offset[q][o], magnitude = fabs(sum);
        for (int64_t e = terms.start[q]; e < terms.start[q + 1]; e++) {
          const double part = terms.coefficient[e][o] * X[i][terms.column[e]];
          sum += part;
          magnitude += fabs(part);
        }
        out[i][o] += sum;
        size = larger(size, magnitude);
      }
      if (sizes.size[0] > 0) sizes[i] += size;
    }
  }
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, add_leaf_functions, add_leaf_functions)
