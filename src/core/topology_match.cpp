// The matcher of TopologyIndex.
#include <algorithm>
#include <bit>

#include "core/collect.h"
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

/// What servers give within the limits of a query.
struct TopologyIndex::Offer {
  const TopologyIndex& index;
  const MatchQuery& query;
  [[nodiscard]] bool may_have(VertexId vertex) const {
    return index.free_devices(vertex, query.pool) > 0;
  }
  [[nodiscard]] std::int32_t room(NodeId node) const {
    return std::min(query.room->room(node), std::popcount(index.free_mask(node)));
  }
  [[nodiscard]] std::uint64_t pick(NodeId node, std::int32_t count) const {
    return index.pick(node, 0, count);
  }
};

std::uint64_t TopologyIndex::pick(NodeId node, std::uint32_t inner, std::int32_t count) const {
  const ServerTree& tree = topology_->inside(node);
  const std::uint64_t free = free_mask(node) & tree.vertices[inner].devices;
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
  if (query.room != nullptr &&
      room_below(*topology_, Topology::root(), Offer{*this, query}) < query.gpus)
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

std::optional<VertexId> TopologyIndex::best_upper(const CountSet& set, VertexId first,
                                                  const MatchQuery& query) const {
  for (auto member = set.first_from(query.gpus); member; member = set.after(*member)) {
    const VertexId vertex{first.value + static_cast<std::uint32_t>(member->position)};
    if (query.room == nullptr || room_below(*topology_, vertex, Offer{*this, query}) >= query.gpus)
      return vertex;
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
    collect_below(*topology_, vertex, Offer{*this, query}, query.gpus, parts);
  return {(*topology_)[vertex].level, parts};
}

void TopologyIndex::take(VertexId vertex, PoolId pool, std::int32_t count, Parts& parts) const {
  if (vertex.value >= first_server_) {
    const NodeId node{(*topology_)[vertex].id};
    parts.push_back({node, pick(node, 0, count)});
    return;
  }
  const CountSet& set = pools_[pool.value].children[vertex.value];
  const auto child = [&](const CountSet::Member& member) {
    return topology_->children(vertex)[member.position];
  };
  for (auto last = set.last_below(free_devices(vertex, pool) + 1); last && count > 0;) {
    const std::int32_t room = last->count;  // the roomiest that are left
    for (auto next = set.first_from(room); next && next->count == room && count > 0;
         next = set.after(*next)) {
      if (room < count) {
        take_all(child(*next), pool, parts);
        count -= room;
        continue;
      }
      // the rest goes to the tightest; as loose as this one it is this one, others are taken
      const auto tightest = set.first_from(count);
      take(child(tightest->count < room ? *tightest : *next), pool, count, parts);
      return;
    }
    last = set.last_below(room);
  }
}

/// Copies words of the bitmap as a whole: a gang of a thousand on a full cluster has that many
/// parts.
void TopologyIndex::take_all(VertexId vertex, PoolId pool, Parts& parts) const {
  const auto [begin, end] = leaf_span_[vertex.value];
  const std::vector<std::uint64_t>& has_free = pools_[pool.value].has_free;
  for (std::uint32_t leaf = begin; leaf < end;) {
    const std::uint32_t width = std::min(64 - leaf % 64, end - leaf);
    std::uint64_t rest = has_free[leaf / 64] >> (leaf % 64);
    if (width < 64) rest &= (std::uint64_t{1} << width) - 1;
    std::size_t at = parts.size();
    parts.resize(at + static_cast<std::size_t>(std::popcount(rest)));
    for (; rest != 0; rest &= rest - 1)
      parts[at++] = leaves_[leaf + static_cast<std::uint32_t>(std::countr_zero(rest))];
    leaf += width;
  }
}

}  // namespace berth
