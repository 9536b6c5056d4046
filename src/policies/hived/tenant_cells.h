// Cells, the devices they stand for, who owns them and which job is on which.
//
// All nodes of one pool and size form a chain: the largest cells are whole nodes, which are halved
// as long as that goes even, then come single devices (8, 4, 2, 1; 6, 3, 1). Jobs are on cells of
// their tenant, bound to physical ones while somebody uses them, or guests on free cells. Nothing
// is started here: the policy takes cells for a job, starts it on their devices, and gives the
// cells back if that fails.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cluster_state.h"
#include "policies/hived/cells.h"

namespace berth::hived {

using TenantId = Id<struct TenantTag>;  // in order of name

/// Cells of one tenant: (devices per cell, number of cells).
using OwnedCells = std::vector<std::pair<std::int32_t, std::int64_t>>;
using Ownership = std::map<std::string, OwnedCells>;

class TenantCells {
 public:
  TenantCells(const Cluster& cluster, const Ownership& ownership);

  [[nodiscard]] std::size_t tenants() const noexcept { return tenants_.size(); }
  [[nodiscard]] std::optional<TenantId> find(std::string_view tenant) const;
  /// Could the tenant hold the gang with all of its cells to itself?
  [[nodiscard]] bool owns_enough(TenantId tenant, const Shape& shape) const;

  /// Chains by pool, then larger nodes first.
  [[nodiscard]] std::uint32_t chains() const noexcept {
    return static_cast<std::uint32_t>(chains_.size());
  }
  [[nodiscard]] PoolId pool(std::uint32_t chain) const noexcept { return chains_[chain].pool; }

  /// Cells of the tenant's own in the chain for a gang: parts of bound ones, else bound for it.
  /// Guests may have to go, even if it fails: see put_out(). False: the job is on no cell.
  [[nodiscard]] bool take_own(JobId job, TenantId tenant, std::uint32_t chain, std::int32_t gpus);
  /// Free cells of the pool: one for a gang that fits into a node, else whole nodes, larger ones
  /// first.
  [[nodiscard]] bool take_as_guest(JobId job, PoolId pool, std::int32_t gpus);
  /// Exactly these devices, each a cell of its own.
  [[nodiscard]] bool take_devices(JobId job, std::span<const Slice> slices);
  /// The whole of these nodes, on which nobody is.
  void take_nodes(JobId job, std::span<const Slice> slices);
  /// The devices of a job's cells, `gpus` in all.
  void slices_of(JobId job, std::int32_t gpus, std::vector<Slice>& slices) const;
  /// The job is on no cell any more; nothing happens if it was on none.
  void leave(JobId job);
  /// Guests whose cells were taken from them since the last call, by JobId. They are on no cell any
  /// more.
  [[nodiscard]] std::set<JobId> put_out();

  /// A node on which nobody is goes out of service, or comes back; may be said again.
  void set_in_service(NodeId node, bool is_up);

 private:
  struct Chain {
    PoolId pool;
    CellLevels levels;
    std::vector<NodeId> nodes;                              // by index of the largest cells
    std::vector<std::vector<std::int64_t>> owned;           // by tenant, level
    std::vector<std::vector<std::set<std::size_t>>> parts;  // by tenant, level: rows of bound_ with
                                                            // a free part of exactly this level
    std::optional<CellShares> shares;
  };
  struct ChainNode {
    std::uint32_t chain = 0;
    std::uint32_t index = 0;
    bool is_out = false;  // of service
  };
  /// A bound cell of a tenant and what is free inside of it.
  struct BoundCell {
    TenantId tenant;
    std::uint32_t chain = 0;
    Cell cell;
    CellTree inside;
    std::size_t jobs = 0;
  };
  struct Place {  // a cell a job is on
    std::uint32_t chain = 0;
    Cell cell;
    std::optional<std::size_t> bound;  // in bound_: the cell counts inside of that one
  };
  using Places = std::vector<Place>;
  using ChainCell = std::pair<std::uint32_t, Cell>;

  void assign_cells(const Ownership& ownership);
  [[nodiscard]] Slice slice(std::uint32_t chain, Cell cell, std::int32_t gpus) const noexcept;
  [[nodiscard]] std::optional<Place> own_cell(TenantId tenant, std::uint32_t chain,
                                              std::int32_t gpus);
  [[nodiscard]] std::optional<std::size_t> tightest_part(TenantId tenant, std::uint32_t chain,
                                                         std::uint32_t level) const;
  [[nodiscard]] std::optional<std::size_t> bind(TenantId tenant, std::uint32_t chain,
                                                std::uint32_t level);
  void list_parts(std::size_t row);
  void unlist_parts(std::size_t row);
  void enter_guest(JobId job, std::uint32_t chain, Cell cell);

  std::vector<std::string> tenants_;  // by TenantId
  std::vector<Chain> chains_;
  Column<NodeId, ChainNode> where_;
  std::vector<std::optional<BoundCell>> bound_;  // rows are used again
  std::set<std::size_t> spare_rows_;             // of bound_
  std::map<JobId, Places> places_;               // of jobs that are on cells
  std::map<ChainCell, JobId> guest_on_;
  std::vector<ChainCell> evicted_;  // cells of guests put out by bindings just made
};

}  // namespace berth::hived
