#include "advise/reasons.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace berth::advise {

namespace {

using F = ReasonFamily;
using C = WaitCode;

struct Row {
  std::string_view word;
  ReasonWord meaning;
};

constexpr std::string_view kRelease = "scontrol release {job}";
constexpr std::string_view kLimitTime = "scontrol update JobId={job} TimeLimit=…";

// By word, for binary search.
constexpr std::array kWords{
    Row{"AccountNotAllowed",
        {F::Account, C::TooSmall, "its account may not use this partition", "user",
         "scontrol update JobId={job} Account=…, or another Partition", true}},
    Row{"AccountingPolicy", {F::Limit, C::GroupJobs, "a limit of its account stops it", "admin"}},
    Row{"AssociationJobLimit",
        {F::Limit, C::GroupJobs, "its association runs as many jobs as it may", "admin"}},
    Row{"AssociationResourceLimit",
        {F::Limit, C::GroupGpus, "its association uses as much as it may", "admin"}},
    Row{"AssociationTimeLimit",
        {F::Limit, C::GpuTime, "its association has used the time that it may", "admin"}},
    Row{"BadConstraints",
        {F::Constraints, C::TooSmall, "no node can satisfy what it asks for", "user",
         "ask for something that exists: scontrol update JobId={job} …, or scancel {job} and "
         "submit again",
         true}},
    Row{"BeginTime",
        {F::Begin, C::BeginTime, "it may not begin before its time", "user",
         "scontrol update JobId={job} StartTime=now"}},
    Row{"BurstBufferOperation",
        {F::Burst, C::Resources, "an operation of its burst buffer has failed", "operator"}},
    Row{"BurstBufferResources",
        {F::Burst, C::Resources, "there is no room in the burst buffers", "nobody"}},
    Row{"BurstBufferStageIn",
        {F::Burst, C::Resources, "its data are being brought into the burst buffer", "nobody"}},
    Row{"Cleaning",
        {F::System, C::Retry, "what its last run left behind is being cleaned up", "nobody"}},
    Row{"DeadLine",
        {F::Begin, C::DependencyNever, "it cannot end before its deadline any more", "user",
         "scontrol update JobId={job} Deadline=…", true}},
    Row{"Dependency",
        {F::Dependency, C::Dependency, "a job that it waits for has not done what it should",
         "user", "scontrol update JobId={job} Dependency="}},
    Row{"DependencyNeverSatisfied",
        {F::Dependency, C::DependencyNever, "what it waits for can never happen any more", "user",
         "scontrol update JobId={job} Dependency=, or scancel {job}", true}},
    Row{"FedJobLock",
        {F::System, C::Resources, "another cluster of the federation decides about it", "nobody"}},
    Row{"FrontEndDown", {F::Nodes, C::Resources, "no front end can start it", "operator"}},
    Row{"InactiveLimit",
        {F::System, C::Resources, "it did nothing for longer than allowed", "user"}},
    Row{"InvalidAccount",
        {F::Account, C::TooSmall, "its account does not exist or is not its user's", "user",
         "scontrol update JobId={job} Account=…", true}},
    Row{"InvalidQOS",
        {F::Account, C::TooSmall, "its QOS does not exist or is not its user's", "user",
         "scontrol update JobId={job} QOS=…", true}},
    Row{"JobArrayTaskLimit",
        {F::Array, C::ArrayLimit, "as many tasks of its array run as may run together", "user",
         "scontrol update JobId={job} ArrayTaskThrottle=…"}},
    Row{"JobHeldAdmin",
        {F::Hold, C::HeldByAdmin, "an administrator holds it", "operator", kRelease}},
    Row{"JobHeldUser",
        {F::Hold, C::HeldByUser, "its user, or whoever submitted it held, holds it", "user",
         kRelease}},
    Row{"JobHoldMaxRequeue",
        {F::Hold, C::HeldByAdmin, "it was started and put back so often that Slurm holds it",
         "operator", kRelease}},
    Row{"JobLaunchFailure",
        {F::System, C::Retry, "its last start failed: its own request, or the node", "operator",
         "look into slurmd's log on its last node"}},
    Row{"Licenses",
        {F::Licenses, C::Resources, "a licence that it needs is in use", "user",
         "scontrol show licenses tells which are free"}},
    Row{"MaxBBPerUser",
        {F::Limit, C::UserGpus, "its user has as much of the burst buffers as allowed", "admin"}},
    Row{"MaxMemPerLimit",
        {F::Constraints, C::TooSmall,
         "it asks for more memory per node or CPU than the partition gives", "user",
         "scontrol update JobId={job} MinMemoryNode=…", true}},
    Row{"MaxRequeue", {F::Hold, C::HeldByAdmin, "it was put back too often", "operator", kRelease}},
    Row{"NodeDown", {F::Nodes, C::Resources, "a node that it needs is down", "operator"}},
    Row{"NonZeroExitCode", {F::System, C::Retry, "its last run ended with an error", "user"}},
    Row{"None",
        {F::None, C::Priority, "Slurm has not looked at it since it came, or was changed",
         "nobody"}},
    Row{"OutOfMemory",
        {F::System, C::Retry, "its last run wanted more memory than it may have", "user"}},
    Row{"PartitionConfig",
        {F::Partition,
         C::TooSmall,
         "its request does not fit the settings of the partition",
         "user",
         {},
         true}},
    Row{"PartitionDown",
        {F::Partition, C::Resources, "its partition is down: jobs are taken and not started",
         "admin", "scontrol update PartitionName=… State=UP"}},
    Row{"PartitionInactive",
        {F::Partition, C::Resources, "its partition is inactive: nothing starts in it", "admin",
         "scontrol update PartitionName=… State=UP"}},
    Row{"PartitionNodeLimit",
        {F::Partition, C::TooSmall, "it asks for more nodes than its partition has or gives",
         "user", "scontrol update JobId={job} NumNodes=…", true}},
    Row{"PartitionTimeLimit",
        {F::Partition, C::TooSmall, "its time limit is above that of its partition", "user",
         kLimitTime, true}},
    Row{"PowerNotAvail",
        {F::Nodes, C::Resources, "there is not enough power for it now", "nobody"}},
    Row{"PowerReserved", {F::Nodes, C::Resources, "power is reserved for others", "nobody"}},
    Row{"Priority", {F::Priority, C::Priority, "jobs of higher priority wait before it", "nobody"}},
    Row{"Prolog", {F::System, C::Resources, "the prolog of its nodes runs", "nobody"}},
    Row{"QOSJobLimit", {F::Limit, C::UserJobs, "its QOS runs as many jobs as it may", "admin"}},
    Row{"QOSNotAllowed",
        {F::Account, C::TooSmall, "its QOS may not use this partition", "user",
         "scontrol update JobId={job} QOS=…", true}},
    Row{"QOSResourceLimit", {F::Limit, C::UserGpus, "its QOS uses as much as it may", "admin"}},
    Row{"QOSTimeLimit", {F::Limit, C::GpuTime, "its QOS has used the time that it may", "admin"}},
    Row{"QOSUsageThreshold",
        {F::Limit, C::GpuTime, "its user's fair share is below what its QOS asks for", "admin"}},
    Row{"ReqNodeNotAvail",
        {F::Nodes, C::Resources, "nodes that it must have are not available", "operator"}},
    Row{"Reservation",
        {F::Reservation, C::Resources, "its reservation has not begun, or is full", "nobody"}},
    Row{"ReservationDeleted",
        {F::Reservation, C::TooSmall, "its reservation was deleted", "user",
         "scontrol update JobId={job} ReservationName=", true}},
    Row{"Resources", {F::Resources, C::Resources, "what it asks for is not free", "nobody"}},
    Row{"SchedDefer",
        {F::System, C::Priority, "the scheduler is busy and looks at it later", "nobody"}},
    Row{"SystemFailure",
        {F::System, C::Retry, "something in Slurm or on a node has failed", "operator"}},
    Row{"TimeLimit",
        {F::System, C::Retry, "its last run reached its time limit", "user", kLimitTime}},
};
static_assert(std::ranges::is_sorted(kWords, {}, &Row::word));

constexpr ReasonWord kUnknownWord{F::Other, C::Resources, {}, "operator", {}, false};

/// "CPU" and "Cpu", of one version and another.
std::string lower(std::string_view text) {
  std::string small;
  for (const char c : text) small += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

struct Scope {
  std::string_view suffix, key, text;
};
// Longer ones first.
constexpr std::array kScopes{
    Scope{"PerAccount", "PA", "per account"}, Scope{"PerAcct", "PA", "per account"},
    Scope{"PerUser", "PU", "per user"},       Scope{"PerNode", "PN", "per node"},
    Scope{"PerJob", "PJ", "per job"},         Scope{"Per", "", ""}};

WaitCode code_of_limit(const Limit& limit) {
  const bool is_group = limit.owner == LimitOwner::Association || limit.key.starts_with("Grp") ||
                        limit.key.ends_with("PA");
  if (limit.key.find("Mins") != std::string::npos || limit.key == "GrpWall") return C::GpuTime;
  if (limit.scope == "per job" || limit.scope == "per node" || limit.is_least) return C::TooSmall;
  const bool is_jobs = limit.what == "jobs" || limit.what == "submit";
  if (is_jobs) return is_group ? C::GroupJobs : C::UserJobs;
  return is_group ? C::GroupGpus : C::UserGpus;
}

}  // namespace

std::string_view to_string(ReasonFamily family) noexcept {
  switch (family) {
    case F::None: return "not looked at";
    case F::Priority: return "priority";
    case F::Resources: return "resources";
    case F::Reservation: return "reservation";
    case F::Limit: return "limit";
    case F::Dependency: return "dependency";
    case F::Begin: return "begin time";
    case F::Hold: return "hold";
    case F::Nodes: return "node state";
    case F::Partition: return "partition";
    case F::Constraints: return "request";
    case F::Array: return "array limit";
    case F::Licenses: return "licences";
    case F::Account: return "account";
    case F::Burst: return "burst buffer";
    case F::System: return "slurm";
    case F::Other: break;
  }
  return "other";
}

ReasonWord explain_word(std::string_view reason) noexcept {
  // "ReqNodeNotAvail, UnavailableNodes:n1", "RaisedSignal:9(Killed)"
  std::string_view word = reason.substr(0, reason.find_first_of(",:( "));
  if (word.empty()) word = "None";
  const auto found = std::ranges::lower_bound(kWords, word, {}, &Row::word);
  if (found != kWords.end() && found->word == word) return found->meaning;
  // A person's own word for a hold, and what Slurm writes when it puts a job back.
  if (reason.starts_with("job requeued in held state") ||
      reason.starts_with("launch failed requeued held"))
    return {F::Hold, C::HeldByAdmin, "it was put back into the queue and is held", "operator",
            kRelease};
  if (const auto limit = limit_of(word)) {
    const WaitCode code = code_of_limit(*limit);
    return {F::Limit, code, {}, code == C::TooSmall ? "user" : "admin", {}, code == C::TooSmall};
  }
  return kUnknownWord;
}

std::optional<Limit> limit_of(std::string_view word) {
  Limit limit;
  std::string_view rest = word;
  if (take_prefix(rest, "Assoc")) {
    limit.owner = LimitOwner::Association;
  } else if (take_prefix(rest, "QOS")) {
    limit.owner = LimitOwner::Qos;
  } else {
    return std::nullopt;
  }
  const bool is_group = take_prefix(rest, "Grp");
  const bool is_most = !is_group && take_prefix(rest, "Max");
  limit.is_least = !is_group && !is_most && take_prefix(rest, "Min");
  if (!is_group && !is_most && !limit.is_least) return std::nullopt;
  take_suffix(rest, "Limit");
  std::string_view per;  // as the keys end
  limit.scope = is_group ? "in all" : limit.is_least ? "at least" : "";
  for (const Scope& scope : kScopes) {
    if (!take_suffix(rest, scope.suffix)) continue;
    per = scope.key;
    limit.scope = scope.text;
    break;
  }
  const bool is_minutes = take_suffix(rest, "Minutes") || take_suffix(rest, "Mins");
  const bool is_running = is_minutes && take_suffix(rest, "Run");
  limit.what = lower(rest);
  const std::string head = is_group ? "Grp" : limit.is_least ? "Min" : "Max";
  const auto ends = [&](std::string_view tail) {
    return head + std::string{tail} + std::string{per};
  };
  if (limit.what == "jobs" || limit.what == "job") {
    limit.what = "jobs";
    limit.key = ends("Jobs");
  } else if (limit.what == "submitjobs" || limit.what == "submitjob") {
    limit.what = "submit";
    limit.key = ends("SubmitJobs");
  } else if (limit.what == "wall" || limit.what == "wallduration") {
    limit.what = "wall";
    limit.key = is_group ? "GrpWall" : "MaxWallPJ";
  } else {
    limit.key = ends(is_running ? "TRESRunMins" : is_minutes ? "TRESMins" : "TRES");
    if (limit.is_least) limit.key = "MinTRESPJ";
  }
  if (limit.scope.empty())
    limit.scope = limit.owner == LimitOwner::Association ? "at once" : "in all";
  return limit;
}

}  // namespace berth::advise
