#include "policies/chronus/lease_plan.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace berth::chronus {

std::int64_t LeasePlan::used(Term term) const noexcept {
  const Term at = term - first_;
  return at >= 0 && at < std::ssize(used_) ? used_[static_cast<std::size_t>(at)] : 0;
}

std::span<const Term> LeasePlan::leases(JobId job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return {};
  return found->second.terms;
}

const LeaseRequest& LeasePlan::request(JobId job) const {
  const auto found = jobs_.find(job);
  BERTH_CHECK(found != jobs_.end(), "only an admitted job has a request in the plan");
  return found->second.request;
}

void LeasePlan::next_jobs(std::vector<JobId>& jobs) const {
  for (const auto& [job, promise] : jobs_) {
    if (!promise.terms.empty() && promise.terms.front() == first_) jobs.push_back(job);
  }
}

void LeasePlan::owe(Term end, std::int64_t gpu_leases) {
  const auto entry = owed_.try_emplace(end, 0).first;
  entry->second += gpu_leases;
  if (entry->second == 0) owed_.erase(entry);
}

void LeasePlan::book(std::vector<std::int64_t>& used, std::span<const Term> terms,
                     std::int64_t gpus) const {
  for (const Term term : terms) {
    const auto at = static_cast<std::size_t>(term - first_);
    if (at >= used.size()) used.resize(at + 1);
    used[at] += gpus;
  }
}

void LeasePlan::take(const LeaseRequest& request, std::vector<Term> terms) {
  book(used_, terms, request.gpus);
  owe(request.end, request.gpus * request.leases);
  jobs_[request.job] = {request, std::move(terms)};
}

void LeasePlan::remove(JobId job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  const LeaseRequest& request = found->second.request;
  book(used_, found->second.terms, -request.gpus);
  owe(request.end, -request.gpus * request.leases);
  jobs_.erase(found);
}

/// Necessary for a plan: until no deadline is more owed than there is.
bool LeasePlan::is_overbooked(const LeaseRequest& more) const {
  std::int64_t sum = 0;
  const auto exceeds = [&](Term end) { return sum > capacity_ * (end - first_); };
  bool counted = false;
  for (const auto& [end, gpu_leases] : owed_) {
    if (!counted && more.end < end) {
      sum += more.gpus * more.leases;
      counted = true;
      if (exceeds(more.end)) return true;
    }
    sum += gpu_leases;
    if (!counted && more.end == end) {
      sum += more.gpus * more.leases;
      counted = true;
    }
    if (counted && exceeds(end)) return true;
  }
  if (counted) return false;
  sum += more.gpus * more.leases;
  return exceeds(more.end);
}

/// The fullest terms that still hold it, then the earliest: empty ones are kept for wide jobs.
bool LeasePlan::pick(const std::vector<std::int64_t>& used, const LeaseRequest& request,
                     std::vector<Term>& terms) const {
  terms.clear();
  if (request.gpus > capacity_ && request.leases > 0) return false;
  const Term known = std::min(request.end, first_ + std::ssize(used));
  candidates_.clear();
  for (Term term = first_; term < known; ++term) {
    const std::int64_t here = used[static_cast<std::size_t>(term - first_)];
    if (here + request.gpus <= capacity_) candidates_.push_back({here, term});
  }
  const Term beyond = std::max(known, first_);  // from here on every term is empty
  const auto wanted = static_cast<std::size_t>(request.leases);
  if (candidates_.size() + static_cast<std::size_t>(std::max<Term>(request.end - beyond, 0)) <
      wanted)
    return false;
  if (candidates_.size() > wanted) {
    const auto before = [](const Candidate& a, const Candidate& b) {
      return std::tuple(-a.used, a.term) < std::tuple(-b.used, b.term);
    };
    std::ranges::nth_element(candidates_, candidates_.begin() + request.leases, before);
    candidates_.resize(wanted);
  }
  for (const Candidate& candidate : candidates_) terms.push_back(candidate.term);
  for (Term term = beyond; terms.size() < wanted; ++term) terms.push_back(term);
  std::ranges::sort(terms);
  return true;
}

Verdict LeasePlan::admit(const LeaseRequest& request) {
  BERTH_CHECK(!holds(request.job), "a job is admitted once");
  if (request.leases > request.end - first_) return Verdict::TooLong;
  if (request.gpus > capacity_) return Verdict::TooWide;
  if (is_overbooked(request)) return Verdict::Demand;
  std::vector<Term> terms;
  if (pick(used_, request, terms)) {
    take(request, std::move(terms));
    return Verdict::Direct;
  }
  if (lay_out(&request)) return Verdict::Replanned;
  return search(request) ? Verdict::Searched : Verdict::NoPlan;
}

/// Everything anew, earliest deadline first, wide jobs before narrow ones. Unchanged if it fails.
bool LeasePlan::lay_out(const LeaseRequest* more) {
  std::vector<LeaseRequest> order;
  for (const auto& [job, promise] : jobs_) order.push_back(promise.request);
  if (more != nullptr) order.push_back(*more);
  std::ranges::sort(order, {}, [](const LeaseRequest& request) {
    return std::tuple(request.end, -request.gpus, request.job);
  });
  std::vector<std::int64_t> used;
  std::vector<std::vector<Term>> terms(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!pick(used, order[i], terms[i])) return false;
    book(used, terms[i], order[i].gpus);
  }
  used_ = std::move(used);
  for (std::size_t i = 0; i < order.size(); ++i)
    jobs_[order[i].job] = {order[i], std::move(terms[i])};
  if (more != nullptr) owe(more->end, more->gpus * more->leases);
  return true;
}

/// All jobs if they are few, otherwise those in the way: none if these are too many.
std::vector<LeaseRequest> LeasePlan::movable(const LeaseRequest& more) const {
  std::vector<LeaseRequest> jobs{more};
  for (const auto& [job, promise] : jobs_) {
    const bool in_the_way = !promise.terms.empty() && promise.terms.front() < more.end;
    if (promise.request.leases > 0 && (in_the_way || jobs_.size() < effort_.jobs))
      jobs.push_back(promise.request);
  }
  if (!is_within_effort(jobs, 0)) jobs.clear();
  return jobs;
}

bool LeasePlan::is_within_effort(std::span<const LeaseRequest> jobs,
                                 std::size_t guests) const noexcept {
  std::size_t columns = guests;
  for (const LeaseRequest& request : jobs)
    columns += static_cast<std::size_t>(request.end - first_);
  return jobs.size() + guests <= effort_.jobs && columns <= effort_.columns;
}

SelectionJob LeasePlan::promised(const LeaseRequest& request) const {
  return {.gpus = request.gpus,
          .leases = request.leases,
          .end = request.end - first_,
          .is_promised = true};
}

/// All of them are removed before the first is booked: in between terms may be overfull.
void LeasePlan::lay_out_as(std::span<const LeaseRequest> jobs, const Selection& selection) {
  for (const LeaseRequest& request : jobs) remove(request.job);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<Term> terms = selection.leases[i];
    for (Term& term : terms) term += first_;
    take(jobs[i], std::move(terms));
  }
}

bool LeasePlan::search(const LeaseRequest& more) {
  const std::vector<LeaseRequest> jobs = movable(more);
  if (jobs.empty()) return false;
  std::vector<std::int64_t> others = used_;
  Term last = first_;
  std::vector<SelectionJob> choice;
  for (const LeaseRequest& request : jobs) {
    last = std::max(last, request.end);
    choice.push_back(promised(request));
    if (request.job != more.job) book(others, leases(request.job), -request.gpus);
  }
  others.resize(static_cast<std::size_t>(last - first_));
  for (std::int64_t& free : others) free = capacity_ - free;
  const auto found = best_selection(choice, others, effort_.limits());
  if (found) lay_out_as(jobs, *found);
  return found.has_value();
}

std::optional<std::vector<bool>> LeasePlan::make_way(std::span<const LeaseGuest> guests) {
  std::vector<LeaseRequest> jobs;
  std::vector<SelectionJob> choice;
  Term last = first_ + 1;
  for (const auto& [job, promise] : jobs_) {
    if (promise.request.leases == 0) continue;
    jobs.push_back(promise.request);
    choice.push_back(promised(promise.request));
    last = std::max(last, promise.request.end);
  }
  if (!is_within_effort(jobs, guests.size())) return std::nullopt;
  std::vector<SelectionJob> settled = choice;
  double dearest = 0;  // counts 1, so that the solver tells the others apart
  for (const LeaseGuest& guest : guests) dearest = std::max(dearest, guest.reward);
  for (const LeaseGuest& guest : guests) {
    choice.push_back({.gpus = guest.gpus, .leases = 1, .end = 1, .reward = guest.reward / dearest});
  }
  const std::vector<std::int64_t> capacity(static_cast<std::size_t>(last - first_), capacity_);
  const auto chosen = best_selection(choice, capacity, effort_.limits());
  if (!chosen) return std::nullopt;
  // Rewards of guests may differ by so much that the price of a delay is lost beside them: with the
  // guests settled the promises are laid out once more, as early as they can be.
  std::vector<bool> comes(guests.size());
  for (std::size_t i = 0; i < guests.size(); ++i) {
    comes[i] = !chosen->leases[jobs.size() + i].empty();
    if (!comes[i]) continue;
    settled.push_back(choice[jobs.size() + i]);
    settled.back().is_promised = true;
  }
  const auto found = best_selection(settled, capacity, effort_.limits());
  if (!found) return std::nullopt;
  lay_out_as(jobs, *found);
  return comes;
}

bool LeasePlan::resize(JobId job, std::int64_t leases) {
  Promise& promise = jobs_.at(job);
  if (leases == promise.request.leases) return true;
  if (leases > promise.request.leases) {
    const Promise before = promise;
    LeaseRequest longer = promise.request;
    longer.leases = leases;
    remove(job);
    if (is_admitted(admit(longer))) return true;
    take(before.request, before.terms);
    return false;
  }
  const std::int64_t surplus = promise.request.leases - leases;
  book(used_, std::span{promise.terms}.last(static_cast<std::size_t>(surplus)),
       -promise.request.gpus);
  owe(promise.request.end, -promise.request.gpus * surplus);
  promise.terms.resize(static_cast<std::size_t>(leases));
  promise.request.leases = leases;
  return true;
}

bool LeasePlan::set_capacity(std::int64_t capacity) {
  capacity_ = capacity;
  return repair();
}

bool LeasePlan::repair() {
  const auto fits = [&](std::int64_t used) { return used <= capacity_; };
  return std::ranges::all_of(used_, fits) || lay_out(nullptr);
}

void LeasePlan::advance(Term first) {
  if (first <= first_) return;
  for (auto& [job, promise] : jobs_) {
    const auto past = std::ranges::lower_bound(promise.terms, first) - promise.terms.begin();
    if (past == 0) continue;
    promise.terms.erase(promise.terms.begin(), promise.terms.begin() + past);
    promise.request.leases -= past;
    owe(promise.request.end, -promise.request.gpus * past);
  }
  const auto gone = std::min<std::ptrdiff_t>(first - first_, std::ssize(used_));
  used_.erase(used_.begin(), used_.begin() + gone);
  first_ = first;
}

}  // namespace berth::chronus
