#include "daemon/dependency_gate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/dependency_targets.h"

namespace berth {

namespace {

bool is_met(DependencyKind kind, Outcome outcome) {
  switch (kind) {
    case DependencyKind::AfterOk:
    case DependencyKind::AfterCorr: return outcome == Outcome::Completed;
    case DependencyKind::AfterNotOk: return outcome != Outcome::Completed;
    case DependencyKind::AfterAny:
    case DependencyKind::After:
    case DependencyKind::Singleton: break;
  }
  return true;
}

std::string never_text(const Dependency& dependency, Outcome outcome) {
  return fmt::format("{}:{} can never be met: job {} {}", to_string(dependency.kind),
                     dependency.job, dependency.job, to_string(outcome));
}

/// An array may have thousands.
std::string listed(const std::vector<JobNumber>& jobs) {
  constexpr std::size_t kMost = 8;
  const std::vector<JobNumber> first(
      jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, jobs.size())));
  const std::string text = fmt::format("{}", fmt::join(first, ", "));
  return jobs.size() <= kMost ? text : fmt::format("{} and {} more", text, jobs.size() - kMost);
}

bool asks_singleton(const JobSpec& spec) {
  return std::ranges::any_of(spec.dependencies, [](const Dependency& dependency) {
    return dependency.kind == DependencyKind::Singleton;
  });
}

}  // namespace

void DependencyGate::add(const LedgerJob& job) {
  Row& row = rows_[job.number];
  row.spec = job.spec;
  row.array = job.array;
  row.array_index = job.array_index;
  row.started = job.first_start;
  set_dependencies(job.number, row);
  add_name(job.number, *row.spec);
}

void DependencyGate::change(const LedgerJob& job) {
  Row& row = rows_.at(job.number);
  remove_singleton(*row.spec);
  by_name_[{row.spec->user, row.spec->name}].erase(job.number);
  if (!row.never.empty()) row.is_unsatisfiable = false;  // it was kept: another chance
  row.never.clear();
  row.spec = job.spec;
  set_dependencies(job.number, row);
  add_name(job.number, *row.spec);
}

void DependencyGate::add_name(JobNumber job, const JobSpec& spec) {
  const NameKey name{spec.user, spec.name};
  by_name_[name].insert(job);
  if (asks_singleton(spec)) ++singletons_[name];
}

void DependencyGate::remove_singleton(const JobSpec& spec) {
  const NameKey name{spec.user, spec.name};
  if (asks_singleton(spec) && --singletons_[name] == 0) singletons_.erase(name);
}

std::vector<JobNumber> DependencyGate::targets(const Dependency& dependency, const Row& row) const {
  NamedJob named;
  std::optional<LedgerJob> past;
  if (const auto live = rows_.find(dependency.job); live != rows_.end()) {
    named.array = live->second.array;
    if (live->second.spec->array) named.indices = &*live->second.spec->array;
  } else if (past_of_ && (past = past_of_(dependency.job)) && past->spec) {
    named.array = past->array;
    if (past->spec->array) named.indices = &*past->spec->array;
  }
  return targets_of(dependency, named,
                    row.array != 0 ? std::optional{row.array_index} : std::nullopt);
}

void DependencyGate::set_dependencies(JobNumber job, Row& row) {
  row.waits_for.clear();
  row.unmet.clear();
  row.is_one_met = false;
  std::erase_if(due_, [&](const auto& entry) { return std::get<1>(entry) == job; });
  std::string never;
  for (const Dependency& asked : row.spec->dependencies) {
    if (asked.kind == DependencyKind::Singleton) continue;
    // Where one of several is enough, one job of an array must not stand for all of them.
    const auto all = row.spec->any_dependency && asked.index == kWholeArray
                         ? std::vector<JobNumber>{asked.job}
                         : targets(asked, row);
    if (all.empty())
      never = fmt::format("{}:{} can never be met: that array has no such index",
                          to_string(asked.kind), to_text(asked));
    for (const JobNumber target : all)
      row.waits_for.push_back({.kind = asked.kind, .job = target, .minutes = asked.minutes});
  }
  for (const Dependency& dependency : row.waits_for) {
    const auto target = rows_.find(dependency.job);
    if (target == rows_.end()) {
      settle_past(job, dependency, row, never);
      continue;
    }
    const auto started = target->second.started;
    if (dependency.kind == DependencyKind::After && started && dependency.minutes == 0) {
      row.is_one_met = true;
      continue;
    }
    row.unmet.push_back(dependency.job);
    if (dependency.kind == DependencyKind::After && started)
      due_.emplace(*started + std::chrono::minutes{dependency.minutes}, job, dependency.job);
    else
      dependants_[dependency.job].push_back(job);
  }
  const bool hopeless =
      !never.empty() && (!row.spec->any_dependency || (row.unmet.empty() && !row.is_one_met));
  if (hopeless) give_up_on(job, std::move(never));
}

/// Of a job that is over, or never was.
void DependencyGate::settle_past(JobNumber job, const Dependency& dependency, Row& row,
                                 std::string& never) {
  const auto outcome = outcome_of_(dependency.job);
  if (outcome && dependency.minutes > 0 && past_of_) {
    const auto past = past_of_(dependency.job);
    if (past && past->first_start) {
      row.unmet.push_back(dependency.job);
      due_.emplace(*past->first_start + std::chrono::minutes{dependency.minutes}, job,
                   dependency.job);
      return;
    }
  }
  if (!outcome)
    never = fmt::format("job {} does not exist", dependency.job);
  else if (is_met(dependency.kind, *outcome))
    row.is_one_met = true;
  else
    never = never_text(dependency, *outcome);
}

bool DependencyGate::depends(const Row& row) noexcept {
  if (row.spec->any_dependency) return !row.unmet.empty() && !row.is_one_met;
  return !row.unmet.empty();
}

bool DependencyGate::is_singleton_blocked(JobNumber job, const Row& row) const {
  if (!asks_singleton(*row.spec)) return false;
  const auto siblings = by_name_.find({row.spec->user, row.spec->name});
  return siblings != by_name_.end() && *siblings->second.begin() < job;
}

void DependencyGate::give_up_on(JobNumber job, std::string why) {
  Row& row = rows_.at(job);
  if (std::exchange(row.is_unsatisfiable, true)) return;
  // Who waits for a whole array stays, as under Slurm: earlier versions took its number for the first
  // job alone, and an upgrade must not end what they let wait.
  const bool is_of_an_array = row.waits_for.size() > row.spec->dependencies.size();
  if (row.spec->keep_unmet || is_of_an_array)
    row.never = std::move(why);
  else
    unsatisfiable_.push_back({job, std::move(why)});
}

void DependencyGate::meet(JobNumber waiting, JobNumber target, std::set<JobNumber>& recheck) {
  Row& row = rows_.at(waiting);
  std::erase(row.unmet, target);
  row.is_one_met = true;
  recheck.insert(waiting);
}

void DependencyGate::started(JobNumber job, Time now, std::set<JobNumber>& recheck) {
  const auto found = rows_.find(job);
  if (found == rows_.end() || found->second.started) return;
  found->second.started = now;
  const auto waiting = dependants_.find(job);
  if (waiting == dependants_.end()) return;
  for (const JobNumber other : waiting->second) {
    const auto row = rows_.find(other);
    if (row == rows_.end()) continue;
    for (const Dependency& on : row->second.waits_for) {
      if (on.job != job || on.kind != DependencyKind::After) continue;
      if (on.minutes == 0)
        meet(other, job, recheck);
      else
        due_.emplace(now + std::chrono::minutes{on.minutes}, other, job);
    }
  }
}

void DependencyGate::take_due(Time now, std::set<JobNumber>& recheck) {
  while (!due_.empty() && std::get<0>(*due_.begin()) <= now) {
    const auto [time, waiting, target] = *due_.begin();
    due_.erase(due_.begin());
    if (rows_.contains(waiting)) meet(waiting, target, recheck);
  }
}

std::optional<Time> DependencyGate::next() const {
  if (due_.empty()) return std::nullopt;
  return std::get<0>(*due_.begin());
}

void DependencyGate::ended(JobNumber job, Outcome outcome, std::set<JobNumber>& recheck) {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  const std::shared_ptr<const JobSpec> spec = found->second.spec;
  const NameKey name{spec->user, spec->name};
  remove_singleton(*spec);
  auto& siblings = by_name_[name];
  siblings.erase(job);
  if (singletons_.contains(name)) recheck.insert(siblings.begin(), siblings.end());
  if (siblings.empty()) by_name_.erase(name);
  rows_.erase(found);
  // Those listed may have been changed since and wait for somebody else, or be over: settle() goes
  // by what they ask for now.
  const auto waiting = dependants_.extract(job);
  if (waiting.empty()) return;
  for (const JobNumber other : waiting.mapped()) settle(other, job, outcome, recheck);
}

void DependencyGate::settle(JobNumber waiting, JobNumber target, Outcome outcome,
                            std::set<JobNumber>& recheck) {
  const auto dependant = rows_.find(waiting);
  if (dependant == rows_.end()) return;
  Row& row = dependant->second;
  for (const Dependency& dependency : row.waits_for) {
    if (dependency.job != target) continue;
    // It opens by time, however long the job itself has run.
    const bool by_time = std::ranges::any_of(due_, [&](const auto& entry) {
      return std::get<1>(entry) == waiting && std::get<2>(entry) == target;
    });
    if (by_time) continue;
    if (is_met(dependency.kind, outcome)) {
      meet(waiting, target, recheck);
      continue;
    }
    std::erase(row.unmet, target);
    const bool hopeless = !row.spec->any_dependency || (row.unmet.empty() && !row.is_one_met);
    if (hopeless) give_up_on(waiting, never_text(dependency, outcome));
  }
}

bool DependencyGate::is_open(JobNumber job) const {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return true;
  const Row& row = found->second;
  return !row.is_unsatisfiable && !depends(row) && !is_singleton_blocked(job, row);
}

bool DependencyGate::is_kept_unmet(JobNumber job) const {
  const auto found = rows_.find(job);
  return found != rows_.end() && !found->second.never.empty();
}

void DependencyGate::take_unsatisfiable(std::vector<UnsatisfiableJob>& jobs) {
  jobs.insert(jobs.end(), std::make_move_iterator(unsatisfiable_.begin()),
              std::make_move_iterator(unsatisfiable_.end()));
  unsatisfiable_.clear();
}

void DependencyGate::explain(JobNumber job, std::vector<ShutGate>& shut) const {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  const Row& row = found->second;
  const auto of = static_cast<std::int64_t>(row.waits_for.size());
  if (!row.never.empty()) {
    shut.push_back({.kind = GateKind::Dependency,
                    .text = row.never + "; it stays until it is changed or cancelled",
                    .numbers = {{"unmet", static_cast<std::int64_t>(row.unmet.size())}, {"of", of}},
                    .jobs = row.unmet});
  } else if (depends(row)) {
    shut.push_back({.kind = GateKind::Dependency,
                    .text = fmt::format(
                        "waits for job{} {}{}", row.unmet.size() == 1 ? "" : "s", listed(row.unmet),
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
}

}  // namespace berth
