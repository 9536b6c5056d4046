// The real world below the engine. It waits for what people, processes and clocks do, lets the feed
// turn that into events (job_feed.h), and hands decisions to the supervisor. It decides nothing
// itself.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/engine.h"
#include "core/engine_log.h"
#include "core/executor.h"
#include "daemon/gates.h"
#include "daemon/job_feed.h"
#include "daemon/job_supervisor.h"
#include "daemon/kind_beliefs.h"
#include "daemon/learnt.h"
#include "daemon/live_rates.h"
#include "daemon/message_queue.h"
#include "daemon/node_power.h"
#include "model/trace.h"
#include "sim/sim_executor.h"
#include "training/training_channel.h"

namespace berth {

class LiveExecutor final : public Executor, public RunObserver {
 public:
  struct Parts {
    Trace& slots;  // as many as the engine will ever see; empty ones
    const Cluster& cluster;
    MessageQueue& messages;
    JobSupervisor& supervisor;
    Gates& gates;
    const LiveClock& clock;
    std::function<std::optional<LedgerJob>(JobNumber)> job;  // as it is on record
    /// A setting was changed: "quota/user/alice", "policy".
    std::function<SettingEffect(const SettingRecord&)> setting;
    /// As it is set now; what was used before is told once.
    std::function<Entitlements()> entitlements;
    /// After a pass, in which nothing is in the middle of changing.
    std::function<void(Time)> pass_done;
    TrainingChannel* training = nullptr;
    RateModel* believed = nullptr;  // absent: every job runs at rate 1; grows by what is learnt
    LearntKinds* learnt = nullptr;  // what jobs have shown of themselves
    LearntLengths* lengths = nullptr;
    std::function<void()> before_writing = {};
    bool policy_minds_rates = false;  // it decides otherwise when a job turns out faster or slower
    SwitchCosts costs = {};           // believed
    /// How fast a running job gets on, for people.
    std::function<void(JobNumber, const ProgressEstimate&)> show_progress = {};
    NodePower* power = nullptr;  // absent: all nodes are on
    bool manages_power = false;  // the policy, or somebody beside it
    /// Newcomers come one in a pass: somebody among many has made an engine fail.
    bool one_at_a_time = false;
    Capabilities can = Capabilities::all();
  };
  using Over = JobFeed::Over;

  explicit LiveExecutor(Parts parts);
  /// Whoever has asked and was not answered is told that it is too late.
  ~LiveExecutor() override;
  LiveExecutor(const LiveExecutor&) = delete;
  LiveExecutor& operator=(const LiveExecutor&) = delete;
  void watch(const Engine& engine) noexcept {
    engine_ = &engine;
    feed_.watch(engine);
  }

  [[nodiscard]] Capabilities capabilities() const noexcept override { return parts_.can; }
  [[nodiscard]] std::optional<Time> advance(Time wakeup) override;
  void collect(Time now, std::vector<Event>& due) override;
  [[nodiscard]] bool calls_for_pass() const override { return calls_for_pass_; }
  void take_notes(std::vector<std::string>& notes) override;
  void repeat(std::string_view note) override;
  [[nodiscard]] StartReceipt start(Time now, const Action& action, const JobTable& jobs) override;
  [[nodiscard]] Time stop(Time now, const Action& action, const JobTable& jobs) override;
  void discard(Time now, const Action& action, const JobTable& jobs) override;
  void set_retry(JobId slot, std::optional<bool> again) override;
  void adjust(Time now, const Action& action, const JobTable& jobs) override;
  void power(Time now, const Action& action) override;
  [[nodiscard]] JobPast past(JobId job) const override;
  [[nodiscard]] Entitlements entitlements() override { return parts_.entitlements(); }
  [[nodiscard]] std::optional<TrainingReport> report(Time now, JobId job,
                                                     const JobTable& jobs) const override;
  void losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
              std::vector<double>& losses) const override;
  void news(Time now, const JobTable& jobs, std::vector<RateChange>& changes) override;
  void rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) override;

  void instant_done(Time now) override;
  /// When a node that boots is ready, if that is known.
  [[nodiscard]] std::optional<Time> ready_about(NodeId node) const {
    return parts_.power != nullptr ? parts_.power->ready_about(node) : std::nullopt;
  }

  /// A slot that no job has yet.
  [[nodiscard]] std::optional<JobId> spare_slot() const { return feed_.slots().spare(); }
  /// In a copy that asks what if: a job that does not compete yet, as it would in a slot of its
  /// own.
  [[nodiscard]] std::optional<JobId> suppose(const LedgerJob& job) { return feed_.suppose(job); }
  /// Why advance() said that nothing will come any more.
  [[nodiscard]] Over over() const noexcept { return feed_.over(); }
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  /// How long the last pass took, from hearing to acting.
  [[nodiscard]] double pass_seconds() const noexcept { return pass_seconds_; }
  [[nodiscard]] std::optional<JobId> slot_of(JobNumber job) const {
    return feed_.slots().slot_of(job);
  }
  [[nodiscard]] JobNumber number_of(JobId slot) const noexcept {
    return feed_.slots().number_of(slot);
  }
  // See JobFeed.
  void begin(const std::vector<LedgerJob>& jobs, const std::set<NodeId>& out_of_service) {
    feed_.begin(jobs, out_of_service);
  }
  void resume(const JobFeed::Resumed& from);
  void renew() noexcept { feed_.renew(); }
  [[nodiscard]] const std::vector<JobNumber>& newcomers() const noexcept {
    return feed_.newcomers();
  }

 private:
  void handle(Message& message);
  [[nodiscard]] Duration whole_of(JobId slot) const;
  void handle_begun(Time now, const JobTable& jobs, std::vector<RateChange>& changes);
  void learn_from(JobId slot, const JobTable& jobs);
  [[nodiscard]] Time leave(Time now, JobNumber number, std::string why);

  Parts parts_;
  const Engine* engine_ = nullptr;
  std::optional<LiveRates> rates_;
  std::vector<std::string> notes_;  // for an engine that is told the same again
  KindBeliefs beliefs_;
  JobFeed feed_;
  std::vector<Message> messages_;
  std::vector<Question> questions_;
  std::vector<JobNumber> progressed_;  // scratch
  std::set<JobId> late_;  // started by the engine, and waited for somebody on their devices
  bool is_new_ = true;    // nobody has been let in yet
  bool calls_for_pass_ = false;
  Time pass_began_{};
  double pass_seconds_ = 0;
  std::size_t rejected_seen_ = 0;
  Error error_;
};

}  // namespace berth
