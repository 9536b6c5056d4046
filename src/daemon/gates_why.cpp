// What a shut gate says.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/gates.h"

namespace berth {

namespace {

struct Spent {
  double seconds = 0;
  std::optional<Time> opens;
};

void add_quota(const std::string& who, const ShareLimits& limits, const Spent& spent,
               const Gates::InUse& in, std::int32_t gpus, std::vector<ShutGate>& shut) {
  const std::string name = who.substr(who.find('/') + 1);
  if (limits.gpus > 0 && in.gpus + gpus > limits.gpus) {
    shut.push_back(
        {.kind = GateKind::Quota,
         .text = fmt::format("{} has {} of {} GPUs in use or in line, this job asks for {}", name,
                             in.gpus, limits.gpus, gpus),
         .have = static_cast<double>(limits.gpus - in.gpus),
         .need = static_cast<double>(gpus)});
  }
  if (limits.jobs > 0 && in.jobs >= limits.jobs) {
    shut.push_back(
        {.kind = GateKind::Quota,
         .text = fmt::format("{} has {} of {} jobs in use or in line", name, in.jobs, limits.jobs),
         .have = static_cast<double>(limits.jobs - in.jobs),
         .need = 1});
  }
  if (limits.gpu_seconds > 0 && spent.seconds >= limits.gpu_seconds) {
    shut.push_back({.kind = GateKind::Quota,
                    .text = fmt::format("{} has used {:.1f} of {:.1f} GPU hours", name,
                                        spent.seconds / 3600, limits.gpu_seconds / 3600),
                    .have = limits.gpu_seconds - spent.seconds,
                    .need = 0,
                    .until = spent.opens});
  }
}

}  // namespace

std::vector<ShutGate> Gates::shut(JobNumber job, Time now) const {
  std::vector<ShutGate> shut;
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.is_in) return shut;
  const Row& row = found->second;
  if (row.is_held) shut.push_back({.kind = GateKind::Hold, .text = "held"});
  if (row.is_frozen) shut.push_back({.kind = GateKind::Suspension, .text = "suspended"});
  if (row.not_before > now) {
    const double seconds = to_seconds(row.not_before - now);
    shut.push_back(
        {.kind = row.waits_for_begin ? GateKind::Begin : GateKind::Pace,
         .text = row.waits_for_begin
                     ? fmt::format("begins in {}", human_duration(seconds))
                     : fmt::format("tried again in {} after a failure", human_duration(seconds)),
         .have = 0,
         .need = seconds,
         .until = row.not_before});
  }
  if (depends(row)) {
    shut.push_back(
        {.kind = GateKind::Dependency,
         .text = fmt::format(
             "waits for job{} {}{}", row.unmet.size() == 1 ? "" : "s", fmt::join(row.unmet, ", "),
             row.spec->any_dependency && row.unmet.size() > 1 ? " (one of them)" : ""),
         .have = 0,
         .need = static_cast<double>(row.unmet.size()),
         .jobs = row.unmet});
  }
  if (is_singleton_blocked(job, row)) {
    const auto& siblings = by_name_.at({row.spec->user, row.spec->name});
    shut.push_back(
        {.kind = GateKind::Dependency,
         .text = fmt::format("waits for job {}, the one before it of this name", *siblings.begin()),
         .have = 0,
         .need = 1,
         .jobs = {*siblings.begin()}});
  }
  if (!has_array_room(row)) {
    const std::int32_t most = row.spec->array->at_once;
    shut.push_back({.kind = GateKind::Array,
                    .text = fmt::format("{} of its array are in, at most {} at once",
                                        array_in_.at(row.array), most),
                    .have = 0,
                    .need = 1});
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
