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

#include <cstdint>
#include <set>
#include <vector>

#include "base/rounds.h"
#include "core/policy.h"
#include "policies/kit/memo.h"
#include "policies/kit/pass.h"
#include "policies/policy_entry.h"
#include "policies/synergy/packing.h"

namespace berth::synergy {

enum class Order : std::uint8_t { Fifo, Srtf, Las, Ftf };

/// The demands of jobs: by their sensitivity, or from the integer program.
enum class Demands : std::uint8_t { Sensitivity, Optimum };

struct Options {
  Order order = Order::Fifo;
  Mode mode = Mode::Tune;
  Demands demands = Demands::Sensitivity;
  std::int64_t solver_nodes = 1000;
  Duration round = std::chrono::seconds{300};
  StartRule start = StartRule::InRounds;
};

class Synergy final : public Policy {
 public:
  explicit Synergy(const Options& options)
      : options_(options), packer_(options.mode), rounds_(options.round) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "synergy"; }
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
  [[nodiscard]] std::optional<Time> next_wakeup(const View& view) override {
    return rounds_.wakeup(view.now);
  }

 private:
  struct Pool {
    Axes axes;
    std::vector<NodeId> nodes;
    std::vector<Server> servers;  // in step with nodes; without memory unless all say how much
    Memo<KindId, Sensitivity> sensitivities;
  };
  [[nodiscard]] bool needs_estimates() const noexcept {
    return options_.order == Order::Srtf || options_.order == Order::Ftf;
  }
  void sort_jobs(const View& view);
  [[nodiscard]] double key_of(const View& view, JobId job) const;
  /// Whether a running job may be moved or stopped for others.
  enum class Running : std::uint8_t { MayMove, Stays };
  void pack_pools(Pass& pass, Running running);
  void pack_pool(Pass& pass, PoolId pool, Running running);
  [[nodiscard]] bool has_room_for_any(const Pass& pass) const;
  [[nodiscard]] bool all_stay(const Plan& plan, PoolId pool, std::span<const Grant> grants) const;
  void list_servers(const View& view, const Pool& pool);
  void choose_jobs(const Pass& pass, PoolId pool);
  void describe_jobs(const Pass& pass, PoolId pool);
  void use_optimal_demands(const Axes& axes);
  [[nodiscard]] const Sensitivity& sensitivity(const View& view, PoolId pool, JobId job);
  void carry_out(Pass& pass, PoolId pool, std::span<const Grant> grants);
  [[nodiscard]] bool stays(std::size_t index, const Grant& grant) const;
  [[nodiscard]] bool try_start_as_packed(Plan& plan, PoolId pool, JobId job, const Grant& grant);
  void set_share(Pass& pass, PoolId pool, JobId job, const Grant& grant);
  [[nodiscard]] std::int32_t cores_milli(const View& view, const Grant& grant) const;

  Options options_;
  Packer packer_;
  Rounds rounds_;  // settled while nothing runs: no round would differ before the next event
  std::set<JobId> active_;
  Column<PoolId, Pool> pools_;
  Column<NodeId, std::uint32_t> server_at_;  // position in servers_, while its pool is packed
  Column<JobId, bool> taken_;                // scratch: runs in this round
  std::vector<JobId> order_;                 // scratch
  std::vector<JobId> chosen_;                // scratch: jobs of the pool being packed
  std::vector<NodeId> nodes_;                // scratch: its servers that are up
  std::vector<Server> servers_;              // scratch: in step with nodes_
  std::vector<Job> jobs_;                    // scratch: in step with chosen_
  std::vector<Part> stays_;                  // scratch: where they run
  std::vector<Slice> slices_;                // scratch
};

}  // namespace berth::synergy

namespace berth {

[[nodiscard]] PolicyEntry synergy_entry();

}  // namespace berth
