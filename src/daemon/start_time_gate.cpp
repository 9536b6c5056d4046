#include "daemon/start_time_gate.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace berth {

namespace {

std::string moment(std::int64_t unix_seconds) {
  const std::time_t when = unix_seconds;
  std::tm local{};
  localtime_r(&when, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

void StartTimeGate::add(JobNumber job, const JobSpec& spec, Time now, std::int64_t wall) {
  set(job, {.begin = spec.begin}, now, wall);
}

void StartTimeGate::change(JobNumber job, const JobSpec& spec, Time now, std::int64_t wall) {
  forget(job);
  set(job, {.not_before = now, .begin = spec.begin}, now, wall);
}

void StartTimeGate::set(JobNumber job, Row row, Time now, std::int64_t wall) {
  const std::int64_t begin = row.begin * 1'000'000;
  row.waits_for_begin = begin > wall;
  if (row.waits_for_begin) row.not_before = std::max(row.not_before, now + Duration{begin - wall});
  if (row.not_before > now) timers_.insert({row.not_before, job});
  rows_[job] = row;
}

// Timers of earlier moments may stay behind: when they fire, the job is looked at once for nothing.
void StartTimeGate::pause(JobNumber job, Time until) {
  Row& row = rows_[job];
  row.not_before = std::max(row.not_before, until);
  timers_.insert({row.not_before, job});
}

void StartTimeGate::forget(JobNumber job) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  timers_.erase({found->second.not_before, job});
  rows_.erase(found);
}

bool StartTimeGate::is_open(JobNumber job, Time now) const {
  const auto found = rows_.find(job);
  return found == rows_.end() || found->second.not_before <= now;
}

void StartTimeGate::take_due(Time now, std::set<JobNumber>& recheck) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    recheck.insert(timers_.begin()->second);
    timers_.erase(timers_.begin());
  }
}

std::optional<Time> StartTimeGate::next() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

void StartTimeGate::explain(JobNumber job, Time now, std::vector<ShutGate>& shut) const {
  if (is_open(job, now)) return;
  const Row& row = rows_.at(job);
  const double seconds = to_seconds(row.not_before - now);
  shut.push_back(
      {.kind = row.waits_for_begin ? GateKind::Begin : GateKind::RetryDelay,
       // What is shown in lists is not written anew as time goes by: a moment stays true.
       .text = row.waits_for_begin
                   ? fmt::format("begins at {}", moment(row.begin))
                   : fmt::format("tried again in {} after a failure", human_duration(seconds)),
       .numbers = {{"seconds_left", seconds}},
       .until = row.not_before});
}

}  // namespace berth
