// The simulated world: it knows what jobs will really do. Time jumps to the next event. A start
// pays its overhead first (devices held, no progress), a preempted job holds its devices while it
// saves, and whoever was granted them starts when the last save ends. Nodes fail and return on a
// given schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "base/time.h"
#include "core/executor.h"
#include "model/cluster.h"
#include "model/trace.h"
#include "perf/rate.h"
#include "sim/neighbourhood.h"
#include "sim/phases.h"

namespace berth {

/// What moving a job about costs it. During a cost the devices are held and nothing progresses.
struct SwitchCosts {
  Duration start{};    // first start
  Duration preempt{};  // saving, before the devices are free
  Duration resume{};   // start after a preemption
  Duration migrate{};  // start elsewhere in the same instant
};

struct NodeOutage {
  NodeId node;
  Time down;
  Time up = kNever;
};

struct SimOptions {
  SwitchCosts costs{};
  /// How jobs really run beside each other and where they stand. Without it every job runs at the
  /// rate of its trace (but for `spread`), and nothing has to be watched.
  const RateModel* truth = nullptr;
  SpreadCost spread = SpreadCost::Ignored;
  std::vector<NodeOutage> outages{};
  Duration boot{std::chrono::seconds{120}};  // from switching a node on until it takes jobs
  double boot_failures = 0;  // share of boots that fail; after two more a node counts as broken
  std::uint64_t boot_seed = 1;
  Capabilities can = Capabilities::all();  // a world that cannot do everything
};

class SimExecutor final : public Executor {
 public:
  SimExecutor(const Trace& trace, const Cluster& cluster, const SimOptions& options);

  [[nodiscard]] Capabilities capabilities() const noexcept override { return options_.can; }
  [[nodiscard]] std::optional<Time> advance(Time wakeup) override;
  [[nodiscard]] bool expects_events() const noexcept override;
  void collect(Time now, std::vector<Event>& due) override;
  [[nodiscard]] bool calls_for_pass() const override { return has_news_; }
  [[nodiscard]] StartReceipt start(Time now, const Action& action, const JobTable& jobs) override;
  [[nodiscard]] Time stop(Time now, const Action& action, const JobTable& jobs) override;
  void adjust(Time now, const Action& action, const JobTable& jobs) override;
  void rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) override;
  void power(Time now, const Action& action) override;
  [[nodiscard]] std::optional<TrainingReport> report(Time now, JobId job,
                                                     const JobTable& jobs) const override;
  void losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
              std::vector<double>& losses) const override;

 private:
  /// What a running job comes to next: its end, the end of its phase, or another noise scale of its
  /// gradient and with it another rate.
  enum class Turn : std::uint8_t { End, Phase, Noise };
  struct Finish {
    Time at;
    JobId job;
    std::uint32_t attempt;
    Turn turn = Turn::End;
  };
  struct Later;  // heap order: earliest first, then smaller job
  struct NodeChange {
    Time at;
    NodeId node;
    EventKind kind;
  };
  [[nodiscard]] Duration overhead_of(const Action& action, const JobTable& jobs) const noexcept;
  void finish_at(Time at, JobId job);
  void plan_end(Time now, const RateChange& change, const JobTable& jobs);
  [[nodiscard]] Event event_of(const Finish& finish);
  [[nodiscard]] std::optional<Duration> steady_left(JobId job, Duration work,
                                                    const JobTable& jobs) const noexcept;
  void collect_boots(Time now, std::vector<Event>& due);
  [[nodiscard]] const Profile& profile_of(JobId job, const JobTable& jobs) const noexcept;
  [[nodiscard]] double progress_of(Time now, JobId job, const JobTable& jobs) const noexcept;
  [[nodiscard]] Time devices_free_at(Time now, const Action& action);
  [[nodiscard]] Rate spread_rate_of(JobId job, std::span<const Slice> slices,
                                    std::int32_t gpus) const;
  [[nodiscard]] Time counted_free_at(Time now, const Action& action);
  void hold_for_save(const Action& action, Time until);
  [[nodiscard]] bool saving_costs() const noexcept {
    return options_.costs.preempt > Duration::zero();
  }
  void drop_stale();

  const Trace& trace_;
  const Cluster& cluster_;
  SimOptions options_;
  std::vector<NodeChange> node_changes_;  // by time, then node
  std::vector<JobId> cancels_;            // by time, then job
  std::size_t next_node_change_ = 0;
  std::size_t next_cancel_ = 0;
  std::size_t next_arrival_ = 0;
  bool has_news_ = false;  // of this instant, beside its events: another rate, a boot that failed
  std::vector<Finish> finishes_;  // a heap; stale entries are dropped when they surface
  std::size_t swept_size_ = 0;
  struct Boot {
    Time at;
    NodeId node;
    std::uint32_t attempt;
    int failed = 0;  // times in a row
  };
  [[nodiscard]] bool fails(const Boot& boot) const;
  std::vector<Boot> boots_;  // by time, then node; those before next_boot_ are over
  std::size_t next_boot_ = 0;
  std::vector<std::uint32_t> boot_attempt_;         // by node: generation of the boot that counts
  std::unordered_map<JobId, std::int32_t> failed_;  // attempts, where only some do; lookup only
  Column<JobId, std::uint32_t> attempt_;            // generation of the finish that counts
  std::vector<Time> device_busy_;  // per node and device, only if saving costs time
  struct PoolSaves {               // Count mode has no devices: the same by number
    std::int64_t idle = 0;         // neither held nor saving
    std::vector<std::pair<Time, std::int32_t>> saving;  // until when, how many
  };
  std::vector<PoolSaves> pool_saves_;
  std::optional<Neighbourhood> neighbours_;  // if there is a truth to rate by
  std::optional<Phases> phases_;             // if phases make a difference
  std::vector<JobId> in_next_phase_;         // since rates were last asked for
  std::vector<Event> phase_events_;          // scratch
  Column<JobId, std::int32_t> gpus_of_;      // held; only if saving costs time
  Column<JobId, PoolId> pool_of_;
  Column<JobId, Time> saved_at_;
};

/// CSV with header `node,down_time,up_time` (seconds; an empty up_time never comes back).
[[nodiscard]] Result<std::vector<NodeOutage>> parse_outages(std::string_view text,
                                                            const std::string& name,
                                                            const Cluster& cluster);

}  // namespace berth
