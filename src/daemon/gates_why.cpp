// What a shut gate says.
#include <algorithm>
#include <cmath>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/gates.h"

namespace berth {

namespace {

struct Spent {
  double seconds = 0;
  std::optional<Time> opens;
};

std::string in_hours(double gpu_seconds) {
  const double hours = gpu_seconds / 3600;
  return fmt::format("{:.{}f}", hours, hours < 10 ? 3 : 1);
}

/// People set limits in thousandths of an hour.
std::int64_t milli_hours_up(double gpu_seconds) {
  return static_cast<std::int64_t>(std::ceil(gpu_seconds / 3.6));
}

void add_quota(const std::string& who, const ShareLimits& limits, const Spent& spent,
               const Gates::InUse& in, std::int32_t gpus, std::vector<ShutGate>& shut) {
  const auto slash = who.find('/');
  const std::string name = who.substr(slash + 1);
  const std::string whose = name + (who.substr(0, slash) == "group" ? " --group" : "");
  if (limits.gpus > 0 && in.gpus + gpus > limits.gpus) {
    shut.push_back(
        {.kind = GateKind::Quota,
         .text = fmt::format("{} has {} of {} GPUs in use or in line, this job asks for {}", name,
                             in.gpus, limits.gpus, gpus),
         .numbers = {{"used", in.gpus}, {"limit", limits.gpus}, {"need", gpus}, {"unit", "GPUs"}},
         .change = fmt::format("{} --gpu-limit {}", whose, in.gpus + gpus)});
  }
  if (limits.jobs > 0 && in.jobs >= limits.jobs) {
    shut.push_back(
        {.kind = GateKind::Quota,
         .text = fmt::format("{} has {} of {} jobs running or in line", name, in.jobs, limits.jobs),
         .numbers = {{"used", in.jobs},
                     {"limit", limits.jobs},
                     {"need", std::int64_t{1}},
                     {"unit", "jobs"}},
         .change = fmt::format("{} --job-limit {}", whose, in.jobs + 1)});
  }
  if (limits.gpu_seconds > 0 && spent.seconds >= limits.gpu_seconds) {
    const std::int64_t enough = milli_hours_up(spent.seconds) + 1;
    shut.push_back({.kind = GateKind::Quota,
                    .text = fmt::format("{} has used {} of {} GPU hours", name,
                                        in_hours(spent.seconds), in_hours(limits.gpu_seconds)),
                    .numbers = {{"used", spent.seconds / 3600},
                                {"limit", limits.gpu_seconds / 3600},
                                {"need", std::int64_t{0}},
                                {"unit", "GPU hours"}},
                    .until = spent.opens,
                    .change = fmt::format("{} --gpu-hours {:.3f}", whose,
                                          static_cast<double>(enough) / 1000)});
  }
}

std::string moment(std::int64_t unix_seconds) {
  const std::time_t when = unix_seconds;
  std::tm local{};
  localtime_r(&when, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

std::vector<ShutGate> Gates::shut(JobNumber job, Time now) const {
  std::vector<ShutGate> shut;
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.is_in) return shut;
  const Row& row = found->second;
  if (row.is_held) shut.push_back({.kind = GateKind::Hold, .text = "held"});
  if (row.is_frozen) shut.push_back({.kind = GateKind::Suspension, .text = "suspended"});
  if (!row.unfit.empty()) shut.push_back({.kind = GateKind::Fit, .text = row.unfit});
  if (row.not_before > now) {
    const double seconds = to_seconds(row.not_before - now);
    shut.push_back(
        {.kind = row.waits_for_begin ? GateKind::Begin : GateKind::RetryDelay,
         // What is shown in lists is not written anew as time goes by: a moment stays true.
         .text = row.waits_for_begin
                     ? fmt::format("begins at {}", moment(row.spec->begin))
                     : fmt::format("tried again in {} after a failure", human_duration(seconds)),
         .numbers = {{"seconds_left", seconds}},
         .until = row.not_before});
  }
  const auto of = static_cast<std::int64_t>(row.spec->dependencies.size());
  if (depends(row)) {
    shut.push_back(
        {.kind = GateKind::Dependency,
         .text = fmt::format(
             "waits for job{} {}{}", row.unmet.size() == 1 ? "" : "s", fmt::join(row.unmet, ", "),
             row.spec->any_dependency && row.unmet.size() > 1 ? " (one of them)" : ""),
         .numbers = {{"unmet", static_cast<std::int64_t>(row.unmet.size())}, {"of", of}},
         .jobs = row.unmet});
  }
  if (is_singleton_blocked(job, row)) {
    const auto& siblings = by_name_.at({row.spec->user, row.spec->name});
    shut.push_back(
        {.kind = GateKind::Dependency,
         .text = fmt::format("waits for job {}, the one before it of this name", *siblings.begin()),
         .numbers = {{"unmet", std::int64_t{1}}, {"of", of}},
         .jobs = {*siblings.begin()}});
  }
  if (!has_array_room(row)) {
    const std::int32_t most = row.spec->array->at_once;
    const std::int32_t in = array_in_.at(row.array);
    shut.push_back(
        {.kind = GateKind::Array,
         .text = fmt::format("{} of its array run or are in line, at most {} at once", in, most),
         .numbers = {{"running", in}, {"at_once", most}}});
  }
  for (const std::string& who : shares_of(*row.spec)) {
    const auto share = shares_.find(who);
    if (share == shares_.end()) continue;
    add_quota(who, share->second.limits, {share->second.used_seconds, budget_opens(share->second)},
              share->second.in, gpus_of_request(*row.spec), shut);
  }
  return shut;
}

}  // namespace berth
