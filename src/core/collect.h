// Collecting a gang from several servers by looking at each: for queries in which more than free
// devices decides what a server can give. The rule is the matcher's (core/topology_index.h): the
// roomiest child first, the last one the tightest that is enough, the same inside each. An Offer
// says
//   bool may_have(VertexId)                  false: nothing below, do not look there
//   std::int32_t room(NodeId)                devices the gang could have of this server
//   std::uint64_t pick(NodeId, std::int32_t) which, for so many of them
// O(servers below the vertex x depth).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/topology.h"

namespace berth {

template <class Offer>
[[nodiscard]] std::int64_t room_below(const Topology& topology, VertexId vertex,
                                      const Offer& offer) {
  if (!offer.may_have(vertex)) return 0;
  if (topology[vertex].type == VertexType::Server)
    return std::max(0, offer.room(NodeId{topology[vertex].id}));
  std::int64_t room = 0;
  for (const VertexId child : topology.children(vertex)) room += room_below(topology, child, offer);
  return room;
}

/// There must be room for `count`.
template <class Offer>
void collect_below(const Topology& topology, VertexId vertex, const Offer& offer,
                   std::int32_t count, std::vector<DeviceSet>& parts) {
  if (topology[vertex].type == VertexType::Server) {
    const NodeId node{topology[vertex].id};
    parts.push_back({node, offer.pick(node, count)});
    return;
  }
  struct Child {
    VertexId vertex;
    std::int64_t room = 0;
  };
  std::vector<Child> children;
  for (const VertexId child : topology.children(vertex)) {
    if (const std::int64_t room = room_below(topology, child, offer); room > 0)
      children.push_back({child, room});
  }
  std::ranges::sort(children, [](const Child& a, const Child& b) {
    return a.room != b.room ? a.room > b.room : a.vertex < b.vertex;
  });
  for (std::size_t i = 0; i < children.size() && count > 0; ++i) {
    std::size_t chosen = i;  // the tightest that is enough, lowest id
    for (std::size_t j = i; j < children.size() && children[j].room >= count; ++j)
      if (children[j].room < children[chosen].room) chosen = j;
    const auto part =
        static_cast<std::int32_t>(std::min<std::int64_t>(count, children[chosen].room));
    collect_below(topology, children[chosen].vertex, offer, part, parts);
    count -= part;
  }
}

}  // namespace berth
