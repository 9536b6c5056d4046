#include "daemon/gates.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace berth {

namespace {

enum class Met : std::uint8_t { Yes, NotYet, Never };

Met is_met(DependencyKind kind, Outcome outcome) {
  switch (kind) {
    case DependencyKind::AfterOk: return outcome == Outcome::Completed ? Met::Yes : Met::Never;
    case DependencyKind::AfterNotOk: return outcome == Outcome::Completed ? Met::Never : Met::Yes;
    case DependencyKind::AfterAny:
    case DependencyKind::After:
    case DependencyKind::Singleton: return Met::Yes;
  }
  return Met::NotYet;
}

std::string never_text(const Dependency& dependency, Outcome outcome) {
  return fmt::format("{}:{} can never be met: job {} {}", to_string(dependency.kind),
                     dependency.job, dependency.job, to_string(outcome));
}

bool asks_singleton(const JobSpec& spec) {
  return std::ranges::any_of(spec.dependencies, [](const Dependency& dependency) {
    return dependency.kind == DependencyKind::Singleton;
  });
}

}  // namespace

std::int32_t gpus_of_request(const JobSpec& spec) { return std::max(spec.gpus, spec.gpus_max); }

std::string_view to_string(GateKind kind) noexcept {
  switch (kind) {
    case GateKind::Hold: return "hold";
    case GateKind::Suspension: return "suspension";
    case GateKind::Begin: return "begin";
    case GateKind::Dependency: return "dependency";
    case GateKind::Array: return "array";
    case GateKind::Quota: return "quota";
    case GateKind::RetryDelay: return "pace";
    case GateKind::Fit: return "fit";
  }
  return "?";
}

std::vector<std::string> Gates::shares_of(const JobSpec& spec) {
  std::vector<std::string> shares{"user/" + spec.user};
  if (!spec.group.empty()) shares.push_back("group/" + spec.group);
  return shares;
}

void Gates::set_times(Row& row, Time now, std::int64_t wall) {
  const std::int64_t begin = row.spec->begin * 1'000'000;
  row.waits_for_begin = begin > wall;
  if (row.waits_for_begin) row.not_before = std::max(row.not_before, now + Duration{begin - wall});
}

void Gates::add(const LedgerJob& job, Time now, std::int64_t wall) {
  Row& row = rows_[job.number];
  row.spec = job.spec;
  row.array = job.array;
  row.is_held = job.is_held;
  row.is_frozen = job.is_frozen;
  row.has_started = job.first_start.has_value();
  set_times(row, now, wall);
  set_dependencies(job.number, row);
  const NameKey name{row.spec->user, row.spec->name};
  by_name_[name].insert(job.number);
  if (asks_singleton(*row.spec)) ++singletons_[name];
  if (row.not_before > now) timers_.insert({row.not_before, job.number});
  look_at(job.number);
  if (job.attempt) enter(job.number, row);  // it runs: it has passed all gates before
}

void Gates::set_dependencies(JobNumber job, Row& row) {
  row.unmet.clear();
  row.is_one_met = false;
  std::string never;
  for (const Dependency& dependency : row.spec->dependencies) {
    if (dependency.kind == DependencyKind::Singleton) continue;
    const auto target = rows_.find(dependency.job);
    if (target != rows_.end()) {
      if (dependency.kind == DependencyKind::After && target->second.has_started) {
        row.is_one_met = true;
        continue;
      }
      row.unmet.push_back(dependency.job);
      dependants_[dependency.job].push_back(job);
      continue;
    }
    const auto outcome = outcome_of_(dependency.job);
    if (!outcome) {
      never = fmt::format("job {} does not exist", dependency.job);
    } else if (is_met(dependency.kind, *outcome) == Met::Yes) {
      row.is_one_met = true;
    } else {
      never = never_text(dependency, *outcome);
    }
  }
  const bool hopeless =
      !never.empty() && (!row.spec->any_dependency || (row.unmet.empty() && !row.is_one_met));
  if (hopeless) give_up_on(job, std::move(never));
}

bool Gates::depends(const Row& row) const noexcept {
  if (row.spec->any_dependency) return !row.unmet.empty() && !row.is_one_met;
  return !row.unmet.empty();
}

void Gates::give_up_on(JobNumber job, std::string why) {
  Row& row = rows_.at(job);
  if (std::exchange(row.is_unsatisfiable, true)) return;
  unsatisfiable_.push_back({job, std::move(why)});
}

void Gates::started(JobNumber job) {
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.has_started) return;
  found->second.has_started = true;
  const auto waiting = dependants_.find(job);
  if (waiting == dependants_.end()) return;
  for (const JobNumber other : waiting->second) {
    const auto row = rows_.find(other);
    if (row == rows_.end()) continue;
    const bool after = std::ranges::any_of(row->second.spec->dependencies, [&](const auto& d) {
      return d.job == job && d.kind == DependencyKind::After;
    });
    if (after) meet(other, job);
  }
}

void Gates::meet(JobNumber waiting, JobNumber target) {
  Row& row = rows_.at(waiting);
  std::erase(row.unmet, target);
  row.is_one_met = true;
  look_at(waiting);
}

void Gates::ended(JobNumber job, Outcome outcome, bool is_final, Time not_before) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  Row& row = found->second;
  if (row.is_in) leave(job, row);
  if (!is_final) {
    row.not_before = std::max(row.not_before, not_before);
    timers_.insert({row.not_before, job});
    look_at(job);
    return;
  }
  const NameKey name{row.spec->user, row.spec->name};
  if (asks_singleton(*row.spec) && --singletons_[name] == 0) singletons_.erase(name);
  auto& siblings = by_name_[name];
  siblings.erase(job);
  if (singletons_.contains(name)) {
    for (const JobNumber other : siblings) look_at(other);
  }
  if (siblings.empty()) by_name_.erase(name);
  for (const std::string& share : shares_of(*row.spec)) shares_[share].waiting.erase(job);
  if (row.array != 0) array_waiting_[row.array].erase(job);
  timers_.erase({row.not_before, job});
  changed_.erase(job);
  rows_.erase(found);
  const auto waiting = dependants_.extract(job);
  if (waiting.empty()) return;
  for (const JobNumber other : waiting.mapped()) {
    const auto dependant = rows_.find(other);
    if (dependant == rows_.end()) continue;
    for (const Dependency& dependency : dependant->second.spec->dependencies) {
      if (dependency.job != job) continue;
      if (is_met(dependency.kind, outcome) == Met::Yes) {
        meet(other, job);
        continue;
      }
      Row& unlucky = dependant->second;
      std::erase(unlucky.unmet, job);
      const bool hopeless =
          !unlucky.spec->any_dependency || (unlucky.unmet.empty() && !unlucky.is_one_met);
      if (hopeless) give_up_on(other, never_text(dependency, outcome));
    }
  }
}

void Gates::change(const LedgerJob& job, Time now, std::int64_t wall) {
  const auto found = rows_.find(job.number);
  if (found == rows_.end()) return;
  Row& row = found->second;
  const bool was_in = row.is_in;
  if (was_in) leave(job.number, row);
  const NameKey before{row.spec->user, row.spec->name};
  if (asks_singleton(*row.spec) && --singletons_[before] == 0) singletons_.erase(before);
  by_name_[before].erase(job.number);
  timers_.erase({row.not_before, job.number});
  row.spec = job.spec;
  row.is_held = job.is_held;
  row.is_frozen = job.is_frozen;
  row.unfit.clear();  // it may ask for less now
  row.not_before = now;
  set_times(row, now, wall);
  set_dependencies(job.number, row);
  const NameKey name{row.spec->user, row.spec->name};
  by_name_[name].insert(job.number);
  if (asks_singleton(*row.spec)) ++singletons_[name];
  if (row.not_before > now) timers_.insert({row.not_before, job.number});
  if (job.attempt) {
    enter(job.number, row);
    return;
  }
  if (was_in) withdrawn_.push_back(job.number);  // and comes back as what it is now
  look_at(job.number);
}

bool Gates::is_singleton_blocked(JobNumber job, const Row& row) const {
  if (!asks_singleton(*row.spec)) return false;
  const auto siblings = by_name_.find({row.spec->user, row.spec->name});
  return siblings != by_name_.end() && *siblings->second.begin() < job;
}

std::optional<FullLimit> Gates::full_limit(const Row& row) const {
  using enum FullLimit::Of;
  for (const std::string& who : shares_of(*row.spec)) {
    const auto found = shares_.find(who);
    if (found == shares_.end()) continue;
    const auto& [limits, used, as_of, in, waiting] = found->second;
    const bool is_groups = who.starts_with("group/");
    if (limits.gpus > 0 && in.gpus + gpus_of_request(*row.spec) > limits.gpus)
      return FullLimit{Gpus, is_groups};
    if (limits.jobs > 0 && in.jobs >= limits.jobs) return FullLimit{Jobs, is_groups};
    if (limits.gpu_seconds > 0 && used >= limits.gpu_seconds) return FullLimit{GpuTime, is_groups};
  }
  return std::nullopt;
}

std::optional<FullLimit> Gates::full_limit(JobNumber job) const {
  const auto found = rows_.find(job);
  return found == rows_.end() ? std::nullopt : full_limit(found->second);
}

bool Gates::has_array_room(const Row& row) const {
  if (row.array == 0 || !row.spec->array || row.spec->array->at_once == 0) return true;
  const auto in = array_in_.find(row.array);
  return in == array_in_.end() || in->second < row.spec->array->at_once;
}

bool Gates::may_enter(JobNumber job, const Row& row, Time now) const {
  return !row.is_unsatisfiable && !row.is_held && !row.is_frozen && row.unfit.empty() &&
         row.not_before <= now && !depends(row) && !is_singleton_blocked(job, row) &&
         has_array_room(row) && has_quota(row);
}

void Gates::enter(JobNumber job, Row& row) {
  row.is_in = true;
  for (const std::string& who : shares_of(*row.spec)) {
    Share& share = shares_[who];
    share.in.gpus += gpus_of_request(*row.spec);
    ++share.in.jobs;
    share.waiting.erase(job);
  }
  if (row.array != 0) {
    ++array_in_[row.array];
    array_waiting_[row.array].erase(job);
  }
}

void Gates::let_in(JobNumber job) {
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.is_in) return;
  changed_.erase(job);
  looked_at_.push_back(job);
  enter(job, found->second);
}

void Gates::leave(JobNumber job, Row& row) {
  row.is_in = false;
  changed_.erase(job);
  for (const std::string& who : shares_of(*row.spec)) {
    Share& share = shares_[who];
    share.in.gpus -= gpus_of_request(*row.spec);
    --share.in.jobs;
    if (!share.waiting.empty()) opened_.insert(who);
  }
  if (row.array != 0) {
    if (--array_in_[row.array] == 0) array_in_.erase(row.array);
    // One left: the next one may come, and if something else keeps it out, the one after it.
    const auto& waiting = array_waiting_[row.array];
    changed_.insert(waiting.begin(), waiting.end());
  }
}

void Gates::take_ready(Time now, std::vector<JobNumber>& ready) {
  settle_budgets(now);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    look_at(timers_.begin()->second);
    timers_.erase(timers_.begin());
  }
  std::set<JobNumber> looking;
  looking.swap(changed_);
  for (const JobNumber job : looking) try_to_enter(job, now, ready);
  std::set<std::string> opened;
  opened.swap(opened_);
  for (const std::string& who : opened) {
    const Share& share = shares_[who];
    for (auto next = share.waiting.begin(); next != share.waiting.end() && !share.is_full();) {
      const JobNumber job = *next++;
      try_to_enter(job, now, ready);
    }
  }
  std::ranges::sort(ready);
}

void Gates::try_to_enter(JobNumber job, Time now, std::vector<JobNumber>& ready) {
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.is_in) return;
  Row& row = found->second;
  looked_at_.push_back(job);
  if (may_enter(job, row, now)) {
    enter(job, row);
    ready.push_back(job);
    return;
  }
  if (row.array != 0 && !has_array_room(row)) array_waiting_[row.array].insert(job);
  if (has_quota(row)) return;
  for (const std::string& who : shares_of(*row.spec)) shares_[who].waiting.insert(job);
}

void Gates::take_withdrawn(std::vector<JobNumber>& withdrawn) {
  withdrawn.insert(withdrawn.end(), withdrawn_.begin(), withdrawn_.end());
  withdrawn_.clear();
}

void Gates::take_unsatisfiable(std::vector<Unsatisfiable>& unsatisfiable) {
  unsatisfiable.insert(unsatisfiable.end(), unsatisfiable_.begin(), unsatisfiable_.end());
  unsatisfiable_.clear();
}

void Gates::take_looked_at(std::vector<JobNumber>& jobs) {
  jobs.insert(jobs.end(), looked_at_.begin(), looked_at_.end());
  looked_at_.clear();
}

bool Gates::is_in(JobNumber job) const {
  const auto found = rows_.find(job);
  return found != rows_.end() && found->second.is_in;
}

Gates::InUse Gates::in_use(const std::string& who) const {
  const auto found = shares_.find(who);
  return found == shares_.end() ? InUse{} : found->second.in;
}

}  // namespace berth
