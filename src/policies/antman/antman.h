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
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "perf/opportunistic.h"
#include "policies/antman/spare_devices.h"
#include "policies/antman/tenants.h"
#include "policies/common/job_heap.h"
#include "policies/kit/waiting_jobs.h"
#include "policies/policy_entry.h"

namespace berth::antman {

struct Options {
  Interference interference;
  std::set<std::string, std::less<>> opportunistic;  // kinds and queues
  Tenants tenants;                                   // with their quotas
  double busiest = 0.8;            // u_max: utilisation of a device that is joined
  std::int32_t guests_beside = 1;  // opportunistic jobs beside a guaranteed one
  std::int32_t guests_alone = 3;   // and on a device without
  std::int32_t reserve_mib = 500;
  std::int32_t least_mib = 2048;                 // m_min: memory a device must have to spare
  Duration upgrade = std::chrono::minutes{30};   // zero = never
  Duration starving = std::chrono::seconds{60};  // short of memory until evicted
  Duration crawling = std::chrono::minutes{5};   // held back until moved; zero = never
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
    bool guaranteed = false;
    bool waits = false;
    bool alone = false;  // evicted too often: no guaranteed job beside it
    TenantId tenant;
    Time waits_since{};
    Time starves_since = kNever;  // short of memory
    Time crawls_since = kNever;   // held back
    std::int32_t evictions = 0;
    std::vector<Slice> devices;  // while it runs
    PoolId pool;
  };
  struct TenantRow {
    JobHeap waiting;
    bool blocked = false;  // its first job cannot start until a guaranteed job leaves
  };
  using Due = std::pair<Time, JobId>;

  // antman.cpp: who waits, who starts
  void classify(const View& view, JobId job);
  void enqueue(const View& view, JobId job, Line line);
  void release(const View& view, JobId job);
  void unblock();
  void follow_nodes(const View& view);
  void promote_waiting(const View& view);
  void start_guaranteed(const View& view, Plan& plan);
  [[nodiscard]] bool try_guaranteed(const View& view, Plan& plan, JobId job);
  void choose_devices(const View& view, std::vector<Slice>& slices);
  [[nodiscard]] bool take_devices(const View& view, Plan& plan, JobId job);
  void start_opportunistic(const View& view, Plan& plan);
  [[nodiscard]] bool try_opportunistic(const View& view, Plan& plan, JobId job,
                                       std::int32_t highest);
  void evict_due(const View& view, Plan& plan);
  void evict(const View& view, Plan& plan, JobId job);
  void move_due(const View& view, Plan& plan);

  // coordinator.cpp: how jobs get on with each other
  struct Device {
    double guaranteed = 0;      // compute the guaranteed job wants
    double wanted = 0;          // and the opportunistic ones
    std::int64_t left_mib = 0;  // memory for the opportunistic ones
    double working_mib = 0;     // and what they want of it
    std::int32_t guests = 0;
    bool is_held = false;  // by a guaranteed job
  };
  [[nodiscard]] Device look_at(const View& view, NodeId node, std::int32_t device) const;
  [[nodiscard]] double utilisation(const View& view, JobId job) const;
  [[nodiscard]] std::int32_t working_set_mib(const View& view, JobId job) const;
  [[nodiscard]] std::int32_t memory_share(const View& view, JobId job, const Device& device) const;
  void mark(std::span<const Slice> slices);
  void settle(const View& view, Plan& plan);
  [[nodiscard]] Terms settled_terms(const View& view, JobId job) const;
  void note_state(const View& view, JobId job, const Terms& terms);
  void offer_devices(const View& view, NodeId node);
  void make_room(const View& view, Plan& plan, std::span<const Slice> slices, JobId comer);
  void collect_guests(const View& view, std::span<const Slice> slices, std::vector<JobId>& jobs);

  std::string name_;
  Options options_;
  std::optional<ClusterState> map_;    // of guaranteed jobs alone
  std::vector<SpareDevices> spare_;    // by pool
  std::vector<JobRow> jobs_;           // by JobId
  std::vector<TenantRow> waiting_;     // guaranteed jobs, by tenant
  WaitingByShape guests_waiting_;      // opportunistic jobs
  std::vector<bool> blocked_;          // by shape: no place for its first until something leaves
  std::set<Due> patience_;             // opportunistic jobs by the time they may be promoted
  std::set<Due> starving_;             // by the time they are evicted
  std::set<Due> crawling_;             // by the time they may be moved
  std::vector<NodeId> changed_nodes_;  // went down or came up
  std::vector<NodeId> marked_;         // somebody came or left
  std::vector<JobId> here_;            // scratch
  std::vector<Slice> slices_;          // scratch
};

}  // namespace berth::antman

namespace berth {

[[nodiscard]] PolicyEntry antman_entry();
[[nodiscard]] PolicyEntry antman_lite_entry();

}  // namespace berth
