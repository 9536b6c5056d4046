#include "policies/chronus/promises.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "policies/kit/beliefs.h"

namespace berth::chronus {

namespace {
/// A job that needs more is refused: its plan would be longer than anything worth planning.
constexpr std::int64_t kMostLeases = 100'000;
/// So many terms later a soft job is promised at most.
constexpr std::int64_t kMostLater = 100;
}  // namespace

void Promises::begin(const View& view) {
  rows_.resize(view.jobs.size());
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) {
    const PoolId pool{i};
    pools_.push_back(
        {is_counted(view) ? BuddyServers{} : BuddyServers{view.cluster.cluster(), pool},
         LeasePlan{0, options_.effort}});
    plan(pool) = LeasePlan{capacity(view, pool), options_.effort};
  }
}

Term Promises::end_by(Time deadline) const noexcept {
  return std::max<Term>(terms_.grid().at(deadline), 0);
}

/// A soft deadline may move by whole terms while it is worth something.
Term Promises::last_end(const View& view, JobId job) const {
  const Term end = end_by(*view.deadline(job));
  if (!view.deadline_is_soft(job)) return end;
  const std::int64_t length = options_.lease.count();
  const std::int64_t later = (options_.grace.count() + length - 1) / length - 1;
  return end + std::clamp<std::int64_t>(later, 0, kMostLater);
}

/// Every lease may begin with a restart, so that any gap in the plan is safe.
std::int64_t Promises::leases_needed(const View& view, JobId job, PoolId pool) const {
  const auto left = std::max<std::int64_t>(view.estimated_left(job).count(), 1);
  const auto useful = static_cast<double>((options_.lease - options_.restart).count());
  const double leases = options_.slack * static_cast<double>(left) /
                        (believed_rate(view, job, pool, view.gpus(job)) * useful);
  return static_cast<std::int64_t>(std::ceil(std::min(leases, double{kMostLeases} + 1)));
}

LeaseRequest Promises::request(const View& view, JobId job, PoolId pool, Term end) const {
  const std::int32_t gpus = view.gpus(job);
  return {.job = job,
          .gpus = is_counted(view) ? gpus : servers(pool).rounded(gpus),
          .leases = leases_needed(view, job, pool),
          .end = end};
}

std::int64_t Promises::capacity(const View& view, PoolId pool) const {
  return is_counted(view) ? view.cluster.usable_gpus(pool) : servers(pool).capacity(view.cluster);
}

/// In the first acceptable pool that can; otherwise why the first of all cannot.
Verdict Promises::try_promise(const View& view, JobId job, Term end) {
  std::optional<Verdict> first;
  for (const PoolId pool : view.shape(job).pools) {
    const LeaseRequest wish = request(view, job, pool, end);
    const Verdict verdict = wish.leases > kMostLeases ? Verdict::TooLong : plan(pool).admit(wish);
    if (!first) first = verdict;
    if (!is_admitted(verdict)) continue;
    rows_[job] = {.is_promised = true, .is_broken = false, .pool = pool, .end = end};
    jobs_.insert(job);
    return verdict;
  }
  return *first;
}

/// The earliest end from this one on that its deadline allows.
bool Promises::try_from(const View& view, JobId job, Term end) {
  for (const Term last = last_end(view, job); end <= last; ++end)
    if (is_admitted(try_promise(view, job, end))) return true;
  return false;
}

std::optional<Refusal> Promises::admit(const View& view, JobId job) {
  const auto deadline = view.deadline(job);
  if (!deadline) return std::nullopt;
  advance(terms_.number(view.now));
  const Term end = end_by(*deadline);
  const Verdict verdict = try_promise(view, job, end);
  if (is_admitted(verdict) || try_from(view, job, end + 1)) return std::nullopt;
  if (view.deadline_is_soft(job) || options_.unmet == Unmet::BestEffort) return std::nullopt;
  return refusal(view, job, verdict);
}

Refusal Promises::refusal(const View& view, JobId job, Verdict verdict) const {
  const PoolId pool = view.shape(job).pools.front();
  const LeasePlan& plan = this->plan(pool);
  const LeaseRequest wish = request(view, job, pool, end_by(*view.deadline(job)));
  const Term terms = std::max<Term>(wish.end - plan.first(), 0);
  const std::string need = fmt::format("{} leases of {} on {} GPUs", wish.leases,
                                       human_duration(to_seconds(options_.lease)), wish.gpus);
  switch (verdict) {
    case Verdict::TooLong:
      return {Reason::Deadline,
              fmt::format("needs {}, and {} terms end by its deadline", need, terms)};
    case Verdict::TooWide:
      return {Reason::Deadline,
              fmt::format("needs {}, and {} GPUs can be promised", need, plan.capacity())};
    case Verdict::Demand:
      return {Reason::Deadline,
              fmt::format("needs {}, more than {} promised jobs leave of {} terms of {} GPUs", need,
                          plan.size(), terms, plan.capacity())};
    default: break;
  }
  return {Reason::Deadline,
          fmt::format("needs {}, and no plan for the {} terms until its deadline has them beside "
                      "{} promised jobs",
                      need, terms, plan.size())};
}

bool Promises::refresh(const View& view, JobId job) {
  const std::int64_t leases = leases_needed(view, job, pool_of(job));
  return leases <= kMostLeases && plan(pool_of(job)).resize(job, leases);
}

bool Promises::put_off(const View& view, JobId job) {
  const Term end = end_of(job);
  forget(job);
  if (try_from(view, job, end + 1)) return true;
  rows_[job].is_broken = true;
  return false;
}

void Promises::forget(JobId job) {
  if (!has(job)) return;
  jobs_.erase(job);
  plan(pool_of(job)).remove(job);
  rows_[job].is_promised = false;
}

std::vector<JobId> Promises::change_capacity(const View& view, PoolId pool) {
  std::vector<JobId> broken;
  bool keeps = plan(pool).set_capacity(capacity(view, pool));
  const std::vector<JobId> newest(jobs_.rbegin(), jobs_.rend());
  for (std::size_t i = 0; !keeps && i < newest.size(); ++i) {
    if (pool_of(newest[i]) != pool) continue;
    forget(newest[i]);
    rows_[newest[i]].is_broken = true;
    broken.push_back(newest[i]);
    keeps = plan(pool).repair();
  }
  return broken;
}

void Promises::advance(Term first) {
  for (std::uint32_t pool = 0; pool < pools(); ++pool) plan(PoolId{pool}).advance(first);
}

}  // namespace berth::chronus
