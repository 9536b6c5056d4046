#include "policies/gandiva/packing.h"

#include <algorithm>
#include <tuple>

#include "policies/kit/beliefs.h"

namespace berth::gandiva {

namespace {

constexpr std::int32_t kPatientProbes = 8;  // probe lengths to wait for a measurement

std::pair<ProfileId, ProfileId> pair_of(const View& view, JobId a, JobId b) {
  return std::minmax(view.jobs.profile[a], view.jobs.profile[b]);
}

double utilisation(const View& view, JobId job) {
  return view.believed().profile(view.jobs.profile[job]).gpu_utilisation;
}

}  // namespace

double packing_score(const PackedRates& a, const PackedRates& b) noexcept {
  const auto share = [](const PackedRates& rates) {
    return rates.isolated > 0 ? rates.packed / rates.isolated : 0.0;
  };
  return share(a) + share(b);
}

void Packing::on_tick(Pass& pass) {
  std::erase_if(probes_, [&](const Probe& probe) { return is_decided(pass, probe); });
  start_probes(pass);
}

/// Kept or undone, or one of the two has gone.
bool Packing::is_decided(Pass& pass, const Probe& probe) {
  const auto home = housing_.home_of(probe.host);
  if (!home || home != housing_.home_of(probe.guest)) return true;
  const Ring& ring = housing_.ring(*home);
  if (ring.seat_of(probe.host) != ring.seat_of(probe.guest)) return true;
  if (pass.view.jobs.basis[probe.host] != RateBasis::Exact && !housing_.is_changed(*home))
    observations_.watch(pass.view, ring);  // live measurements arrive at any time
  if (!is_time_to_judge(pass.view, probe)) return false;
  const Observations::Row& host = observations_.of(probe.host);
  const Observations::Row& guest = observations_.of(probe.guest);
  const bool are_comparable =
      are_alike(host.isolated, host.packed) && are_alike(guest.isolated, guest.packed);
  if (are_comparable) {
    const double score = packing_score({host.isolated.value, host.packed.value},
                                       {guest.isolated.value, guest.packed.value});
    if (keeps_packing(score)) return true;
    bad_pairs_.insert(pair_of(pass.view, probe.host, probe.guest));
  } else {
    see_alone_first(pass.view, probe);
  }
  take_apart(pass.plan, *home, *ring.seat_of(probe.host)->guest);
  return true;
}

bool Packing::is_time_to_judge(const View& view, const Probe& probe) const {
  const Duration age = view.now - probe.since;
  const auto is_seen = [&](JobId job) { return observations_.of(job).packed.is_seen(); };
  if (!is_seen(probe.host) || !is_seen(probe.guest) || age < options_.pack_probe) return false;
  // An unmeasured belief does not judge a job that reports, unless no measurement ever comes.
  const auto is_awaited = [&](JobId job) { return view.jobs.basis[job] == RateBasis::Awaited; };
  const Duration patience = kPatientProbes * std::max(options_.pack_probe, options_.tick);
  return (!is_awaited(probe.host) && !is_awaited(probe.guest)) || age >= patience;
}

/// A job measured only when packed has to be measured alone before the pair is judged. One measured
/// alone but not when packed makes so little progress there, or reports so seldom, that the pair is
/// not tried again.
void Packing::see_alone_first(const View& view, const Probe& probe) {
  for (const JobId job : {probe.host, probe.guest}) {
    const bool alone = observations_.of(job).isolated.is_measured;
    const bool packed = observations_.of(job).packed.is_measured;
    if (alone && !packed) bad_pairs_.insert(pair_of(view, probe.host, probe.guest));
    if (!alone && packed) observations_.forget_isolated(job);
  }
}

void Packing::take_apart(Plan& plan, Home home, JobId guest) {
  turns_.suspend(plan, guest, Reason::Packing);
  housing_.ring(home).unpack(guest);
  housing_.touch(home);
}

bool Packing::is_candidate(const Ring::Seat& seat) const {
  return !seat.guest && observations_.of(seat.job).isolated.is_seen();
}

/// The least busy jobs look for a partner first; a server packs until nobody has to wait.
void Packing::start_probes(Pass& pass) {
  std::vector<std::tuple<double, JobId>> candidates;
  for (const auto& [end, home] : turns_.slices()) {
    for (const Ring::Seat& seat : housing_.ring(home).seats())
      if (is_candidate(seat)) candidates.emplace_back(utilisation(pass.view, seat.job), seat.job);
  }
  std::ranges::sort(candidates);
  for (const auto& [busy, job] : candidates) {
    if (probes_.size() >= options_.max_probe) return;
    if (const auto partner = partner_for(pass.view, job)) pack(pass, *partner, job);
  }
}

/// The least busy job of the server with as many GPUs that fits beside it.
std::optional<JobId> Packing::partner_for(const View& view, JobId job) const {
  const Home home = *housing_.home_of(job);
  const Ring& ring = housing_.ring(home);
  std::int32_t wanted = 0;
  for (const Ring::Seat& seat : ring.seats()) wanted += seat.gpus;
  const Ring::Seat& own = *ring.seat_of(job);
  if (own.guest || wanted <= housing_.unit(home).gpus) return std::nullopt;
  const std::int64_t memory = believed_memory_mib(view, job);
  const std::int64_t limit = view.believed().device_memory_mib(home.pool);
  std::optional<std::tuple<double, JobId>> best;
  for (const Ring::Seat& seat : ring.seats()) {
    if (seat.job == job || seat.gpus != own.gpus || !is_candidate(seat)) continue;
    if (limit > 0 && memory + believed_memory_mib(view, seat.job) > limit) continue;
    if (bad_pairs_.contains(pair_of(view, job, seat.job))) continue;
    const std::tuple candidate{utilisation(view, seat.job), seat.job};
    if (!best || candidate < *best) best = candidate;
  }
  if (!best) return std::nullopt;
  return std::get<JobId>(*best);
}

void Packing::pack(Pass& pass, JobId host, JobId guest) {
  const Home home = *housing_.home_of(guest);
  Ring& ring = housing_.ring(home);
  // The job that runs stays where it is; the suspended one joins it.
  if (ring.is_running(guest) && !ring.is_running(host)) std::swap(host, guest);
  turns_.suspend(pass.plan, guest, Reason::Packing);
  ring.pack(host, guest);
  observations_.forget_packed(host);
  observations_.forget_packed(guest);
  probes_.push_back({.host = host, .guest = guest, .since = pass.view.now});
  housing_.touch(home);
}

}  // namespace berth::gandiva
