#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "client/views.h"

namespace berth::client {

namespace {

struct StateNames {
  JobState state;
  std::string_view ours, code, slurm;
};
constexpr std::array<StateNames, 15> kStates{{
    {JobState::Held, "held", "PD", "PENDING"},
    {JobState::Blocked, "blocked", "PD", "PENDING"},
    {JobState::Pending, "pending", "PD", "PENDING"},
    {JobState::Starting, "starting", "CF", "CONFIGURING"},
    {JobState::Running, "running", "R", "RUNNING"},
    {JobState::Suspended, "suspended", "S", "SUSPENDED"},
    {JobState::Stopping, "stopping", "CG", "COMPLETING"},
    {JobState::Completed, "completed", "CD", "COMPLETED"},
    {JobState::Failed, "failed", "F", "FAILED"},
    {JobState::Cancelled, "cancelled", "CA", "CANCELLED"},
    {JobState::TimedOut, "timed-out", "TO", "TIMEOUT"},
    {JobState::Preempted, "preempted", "PR", "PREEMPTED"},
    {JobState::NodeFailed, "node-failed", "NF", "NODE_FAIL"},
    {JobState::Rejected, "rejected", "F", "FAILED"},
    {JobState::Unknown, "unknown", "?", "UNKNOWN"},
}};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

const StateNames& names_of(JobState state) { return kStates[static_cast<std::size_t>(state)]; }

/// Limits of users and groups are what Slurm has in a QOS and in an association.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kReasons{{
    {"held-by-user", "JobHeldUser"},
    {"held-by-admin", "JobHeldAdmin"},
    {"begin-time", "BeginTime"},
    {"retry", "BeginTime"},
    {"dependency", "Dependency"},
    {"array-limit", "JobArrayTaskLimit"},
    {"user-gpus", "QOSMaxGRESPerUser"},
    {"user-jobs", "QOSMaxJobsPerUserLimit"},
    {"group-gpus", "AssocGrpGRES"},
    {"group-jobs", "AssocGrpJobsLimit"},
    {"gpu-time", "AssocGrpGRESMinutes"},
    {"cluster-too-small", "BadConstraints"},
    {"resources", "Resources"},
    {"priority", "Priority"},
}};

}  // namespace

std::string slurm_reason(const JobRow& job) {
  for (const auto& [ours, slurm] : kReasons)
    if (ours == job.reason_code) return std::string(slurm);
  switch (job.state) {
    case JobState::Held: return "JobHeldUser";  // of a scheduler that tells no codes, as the next
    case JobState::Blocked:
    case JobState::Pending: return "Priority";
    case JobState::Failed: return job.signal != 0 ? "RaisedSignal" : "NonZeroExitCode";
    case JobState::TimedOut: return "TimeLimit";
    case JobState::NodeFailed: return "NodeDown";
    default: return "None";
  }
}

std::string_view to_string(JobState state) noexcept { return names_of(state).ours; }
std::string_view slurm_code(JobState state) noexcept { return names_of(state).code; }
std::string_view slurm_name(JobState state) noexcept { return names_of(state).slurm; }

std::vector<JobState> states_from(std::string_view text) {
  std::vector<JobState> found;
  for (const StateNames& names : kStates) {
    if (names.state == JobState::Unknown) continue;
    if (names.ours == text) return {names.state};
  }
  const std::string word = upper(text);
  for (const StateNames& names : kStates) {
    if (names.state == JobState::Unknown) continue;
    const bool is_pending_of_ours = text == "pending" && names.state != JobState::Pending;
    if ((names.code == word || names.slurm == word || upper(names.ours) == word) &&
        !is_pending_of_ours)
      found.push_back(names.state);
  }
  return found;
}

std::string JobRow::node_list() const {
  std::string text;
  for (const HeldOn& one : where) {
    if (!text.empty()) text += ',';
    text += one.node;
  }
  return text;
}

std::string JobRow::slurm_id() const {
  return array != 0 ? fmt::format("{}_{}", array, array_index) : fmt::format("{}", number);
}

}  // namespace berth::client
