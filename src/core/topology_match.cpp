// The matcher of TopologyIndex.
#include <algorithm>
#include <bit>

#include "core/topology_index.h"

namespace berth {

namespace {

/// Of equally tight vertices so many are asked for their interference score: the others are as good
/// in everything else.
constexpr int kScored = 32;

/// `count` of the free devices below a vertex, by the rule of the matcher.
std::uint64_t pick_below(const ServerTree& tree, std::uint32_t at, std::uint64_t free,
                         std::int32_t count) {
  const InnerVertex& vertex = tree.vertices[at];
  free &= vertex.devices;
  if (std::popcount(free) == count) return free;
  std::uint64_t taken = 0;
  std::uint64_t left = free;
  while (count > 0) {
    std::uint32_t tightest = 0;  // of those that hold all the rest
    std::uint32_t roomiest = 0;
    int tightest_room = 65;
    int roomiest_room = 0;
    for (std::uint32_t i = 0; i < vertex.child_count; ++i) {
      const std::uint32_t child = vertex.first_child + i;
      const int room = std::popcount(left & tree.vertices[child].devices);
      if (room >= count && room < tightest_room) {
        tightest = child;
        tightest_room = room;
      }
      if (room > roomiest_room) {
        roomiest = child;
        roomiest_room = room;
      }
    }
    const std::uint64_t part = tightest_room <= 64 ? pick_below(tree, tightest, left, count)
                                                   : left & tree.vertices[roomiest].devices;
    taken |= part;
    left &= ~part;
    count -= std::popcount(part);
  }
  return taken;
}

}  // namespace

std::uint64_t TopologyIndex::pick(NodeId node, std::uint32_t inner, std::int32_t count) const {
  const ServerTree& tree = topology_->inside(node);
  const std::uint64_t free = masks_[node.value] & tree.vertices[inner].devices;
  if (count == 1 || !tree.rings) return pick_below(tree, inner, free, count);
  return tree.rings->best(free, count);
}

std::optional<Match> TopologyIndex::find(const MatchQuery& query, Parts& buffer) const {
  const PoolIndex& index = pools_[query.pool.value];
  if (index.free[Topology::root().value] < query.gpus) return std::nullopt;
  buffer.clear();
  const bool any_level = query.gpus == 1;  // one device is always together
  for (const InnerTier& tier : index.tiers) {
    if (tier.level > query.max_level && !any_level) return std::nullopt;
    if (const auto member = best_member(tier, query)) return match_inside(*member, query, buffer);
  }
  if (any_level || query.max_level < Level::Rack) return std::nullopt;
  if (const auto rack = best_upper(index.racks, topology_->rack(RackId{0}), query))
    return match_above(*rack, query, buffer);
  if (query.max_level < Level::CrossRack) return std::nullopt;
  if (const auto zone = best_upper(index.zones, topology_->zone(ZoneId{0}), query))
    return match_above(*zone, query, buffer);
  if (query.room != nullptr && room_below(Topology::root(), query) < query.gpus)
    return std::nullopt;
  return match_above(Topology::root(), query, buffer);
}

bool TopologyIndex::holds(const InnerTier& tier, const Member& member,
                          const MatchQuery& query) const {
  if (query.room != nullptr && query.room->room(member.node) < query.gpus) return false;
  const ServerTree& tree = topology_->inside(member.node);
  if (query.gpus == 1 || !tree.rings || tier.level != Level::Nvlink) return true;
  return tree.rings->is_direct(pick(member.node, member.inner, query.gpus));
}

std::optional<TopologyIndex::Member> TopologyIndex::best_member(const InnerTier& tier,
                                                                const MatchQuery& query) const {
  std::optional<Member> best;
  double best_score = 0;
  std::size_t end = 0;  // of the keys that are as tight as the first that holds the gang
  int scored = 0;
  const std::size_t per_count = tier.server_counts * tier.members.size();
  for (auto key = tier.set.next(tier.key(query.gpus, 0, 0)); key; key = tier.set.next(*key + 1)) {
    if (best && (*key >= end || scored == kScored)) break;
    const Member member = tier.members[*key % tier.members.size()];
    if (!holds(tier, member, query)) continue;
    if (query.score == nullptr) return member;
    const double score = query.score->score(member.node);
    ++scored;
    if (!best) end = (*key / per_count + 1) * per_count;
    if (!best || score < best_score) {
      best = member;
      best_score = score;
    }
  }
  return best;
}

std::optional<VertexId> TopologyIndex::best_upper(const UpperSet& set, VertexId first,
                                                  const MatchQuery& query) const {
  const auto from = static_cast<std::size_t>(query.gpus) * set.size;
  for (auto key = set.set.next(from); key; key = set.set.next(*key + 1)) {
    const VertexId vertex{first.value + static_cast<std::uint32_t>(*key % set.size)};
    if (query.room == nullptr || room_below(vertex, query) >= query.gpus) return vertex;
  }
  return std::nullopt;
}

Match TopologyIndex::match_inside(const Member& member, const MatchQuery& query,
                                  Parts& parts) const {
  parts.push_back({member.node, pick(member.node, member.inner, query.gpus)});
  return {topology_->inside(member.node).level_of(parts.front().devices), parts};
}

Match TopologyIndex::match_above(VertexId vertex, const MatchQuery& query, Parts& parts) const {
  if (query.room == nullptr)
    take(vertex, query.pool, query.gpus, parts);
  else
    take_within_room(vertex, query, query.gpus, parts);
  return {(*topology_)[vertex].level, parts};
}

void TopologyIndex::take(VertexId vertex, PoolId pool, std::int32_t count, Parts& parts) const {
  if (vertex.value >= first_server_) {
    const NodeId node{(*topology_)[vertex].id};
    parts.push_back({node, pick(node, 0, count)});
    return;
  }
  const UpperSet& set = pools_[pool.value].children[vertex.value];
  const auto child = [&](std::size_t key) { return topology_->children(vertex)[key % set.size]; };
  const auto room = [&](std::size_t key) { return static_cast<std::int32_t>(key / set.size); };
  const auto most = static_cast<std::size_t>(max_free_child(vertex, pool));
  for (std::size_t free = most; count > 0;) {
    for (auto key = set.set.next(free * set.size);
         key && static_cast<std::size_t>(room(*key)) == free && count > 0;
         key = set.set.next(*key + 1)) {
      if (room(*key) < count) {
        take_all(child(*key), pool, parts);
        count -= room(*key);
        continue;
      }
      // the rest goes to the tightest; as loose as this one it is this one, others are taken
      const auto tightest = set.set.next(static_cast<std::size_t>(count) * set.size);
      take(child(room(*tightest) < room(*key) ? *tightest : *key), pool, count, parts);
      return;
    }
    const auto lower = set.set.previous(free * set.size);
    if (!lower) return;
    free = static_cast<std::size_t>(room(*lower));
  }
}

void TopologyIndex::take_all(VertexId vertex, PoolId pool, Parts& parts) const {
  if (free_devices(vertex, pool) == 0) return;
  if (vertex.value >= first_server_) {
    const NodeId node{(*topology_)[vertex].id};
    parts.push_back({node, masks_[node.value]});
    return;
  }
  for (const VertexId child : topology_->children(vertex)) take_all(child, pool, parts);
}

std::int64_t TopologyIndex::room_below(VertexId vertex, const MatchQuery& query) const {
  if (free_devices(vertex, query.pool) == 0) return 0;
  if (vertex.value >= first_server_) {
    const NodeId node{(*topology_)[vertex].id};
    return std::max(0, std::min(query.room->room(node), std::popcount(masks_[node.value])));
  }
  std::int64_t room = 0;
  for (const VertexId child : topology_->children(vertex)) room += room_below(child, query);
  return room;
}

void TopologyIndex::take_within_room(VertexId vertex, const MatchQuery& query, std::int32_t count,
                                     Parts& parts) const {
  if (vertex.value >= first_server_) {
    const NodeId node{(*topology_)[vertex].id};
    parts.push_back({node, pick(node, 0, count)});
    return;
  }
  struct Child {
    VertexId vertex;
    std::int64_t room = 0;
  };
  std::vector<Child> children;
  for (const VertexId child : topology_->children(vertex)) {
    if (const std::int64_t room = room_below(child, query); room > 0)
      children.push_back({child, room});
  }
  std::ranges::sort(children, [](const Child& a, const Child& b) {
    return a.room != b.room ? a.room > b.room : a.vertex < b.vertex;
  });
  for (std::size_t i = 0; i < children.size() && count > 0; ++i) {
    std::size_t chosen = i;
    if (children[i].room >= count) {  // the tightest that is enough, lowest id
      for (std::size_t j = i; j < children.size() && children[j].room >= count; ++j)
        if (children[j].room < children[chosen].room) chosen = j;
    }
    const auto part =
        static_cast<std::int32_t>(std::min<std::int64_t>(count, children[chosen].room));
    take_within_room(children[chosen].vertex, query, part, parts);
    count -= part;
  }
}

}  // namespace berth
