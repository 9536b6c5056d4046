// What the engine is told of the world: jobs that may compete arrive in slots of its trace, ends,
// cancels and lost nodes become events. People's wishes and the ends of processes come in, gates
// are asked, and what the engine need not know is dealt with here. Owns the slots, the events of
// the next pass, who is still to be brought in, and which nodes are out of service. Decides
// nothing. Engine's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "core/engine_log.h"
#include "daemon/gates.h"
#include "daemon/job_supervisor.h"
#include "daemon/kind_beliefs.h"
#include "daemon/live_rates.h"
#include "daemon/message_queue.h"
#include "daemon/node_power.h"
#include "daemon/slot_table.h"
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

class JobFeed {
 public:
  struct Parts {
    Trace& slots;
    const Cluster& cluster;
    JobSupervisor& supervisor;
    Gates& gates;
    const LiveClock& clock;
    JobLookup job;
    /// A setting was changed: "quota/user/alice", "policy".
    std::function<SettingEffect(const SettingRecord&)> setting;
    TrainingChannel* training = nullptr;
    NodePower* power = nullptr;  // absent: all nodes are on
    bool manages_power = false;  // the policy, or somebody beside it
    /// Newcomers come one in a pass: somebody among many has made an engine fail.
    bool one_at_a_time = false;
    KindBeliefs& beliefs;
    std::optional<LiveRates>& rates;  // may be empty: every job runs at rate 1
  };
  /// Why there are no more passes.
  enum class Over : std::uint8_t { No, Stop, Renew, Failed };

  explicit JobFeed(Parts parts);
  void watch(const Engine& engine) noexcept { engine_ = &engine; }

  // --- the life of an engine

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
  /// First which slot is which job, and what became of them; then, once rates are known again,
  /// where they are.
  void resume_jobs(const Resumed& from);
  void resume_devices(const Resumed& from);
  /// The engine begins again with the next pass.
  void renew() noexcept {
    if (over_ == Over::No) over_ = Over::Renew;
  }
  void end(Over why) noexcept { over_ = why; }
  [[nodiscard]] Over over() const noexcept { return over_; }

  // --- a pass

  [[nodiscard]] Time now() const noexcept { return now_; }
  void set_now(Time now) noexcept { now_ = now; }
  /// Something waits to be told although nothing has come.
  [[nodiscard]] bool has_news() const;
  void begin_pass() { newcomers_.clear(); }
  void handle(const Committed& committed);
  void handle(const HostEvent& event);
  /// Lets in whoever may compete, and moves all events of this pass to `due`, in the engine's
  /// order.
  void collect(std::vector<Event>& due);
  /// Jobs that the engine was told of in this pass: if it fails, one of them may be why.
  [[nodiscard]] const std::vector<JobNumber>& newcomers() const noexcept { return newcomers_; }

  // --- what comes of the engine's decisions

  void handle_end(const AttemptEnd& end);
  /// The policy's answer to a failure. The engine has the job waiting, or over, by the same answer.
  void answer_retry(JobId slot, std::optional<bool> again);
  /// The policy ends it for good; nothing if its user has stopped it already.
  void kill(JobNumber job, Reason reason);
  void handle_rejected(const RejectedJob& rejected);
  /// Something is wrong with it: it is held in the scheduler's name.
  void set_aside(JobNumber job, std::string why);

  // --- slots

  [[nodiscard]] const SlotTable& slots() const noexcept { return slots_; }
  [[nodiscard]] std::optional<JobId> suppose(const LedgerJob& job) {
    return slots_.suppose(job, now_);
  }

 private:
  void emit(EventKind kind, JobId slot, JobState outcome = JobState::Completed);
  void handle_over(const HostEvent& event);
  void handle_wish(const WishRecord& wish);
  void tell_end(const AttemptEnd& end);
  void end_without_attempt(JobNumber job, Outcome outcome, std::string why);
  void end_unsatisfiable(JobNumber job, const std::string& why);
  void give_up_slot(JobNumber job);
  void set_node(NodeId node, NodeService service);
  void ask_gates();
  void ask_policy();
  void bring_in(JobNumber job);
  void adopt_or_leave(const std::set<NodeId>& out_of_service);
  void catch_up(const std::vector<LedgerJob>& jobs);
  void tell_terms(JobNumber job, JobId slot);
  [[nodiscard]] bool has_event(JobId slot) const;
  void let_leave(JobNumber job, JobId slot, Reason reason);
  void find_devices(JobNumber job, JobId slot, Reason reason);

  Parts parts_;
  SlotTable slots_;
  const Engine* engine_ = nullptr;
  std::vector<Event> events_;
  std::vector<AttemptEnd> failures_;  // of this pass: the policy says whether they are tried again
  std::vector<JobNumber> adopting_;   // they run already; the last one comes first
  std::set<NodeId> out_of_service_;
  std::deque<JobNumber> line_;        // may compete, one at a time
  std::vector<JobNumber> newcomers_;  // of this pass
  Time now_{};
  Over over_ = Over::No;
};

}  // namespace berth
