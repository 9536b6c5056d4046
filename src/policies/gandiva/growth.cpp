#include "policies/gandiva/growth.h"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "base/device_mask.h"
#include "policies/common/elastic.h"

namespace berth::gandiva {

std::int32_t grown(std::int32_t current, std::int32_t most, std::int32_t free,
                   GrowStep step) noexcept {
  const std::int32_t wanted = step == GrowStep::Double ? current * 2 : current + free;
  return std::max(current, std::min({wanted, most, current + free}));
}

std::uint64_t choose_devices(std::uint64_t free, std::int32_t gpus) {
  const auto wanted = static_cast<unsigned>(gpus);
  const unsigned block = std::bit_ceil(wanted);
  const std::uint64_t ones = wanted >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << wanted) - 1;
  for (unsigned at = 0; at + block <= 64; at += block) {
    if (((free >> at) & ones) == ones) return ones << at;
  }
  return DeviceMask{free}.lowest(gpus);
}

void Growth::watch(const Pass& pass, Home home) {
  const Servers::Unit& unit = housing_.unit(home);
  const Ring& ring = housing_.ring(home);
  const bool may_grow = options_.growing == Mechanism::On && unit.nodes.size() == 1 &&
                        pass.view.cluster.free_on(unit.nodes.front()) > 0 &&
                        ring.suspended().empty();
  const auto wants_more = [&](const Ring::Seat& seat) {
    const ElasticRange range = elastic_range(pass.view, seat.job);
    return !seat.guest && !range.is_fixed() && pass.plan.gpus_of(seat.job) < range.most;
  };
  const bool is_idle = may_grow && std::ranges::any_of(ring.seats(), wants_more);
  if (is_idle == idle_.has(home)) return;
  if (is_idle) {
    idle_.set(home, pass.view.now);
  } else {
    idle_.clear(home);
  }
}

void Growth::grow_due(Pass& pass) {
  if (housing_.has_queue()) return;
  std::vector<Home> due;  // a copy: growing ends their being idle
  for (const auto& [since, home] : idle_) {
    if (since + options_.idle_period > pass.view.now) break;
    if (!housing_.is_changed(home)) due.push_back(home);
  }
  for (const Home home : due) grow(pass, home);
}

/// The first to come of those that may be larger.
std::optional<JobId> Growth::who_grows(const Pass& pass, Home home) const {
  std::optional<JobId> first;
  for (const Ring::Seat& seat : housing_.ring(home).seats()) {
    const bool may = !seat.guest && pass.plan.holds(seat.job) &&
                     pass.plan.gpus_of(seat.job) < elastic_range(pass.view, seat.job).most;
    if (may && (!first || seat.job < *first)) first = seat.job;
  }
  return first;
}

void Growth::grow(Pass& pass, Home home) {
  const auto job = who_grows(pass, home);
  if (!job) return;
  Slice slice = pass.plan.slices(*job).front();
  const DeviceMask free{pass.view.cluster.free_mask(slice.node)};
  const std::int32_t most = elastic_range(pass.view, *job).most;
  const std::int32_t gpus = grown(slice.gpus, most, free.size(), options_.grow_step);
  slice.devices |= free.lowest(gpus - slice.gpus);
  slice.gpus = gpus;
  const bool has_grown = pass.attempt([&] {  // cores or memory of the server may not allow it
    pass.plan.suspend(*job, Reason::Growth);
    return pass.plan.try_start_on(*job, home.pool, {&slice, 1}, Reason::Growth);
  });
  if (!has_grown) return;
  pass.plan.set_pause(*job, options_.resize_cost);
  idle_.clear(home);
  housing_.touch(home);
}

void Growth::shrink_if_needed(Pass& pass, Home home) {
  std::vector<JobId> larger;
  std::int32_t needed = 0;
  for (const Ring::Seat& seat : housing_.ring(home).running()) {
    if (!pass.plan.holds(seat.job)) needed += seat.gpus;
    if (is_grown(pass.view, pass.plan, seat.job)) larger.push_back(seat.job);
  }
  if (larger.empty()) return;
  const NodeId node = housing_.unit(home).nodes.front();
  if (needed <= pass.view.cluster.free_on(node)) return;
  for (const JobId job : larger) {
    Slice kept = pass.plan.slices(job).front();
    kept.gpus = pass.view.gpus(job);
    kept.devices = choose_devices(kept.devices, kept.gpus);
    pass.plan.suspend(job, Reason::Growth);
    const bool stays = pass.plan.try_start_on(job, home.pool, {&kept, 1}, Reason::Growth);
    BERTH_CHECK(stays, "a job keeps part of its own devices");
    pass.plan.set_pause(job, options_.resize_cost);
  }
}

}  // namespace berth::gandiva
