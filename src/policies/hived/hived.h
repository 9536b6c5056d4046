// HiveD: tenants own cells, not numbers of GPUs (Zhao et al., OSDI 2020).
//
// A tenant's guaranteed jobs go in order of arrival to cells of its own: a part of one that is
// bound already, else its smallest unbound cell that is large enough is bound to a physical one. As
// the assignment is safe from the start, that never fails: the tenant waits as long as it would in
// a private cluster, whatever others do. Everybody else (tenants without cells, jobs larger than
// any cell of their tenant) is a guest on free cells, taken from the other end, and is preempted
// when a cell is bound where it runs.
//
// Tenant: the job's group, else its user. A gang larger than a node takes several whole nodes. A
// gang that is not the size of a cell takes the next larger one. Nodes out of service take their
// cells with them; the guarantee waits until they are back. Devices are chosen here, not by
// --placement.
//
// Whom it takes over from another policy stays on its devices as a guest, wherever they are in
// cells, until it ends or a cell is bound there.
//
// A decision costs O(log n) for each job that starts, and a look at each tenant and each request
// shape that waits, however many jobs do.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "policies/hived/cell_map.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"

namespace berth::hived {

/// Cells of one tenant: (devices per cell, number of cells).
using OwnedCells = std::vector<std::pair<std::int32_t, std::int64_t>>;
using Ownership = std::map<std::string, OwnedCells>;

class Hived final : public Policy {
 public:
  explicit Hived(Ownership ownership) : ownership_(std::move(ownership)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "hived"; }
  /// It shares nothing, but it cannot do without devices.
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.preempts = true, .shares_devices = true};
  }

  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;

 private:
  /// A bound cell of a tenant and what is free inside of it.
  struct BoundCell {
    std::uint32_t tenant = 0;
    std::uint32_t chain = 0;
    Cell cell;
    CellTree inside;
    std::size_t jobs = 0;
  };
  struct Place {  // a cell a job is on
    std::uint32_t chain = 0;
    Cell cell;
    std::optional<std::size_t> bound;  // in bound_: a guaranteed job
  };
  using Places = std::vector<Place>;

  void assign_cells();
  [[nodiscard]] std::optional<std::uint32_t> tenant_of(const View& view, JobId job) const;
  /// Could the tenant hold the gang with all of its cells to itself?
  [[nodiscard]] bool owns_enough(std::uint32_t tenant, const Shape& shape) const;
  /// The tenant in whose cells the job may run; nothing: it can only be a guest.
  [[nodiscard]] std::optional<std::uint32_t> guarantor_of(const View& view, JobId job) const;
  void stop_waiting(const View& view, JobId job);
  void leave(JobId job);
  void follow_nodes(const View& view);
  void start_guests(const View& view, Plan& plan);
  [[nodiscard]] bool start_guaranteed(const View& view, Plan& plan, JobId job,
                                      std::uint32_t tenant);
  [[nodiscard]] std::optional<Place> own_cell(std::uint32_t tenant, std::uint32_t chain,
                                              std::int32_t gpus);
  [[nodiscard]] std::optional<std::size_t> tightest_part(std::uint32_t tenant, std::uint32_t chain,
                                                         std::uint32_t level) const;
  void list_parts(std::size_t row);
  void unlist_parts(std::size_t row);
  [[nodiscard]] std::optional<std::size_t> bind(std::uint32_t tenant, std::uint32_t chain,
                                                std::uint32_t level);
  [[nodiscard]] bool keep_found(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool start_guest(const View& view, Plan& plan, JobId job);
  [[nodiscard]] bool start_loose(Plan& plan, JobId job);
  [[nodiscard]] bool start_on(Plan& plan, JobId job, PoolId pool, std::int32_t gpus, Reason reason);
  void evict(const View& view, Plan& plan);

  Ownership ownership_;
  std::vector<std::string> tenants_;  // by index, in order of name
  std::optional<CellMap> map_;
  std::vector<std::vector<std::vector<std::int64_t>>> owned_;  // by chain, tenant, level
  std::vector<CellShares> shares_;                             // by chain
  std::vector<std::optional<BoundCell>> bound_;                // rows are used again
  std::set<std::size_t> spare_rows_;                           // of bound_
  // Rows of bound_ with a free part of exactly this level, by chain, tenant, level.
  std::vector<std::vector<std::vector<std::set<std::size_t>>>> parts_;
  std::vector<std::set<JobId>> waiting_;  // for cells of their own, by tenant
  WaitingByShape may_be_guests_;          // all who wait, in order of arrival
  std::vector<JobId> newcomers_;          // since the last decision
  std::map<JobId, Places> places_;        // of jobs that run
  std::map<std::pair<std::uint32_t, Cell>, JobId> guest_on_;
  std::vector<std::pair<std::uint32_t, Cell>> evicted_;  // guests put out by bindings just made
  std::vector<NodeId> changed_;                   // went down or came up since the last decision
  std::vector<bool> out_of_service_;              // by NodeId
  Places chosen_;                                 // scratch: of the job being started
  std::vector<std::pair<JobId, ShapeId>> heads_;  // scratch: first of each shape, as a heap
  std::vector<Slice> slices_;                     // scratch
};

}  // namespace berth::hived

namespace berth {

[[nodiscard]] PolicyEntry hived_entry();

}  // namespace berth
