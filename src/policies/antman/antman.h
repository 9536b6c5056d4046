// AntMan (OSDI 2020): guaranteed jobs run as if alone; opportunistic jobs live on what they leave.
//
//   guaranteed      counts against its tenant's quota, gets whole GPUs as a gang. Where it goes is
//                   decided on a map of guaranteed jobs alone, so that opportunistic jobs cannot
//                   change any of its starts
//   opportunistic   counts against nothing, goes to the least used GPUs that have memory to spare,
//                   idle or held by a guaranteed job; its kernels are held back until the
//                   guaranteed job is within `tol` of its speed alone, its memory beyond the rest
//                   of the device goes to the host; it may be paused, moved or evicted at any time
//
// A job is opportunistic by its kind or queue (`op`), by a negative priority, or because quotas are
// in force and its tenant has none. One that waited `op_upgrade` while its tenant's quota has room
// becomes a guaranteed one.
//
// The local coordinators of the paper adjust every second; here a device whose jobs changed is set
// at once to where they settle (perf/opportunistic.h). Knows nothing of durations; utilisation and
// memory are known from a job's model. An event costs O(log n) plus the jobs of the nodes it
// changes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/policy.h"
#include "policies/antman/coordinator.h"
#include "policies/antman/tenants.h"
#include "policies/kit/blocked_set.h"
#include "policies/kit/job_timers.h"
#include "policies/kit/pass.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"

namespace berth::antman {

struct Options {
  Coordinator::Rules rules;
  std::set<std::string, std::less<>> opportunistic;  // kinds and queues
  Tenants tenants;                                   // with their quotas
  Duration upgrade = std::chrono::minutes{30};       // zero = never
  Duration migration_cost = std::chrono::seconds{2};
};

class Antman final : public Policy {
 public:
  Antman(std::string name, Options options);
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = Need::Profile,
            .preempts = true,
            .shares_devices = true,
            .also_uses = Ability::Throttle | Ability::DeviceMemory,
            .may_refuse = true};
  }
  void begin(const View& view) override;
  [[nodiscard]] std::optional<Refusal> admit(const View& view, JobId job) override;
  void on_arrival(const View& view, JobId job) override;
  void on_departure(const View& view, JobId job) override;
  void on_requeue(const View& view, JobId job) override;
  void on_capacity_change(const View& view, NodeId node) override;
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  enum class Line : std::uint8_t { Head, Tail };
  struct JobRow {
    Role role = Role::Opportunistic;
    bool waits = false;
    TenantId tenant;
    std::int32_t evictions = 0;
  };

  [[nodiscard]] bool is_guaranteed(JobId job) const noexcept {
    return jobs_[job].role == Role::Guaranteed;
  }
  void classify(const View& view, JobId job);
  void enqueue(const View& view, JobId job, Line line);
  void release(const View& view, JobId job);
  void unblock();
  void follow_nodes(const View& view);
  void promote_waiting(const View& view);
  void start_guaranteed(Pass& pass);
  [[nodiscard]] bool try_guaranteed(Pass& pass, JobId job);
  [[nodiscard]] bool try_take(Pass& pass, JobId job, PoolId pool, std::span<const Slice> devices);
  void choose_devices(const View& view, std::vector<Slice>& slices) const;
  void start_opportunistic(Pass& pass);
  [[nodiscard]] bool try_opportunistic(Pass& pass, JobId job, std::int32_t highest);
  void evict(Pass& pass, JobId job);
  void move_due(Pass& pass);

  std::string name_;
  Options options_;
  std::optional<ClusterState> map_;         // of guaranteed jobs alone
  std::optional<Coordinator> coordinator_;  // of everybody who runs
  Column<JobId, JobRow> jobs_;
  WaitingJobs<TenantId> guaranteed_waiting_;
  BlockedSet<TenantId> blocked_tenants_;  // whose first cannot start until somebody leaves
  WaitingByShape guests_waiting_;         // opportunistic jobs
  JobTimers patience_;                    // opportunistic jobs by the time they may be promoted
  std::vector<NodeId> changed_nodes_;     // went down or came up
  std::vector<Slice> slices_;             // scratch
};

}  // namespace berth::antman

namespace berth {

[[nodiscard]] PolicyEntry antman_entry();
[[nodiscard]] PolicyEntry antman_lite_entry();

}  // namespace berth
