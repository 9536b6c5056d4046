// What the scheduler tells, as plain data. Reading is tolerant: keys that are missing have their
// defaults and unknown ones are passed over, so that client and scheduler may differ in age.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/job_spec.h"

namespace berth::client {

/// In the order of a job's life; everything from Completed on is over.
enum class JobState : std::uint8_t {
  Held,
  Blocked,
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
  Unknown  // of a newer scheduler
};
[[nodiscard]] std::string_view to_string(JobState state) noexcept;
/// Our names and Slurm's, long or short, in any case: "pending", "PD", "TIMEOUT". Slurm's PENDING
/// is several of ours.
[[nodiscard]] std::vector<JobState> states_from(std::string_view text);
[[nodiscard]] std::string_view slurm_code(JobState state) noexcept;  // PD, R, CG …
[[nodiscard]] std::string_view slurm_name(JobState state) noexcept;  // PENDING, RUNNING …
[[nodiscard]] constexpr bool is_over(JobState state) noexcept {
  return state >= JobState::Completed && state != JobState::Unknown;
}
[[nodiscard]] constexpr bool is_waiting(JobState state) noexcept {
  return state <= JobState::Pending;
}

struct HeldOn {
  std::string node;
  std::vector<std::int32_t> devices, cores;
};

struct Training {
  double iterations = 0, iterations_per_second = 0, samples_per_second = 0;
  std::optional<double> loss;
  std::int32_t sub_steps = 1;
  double last_heard_seconds_ago = 0;
};

struct PaceRow {  // how fast it gets on against its own estimate
  double rate = 1;
  std::optional<double> progress, seconds_left;
  std::string source;
};

struct JobRow {
  JobNumber number = 0, array = 0;
  std::int32_t array_index = 0;
  std::int32_t array_at_once = 0;         // of its array; 0: no limit
  std::vector<std::int32_t> folded = {};  // indices of the jobs it stands for; empty: itself alone
  JobSpec spec;
  JobState state = JobState::Unknown;
  std::string reason;       // a phrase for people
  std::string reason_code;  // why it waits, in a word; empty also of an older scheduler
  std::int64_t submitted = 0, started = 0, last_started = 0, ended = 0;  // Unix µs; 0: not yet
  double run_seconds = 0, gpu_seconds = 0, energy_kwh = 0;
  std::int32_t attempts = 0, preemptions = 0, failures = 0;
  std::vector<HeldOn> where;
  std::int32_t granted = 0, exit_code = 0, signal = 0;
  std::int64_t pid = 0;
  std::string output, error;
  std::optional<Training> training;
  std::optional<PaceRow> pace;
  std::string json;  // as it came, if that was asked for

  [[nodiscard]] std::string node_list() const;  // "n1,n2"
  /// "12", or "12_3" for a job of an array.
  [[nodiscard]] std::string slurm_id() const;
};

/// Slurm's word for why it waits or how it ended: Resources, JobHeldUser, TimeLimit; None.
[[nodiscard]] std::string slurm_reason(const JobRow& job);

struct JobPage {
  std::vector<JobRow> jobs;
  std::string next;  // to go on from; empty: this was the last
  std::uint64_t total = 0;
};

struct AttemptRow {
  std::string id;
  std::vector<HeldOn> where;
  std::int64_t begun = 0, ended = 0;
  std::string outcome, why;
  std::int32_t exit_code = 0, signal = 0;
  double gpu_seconds = 0;
};

struct SubmitReply {
  JobNumber first = 0;
  std::uint64_t count = 1;
  bool is_repeat = false;
  std::vector<std::string> notes;
};

struct DeedRow {
  JobNumber job = 0;
  bool is_done = false;
  std::string text;
};

struct NodeRow {
  std::string name, state, reason, type;
  std::int32_t gpus = 0, gpus_used = 0, cpus = 0, cpus_used = 0;
  std::int64_t memory_mib = 0;
  std::vector<std::vector<JobNumber>> devices;
  std::map<std::string, double> energy_kwh{};  // by what it was doing
};

struct QueueRow {
  std::string name;
  std::int64_t max_time_limit = 0;  // seconds; 0: none
};

struct ClusterRow {
  std::string policy, version, trouble;
  std::vector<QueueRow> queues{};  // the first is where jobs go that name none
  std::map<std::string, std::string> settings;
  double uptime_seconds = 0, last_pass_seconds = 0, worst_pass_seconds = 0;
  std::uint64_t pending = 0, running = 0, held = 0, passes = 0;
  std::int32_t gpus = 0, gpus_used = 0;
};

struct ShareRow {
  std::string kind, name;
  double shares = 1, gpu_seconds = 0, gpu_seconds_limit = 0;
  std::int32_t gpus_now = 0, jobs_now = 0, waiting = 0, gpu_limit = 0, job_limit = 0;
};

struct TokenRow {
  std::string name, user, role;
  std::int64_t created = 0, expires = 0;  // Unix seconds
};

/// Why a job waits: docs/formats/why.md.
struct WhyReason {
  std::string kind, text, who, when;  // when: never, now, until
  std::string fix;                    // what opens it, with the command
  bool is_sole = false;
  std::map<std::string, std::string> numbers;
  std::vector<std::string> entities;  // jobs and nodes it is about
};
struct WhyAnswer {
  JobNumber job = 0;
  std::string state, summary;
  std::string user;      // whose job it is; empty of an older scheduler
  bool is_yours = true;  // of whoever asks
  std::vector<WhyReason> reasons;
  std::vector<std::string> would_start;
  std::uint64_t place = 0, of = 0;
  double age_seconds = 0;
};

[[nodiscard]] Result<JobRow> job_from(std::string_view body);
/// Of each row its JSON is kept too, or not: that of ten thousand rows takes time.
enum class KeepJson : bool { No, Yes };
[[nodiscard]] Result<JobPage> jobs_from(std::string_view body, KeepJson keep = KeepJson::No);
[[nodiscard]] Result<std::vector<AttemptRow>> attempts_from(std::string_view body);
/// The user of /whoami.
[[nodiscard]] Result<std::string> caller_from(std::string_view body);
[[nodiscard]] Result<SubmitReply> submit_from(std::string_view body);
[[nodiscard]] Result<std::vector<DeedRow>> deeds_from(std::string_view body);
[[nodiscard]] Result<std::vector<NodeRow>> nodes_from(std::string_view body);
[[nodiscard]] Result<ClusterRow> cluster_from(std::string_view body);
[[nodiscard]] Result<std::vector<ShareRow>> shares_from(std::string_view body);
[[nodiscard]] Result<std::vector<TokenRow>> tokens_from(std::string_view body);
[[nodiscard]] Result<WhyAnswer> why_from(std::string_view body);
/// Messages of {"error":{"messages":[…]}}; empty if it is none.
[[nodiscard]] std::vector<std::string> error_messages(std::string_view body);

}  // namespace berth::client
