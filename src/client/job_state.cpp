// Our states in Slurm's words, for squeue and for people who type them. The table is in the order
// of LiveState: names_of() indexes it.

#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "client/answers.h"

namespace berth::client {

namespace {

struct StateNames {
  LiveState state;
  std::string_view code, slurm;
};
constexpr std::array<StateNames, 16> kStates{{
    {LiveState::Held, "PD", "PENDING"},
    {LiveState::Blocked, "PD", "PENDING"},
    {LiveState::Pending, "PD", "PENDING"},
    // Slurm says so as soon as a job has its nodes; a script that asks about itself counts on it.
    {LiveState::Starting, "R", "RUNNING"},
    {LiveState::Running, "R", "RUNNING"},
    {LiveState::Suspended, "S", "SUSPENDED"},
    {LiveState::Stopping, "CG", "COMPLETING"},
    {LiveState::Completed, "CD", "COMPLETED"},
    {LiveState::Failed, "F", "FAILED"},
    {LiveState::Cancelled, "CA", "CANCELLED"},
    {LiveState::TimedOut, "TO", "TIMEOUT"},
    {LiveState::Preempted, "PR", "PREEMPTED"},
    {LiveState::NodeFailed, "NF", "NODE_FAIL"},
    {LiveState::Rejected, "F", "FAILED"},
    {LiveState::OutOfMemory, "OOM", "OUT_OF_MEMORY"},
    {LiveState::Unknown, "?", "UNKNOWN"},
}};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

const StateNames& names_of(LiveState state) { return kStates[static_cast<std::size_t>(state)]; }

/// Limits of users and groups are what Slurm has in a QOS and in an association.
constexpr std::array<std::pair<WaitCode, std::string_view>, 15> kReasons{{
    {WaitCode::HeldByUser, "JobHeldUser"},
    {WaitCode::HeldByAdmin, "JobHeldAdmin"},
    {WaitCode::BeginTime, "BeginTime"},
    {WaitCode::Retry, "BeginTime"},
    {WaitCode::Dependency, "Dependency"},
    {WaitCode::ArrayLimit, "JobArrayTaskLimit"},
    {WaitCode::UserGpus, "QOSMaxGRESPerUser"},
    {WaitCode::UserJobs, "QOSMaxJobsPerUserLimit"},
    {WaitCode::GroupGpus, "AssocGrpGRES"},
    {WaitCode::GroupJobs, "AssocGrpJobsLimit"},
    {WaitCode::GpuTime, "AssocGrpGRESMinutes"},
    {WaitCode::TooSmall, "BadConstraints"},
    {WaitCode::Resources, "Resources"},
    {WaitCode::Priority, "Priority"},
    {WaitCode::DependencyNever, "DependencyNeverSatisfied"},
}};

}  // namespace

// By code; what follows is for older schedulers, which send none.
std::string slurm_reason(const JobRow& job) {
  for (const auto& [code, slurm] : kReasons)
    if (code == job.code) return std::string(slurm);
  switch (job.state) {
    case LiveState::Held: return "JobHeldUser";  // of a scheduler that tells no codes, as the next
    case LiveState::Blocked:
    case LiveState::Pending: return "Priority";
    case LiveState::Failed: return job.signal != 0 ? "RaisedSignal" : "NonZeroExitCode";
    case LiveState::TimedOut: return "TimeLimit";
    case LiveState::OutOfMemory: return "OutOfMemory";
    case LiveState::NodeFailed: return "NodeDown";
    default: return "None";
  }
}

std::string_view slurm_code(LiveState state) noexcept { return names_of(state).code; }
std::string_view slurm_name(LiveState state) noexcept { return names_of(state).slurm; }

// One of Slurm's words may be several states of ours: PD is held, blocked and pending.
std::vector<LiveState> states_from(std::string_view text) {
  if (const auto ours = live_state_from(text)) return {*ours};
  std::vector<LiveState> found;
  const std::string word = upper(text);
  for (const StateNames& names : kStates) {
    // Not a state one can ask for.
    if (names.state == LiveState::Unknown) continue;
    if (names.code == word || names.slurm == word || upper(to_string(names.state)) == word)
      found.push_back(names.state);
  }
  // Slurm's word for nodes that boot: those not yet seen to run come nearest.
  if (word == "CF" || word == "CONFIGURING") found.push_back(LiveState::Starting);
  return found;
}

JobRow::JobRow() {
  static const auto kNothing = std::make_shared<const JobSpec>();
  spec = kNothing;
}

std::string JobRow::node_list() const {
  std::string text;
  for (const HeldDevices& one : where) {
    if (!text.empty()) text += ',';
    text += one.node;
  }
  return text;
}

std::string JobRow::slurm_id() const {
  return array != 0 ? fmt::format("{}_{}", array, array_index) : fmt::format("{}", number);
}

}  // namespace berth::client
