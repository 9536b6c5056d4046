// What is tried and measured: packing of jobs that take turns, growing into idle GPUs.
#include <algorithm>
#include <bit>
#include <tuple>

#include "policies/common/elastic.h"
#include "policies/gandiva/gandiva.h"

namespace berth::gandiva {

namespace {
constexpr std::int32_t kPatientProbes = 8;  // times as long as a probe of whom is measured
}

void Gandiva::on_tick(const View& view, Plan& plan) {
  ticks_.settle();
  for (const Timer& timer : slices_) {
    if (!row(timer.home).is_dirty) watch_rates(view, row(timer.home));
  }
  const std::vector<Home> changed = std::exchange(touched_, {});
  for (const Home home : changed) {
    row(home).is_touched = false;
    if (!row(home).is_dirty) watch_rates(view, row(home));
  }
  if (options_.packing == Mechanism::On) {
    judge_probes(view, plan);
    start_probes(view, plan);
  }
  if (options_.migration == Mechanism::On) {
    for (const Home home : changed) leave_bad_company(view, plan, home);
    for (std::uint32_t pool = 0; pool < pools_.size() && !changed.empty(); ++pool)
      defragment_pool(view, plan, PoolId{pool});
  }
  grow_idle(view, plan);
  if (!slices_.empty() || !probes_.empty() || !touched_.empty()) ticks_.go_on(view.now);
}

Gandiva::Pair Gandiva::pair_of(const View& view, JobId a, JobId b) const {
  return std::minmax(view.jobs.profile[a], view.jobs.profile[b]);
}

double Gandiva::utilisation(const View& view, JobId job) const {
  return view.believed().profile(view.jobs.profile[job]).gpu_utilisation;
}

void Gandiva::judge_probes(const View& view, Plan& plan) {
  std::erase_if(probes_, [&](const Probe& probe) { return is_decided(view, plan, probe); });
}

/// Kept or undone, or one of the two has gone.
bool Gandiva::is_decided(const View& view, Plan& plan, const Probe& probe) {
  const JobRow& host = jobs_[probe.host.value];
  const JobRow& guest = jobs_[probe.guest.value];
  if (host.where != Where::Unit || guest.where != Where::Unit) return true;
  const Ring::Seat* seat = row(host.home).ring.seat_of(probe.host);
  if (seat == nullptr || seat != row(guest.home).ring.seat_of(probe.guest)) return true;
  if (view.jobs.basis[probe.host] != RateBasis::Exact && !row(host.home).is_dirty)
    watch_rates(view, row(host.home));  // a measurement comes when it comes
  const bool is_seen = host.packed.is_seen() && guest.packed.is_seen();
  if (!is_seen || view.now - probe.since < options_.pack_probe) return false;
  // A belief that has not been tested judges nobody who speaks, unless it is all there will be.
  const auto is_awaited = [&](JobId job) { return view.jobs.basis[job] == RateBasis::Awaited; };
  const Duration patience = kPatientProbes * std::max(options_.pack_probe, options_.tick);
  if ((is_awaited(probe.host) || is_awaited(probe.guest)) && view.now - probe.since < patience)
    return false;
  const bool are_comparable =
      are_alike(host.isolated, host.packed) && are_alike(guest.isolated, guest.packed);
  if (are_comparable) {
    const double score = packing_score({host.isolated.value, host.packed.value},
                                       {guest.isolated.value, guest.packed.value});
    if (keeps_packing(score)) return true;
    bad_pairs_.insert(pair_of(view, probe.host, probe.guest));
  } else {
    see_alone_first(view, probe);
  }
  take_apart(view, plan, *seat);
  return true;
}

/// Who was measured beside the other has to be measured alone before the two are judged. Who was
/// alone and is not any more gets on so badly with it, or reports so seldom, that it is not tried
/// again.
void Gandiva::see_alone_first(const View& view, const Probe& probe) {
  bool is_for_ever = false;
  for (const JobId job : {probe.host, probe.guest}) {
    JobRow& mine = jobs_[job.value];
    if (mine.isolated.is_measured && !mine.packed.is_measured) is_for_ever = true;
    if (mine.isolated.is_measured || !mine.packed.is_measured) continue;
    mine.isolated = {};
    mine.looks = 0;
  }
  if (is_for_ever) bad_pairs_.insert(pair_of(view, probe.host, probe.guest));
}

void Gandiva::take_apart(const View& view, Plan& plan, const Ring::Seat& seat) {
  const JobId guest = *seat.guest;
  const Home home = jobs_[guest.value].home;
  suspend(plan, guest, Reason::Packing);
  row(home).ring.unpack(guest);
  touch(view, home);
}

bool Gandiva::is_candidate(const Ring::Seat& seat) const {
  return !seat.guest && jobs_[seat.job.value].isolated.is_seen();
}

/// The least busy jobs look for a partner first; a server packs until nobody has to wait.
void Gandiva::start_probes(const View& view, Plan& plan) {
  std::vector<std::tuple<double, JobId>> candidates;
  for (const Timer& timer : slices_) {
    for (const Ring::Seat& seat : row(timer.home).ring.seats()) {
      if (is_candidate(seat)) candidates.emplace_back(utilisation(view, seat.job), seat.job);
    }
  }
  std::ranges::sort(candidates);
  for (const auto& [busy, job] : candidates) {
    if (probes_.size() >= options_.max_probe) return;
    if (const auto partner = partner_for(view, job)) pack(view, plan, *partner, job);
  }
}

std::optional<JobId> Gandiva::partner_for(const View& view, JobId job) {
  const Home home = jobs_[job.value].home;
  const Ring& ring = row(home).ring;
  std::int32_t wanted = 0;
  for (const Ring::Seat& seat : ring.seats()) wanted += seat.gpus;
  const Ring::Seat& own = *ring.seat_of(job);
  if (own.guest || wanted <= unit(home).gpus) return std::nullopt;
  const auto memory = [&](JobId of) {
    return view.believed().memory_mib(view.jobs.profile[of], view.jobs.batch[of], {});
  };
  const std::int64_t limit = view.believed().device_memory_mib(home.pool);
  std::optional<std::tuple<double, JobId>> best;
  for (const Ring::Seat& seat : ring.seats()) {
    if (seat.job == job || seat.gpus != own.gpus || !is_candidate(seat)) continue;
    if (limit > 0 && std::int64_t{memory(job)} + memory(seat.job) > limit) continue;
    if (bad_pairs_.contains(pair_of(view, job, seat.job))) continue;
    const std::tuple candidate{utilisation(view, seat.job), seat.job};
    if (!best || candidate < *best) best = candidate;
  }
  if (!best) return std::nullopt;
  return std::get<JobId>(*best);
}

/// Who runs is not disturbed by who does not.
void Gandiva::pack(const View& view, Plan& plan, JobId target, JobId job) {
  const Home home = jobs_[job.value].home;
  Ring& ring = row(home).ring;
  if (ring.is_running(job) && !ring.is_running(target)) std::swap(target, job);
  suspend(plan, job, Reason::Packing);
  ring.pack(target, job);
  jobs_[target.value].packed = jobs_[job.value].packed = {};
  probes_.push_back({.host = target, .guest = job, .since = view.now});
  touch(view, home);
}

/// GPUs idle for a whole period while nobody waits go to a job of their server.
void Gandiva::grow_idle(const View& view, Plan& plan) {
  std::vector<Home> due;
  for (const Timer& timer : idle_) {
    if (timer.at + options_.idle_period > view.now) break;
    if (!row(timer.home).is_dirty) due.push_back(timer.home);
  }
  if (queue_.empty()) {
    for (const Home home : due) grow(view, plan, home);
  }
  if (idle_.empty()) return;
  ticks_.stir(std::max(idle_.begin()->at + options_.idle_period, view.now + Duration{1}));
}

void Gandiva::grow(const View& view, Plan& plan, Home home) {
  UnitRow& here = row(home);
  std::optional<JobId> first;
  for (const Ring::Seat& seat : here.ring.seats()) {
    const bool may = !seat.guest && plan.holds(seat.job) &&
                     plan.gpus_of(seat.job) < elastic_range(view, seat.job).most;
    if (may && (!first || seat.job < *first)) first = seat.job;
  }
  if (!first) return;
  Slice slice = plan.slices(*first).front();
  std::uint64_t free = view.cluster.free_mask(slice.node);
  const std::int32_t gpus =
      grown(slice.gpus, elastic_range(view, *first).most, std::popcount(free), options_.grow_step);
  for (; slice.gpus < gpus; ++slice.gpus, free &= free - 1) slice.devices |= free & (~free + 1);
  const Plan::Mark before = plan.mark();
  plan.suspend(*first, Reason::Growth);
  if (!plan.try_start_on(*first, home.pool, std::span{&slice, 1}, Reason::Growth)) {
    plan.rollback(before);  // cores or memory of the server do not allow it
    return;
  }
  plan.set_pause(*first, options_.resize_cost);
  if (std::ranges::find(here.grown, *first) == here.grown.end()) here.grown.push_back(*first);
  idle_.erase({here.idle_since, home});
  here.idle_since = kNever;
  touch(view, home);
}

}  // namespace berth::gandiva
