#include "slurm_host/slurm_book.h"

#include <algorithm>

#include "slurm_host/slurm_job_spec.h"

namespace berth {

namespace {

/// Requeues make the count higher and the submit time later. A slurmctld that forgot a requeue goes
/// back to a run that was seen, or to one between two that were.
bool is_run_of(const BookedJob& booked, const slurm::Job& job) {
  const std::uint32_t restarts = job.key.restarts;
  if (!booked.user.empty() && booked.user != job.user) return false;
  // A requeue sets the submit time at once and the count only when the last process is gone.
  if (job.completing) return true;
  const auto seen = booked.runs.lower_bound(restarts);
  if (seen == booked.runs.end()) return true;
  if (seen->first == restarts) return seen->second == job.key.submitted;
  if (seen == booked.runs.begin()) return false;
  return std::prev(seen)->second <= job.key.submitted && job.key.submitted <= seen->second;
}

}  // namespace

void SlurmBook::load(const Ledger& ledger) {
  for (const auto& [number, job] : ledger.jobs()) {
    const auto first = first_sight_from(job.spec->key);
    if (!first) continue;
    add({.number = number,
         .first = *first,
         .user = job.spec->user,
         .runs = {{first->restarts, first->submitted}},
         .limit = job.spec->time_limit});
  }
  for (const auto& [key, value] : ledger.settings()) {
    auto claim = claim_from(key, value);
    if (!claim) continue;
    auto& [number, its] = *claim;
    if (BookedJob* live = find(number)) {
      live->runs.emplace(its.restarts, its.submitted);
      live->claim = std::move(its);
      continue;
    }
    BookedJob over{.number = number,
                   .first = {its.name, its.submitted, its.restarts},
                   .user = its.user,
                   .runs = {{its.restarts, its.submitted}}};
    over.claim = std::move(its);
    add(std::move(over));
  }
}

/// Of two jobs of one name the later one has it: the other was replaced.
void SlurmBook::add(BookedJob job) {
  const auto [entry, is_new] = by_name_.try_emplace(job.first.name, job.number);
  if (!is_new && entry->second != job.number) {
    const JobNumber older = std::min(entry->second, job.number);
    entry->second = std::max(entry->second, job.number);
    if (BookedJob* replaced = older == job.number ? &job : find(older))
      replaced->is_replaced = true;
  }
  const JobNumber number = job.number;
  jobs_.insert_or_assign(number, std::move(job));
}

void SlurmBook::forget(JobNumber number) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;
  const auto name = by_name_.find(found->second.first.name);
  if (name != by_name_.end() && name->second == number) by_name_.erase(name);
  jobs_.erase(found);
}

BookedJob* SlurmBook::find(JobNumber number) {
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::int32_t SlurmBook::tasks_of(std::uint32_t array) const {
  return static_cast<std::int32_t>(std::ranges::count_if(jobs_, [&](const auto& entry) {
    const BookedJob& job = entry.second;
    const bool is_over = job.now == nullptr || slurm::is_over(job.now->phase);
    return job.first.name.task >= 0 && job.first.name.job == array && !is_over;
  }));
}

std::vector<SlurmBook::Unknown> SlurmBook::read(const std::vector<slurm::Job>& jobs) {
  for (auto& [number, booked] : jobs_) {
    booked.now = nullptr;
    ++booked.unseen;
  }
  std::vector<Unknown> unknown;
  for (const slurm::Job& job : jobs) {
    for (const SlurmName& name : names_of(job)) {
      const auto known = by_name_.find(name);
      BookedJob* booked = known == by_name_.end() ? nullptr : find(known->second);
      if (booked == nullptr || booked->is_replaced || !is_run_of(*booked, job)) {
        if (booked != nullptr) booked->is_replaced = true;
        unknown.push_back({name, &job});
        continue;
      }
      if (!job.completing) booked->runs.emplace(job.key.restarts, job.key.submitted);
      booked->now = &job;
      booked->unseen = 0;
    }
  }
  return unknown;
}

}  // namespace berth
