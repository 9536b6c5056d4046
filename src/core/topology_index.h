// Where in the topology tree are how many devices free, and the matcher that finds a gang its
// place. Every vertex knows its free devices per pool; vertices of one kind and level lie in sets
// ordered by free count, so "the tightest vertex that holds k" is one look-up. A change of one
// server costs O(vertices of its inside + depth), a query O(depth + parts of the answer) — unless a
// room function limits servers further, when candidates are tried one by one.
//
// The matcher: of all levels the lowest with a vertex that holds the gang; on it the vertex with
// the fewest free devices, then (inside of servers) in the server with the fewest, then the lowest
// interference score, then the lowest id. Where no child of that vertex holds the gang it is
// collected from several: the roomiest first, the last one the tightest that is enough; the same
// rule inside each. It never walks down into the child that fits best: a looser one may have the
// better server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/bit_set.h"
#include "core/count_set.h"
#include "model/topology.h"

namespace berth {

/// How many of a server's free devices a gang could use beside cores and memory.
class ServerRoom {
 public:
  virtual ~ServerRoom() = default;
  [[nodiscard]] virtual std::int32_t room(NodeId node) const = 0;
};

/// How much a gang would suffer from and give to the neighbours on a server; lower is better.
class ServerScore {
 public:
  virtual ~ServerScore() = default;
  [[nodiscard]] virtual double score(NodeId node) const = 0;
};

struct MatchQuery {
  PoolId pool;
  std::int32_t gpus = 1;
  Level max_level = Level::CrossRack;  // the highest common ancestor accepted
  const ServerRoom* room = nullptr;    // none: free devices are room
  const ServerScore* score = nullptr;  // none: equals go by id
};

struct Match {
  Level level = Level::Device;
  std::span<const DeviceSet> parts;  // lie in the buffer of the query
};

class TopologyIndex {
 public:
  /// Nothing is free at first.
  explicit TopologyIndex(std::shared_ptr<const Topology> topology);

  [[nodiscard]] const Topology& topology() const noexcept { return *topology_; }
  /// The free devices of a node are these from now on.
  void set_free(NodeId node, std::uint64_t devices);
  [[nodiscard]] std::uint64_t free_mask(NodeId node) const noexcept {
    return leaves_[leaf_of(node)].devices;
  }

  /// Of a cluster, zone, rack or server vertex.
  [[nodiscard]] std::int32_t free_devices(VertexId vertex, PoolId pool) const noexcept;
  /// The most that one child has.
  [[nodiscard]] std::int32_t max_free_child(VertexId vertex, PoolId pool) const noexcept;

  /// `buffer` is overwritten with the answer.
  [[nodiscard]] std::optional<Match> find(const MatchQuery& query,
                                          std::vector<DeviceSet>& buffer) const;
  /// The lowest of the levels server, rack and above that could hold so many devices of the pool if
  /// all were free.
  [[nodiscard]] Level lowest_possible(PoolId pool, std::int32_t gpus) const noexcept;

 private:
  using Parts = std::vector<DeviceSet>;
  struct Member {
    NodeId node;
    std::uint32_t inner = 0;  // vertex of the server's tree
  };
  /// Vertices of one type and level inside of servers, all of one pool, ordered by (free devices of
  /// the vertex, of its server, position).
  struct InnerTier {
    Level level = Level::Server;
    VertexType type = VertexType::Server;
    std::vector<Member> members;
    std::size_t server_counts = 1;  // distinct second keys
    BitIndex set;
    [[nodiscard]] std::size_t key(std::int32_t free, std::int32_t server_free,
                                  std::size_t position) const noexcept;
  };
  struct PoolIndex {
    std::vector<InnerTier> tiers;  // ascending by (level, type)
    CountSet racks;                // by free devices
    CountSet zones;
    std::vector<CountSet> children;       // by vertex down to racks
    std::vector<std::int32_t> free;       // by vertex down to racks
    std::vector<std::uint64_t> has_free;  // by leaf, a bit each: servers with a free device
    std::int32_t largest_server = 0;
    std::int64_t largest_rack = 0;
  };
  /// Where a vertex of a build stands in the tiers of its pool.
  struct Membership {
    std::uint32_t tier = 0;
    std::uint32_t inner = 0;
    std::uint32_t ordinal = 0;  // among the members of the same server in the tier
  };

  /// The servers below a vertex are neighbours among the leaves.
  struct LeafSpan {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  struct Offer;
  void order_leaves();
  [[nodiscard]] std::uint32_t leaf_of(NodeId node) const noexcept {
    return leaf_span_[first_server_ + node.value].begin;
  }
  void add_tiers(PoolId pool);
  void add_members(PoolId pool);
  void size_upper_sets(PoolId pool);
  [[nodiscard]] std::span<const Membership> memberships(NodeId node) const noexcept;
  void move_upper(NodeId node, std::int32_t from, std::int32_t to);

  [[nodiscard]] std::optional<Member> best_member(const InnerTier& tier,
                                                  const MatchQuery& query) const;
  [[nodiscard]] bool holds(const InnerTier& tier, const Member& member,
                           const MatchQuery& query) const;
  [[nodiscard]] std::optional<VertexId> best_upper(const CountSet& set, VertexId first,
                                                   const MatchQuery& query) const;
  [[nodiscard]] Match match_inside(const Member& member, const MatchQuery& query,
                                   Parts& parts) const;
  [[nodiscard]] Match match_above(VertexId vertex, const MatchQuery& query, Parts& parts) const;

  [[nodiscard]] std::uint64_t pick(NodeId node, std::uint32_t inner, std::int32_t count) const;
  void take(VertexId vertex, PoolId pool, std::int32_t count, Parts& parts) const;
  void take_all(VertexId vertex, PoolId pool, Parts& parts) const;

  std::shared_ptr<const Topology> topology_;
  std::uint32_t first_server_;                     // vertex
  std::vector<std::uint32_t> position_;            // of a vertex among its parent's children
  std::vector<std::vector<Membership>> by_build_;  // by (build, pool)
  std::vector<std::uint32_t> member_start_;        // by (node, tier)
  std::size_t most_tiers_ = 0;
  std::vector<LeafSpan> leaf_span_;  // by vertex
  std::vector<DeviceSet> leaves_;    // free devices of the servers, in the order of the tree
  std::vector<PoolIndex> pools_;
};

}  // namespace berth
