// Where leases go: the servers of a pool cut into aligned blocks, as a buddy allocator does.
//
// A lease of up to a server's power of two is rounded up to the next power of two, a larger one to
// whole servers. Then any set of leases within the capacity can be placed with each of them in one
// aligned block (or on whole servers): larger ones first, free space is always made of blocks of
// the current size. So counting GPUs is enough to plan, and no lease is ever spread.
//
// A pool has one size of server, that which most of its GPUs are in. A node that is larger counts
// as several; devices left over, and smaller nodes, are not promised to anybody. If the size is no
// power of two, the largest one below it is what a server holds in small leases.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster_state.h"

namespace berth {

/// Devices of one server, as bits from its first device on.
struct BuddyBlock {
  std::uint32_t server = 0;
  std::uint64_t devices = 0;
  friend bool operator==(const BuddyBlock&, const BuddyBlock&) = default;
};
using BuddyBlocks = std::vector<BuddyBlock>;

class BuddyServers {
 public:
  BuddyServers() = default;
  BuddyServers(const Cluster& cluster, PoolId pool);

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] std::int32_t gpus_each() const noexcept { return gpus_; }
  /// What a lease of so many GPUs counts.
  [[nodiscard]] std::int64_t rounded(std::int32_t gpus) const noexcept;
  /// Of servers that are up, in the same count.
  [[nodiscard]] std::int64_t capacity(const ClusterState& state) const noexcept;
  [[nodiscard]] NodeId node(std::uint32_t server) const noexcept { return servers_[server].node; }
  /// Devices of the server that are set in a mask of its node.
  [[nodiscard]] std::uint64_t of_node(std::uint32_t server, std::uint64_t devices) const noexcept {
    return (devices >> servers_[server].offset) & all_;
  }
  [[nodiscard]] std::uint64_t all() const noexcept { return all_; }
  /// The whole block, or the whole servers, around devices that a lease of this size has; nothing
  /// if they lie across blocks.
  [[nodiscard]] std::optional<BuddyBlocks> around(std::span<const Slice> slices,
                                                  std::int32_t gpus) const;
  /// The first `gpus` devices of the blocks as slices, one for each node.
  [[nodiscard]] std::vector<Slice> slices(const BuddyBlocks& blocks, std::int32_t gpus) const;

  /// Masks by server; what a block costs is what it would push aside.
  struct Map {
    std::vector<std::uint64_t> taken;    // not available
    std::vector<std::uint64_t> settled;  // leases that would rather stay
    std::vector<std::uint64_t> lent;     // jobs without a promise
  };
  /// The cheapest place for a lease: pushes the fewest settled leases aside, then the fewest
  /// other jobs, then leaves the largest blocks whole; ties: lower server, lower devices.
  [[nodiscard]] std::optional<BuddyBlocks> find(const Map& map, std::int32_t gpus) const;

 private:
  struct Server {
    NodeId node;
    std::int32_t offset = 0;  // its first device on the node
  };
  [[nodiscard]] bool is_small(std::int32_t gpus) const noexcept { return gpus <= slots_; }
  [[nodiscard]] std::optional<BuddyBlocks> find_block(const Map& map, std::int32_t size) const;
  [[nodiscard]] std::optional<BuddyBlocks> find_whole(const Map& map, std::size_t count) const;
  [[nodiscard]] std::optional<std::uint32_t> server_of(const Slice& slice) const noexcept;

  std::int32_t gpus_ = 0;   // of a server
  std::int32_t slots_ = 0;  // of them in small leases: a power of two
  std::uint64_t all_ = 0;   // a mask of gpus_
  std::vector<Server> servers_;
  std::vector<std::uint32_t> first_of_node_;  // by NodeId; size() if the node has none
};

/// A lease to place in the coming term.
struct BuddyTenant {
  std::int32_t gpus = 1;
  std::optional<BuddyBlocks> own;  // where it is now, if that is a legal place
};

/// Places for all tenants, in their order: larger ones first, everybody stays where possible. A
/// tenant without a place (which cannot be while the rounded sizes fit) has none.
[[nodiscard]] std::vector<std::optional<BuddyBlocks>> place_tenants(
    const BuddyServers& servers, std::span<const BuddyTenant> tenants, BuddyServers::Map map);

}  // namespace berth
