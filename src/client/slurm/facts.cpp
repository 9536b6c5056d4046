#include "client/slurm/facts.h"

#include <algorithm>
#include <charconv>

#include <pwd.h>

#include <fmt/format.h>

#include "base/split.h"
#include "client/script_variable.h"
#include "client/slurm/format.h"
#include "model/grid.h"

namespace berth::client::slurm {

namespace {

constexpr std::int64_t kSecond = 1'000'000;

/// Slurm's signal that no process can get.
constexpr AccountedExit kOutOfMemory{.code = 0, .signal = 125};

/// Behind "cancelled by ", up to a colon with why.
std::string who_cancelled(const JobRow& job) {
  constexpr std::string_view kBy = "cancelled by ";
  const auto at = job.reason.find(kBy);
  if (at == std::string::npos) return {};
  const std::string rest = job.reason.substr(at + kBy.size());
  return rest.substr(0, rest.find_first_of(": ,"));
}

}  // namespace

NodeTypes types_of(const std::vector<NodeView>& nodes) {
  NodeTypes types;
  for (const NodeView& node : nodes) types[node.name] = node.gpus > 0 ? node.type : "";
  return types;
}

Resources requested(const JobRow& job) {
  const JobSpec& spec = *job.spec;
  return {.cpus = std::max(1, spec.cpus),
          .memory_mib = spec.memory_mib,
          .nodes = 1,
          .gpus = spec.gpus,
          .gpu_type = spec.gpu_type.find('|') == std::string::npos ? spec.gpu_type : ""};
}

Resources allocated(const JobRow& job, const NodeTypes& types) {
  if (is_waiting(job.state) || job.where.empty()) return {};
  Resources has = requested(job);
  has.nodes = static_cast<std::int32_t>(job.where.size());
  std::int32_t cores = 0, devices = 0;
  for (const HeldDevices& held : job.where) {
    cores += static_cast<std::int32_t>(held.cores.size());
    devices += static_cast<std::int32_t>(held.devices.size());
  }
  if (cores > 0) has.cpus = cores;
  has.gpus = devices;
  const auto type = types.find(job.where.front().node);
  has.gpu_type = type != types.end() ? type->second : has.gpu_type;
  return has;
}

std::int32_t tasks_of(const JobRow& job) { return std::max({1, job.tasks, job.spec->tasks}); }

std::string partition_of(const JobRow& job) {
  return job.spec->queue.empty() ? "all" : job.spec->queue;
}

std::string name_of(const JobRow& job, const std::string& indices) {
  // Several of them on one line have only the name in common.
  return indices.empty() ? shown_name(*job.spec, job.array_index) : job.spec->name;
}

std::string account_name(const JobRow& job) {
  return job.spec->group.empty() ? job.spec->user : job.spec->group;
}

std::string nodes_of(const JobRow& job) {
  std::vector<std::string> names;
  for (const HeldDevices& one : job.where) names.push_back(one.node);
  return folded_names(std::move(names));
}

std::int64_t start_of(const JobRow& job) {
  if (is_waiting(job.state)) return 0;
  return job.last_started > 0 ? job.last_started : job.started;
}

std::int64_t eligible_of(const JobRow& job) {
  if (job.state == LiveState::Held || job.code == WaitCode::Dependency ||
      job.code == WaitCode::ArrayLimit)
    return 0;
  return std::max(job.submitted, job.spec->begin * kSecond);
}

double elapsed_of(const JobRow& job, std::int64_t now) {
  if (!is_waiting(job.state) && job.last_run_seconds > 0) return job.last_run_seconds;
  // An older scheduler tells of all runs together.
  const std::int64_t start = start_of(job);
  if (is_waiting(job.state) || job.attempts <= 1 || start == 0)
    return is_waiting(job.state) ? 0 : job.run_seconds;
  const std::int64_t end = job.ended > 0 ? job.ended : now * kSecond;
  return std::min(job.run_seconds,
                  std::max(0.0, static_cast<double>(end - start) / double{kSecond}));
}

std::int64_t end_of(const JobRow& job, std::int64_t now) {
  if (job.ended > 0) return job.ended;
  const std::int64_t start = start_of(job);
  if (is_waiting(job.state) || job.spec->time_limit <= 0 || start == 0) return 0;
  // While it is suspended the limit stands still.
  const auto stood = static_cast<std::int64_t>(job.suspended_seconds);
  return std::max(now * kSecond, start + (job.spec->time_limit + stood) * kSecond);
}

std::string accounted_state(const JobRow& job) {
  const std::string word(slurm_name(job.state));
  if (job.state != LiveState::Cancelled) return word;
  const std::string who = who_cancelled(job);
  return who.empty() ? word : fmt::format("{} by {}", word, account_of(who).uid);
}

AccountedExit accounted_exit(const JobRow& job) {
  if (job.state == LiveState::Cancelled || job.state == LiveState::TimedOut) return {};
  return shown_exit(job);
}

AccountedExit accounted_exit(const StepView& step) {
  if (step.state == StepState::OutOfMemory) return kOutOfMemory;
  return {.code = step.exit_code, .signal = step.signal};
}

AccountedExit shown_exit(const JobRow& job) {
  if (job.state == LiveState::OutOfMemory) return kOutOfMemory;
  return {.code = job.exit_code, .signal = job.signal};
}

std::string command_of(const JobRow& job) {
  const JobSpec& spec = *job.spec;
  const auto path = spec.env.find(kScriptVariable);
  if (path == spec.env.end()) return fmt::format("{}", fmt::join(spec.command, " "));
  return fmt::format("{}{}{}", path->second, spec.command.empty() ? "" : " ",
                     fmt::join(spec.command, " "));
}

std::string shown_id(const JobRow& job, const std::string& indices) {
  return indices.empty() ? job.slurm_id() : fmt::format("{}_[{}]", job.array, indices);
}

namespace {

/// Slurm's words for the states that jobs have here.
std::vector<std::string> state_list() {
  std::vector<std::string> words;
  for (int i = 0; i < static_cast<int>(LiveState::Unknown); ++i) {
    std::string word(slurm_name(static_cast<LiveState>(i)));
    if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

std::string state_names() { return fmt::format("{}\n", fmt::join(state_list(), " ")); }

Result<States> parse_slurm_states(std::string_view text) {
  for (const std::string_view word : split(text, ',')) {
    if (word == "all" || word == "ALL" || !states_from(word).empty()) continue;
    Error error;
    error.messages.push_back(fmt::format("error: Invalid job state specified: {}", word));
    error.messages.push_back(fmt::format("error: Valid job states include: {}",
                                         lower(fmt::format("{}", fmt::join(state_list(), ",")))));
    return tl::unexpected<Error>(std::move(error));
  }
  return parse_states(text);
}

std::vector<std::string> unknown_users(const std::vector<std::string>& users,
                                       std::span<const JobRow> jobs) {
  std::vector<std::string> unknown;
  for (const std::string& user : users) {
    // Who has only a token need not be known on this machine.
    const bool has_jobs = std::ranges::any_of(jobs, [&](const JobRow& job) {
      return job.spec->user == user || account_of(job.spec->user).uid == user;
    });
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(user.data(), user.data() + user.size(), number);
    const bool is_number = error == std::errc{} && end == user.data() + user.size();
    if (!has_jobs && !is_number && ::getpwnam(user.c_str()) == nullptr) unknown.push_back(user);
  }
  return unknown;
}

std::string_view state_word(StepState state) {
  switch (state) {
    case StepState::Running: return "RUNNING";
    case StepState::Completed: return "COMPLETED";
    case StepState::Failed: return "FAILED";
    case StepState::Cancelled: return "CANCELLED";
    case StepState::OutOfMemory: return "OUT_OF_MEMORY";
    case StepState::TimedOut: return "TIMEOUT";
  }
  return "UNKNOWN";
}

double cpu_seconds_of(const std::vector<StepView>& steps) {
  // Everything descends from the script: what is told of it when it is over is told of all.
  double whole = 0, sum = 0;
  for (const StepView& step : steps) (step.id == kBatchStep ? whole : sum) += step.cpu_seconds;
  return std::max(whole, sum);
}

int state_rank(LiveState state) {
  switch (state) {
    case LiveState::Held:
    case LiveState::Blocked:
    case LiveState::Pending: return 0;
    case LiveState::Starting:
    case LiveState::Running: return 1;
    case LiveState::Suspended: return 2;
    case LiveState::Stopping:
    case LiveState::Completed: return 3;
    case LiveState::Cancelled: return 4;
    case LiveState::Failed:
    case LiveState::Rejected: return 5;
    case LiveState::TimedOut: return 6;
    case LiveState::NodeFailed: return 7;
    case LiveState::Preempted: return 8;
    default: return 9;
  }
}

}  // namespace berth::client::slurm
