// Trees as libraries store them, checked and laid out (see layout.h).

#include "layout.h"

EXACTSHAP_BEGIN

namespace {

/// Check the trees and lay them out. Gives how many nodes were reached, and a fault, 0 if there is none, with its node: its number in
/// the forest, and its place in the order where it has one.
Status lay_out(Stored forest, Laid laid, int64_t n_features, int64_t max_depth, int64_t& n_reached, int64_t& fault, int64_t& node,
               int64_t& place, Context& context) {
  n_reached = fault = node = place = 0;
  EXACTSHAP_REQUIRE(forest.fit() && laid.fit(forest) && forest.left.size[0] <= INT32_MAX);
  auto seen = context.zeros<bool>(forest.left.size[0]);
  if (context.failed()) return Status::no_memory;
  const Finding found = check_and_lay_out(forest, laid, n_features, max_depth, seen, n_reached);
  fault = found.fault, node = found.node, place = found.place;
  return Status::done;
}

}  // namespace

EXACTSHAP_END

EXACTSHAP_KERNEL(trees, lay_out, lay_out)
