// What Chronus promises: admission, and what becomes of promises as work and servers turn out.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "policies/chronus/chronus.h"
#include "policies/kit/beliefs.h"

namespace berth::chronus {

namespace {
/// A job that needs more is refused: its plan would be longer than anything worth planning.
constexpr std::int64_t kMostLeases = 100'000;
/// So many terms later a soft job is promised at most.
constexpr std::int64_t kMostLater = 100;
}  // namespace

Term Chronus::end_of(Time deadline) const noexcept {
  return std::max<Term>(rounds_.grid().at(deadline), 0);
}

/// A soft deadline may move by whole terms while it is worth something.
Term Chronus::last_end(const View& view, JobId job) const {
  const Term end = end_of(*view.deadline(job));
  if (!view.deadline_is_soft(job)) return end;
  const std::int64_t length = options_.lease.count();
  const std::int64_t later = (options_.grace.count() + length - 1) / length - 1;
  return end + std::clamp<std::int64_t>(later, 0, kMostLater);
}

/// Every lease may begin with a restart, so that any gap in the plan is safe.
std::int64_t Chronus::leases_needed(const View& view, JobId job, PoolId pool) const {
  const auto left = std::max<std::int64_t>(view.estimated_left(job).count(), 1);
  const auto useful = static_cast<double>((options_.lease - options_.restart).count());
  const double leases = options_.slack * static_cast<double>(left) /
                        (believed_rate(view, job, pool, view.gpus(job)) * useful);
  return static_cast<std::int64_t>(std::ceil(std::min(leases, double{kMostLeases} + 1)));
}

LeaseRequest Chronus::request(const View& view, JobId job, PoolId pool, Term end) const {
  const std::int32_t gpus = view.gpus(job);
  return {.job = job,
          .gpus = counts_ ? gpus : pools_[pool.value].servers.rounded(gpus),
          .leases = leases_needed(view, job, pool),
          .end = end};
}

std::int64_t Chronus::capacity(const View& view, PoolId pool) const {
  return counts_ ? view.cluster.usable_gpus(pool)
                 : pools_[pool.value].servers.capacity(view.cluster);
}

/// In the first acceptable pool that can; otherwise why the first of all cannot.
Verdict Chronus::try_promise(const View& view, JobId job, Term end) {
  std::optional<Verdict> first;
  for (const PoolId pool : view.shape(job).pools) {
    const LeaseRequest wish = request(view, job, pool, end);
    LeasePlan& plan = pools_[pool.value].plan;
    const Verdict verdict = wish.leases > kMostLeases ? Verdict::TooLong : plan.admit(wish);
    if (!first) first = verdict;
    if (!is_admitted(verdict)) continue;
    Row& row = rows_[job.value];
    row.is_promised = true;
    row.pool = pool;
    row.end = end;
    return verdict;
  }
  return *first;
}

std::optional<Refusal> Chronus::admit(const View& view, JobId job) {
  const auto deadline = view.deadline(job);
  if (!deadline) return std::nullopt;
  for (Pool& pool : pools_) pool.plan.advance(rounds_.number(view.now));
  const Term end = end_of(*deadline);
  const Term last = last_end(view, job);
  const Verdict verdict = try_promise(view, job, end);
  if (is_admitted(verdict)) return std::nullopt;
  for (Term later = end + 1; later <= last; ++later) {
    if (is_admitted(try_promise(view, job, later))) return std::nullopt;
  }
  if (view.deadline_is_soft(job) || !options_.refuses) return std::nullopt;
  return refusal(view, job, verdict);
}

Refusal Chronus::refusal(const View& view, JobId job, Verdict verdict) const {
  const PoolId pool = view.shape(job).pools.front();
  const LeasePlan& plan = pools_[pool.value].plan;
  const LeaseRequest wish = request(view, job, pool, end_of(*view.deadline(job)));
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

/// What was done so far counts: jobs that ran on idle GPUs need fewer leases, slower ones more.
void Chronus::refresh_promises(const View& view, Plan& plan) {
  for (Pool& pool : pools_) pool.plan.advance(rounds_.number(view.now));
  const std::vector<JobId> all(promised_.begin(), promised_.end());
  for (const JobId job : all) {
    const PoolId pool = rows_[job.value].pool;
    const std::int64_t leases = leases_needed(view, job, pool);
    if (leases > kMostLeases || !pools_[pool.value].plan.resize(job, leases))
      be_late(view, plan, job);
  }
}

void Chronus::be_late(const View& view, Plan& plan, JobId job) {
  Row& row = rows_[job.value];
  const Term last = last_end(view, job);
  const Term old_end = row.end;
  forget_promise(job);
  for (Term end = old_end + 1; end <= last; ++end) {
    if (!is_admitted(try_promise(view, job, end))) continue;
    promised_.insert(job);
    if (!row.holds) idle_.insert({row.end, job});
    return;
  }
  row.is_broken = true;
  const bool is_strict = !view.deadline_is_soft(job);
  if (is_strict && options_.kills_late && row.holds) {
    plan.kill(job, Reason::Deadline);  // and it departs
    row.holds = false;
    row.is_killed = true;
    return;
  }
  if (row.holds) {
    best_effort_.insert(job);
  } else {
    row.waits_since = view.now;
    enqueue(view, job);
  }
}

void Chronus::forget_promise(JobId job) {
  Row& row = rows_[job.value];
  idle_.erase({row.end, job});
  promised_.erase(job);
  pools_[row.pool.value].plan.remove(job);
  row.is_promised = false;
}

/// BuddyServers were lost: it goes on as best effort.
void Chronus::break_promise(const View& view, JobId job) {
  forget_promise(job);
  Row& row = rows_[job.value];
  row.is_broken = true;
  if (row.holds) {
    best_effort_.insert(job);
    return;
  }
  row.waits_since = view.now;
  enqueue(view, job);
}

/// The newest promises are broken first.
void Chronus::on_capacity_change(const View& view, NodeId node) {
  rounds_.stir(view.now);
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  LeasePlan& plan = pools_[pool.value].plan;
  bool keeps = plan.set_capacity(capacity(view, pool));
  for (auto newest = promised_.end(); !keeps && newest != promised_.begin();) {
    const JobId job = *--newest;
    if (rows_[job.value].pool != pool) continue;
    ++newest;  // stays valid when the job is erased
    break_promise(view, job);
    keeps = plan.repair();
  }
}

}  // namespace berth::chronus
