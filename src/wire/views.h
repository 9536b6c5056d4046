// What people and programs are told of a running scheduler: plain data, which the scheduler fills
// in and the command line reads back. How it is written is in view_fields.h.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/attempt.h"
#include "model/job_spec.h"

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
  Rejected,
  OutOfMemory,
  Unknown  // of a newer scheduler: only clients meet it
};
[[nodiscard]] std::string_view to_string(LiveState state) noexcept;  // "pending", "timed-out" …
[[nodiscard]] std::optional<LiveState> live_state_from(std::string_view text) noexcept;
[[nodiscard]] constexpr bool is_over(LiveState state) noexcept {
  return state >= LiveState::Completed && state != LiveState::Unknown;
}

[[nodiscard]] constexpr bool is_waiting(LiveState state) noexcept {
  return state <= LiveState::Pending;
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
  DependencyNever,  // what it waits for can never happen; it was asked to stay
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
  std::int32_t array_at_once = 0;  // jobs of its array that may run together; 0: no limit
  std::shared_ptr<const JobSpec> spec;
  LiveState state = LiveState::Unknown;
  std::string reason;          // why it waits or how it ended, one short phrase
  WaitCode code{};             // of one that waits
  std::int64_t submitted = 0;  // Unix microseconds; 0: not yet
  std::int64_t started = 0;    // the first start
  std::int64_t last_started = 0;
  std::int64_t ended = 0;
  double run_seconds = 0;  // so far, over all attempts
  double last_run_seconds = 0;
  double suspended_seconds = 0;  // of the last attempt, in which it stood still
  std::int64_t suspended = 0;    // since when it has stood still; 0: it does not
  double gpu_seconds = 0;
  double energy_kwh = 0;  // charged so far
  std::int32_t attempts = 0;
  std::int32_t preemptions = 0;
  std::int32_t failures = 0;
  std::int32_t tasks = 0;          // its gang, or those it says that its steps will have
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

struct AttemptView {
  std::string id;
  std::vector<HeldDevices> where;
  std::int64_t begun = 0, ended = 0;  // Unix microseconds; 0: not yet
  std::string outcome{};              // a word of Outcome, or of a newer scheduler; empty: not over
  std::int32_t exit_code = 0, signal = 0;
  double gpu_seconds = 0;
  std::string why{};
};

/// What people can ask of a job; the same word in every command, request and answer.
enum class Verb : std::uint8_t { Cancel, Hold, Release, Requeue, Suspend, Resume, Signal };
[[nodiscard]] std::string_view to_string(Verb verb) noexcept;  // "cancel"

/// With Verb::Signal: which one, and whether the job's own processes alone get it (its script's
/// shell) or all that descend from them.
struct SentSignal {
  constexpr SentSignal(std::int32_t which = 0, bool to_shell = false) noexcept
      : number(which), shell_only(to_shell) {}
  std::int32_t number = 0;
  bool shell_only = false;
};

/// What came of it.
struct VerbResult {
  JobNumber job = 0;
  bool is_done = false;
  std::string text;  // what happened or why not
};

/// What a node does, by place in NodeView::energy_kwh.
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
  std::array<double, kNodeUseNames.size()> energy_kwh{};
};

struct QueueView {
  std::string name;
  std::int64_t max_time_limit = 0;      // seconds; 0: none
  std::int64_t default_time_limit = 0;  // of jobs that ask for none
};

struct ClusterView {
  std::string name;
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
  // Of all users and groups together, also of those that the caller does not see.
  double all_shares = 0;
  double all_gpu_seconds = 0;
};

struct TokenView {
  std::string name;
  std::string user;
  Role role = Role::User;
  std::int64_t created = 0, expires = 0;  // Unix seconds; 0 = never
  bool is_granted = false;                // its role was given by an admin to somebody else
};

// Lists, as they are answered.
struct AttemptList {
  std::vector<AttemptView> attempts;
};
struct VerbResultList {
  std::vector<VerbResult> results;
};
struct NodeList {
  std::vector<NodeView> nodes;
};
struct ShareList {
  std::vector<ShareView> shares;
};
struct TokenList {
  std::vector<TokenView> tokens;
};

inline constexpr double kJoulesPerKwh = 3.6e6;

}  // namespace berth
