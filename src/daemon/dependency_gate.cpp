#include "daemon/dependency_gate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "daemon/dependency_targets.h"

namespace berth {

namespace {

bool is_satisfied(DependencyKind kind, Outcome outcome) {
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

std::string never_text(const Dependency& asked, std::string_view why) {
  return fmt::format("{}:{} can never be met: {}", to_string(asked.kind), to_text(asked), why);
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

bool DependencyGate::Row::depends() const {
  const auto is_met = [](const Wait& wait) { return wait.is_met(); };
  if (waits.empty()) return false;
  return spec->any_dependency ? std::ranges::none_of(waits, is_met)
                              : !std::ranges::all_of(waits, is_met);
}

std::string DependencyGate::Row::hopeless() const {
  const auto never_met = [](const Wait& wait) { return !wait.never.empty(); };
  if (spec->any_dependency && !std::ranges::all_of(waits, never_met)) return {};
  const auto found = std::ranges::find_if(waits, never_met);
  return found == waits.end() ? std::string() : found->never;
}

std::vector<JobNumber> DependencyGate::Row::unmet() const {
  std::set<JobNumber> all;
  for (const Wait& wait : waits) all.insert(wait.open.begin(), wait.open.end());
  return {all.begin(), all.end()};
}

void DependencyGate::add(const LedgerJob& job, Origin origin) {
  Row& row = rows_[job.number];
  row.spec = job.spec;
  row.array = job.array;
  row.array_index = job.array_index;
  row.submitted = job.submitted;
  row.started = job.first_start;
  set_dependencies(job.number, row, origin);
  add_name(job.number, *row.spec);
}

void DependencyGate::change(const LedgerJob& job) {
  Row& row = rows_.at(job.number);
  remove_singleton(*row.spec);
  by_name_[{row.spec->user, row.spec->name}].erase(job.number);
  if (!row.never.empty()) row.is_unsatisfiable = false;  // it was kept: another chance
  row.never.clear();
  row.spec = job.spec;
  set_dependencies(job.number, row, Origin::New);
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
  std::optional<PastJob> past;
  if (const auto live = rows_.find(dependency.job); live != rows_.end()) {
    named.array = live->second.array;
    if (live->second.spec->array) named.indices = &*live->second.spec->array;
  } else if (past_of_ && (past = past_of_(dependency.job)) && past->job.spec) {
    named.array = past->job.array;
    if (past->job.spec->array) named.indices = &*past->job.spec->array;
  }
  return targets_of(dependency, named,
                    row.array != 0 ? std::optional{row.array_index} : std::nullopt);
}

void DependencyGate::set_dependencies(JobNumber job, Row& row, Origin origin) {
  row.waits.clear();
  std::erase_if(due_, [&](const auto& entry) { return std::get<1>(entry) == job; });
  for (const Dependency& asked : row.spec->dependencies) {
    if (asked.kind == DependencyKind::Singleton) continue;
    row.waits.push_back({.asked = asked, .targets = targets(asked, row)});
    begin_wait(job, row.waits.back());
  }
  std::string why = row.hopeless();
  if (why.empty()) return;
  const bool stays = origin == Origin::Recovered && is_of_an_older_version(row);
  give_up_on(job, std::move(why), stays ? GivenUp::Stays : GivenUp::IsEnded);
}

void DependencyGate::begin_wait(JobNumber job, Wait& wait) {
  const Dependency& asked = wait.asked;
  if (wait.targets.empty()) wait.never = never_text(asked, "that array has no such index");
  wait.open.insert(wait.targets.begin(), wait.targets.end());
  for (const JobNumber target : wait.targets) {
    const auto live = rows_.find(target);
    if (live == rows_.end()) {
      settle_past(job, wait, target);
      continue;
    }
    const auto started = live->second.started;
    if (asked.kind != DependencyKind::After || !started)
      dependants_[target].push_back(job);
    else if (asked.minutes == 0)
      wait.open.erase(target);
    else
      due_.emplace(*started + std::chrono::minutes{asked.minutes}, job, target);
  }
}

/// Of a job that is over, or never was.
void DependencyGate::settle_past(JobNumber job, Wait& wait, JobNumber target) {
  const auto outcome = outcome_of_(target);
  if (outcome && wait.asked.minutes > 0 && past_of_) {
    const auto past = past_of_(target);
    if (past && past->job.first_start) {
      due_.emplace(*past->job.first_start + std::chrono::minutes{wait.asked.minutes}, job, target);
      return;
    }
  }
  if (outcome)
    wait.settle(target, *outcome);
  else
    wait.never = fmt::format("job {} does not exist", target);
}

/// One of its jobs is over. An array has failed as a whole if one of its jobs did, and is known to
/// have done so once all are over.
void DependencyGate::Wait::settle(JobNumber target, Outcome outcome) {
  if (open.erase(target) == 0 || !never.empty()) return;
  has_failed = has_failed || outcome != Outcome::Completed;
  if (asked.kind == DependencyKind::AfterNotOk) {
    if (open.empty() && !has_failed)
      never = never_text(asked, targets.size() == 1
                                    ? fmt::format("job {} {}", target, to_string(outcome))
                                    : fmt::format("all jobs of array {} completed", asked.job));
  } else if (!is_satisfied(asked.kind, outcome)) {
    never = never_text(asked, fmt::format("job {} {}", target, to_string(outcome)));
  }
}

/// Earlier versions took the number of an array for its first job alone, and let wait who was
/// submitted after another of its jobs had failed. An upgrade does not end them.
bool DependencyGate::is_of_an_older_version(const Row& row) const {
  if (!past_of_) return false;
  return std::ranges::any_of(row.waits, [&](const Wait& wait) {
    if (wait.never.empty() || wait.targets.size() < 2) return false;
    return std::ranges::any_of(wait.targets, [&](JobNumber target) {
      const auto past = rows_.contains(target) ? std::nullopt : past_of_(target);
      return past && !is_satisfied(wait.asked.kind, past->outcome) && past->ended <= row.submitted;
    });
  });
}

bool DependencyGate::is_singleton_blocked(JobNumber job, const Row& row) const {
  if (!asks_singleton(*row.spec)) return false;
  const auto siblings = by_name_.find({row.spec->user, row.spec->name});
  return siblings != by_name_.end() && *siblings->second.begin() < job;
}

void DependencyGate::give_up_on(JobNumber job, std::string why, GivenUp what) {
  Row& row = rows_.at(job);
  if (std::exchange(row.is_unsatisfiable, true)) return;
  if (row.spec->keep_unmet || what == GivenUp::Stays)
    row.never = std::move(why);
  else
    unsatisfiable_.push_back({job, std::move(why)});
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
    for (Wait& wait : row->second.waits) {
      if (wait.asked.kind != DependencyKind::After || !wait.open.contains(job)) continue;
      if (wait.asked.minutes > 0) {
        due_.emplace(now + std::chrono::minutes{wait.asked.minutes}, other, job);
      } else {
        wait.open.erase(job);
        recheck.insert(other);
      }
    }
  }
}

void DependencyGate::take_due(Time now, std::set<JobNumber>& recheck) {
  while (!due_.empty() && std::get<0>(*due_.begin()) <= now) {
    const auto [time, waiting, target] = *due_.begin();
    due_.erase(due_.begin());
    const auto row = rows_.find(waiting);
    if (row == rows_.end()) continue;
    for (Wait& wait : row->second.waits)
      if (wait.asked.kind == DependencyKind::After) wait.open.erase(target);
    recheck.insert(waiting);
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
  // It opens by time, however long the job itself has run.
  const bool by_time = std::ranges::any_of(due_, [&](const auto& entry) {
    return std::get<1>(entry) == waiting && std::get<2>(entry) == target;
  });
  for (Wait& wait : row.waits) {
    if (!wait.open.contains(target) || (by_time && wait.asked.kind == DependencyKind::After))
      continue;
    wait.settle(target, outcome);
    if (wait.never.empty()) recheck.insert(waiting);
  }
  if (std::string why = row.hopeless(); !why.empty())
    give_up_on(waiting, std::move(why), GivenUp::IsEnded);
}

bool DependencyGate::is_open(JobNumber job) const {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return true;
  const Row& row = found->second;
  return !row.is_unsatisfiable && !row.depends() && !is_singleton_blocked(job, row);
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
  std::int64_t of = 0;
  for (const Wait& wait : row.waits) of += std::ssize(wait.targets);
  const std::vector<JobNumber> unmet = row.unmet();
  if (!row.never.empty()) {
    shut.push_back({.kind = GateKind::Dependency,
                    .text = row.never + "; it stays until it is changed or cancelled",
                    .numbers = {{"unmet", std::ssize(unmet)}, {"of", of}},
                    .jobs = unmet});
  } else if (row.depends()) {
    shut.push_back({.kind = GateKind::Dependency,
                    .text = fmt::format(
                        "waits for job{} {}{}", unmet.size() == 1 ? "" : "s", listed(unmet),
                        row.spec->any_dependency && row.waits.size() > 1 ? " (one of them)" : ""),
                    .numbers = {{"unmet", std::ssize(unmet)}, {"of", of}},
                    .jobs = unmet});
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
