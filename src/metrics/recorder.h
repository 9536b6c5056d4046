// The observer of a simulation: writes down what happened, as far as asked. Without options it
// keeps exact totals only (a few additions per action and instant); with them also the action log,
// the intervals in which jobs held devices, and a timeline. Watch the engine before it runs. An
// engine without one pays nothing.
//
//   Recorder recorder{trace, cluster, {.actions = true, .intervals = true, .timeline = true}};
//   Engine engine{{…, .observer = &recorder}};
//   recorder.watch(engine);
//   engine.run();
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/int128.h"
#include "core/action.h"
#include "core/engine.h"
#include "metrics/timeline.h"

namespace berth {

struct RecordOptions {
  bool actions = false;
  bool intervals = false;
  bool timeline = false;
  std::size_t max_actions = 20'000'000;   // then only counted
  std::size_t max_intervals = 1'000'000;  // then the shortest are forgotten
};

struct ActionRow {
  Time at;
  JobId job;
  std::int32_t gpus = 0;
  std::uint32_t first_slice = 0;  // in ActionLog::slices
  std::uint32_t slices = 0;
  ActionKind kind{};
  Reason reason = Reason::None;
};
struct ActionLog {
  std::vector<ActionRow> rows;
  std::vector<Slice> slices;
  std::uint64_t total = 0;  // rows and those beyond the limit
};

enum class IntervalKind : std::uint8_t { Run, Overhead };  // Overhead: held without progress

/// A job held devices of one node; in Count mode (devices == 0) just so many of a pool.
struct Interval {
  JobId job;
  PoolId pool;
  NodeId node;
  std::int32_t gpus = 0;
  std::uint64_t devices = 0;
  Time start;
  Time end;
  IntervalKind kind = IntervalKind::Run;
};
struct IntervalLog {
  std::vector<Interval> rows;  // by start, then job, node and kind
  std::uint64_t total = 0;     // rows and those forgotten
};

/// Exact time integrals; the unit is level x microseconds.
struct Integrals {
  Int128 queue = 0, running = 0, busy = 0;
  Int128 free = 0;               // GPUs of nodes that are up and hold no job
  Int128 stranded = 0;           // free, but too few on their node for the smallest waiting gang
  Int128 idle_while_queued = 0;  // free although some job waits
  std::vector<Int128> held;      // GPU time held by jobs, overhead included, by PoolId
  std::int64_t max_queue = 0;
  Int128 off_nodes = 0;                            // switched off
  Int128 off_milliwatts = 0, boot_milliwatts = 0;  // idle power of nodes that are off, or boot
  std::int64_t power_ons = 0, power_offs = 0;
  std::int64_t wake_ups = 0;      // instants in which nodes were switched on
  std::int64_t boot_delayed = 0;  // jobs that first ran on a node that booted while they waited
  Int128 occupied_nodes = 0;      // with a job on them; 0 where devices are only counted
  bool shares_devices =
      false;  // then `busy` and `held` count a device once, however many are on it
};

class Recorder final : public RunObserver {
 public:
  Recorder(const Trace& trace, const Cluster& cluster, const RecordOptions& options = {});
  /// The engine that it observes; before it runs. It must outlive the recording.
  void watch(const Engine& engine);

  void append(Time now, const Action& action) override;
  void finished(Time now, JobId job, JobState outcome) override;
  void instant_done(Time now) override;

  [[nodiscard]] const RecordOptions& options() const noexcept { return options_; }
  [[nodiscard]] const Integrals& integrals() const noexcept { return integrals_; }
  [[nodiscard]] std::vector<TimelinePoint> timeline() const { return timeline_.points(); }
  /// Each hands its log over and keeps nothing.
  [[nodiscard]] ActionLog take_actions();
  [[nodiscard]] IntervalLog take_intervals();

 private:
  struct Stretch {  // of a running job
    Time held_from{};
    Time work_from{};
    Duration held_before{};  // what the job table had booked when it began
    std::int32_t gpus = 0;
    Allocation place;  // in places_
  };
  struct Pending {  // written, and carried out by the time we are called again
    Time at;
    ActionKind kind{};
    JobId job;
    PoolId pool;
    std::int32_t gpus = 0;
  };
  void settle();  // the pending action has taken effect
  void open(const Pending& action);
  void close(JobId job, Time stopped);
  void keep(JobId job, const Stretch& stretch, Time start, Time end, IntervalKind kind);
  void forget_short_intervals();
  void wait(JobId job, std::int32_t change);
  [[nodiscard]] std::int64_t stranded_gpus() const;
  [[nodiscard]] std::int32_t smallest_waiting() const noexcept;
  void integrate(Time now);
  void note_power(ActionKind kind, const Slice& slice, Time at);
  void note_booted(Time now);
  void note_nodes(const Stretch& stretch, std::int32_t change);
  [[nodiscard]] bool waited_for_boot(const Pending& action, const Stretch& stretch) const;

  const Trace* trace_;
  const Engine* engine_ = nullptr;
  RecordOptions options_;

  ActionLog actions_;
  IntervalLog intervals_;
  Timeline timeline_;
  Integrals integrals_;
  SliceArena places_;
  Column<JobId, Stretch> stretches_;
  std::optional<Pending> pending_;
  std::vector<Slice> pending_slices_;
  std::vector<std::int32_t> sizes_;  // distinct gang sizes of the trace, ascending
  std::vector<std::int32_t> waiting_of_size_;
  std::size_t next_arrival_ = 0;
  std::int64_t queue_ = 0, queued_gpus_ = 0, running_ = 0,
               busy_ = 0;  // counted so far in this instant
  struct Held {            // since the last instant
    Time since{};
    std::int64_t queue = 0, running = 0, busy = 0, free = 0, stranded = 0;
    std::int64_t off_nodes = 0, off_milliwatts = 0, boot_milliwatts = 0, occupied_nodes = 0;
  } levels_;
  std::int64_t off_nodes_ = 0, off_milliwatts_ = 0, boot_milliwatts_ = 0, occupied_nodes_ = 0;
  std::vector<NodeId> booting_;
  std::vector<Time> booted_;                // by node: when it was last ready after a boot
  std::vector<std::int32_t> jobs_of_node_;  // that hold devices there
  std::optional<Time> last_wake_up_;
  std::vector<std::int64_t> busy_of_pool_;  // since the last instant, if devices are shared
};

}  // namespace berth
