// Runs one engine after another. An engine runs until it is told to stop or to begin again: with
// another policy, another description of the cluster, or more slots. A new one takes over what
// runs, just as after a restart of the whole program. An engine that fails is replaced; jobs and
// policies that make engines fail are set aside.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "core/engine_log.h"
#include "core/policy.h"
#include "daemon/energy_meter.h"
#include "daemon/engine_memory.h"
#include "daemon/job_supervisor.h"
#include "daemon/learnt.h"
#include "daemon/live_abilities.h"
#include "daemon/live_executor.h"
#include "daemon/message_queue.h"
#include "daemon/scheduler_options.h"
#include "daemon/share_accounts.h"
#include "daemon/status_board.h"
#include "daemon/training_gateway.h"
#include "store/store.h"
#include "wire/why.h"

namespace berth {

/// What a running scheduler says of itself.
struct SchedulerFigures {
  std::uint64_t passes = 0;
  double last_pass_seconds = 0, worst_pass_seconds = 0;
  std::uint64_t engines = 0;     // begun so far
  std::uint64_t failures = 0;    // of these, ended by an exception or a broken invariant
  bool has_fallen_back = false;  // to the plainest policy, because the chosen one failed
  std::int64_t gpus = 0, gpus_free = 0;
  std::string policy;
  bool may_refuse = false;  // the policy, jobs that fit the cluster
  std::string setting{};    // "policy", as the engine was made of it; empty: there was none
};

class Scheduler {
 public:
  struct Parts {
    Store& store;
    StatusBoard& board;
    JobSupervisor& supervisor;
    MessageQueue& messages;
    const LiveClock& clock;
    const Cluster& cluster;
    SchedulerOptions options;
    TrainingChannel* training = nullptr;
    TrainingHub* hub = nullptr;  // what is learned there, for the CPU tuner
    Logger* log = nullptr;
    NodePower* power = nullptr;  // absent: all nodes are on
    EnergyMeter* energy = nullptr;
    HostTraits host{};
    /// A test puts something of its own around a policy.
    std::function<std::unique_ptr<Policy>(std::unique_ptr<Policy>)> around_policy{};
  };
  explicit Scheduler(Parts parts)
      : parts_(std::move(parts)), shares_({parts_.board, parts_.store, parts_.clock}) {}

  /// Until a StopOrder. An error: the journal cannot be written, or no policy can be made.
  /// An engine that fails is thrown away, and the next one begins from what is on record: without
  /// the job that made it fail, if it can be told which one that was; with newcomers one at a time,
  /// so that it can be told; in the end with the plainest policy.
  [[nodiscard]] Result<void> run();

  /// At once; in the engine's thread. The engine goes on unless it would have been made otherwise:
  /// then a new one takes over with the next pass.
  void set_options(const SchedulerOptions& options);
  [[nodiscard]] SchedulerFigures figures() const;
  /// Between two passes, in the engine's thread only.
  [[nodiscard]] Why explain(const JobView& job, bool may_see_all) const;
  /// What the policy would say if this job came now; nothing: it would take it, or could not be
  /// asked. Between two passes, in the engine's thread only.
  /// What would keep a job of this request waiting if it came now, in the engine's thread.
  [[nodiscard]] Why foresee(const JobSpec& spec) const;
  [[nodiscard]] std::optional<std::string> refusal_of(const JobSpec& spec) const;

 private:
  enum class Next : std::uint8_t { Stop, Renew };
  [[nodiscard]] Result<Next> run_engine();
  [[nodiscard]] EngineMemory recall(const PolicyChoice& chosen);
  void log_replayed(std::size_t passes) const;
  [[nodiscard]] NodeService service_of(NodeId node) const;
  [[nodiscard]] JobSupervisor::Rules rules() const;
  [[nodiscard]] Result<Next> begin_anew(const std::string& why, std::optional<JobNumber> suspect);
  void fall_back(const std::string& why);
  void trust_again();
  [[nodiscard]] PolicyChoice choice() const;
  [[nodiscard]] std::set<NodeId> out_of_service() const;
  [[nodiscard]] SettingEffect apply(const SettingRecord& setting, Gates& gates);
  void learn(Estimator& estimator, Trace& trace, std::int64_t until_wall) const;
  void pass_done(Time now);
  void tell_held_starts();
  void show(JobNumber job, const ProgressEstimate& progress);
  void keep_what_was_learnt();
  void tell_meter(Time now);

  Parts parts_;
  struct Running {  // while an engine runs
    Engine& engine;
    Trace& slots;
    LiveExecutor& executor;
    Gates& gates;
    EngineMemory& memory;
  };
  std::optional<Running> running_;
  struct Trust {                      // after engines that failed
    std::vector<JobNumber> blamed{};  // set aside under this policy
    int unblamed = 0;                 // failures that no job could be blamed for
    bool is_careful = false;          // newcomers one at a time
    bool has_fallen_back = false;
    std::uint64_t good_passes = 0;  // since the last failure
  } trust_;
  bool is_first_ = true;       // engine of this life: the last one of another may have left a log
  PolicyChoice running_with_;  // while an engine runs
  ShareAccounts shares_;
  bool policy_retries_ = false;  // the policy says whether a failed attempt is repeated
  std::optional<LearntKinds> learnt_;
  std::map<JobNumber, std::string> held_starts_;  // what the board was told of them
  mutable std::mutex figures_mutex_;
  SchedulerFigures figures_;
};

/// "node/n1" is "drained: why", "down: why"; anything else is up.
[[nodiscard]] NodeService node_service_from(const std::string& value) noexcept;

}  // namespace berth
