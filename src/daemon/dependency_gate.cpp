#include "daemon/dependency_gate.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace berth {

namespace {

bool is_met(DependencyKind kind, Outcome outcome) {
  switch (kind) {
    case DependencyKind::AfterOk: return outcome == Outcome::Completed;
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

bool asks_singleton(const JobSpec& spec) {
  return std::ranges::any_of(spec.dependencies, [](const Dependency& dependency) {
    return dependency.kind == DependencyKind::Singleton;
  });
}

}  // namespace

void DependencyGate::add(const LedgerJob& job) {
  Row& row = rows_[job.number];
  row.spec = job.spec;
  row.has_started = job.first_start.has_value();
  set_dependencies(job.number, row);
  add_name(job.number, *row.spec);
}

void DependencyGate::change(const LedgerJob& job) {
  Row& row = rows_.at(job.number);
  remove_singleton(*row.spec);
  by_name_[{row.spec->user, row.spec->name}].erase(job.number);
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

void DependencyGate::set_dependencies(JobNumber job, Row& row) {
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
    } else if (is_met(dependency.kind, *outcome)) {
      row.is_one_met = true;
    } else {
      never = never_text(dependency, *outcome);
    }
  }
  const bool hopeless =
      !never.empty() && (!row.spec->any_dependency || (row.unmet.empty() && !row.is_one_met));
  if (hopeless) give_up_on(job, std::move(never));
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
  if (std::exchange(rows_.at(job).is_unsatisfiable, true)) return;
  unsatisfiable_.push_back({job, std::move(why)});
}

void DependencyGate::meet(JobNumber waiting, JobNumber target, std::set<JobNumber>& recheck) {
  Row& row = rows_.at(waiting);
  std::erase(row.unmet, target);
  row.is_one_met = true;
  recheck.insert(waiting);
}

void DependencyGate::started(JobNumber job, std::set<JobNumber>& recheck) {
  const auto found = rows_.find(job);
  if (found == rows_.end() || std::exchange(found->second.has_started, true)) return;
  const auto waiting = dependants_.find(job);
  if (waiting == dependants_.end()) return;
  for (const JobNumber other : waiting->second) {
    const auto row = rows_.find(other);
    if (row == rows_.end()) continue;
    const bool after = std::ranges::any_of(row->second.spec->dependencies, [&](const auto& d) {
      return d.job == job && d.kind == DependencyKind::After;
    });
    if (after) meet(other, job, recheck);
  }
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
  for (const Dependency& dependency : row.spec->dependencies) {
    if (dependency.job != target) continue;
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

void DependencyGate::take_unsatisfiable(std::vector<UnsatisfiableJob>& jobs) {
  jobs.insert(jobs.end(), std::make_move_iterator(unsatisfiable_.begin()),
              std::make_move_iterator(unsatisfiable_.end()));
  unsatisfiable_.clear();
}

void DependencyGate::explain(JobNumber job, std::vector<ShutGate>& shut) const {
  const auto found = rows_.find(job);
  if (found == rows_.end()) return;
  const Row& row = found->second;
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
}

}  // namespace berth
