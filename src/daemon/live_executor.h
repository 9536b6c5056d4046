// The real world below the engine. It waits for what people, processes and clocks do, gives jobs
// that may compete a slot of the engine's trace, and hands decisions to the supervisor. It decides
// nothing itself.
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
#include "daemon/job_supervisor.h"
#include "daemon/learnt.h"
#include "daemon/live_rates.h"
#include "daemon/message_queue.h"
#include "daemon/node_power.h"
#include "model/trace.h"
#include "sim/sim_executor.h"
#include "training/training_channel.h"

namespace berth {

/// Drained: takes no more jobs; those on it go on, and the engine forgets them.
enum class NodeService : std::uint8_t { Up, Drained, Down };
struct SettingEffect {
  bool renew = false;   // begin again with a new engine
  bool shares = false;  // people are entitled to something else
  std::optional<std::pair<NodeId, NodeService>> node{};
};

/// To an engine.
[[nodiscard]] JobState state_of(Outcome outcome);

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
  enum class Over : std::uint8_t { No, Stop, Renew, Failed };

  explicit LiveExecutor(Parts parts);
  /// Whoever has asked and was not answered is told that it is too late.
  ~LiveExecutor() override;
  LiveExecutor(const LiveExecutor&) = delete;
  LiveExecutor& operator=(const LiveExecutor&) = delete;
  void watch(const Engine& engine) noexcept { engine_ = &engine; }

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
  [[nodiscard]] std::optional<JobId> spare_slot() const {
    if (next_slot_ == numbers_.size()) return std::nullopt;
    return JobId{next_slot_};
  }
  /// In a copy that asks what if: a job that does not compete yet, as it would in a slot of its
  /// own.
  [[nodiscard]] std::optional<JobId> suppose(const LedgerJob& job);
  /// Why advance() said that nothing will come any more.
  [[nodiscard]] Over over() const noexcept { return over_; }
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  /// How long the last pass took, from hearing to acting.
  [[nodiscard]] double pass_seconds() const noexcept { return pass_seconds_; }
  [[nodiscard]] std::optional<JobId> slot_of(JobNumber job) const;
  [[nodiscard]] JobNumber number_of(JobId slot) const noexcept { return numbers_[slot.value]; }
  /// Jobs that are not over, before the run: those that run are brought in one by one, in the order
  /// in which they were started, so that a policy can keep them where they are.
  void begin(const std::vector<LedgerJob>& jobs, const std::set<NodeId>& out_of_service);
  /// The same for an engine that stands where the last one stood, jobs and all: what has happened
  /// since becomes news for it.
  struct Resumed {
    const std::vector<LedgerJob>& jobs;
    std::function<NodeService(NodeId)> service_of;
    std::function<EngineLog::Reasons(JobId)> reasons_of;
    bool has_new_shares = false;  // set, and the engine has not heard of it
  };
  void resume(const Resumed& from);
  /// The engine begins again with the next pass.
  void renew() noexcept {
    if (over_ == Over::No) over_ = Over::Renew;
  }
  /// Jobs that the engine was told of in this pass: if it fails, one of them may be why.
  [[nodiscard]] const std::vector<JobNumber>& newcomers() const noexcept { return newcomers_; }

 private:
  void handle(Message& message);
  void handle_record(const Committed& committed);
  void handle_wish(const WishRecord& wish);
  void handle_end(const AttemptEnd& end);
  void kill(JobNumber job, Reason reason);
  void tell_end(const AttemptEnd& end);
  void handle_rejected(const RejectedJob& rejected);
  void ask_gates(Time now);
  void bring_in(JobNumber job);
  void set_aside(JobNumber job, std::string why);
  [[nodiscard]] bool has_all_devices(const Attempt& attempt) const;
  void set_node(NodeId node, NodeService service);
  void end_without_attempt(JobNumber job, Outcome outcome, std::string why);
  void end_unsatisfiable(JobNumber job, const std::string& why);
  void give_up_slot(JobNumber job);
  void emit(EventKind kind, JobId slot, JobState outcome = JobState::Completed);
  void fill(TraceJob& slot, const LedgerJob& job);
  void find_slots();
  void catch_up(const std::vector<LedgerJob>& jobs);
  void tell_terms(JobNumber job, JobId slot);
  [[nodiscard]] bool has_news(JobId slot) const;
  void let_leave(JobNumber job, JobId slot, Reason reason);
  void find_devices(JobNumber job, JobId slot, Reason reason);
  void adopt_or_leave(const std::set<NodeId>& out_of_service);
  [[nodiscard]] bool is_changed(JobId slot, const LedgerJob& job);
  [[nodiscard]] Duration whole_of(JobId slot) const;
  [[nodiscard]] const LearntKind* learnt_of(const JobSpec& spec) const;
  void believe_kind(JobId slot, const JobSpec& spec);
  void handle_begun(Time now, const JobTable& jobs, std::vector<RateChange>& changes);
  void learn_from(JobId slot, const JobTable& jobs);
  [[nodiscard]] Duration cost_of(const Action& action, const JobTable& jobs) const;
  [[nodiscard]] Time leave(Time now, JobNumber number, std::string why);

  Parts parts_;
  const Engine* engine_ = nullptr;
  std::optional<LiveRates> rates_;
  std::map<std::string, std::pair<std::uint32_t, ProfileId>> believed_kinds_;  // version, profile
  std::vector<std::string> notes_;                   // for an engine that is told the same again
  std::unordered_map<JobId, ProfileId> profile_of_;  // learnt ones
  std::map<JobNumber, Time> leaves_since_;           // preempted, from when on it may go
  std::vector<JobNumber> numbers_;                   // by slot
  std::unordered_map<JobNumber, JobId> slots_;
  std::uint32_t next_slot_ = 0;
  std::vector<JobNumber> adopting_;  // they run already; the last one comes first
  std::set<NodeId> out_of_service_;
  std::vector<Message> messages_;
  std::vector<Event> events_;
  std::vector<Question> questions_;
  std::vector<JobNumber> progressed_;  // scratch
  std::set<JobId> late_;        // started by the engine, and waited for somebody on their devices
  std::deque<JobNumber> line_;  // may compete, one at a time
  std::vector<JobNumber> newcomers_;  // of this pass
  bool is_new_ = true;                // nobody has been let in yet
  bool calls_for_pass_ = false;
  Time last_{};
  Time pass_began_{};
  double pass_seconds_ = 0;
  std::size_t rejected_seen_ = 0;
  Over over_ = Over::No;
  Error error_;
};

}  // namespace berth
