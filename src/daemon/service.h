// Everything that people and programs can ask of a running scheduler, whoever carries the question:
// the REST server, a test, the terminal. Safe to call from any thread; an answer never waits for a
// scheduling pass unless it says so. Who may do what is decided here, not in the transport.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "store/store.h"

namespace berth {

enum class Role : std::uint8_t { User, Operator, Admin };
[[nodiscard]] std::string_view to_string(Role role) noexcept;
[[nodiscard]] std::optional<Role> role_from(std::string_view text) noexcept;

/// A token tells a name; who that is on this machine is looked up when a job starts.
inline constexpr std::uint32_t kNoUid = 0xffffffffU;

/// Who asks: known by the socket's peer credentials or by a token.
struct Caller {
  std::string user;
  std::uint32_t uid = 0, gid = 0;
  Role role = Role::User;
};

enum class FaultKind : std::uint8_t {
  BadRequest,   // 400: cannot be understood
  Forbidden,    // 403
  NotFound,     // 404
  Conflict,     // 409: not in this state
  Impossible,   // 422: understood, can never be done here
  TooMany,      // 429: a limit of this user
  Unavailable,  // 503: disk full, shutting down
};
struct Fault {
  FaultKind kind{};
  std::vector<std::string> messages;
};
template <class T>
using Answer = tl::expected<T, Fault>;

/// What a job looks like from outside.
enum class LiveState : std::uint8_t {
  Held,
  Blocked /* begin time or dependency */,
  Pending,
  Starting,
  Running,
  Suspended,
  Stopping,
  Completed,
  Failed,
  Cancelled,
  TimedOut,
  Preempted,
  NodeFailed,
  Rejected
};
[[nodiscard]] std::string_view to_string(LiveState state) noexcept;  // "pending", "timed-out" …
[[nodiscard]] std::optional<LiveState> live_state_from(std::string_view text) noexcept;
[[nodiscard]] constexpr bool is_over(LiveState state) noexcept {
  return state >= LiveState::Completed;
}

/// Why a job that waits does, in one word for programs; JobView::reason is for people.
enum class WaitCode : std::uint8_t {
  None,  // it does not wait
  HeldByUser,
  HeldByAdmin,
  BeginTime,
  Retry,  // a pause after a failure
  Dependency,
  ArrayLimit,  // enough of its array run
  UserGpus,    // limits of its user or its group
  UserJobs,
  GroupGpus,
  GroupJobs,
  GpuTime,
  TooSmall,  // the cluster: what it asks for was there when it was taken
  Resources,
  Priority,
};
[[nodiscard]] std::string_view to_string(WaitCode code) noexcept;  // "held-by-user"; None: ""

struct TrainingView {  // what its code says of itself; absent if it says nothing
  double iterations = 0;
  double iterations_per_second = 0;
  double samples_per_second = 0;
  std::optional<double> loss;
  std::int32_t sub_steps = 1;
  double last_heard_seconds_ago = 0;
};

/// How fast a running job gets on against its own estimate, and what that leaves.
struct PaceView {
  double rate = 1;
  std::optional<double> progress{};      // share of the whole; absent: nobody knows how long it is
  std::optional<double> seconds_left{};  // the same, or it has outlived what was believed
  std::string source{};                  // "reports", "belief", "request"
};

struct JobView {
  JobNumber number = 0;
  JobNumber array = 0;
  std::int32_t array_index = 0;
  std::shared_ptr<const JobSpec> spec;
  LiveState state{};
  std::string reason;          // why it waits or how it ended, one short phrase
  WaitCode code{};             // of one that waits
  std::int64_t submitted = 0;  // Unix microseconds; 0: not yet
  std::int64_t started = 0;    // the first start
  std::int64_t last_started = 0;
  std::int64_t ended = 0;
  double run_seconds = 0;  // so far
  double gpu_seconds = 0;
  double joules = 0;
  std::int32_t attempts = 0;
  std::int32_t preemptions = 0;
  std::int32_t failures = 0;
  std::vector<HeldDevices> where;  // now, or at the last attempt
  std::int32_t granted = 0;        // devices it holds now
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  std::int64_t pid = 0;
  std::string output, error;  // paths, patterns replaced
  std::optional<TrainingView> training;
  std::optional<PaceView> pace{};      // of one that runs
  std::vector<std::int32_t> folded{};  // indices of the jobs it stands for; empty: itself alone
};

/// What a list tells of each job. Brief: no paths of output. Folded: the same, and the jobs of an
/// array that have never run and wait for the same reason are one, the first of them.
enum class Rows : std::uint8_t { Whole, Brief, Folded };

struct JobFilter {
  std::vector<LiveState> states{};  // empty: all that are not over
  std::optional<std::string> user{}, group{}, queue{}, name{};
  std::optional<std::string> study{};  // of jobs that are not over
  std::vector<JobNumber> numbers{};
  std::optional<std::int64_t> ended_since{};  // of those that are over; Unix microseconds
  std::optional<JobNumber> after{};           // page: numbers above this one
  std::size_t limit = 100;                    // rows; at most 1,000
  Rows rows = Rows::Whole;
};
struct JobPage {
  std::vector<JobView> jobs;
  std::optional<JobNumber> next;  // ask again with after = next
  std::size_t total = 0;          // that match, over all pages
};
struct PastPage {
  std::vector<JobView> jobs;        // newest end first
  std::optional<std::string> next;  // opaque cursor
};

struct Submitted {
  JobNumber first = 0;
  std::size_t count = 1;
  bool is_repeat = false;  // the key was known: nothing new was made
  std::vector<std::string> notes;
};

enum class Verb : std::uint8_t { Cancel, Hold, Release, Requeue, Suspend, Resume, Signal };
struct Deed {
  JobNumber job = 0;
  bool is_done = false;
  std::string text;  // what happened or why not
};

/// What a node does, by place in NodeView::joules.
inline constexpr std::array<std::string_view, 4> kNodeUseNames{"busy", "idle", "booting", "off"};

struct NodeView {
  std::string name;
  std::string state;  // up, down, drained, off, booting
  std::string reason;
  std::string type;
  std::int32_t gpus = 0, gpus_used = 0;
  std::int32_t cpus = 0, cpus_used = 0;
  std::int64_t memory_mib = 0;
  std::vector<std::vector<JobNumber>> devices;  // who is on which
  std::array<double, kNodeUseNames.size()> joules{};
};

struct QueueView {
  std::string name;
  std::int64_t max_time_limit = 0;  // seconds; 0: none
};

struct ClusterView {
  std::string policy;
  std::vector<std::pair<std::string, std::string>> settings;
  std::string version;
  std::uint64_t generation = 0;
  std::int64_t started = 0;  // Unix microseconds
  double uptime_seconds = 0;
  std::size_t pending = 0, running = 0, held = 0;
  std::int32_t gpus = 0, gpus_used = 0;
  std::vector<QueueView> queues;  // the first is where jobs go that name none
  std::uint64_t passes = 0;
  double last_pass_seconds = 0, worst_pass_seconds = 0;
  std::string trouble;  // "no space left for the journal"; empty: all is well
};

struct ShareView {
  std::string kind;  // user or group
  std::string name;
  double shares = 1;
  double gpu_seconds = 0;  // decayed use
  std::int32_t gpus_now = 0;
  std::int32_t jobs_now = 0, waiting = 0;
  std::int32_t gpu_limit = 0;  // 0 = none
  std::int32_t job_limit = 0;
  double gpu_seconds_limit = 0;
  std::vector<std::string>
      members{};  // of a group, beside what the machine and the configuration say
};

struct TokenView {
  std::string name;
  std::string user;
  Role role = Role::User;
  std::int64_t created = 0, expires = 0;  // Unix seconds; 0 = never
  bool is_granted = false;                // its role was given by an admin to somebody else
};

/// Something happened to a job, a node or the scheduler; numbered without gaps in one life.
struct Happening {
  std::uint64_t sequence = 0;
  std::string kind;  // job, node, policy, cluster
  JobNumber job = 0;
  std::string user;  // whose job
  std::string json;  // the body of the event
};

class Service {
 public:
  virtual ~Service() = default;

  // Jobs. Returned once durable.
  [[nodiscard]] virtual Answer<Submitted> submit(const Caller& caller, JobSpec spec) = 0;
  /// Submit without blocking the caller's thread: `done` is called from the committing thread.
  virtual void submit_async(const Caller& caller, JobSpec spec,
                            std::function<void(Answer<Submitted>)> done) = 0;
  [[nodiscard]] virtual Answer<JobPage> jobs(const Caller& caller, const JobFilter& filter) = 0;
  [[nodiscard]] virtual Answer<JobView> job(const Caller& caller, JobNumber job) = 0;
  [[nodiscard]] virtual Answer<std::vector<AttemptRow>> attempts(const Caller& caller,
                                                                 JobNumber job) = 0;
  [[nodiscard]] virtual Answer<PastPage> history(const Caller& caller, const PastQuery& query) = 0;
  [[nodiscard]] virtual Answer<std::vector<Deed>> act(const Caller& caller, Verb verb,
                                                      const JobFilter& which,
                                                      const std::string& why, int signal) = 0;
  /// `changes` is a JSON object with keys of JobSpec.
  [[nodiscard]] virtual Answer<JobView> change(const Caller& caller, JobNumber job,
                                               const std::string& changes) = 0;
  /// Every reason that holds the job back; waits for the end of the pass under way. JSON.
  [[nodiscard]] virtual Answer<std::string> why(const Caller& caller, JobNumber job) = 0;

  // The cluster.
  [[nodiscard]] virtual ClusterView cluster(const Caller& caller) = 0;
  [[nodiscard]] virtual std::vector<NodeView> nodes(const Caller& caller) = 0;
  /// state: drain, resume, down.
  [[nodiscard]] virtual Answer<NodeView> set_node(const Caller& caller, const std::string& node,
                                                  const std::string& state,
                                                  const std::string& reason) = 0;
  [[nodiscard]] virtual Answer<ClusterView> set_policy(
      const Caller& caller, const std::string& policy,
      const std::vector<std::pair<std::string, std::string>>& settings) = 0;
  [[nodiscard]] virtual std::vector<ShareView> shares(const Caller& caller) = 0;
  [[nodiscard]] virtual Answer<ShareView> set_share(const Caller& caller,
                                                    const ShareView& share) = 0;

  // Tokens. The text of a new one is shown once and kept only as a hash.
  [[nodiscard]] virtual Answer<std::string> make_token(const Caller& caller,
                                                       const TokenView& token) = 0;
  [[nodiscard]] virtual Answer<std::vector<TokenView>> tokens(const Caller& caller) = 0;
  [[nodiscard]] virtual Answer<void> revoke_token(const Caller& caller,
                                                  const std::string& name) = 0;
  /// Whom a token stands for; nothing if it is not (any more) good.
  [[nodiscard]] virtual std::optional<Caller> caller_of(const std::string& token) = 0;
  /// Whom a local peer stands for.
  [[nodiscard]] virtual Caller caller_of_peer(std::uint32_t uid, std::uint32_t gid) = 0;

  // Happenings, from `after` on as far as they are kept; then as they come, from any thread, until
  // the subscription is dropped.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  [[nodiscard]] virtual std::unique_ptr<Subscription> subscribe(
      std::uint64_t after, std::function<void(const Happening&)> listener) = 0;
  /// The number of the latest happening.
  [[nodiscard]] virtual std::uint64_t latest() const = 0;

  /// In Prometheus' text form.
  [[nodiscard]] virtual std::string metrics() = 0;
  /// What jobs have shown of themselves, as a profile file; a user sees what is of their own jobs.
  [[nodiscard]] virtual std::string learnt_profiles(const Caller&) { return {}; }
};

}  // namespace berth
