// The placements of the registry. All of them keep a gang in one pool and place a relaxed shape
// whenever the pool has room; they differ in which nodes they take.
//   count        totals only, no nodes
//   first-fit    lowest-numbered node that holds the gang, else lowest-numbered nodes
//   best-fit     one node with the smallest rest, else the fewest nodes (one rack if possible)
//   consolidated best-fit, but the gang waits for the fewest nodes that could ever hold it
//   spread       over as many nodes as possible, emptiest first
//   random       a random node that holds the gang, else random nodes
//   skew         Tiresias: skewed models consolidated, the others fill the fullest nodes
//   topology     the lowest level of the topology tree with room, the tightest vertex on it;
//                topology:interference away from neighbours that would disturb
//   fgd, fraction-best-fit, fraction-random, dot-product, gpu-packing, gpu-clustering
//                understand fractions of a device (fraction_placements.h)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/placement.h"
#include "perf/profile.h"

namespace berth {

struct PlacementInfo {
  std::string name;
  std::string summary;
};
[[nodiscard]] std::vector<PlacementInfo> placements();
struct PlacementOptions {
  double pack_limit = 0.5;  // skew above which a model is consolidated (skew)
  std::shared_ptr<const ProfileSet> profiles = {};  // of the run (topology); none: class default
};
/// From the text after --placement: a name, "skew:0.7" with the pack limit, or
/// "topology:interference".
[[nodiscard]] Result<std::unique_ptr<Placement>> make_placement(std::string_view text,
                                                                PlacementOptions options = {});

}  // namespace berth
