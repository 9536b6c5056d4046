// Synergy: GPUs in any order, cores and host memory by measured sensitivity instead of in
// proportion to GPUs.
//
// Rounds of 300 s aligned to time zero. At each the jobs are ordered (fifo, srtf, las, ftf), taken
// while GPUs suffice, and packed (see packing.h) with demands from the believed rates; a job that
// is not taken again gives its devices back, one that is stays where it is if it can. Between
// rounds nothing starts, unless `start` says so. Guarantee of `tune`: nobody is slower than with
// its proportional share.
//
// Host memory caches the data sets of models whose profile tells of one; it is packed in pools
// whose servers all say how much they have. What the trace asks for of cores and memory gives way.
//
// Deviation from the paper: running jobs keep their servers, since moving all of them every round
// would cost more than cores are worth. Pools are packed one after the other.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/policy_entry.h"
#include "policies/synergy/packing.h"

namespace berth {

enum class SynergyOrder : std::uint8_t { Fifo, Srtf, Las, Ftf };

struct SynergyOptions {
  SynergyOrder order = SynergyOrder::Fifo;
  SynergyMode mode = SynergyMode::Tune;
  bool optimal_demands = false;  // demands from the integer program, then packed as in tune
  std::int64_t solver_nodes = 1000;
  Duration round = std::chrono::seconds{300};
  StartRule start = StartRule::InRounds;
};

class Synergy final : public Policy {
 public:
  Synergy(std::string name, const SynergyOptions& options)
      : name_(std::move(name)), options_(options), packer_(options.mode), rounds_(options.round) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] PolicyTraits traits() const noexcept override {
    return {.needs = needs_estimates() ? Need::Profile | Need::RunTime : Need::Profile,
            .preempts = true,
            .shares_devices = true,
            .sets_cores = true,
            .sets_memory = true};
  }
  void begin(const View& view) override;
  void on_arrival(const View& view, JobId job) override {
    active_.insert(job);
    rounds_.stir(view.now);
  }
  void on_departure(const View& view, JobId job) override {
    active_.erase(job);
    rounds_.stir(view.now);
  }
  void on_requeue(const View& view, JobId) override { rounds_.stir(view.now); }
  void on_capacity_change(const View& view, NodeId) override { rounds_.stir(view.now); }
  void decide(const View& view, Plan& plan, Rng& rng) override;
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override;

 private:
  /// Jobs alike to the packing.
  struct Kind {
    ProfileId profile;
    std::int32_t gpus = 1;
    std::int32_t batch = 0;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  struct Pool {
    SynergyAxes axes;
    bool packs_memory = false;                  // all its servers say how much they have
    std::vector<NodeId> nodes;                  // of all its servers
    std::map<Kind, Sensitivity> sensitivities;  // their addresses stay
  };
  [[nodiscard]] bool needs_estimates() const noexcept {
    return options_.order == SynergyOrder::Srtf || options_.order == SynergyOrder::Ftf;
  }
  void sort_jobs(const View& view);
  [[nodiscard]] double key_of(const View& view, JobId job) const;
  void pack_pool(const View& view, Plan& plan, PoolId pool);
  void start_waiting(const View& view, Plan& plan);
  void add_to_pool(const View& view, Plan& plan, PoolId pool);
  [[nodiscard]] bool has_room_for_any(const View& view, const Plan& plan) const;
  void list_servers(const View& view, const Pool& pool);
  void choose_jobs(const View& view, const Plan& plan, PoolId pool);
  void describe_jobs(const View& view, const Plan& plan, PoolId pool);
  void use_optimal_demands(const SynergyAxes& axes);
  [[nodiscard]] const Sensitivity& sensitivity(const View& view, PoolId pool, JobId job);
  void carry_out(const View& view, Plan& plan, PoolId pool, std::span<const SynergyGrant> grants);
  [[nodiscard]] bool stays(std::size_t index, const SynergyGrant& grant) const;
  [[nodiscard]] bool try_start_as_packed(Plan& plan, PoolId pool, JobId job,
                                         const SynergyGrant& grant);
  void set_share(const View& view, Plan& plan, PoolId pool, JobId job, const SynergyGrant& grant);
  [[nodiscard]] SynergyAxes axes_of(const Cluster& cluster, const Pool& pool) const;
  [[nodiscard]] SynergyAxes axes_for(const Cluster& cluster, const Pool& pool,
                                     std::int32_t gpus) const;
  [[nodiscard]] std::int32_t cores_milli(const View& view, const SynergyGrant& grant) const;

  std::string name_;
  SynergyOptions options_;
  SynergyPacker packer_;
  Rounds rounds_;  // settled while nothing runs: no round would differ before the next event
  std::set<JobId> active_;
  std::vector<Pool> pools_;
  std::vector<std::uint32_t> server_of_node_;  // position in servers_, while its pool is packed
  std::vector<bool> taken_;                    // scratch, by JobId: runs in this round
  std::vector<JobId> order_;                   // scratch
  std::vector<JobId> chosen_;                  // scratch: jobs of the pool being packed
  std::vector<NodeId> nodes_;                  // scratch: its servers that are up
  std::vector<SynergyServer> servers_;         // scratch: in step with nodes_
  std::vector<SynergyJob> jobs_;               // scratch: in step with chosen_
  std::vector<SynergyPart> stays_;             // scratch: where they run
  std::vector<Slice> slices_;                  // scratch
};

[[nodiscard]] PolicyEntry synergy_entry();

}  // namespace berth
