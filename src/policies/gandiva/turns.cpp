// Who of the residents of a unit runs now: the ring's choice carried out in the plan.
#include <algorithm>
#include <bit>

#include "policies/common/elastic.h"
#include "policies/gandiva/gandiva.h"

namespace berth::gandiva {

namespace {

// Looks at a rate that is not measured. Who has said nothing by then is silent; whoever speaks but
// is never measured is taken by what is believed of it, in the end.
constexpr std::int32_t kSilent = 3;
constexpr std::int32_t kPatience = 8;

/// So many of the free devices: an aligned block if there is one, for it is likely to be close
/// together; otherwise the lowest.
std::uint64_t choose_devices(std::uint64_t free, std::int32_t gpus) {
  const auto wanted = static_cast<unsigned>(gpus);
  const unsigned block = std::bit_ceil(wanted);
  const std::uint64_t ones = wanted >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << wanted) - 1;
  for (unsigned at = 0; at + block <= 64; at += block) {
    if (((free >> at) & ones) == ones) return ones << at;
  }
  std::uint64_t chosen = 0;
  for (unsigned n = 0; n < wanted; ++n) {
    chosen |= free & (~free + 1);
    free &= free - 1;
  }
  return chosen;
}

}  // namespace

/// All stops of the instant come before all starts, so that a job that changes server finds room.
void Gandiva::take_turns(const View& view, Plan& plan) {
  std::ranges::sort(dirty_);
  for (const Home home : dirty_) stop_turns(view, plan, home);
  for (const Home home : dirty_) start_turns(view, plan, home);
  for (const Home home : dirty_) {
    watch_idle(view, plan, home);
    UnitRow& here = row(home);
    here.is_dirty = here.slice_over = false;
    here.left_by = 0;
  }
  dirty_.clear();
}

/// How fast it runs as it asked to, if that is known by now.
SeenRate Gandiva::rate_seen(const View& view, JobId job) const {
  const bool as_asked = view.jobs.is_running(job) && view.jobs.granted[job] == view.gpus(job);
  if (!as_asked) return {};
  return {.value = view.jobs.rate[job].value(),
          .is_measured = view.measured_over(job) > Duration::zero()};
}

/// A belief counts only of whom nothing else is to be expected.
void Gandiva::see_alone(const View& view, JobId job, const SeenRate& rate) {
  if (!rate.is_seen()) return;
  JobRow& mine = jobs_[job.value];
  if (!rate.is_measured) {
    ++mine.looks;
    const bool speaks = view.jobs.basis[job] == RateBasis::Awaited;
    if (mine.isolated.is_measured || mine.looks < (speaks ? kPatience : kSilent)) return;
  }
  mine.isolated = rate;
  mine.best.raise_to(rate);
}

/// What is measured on a unit where nothing has changed in this instant.
void Gandiva::watch_rates(const View& view, const UnitRow& here) {
  for (const Ring::Seat& seat : here.ring.running()) {
    const SeenRate rate = rate_seen(view, seat.job);
    if (!seat.guest) {
      see_alone(view, seat.job, rate);
    } else if (const SeenRate other = rate_seen(view, *seat.guest);
               rate.is_seen() && other.is_seen()) {
      jobs_[seat.job.value].packed = rate;
      jobs_[seat.guest->value].packed = other;
    }
  }
}

void Gandiva::suspend(Plan& plan, JobId job, Reason reason) {
  if (!plan.holds(job)) return;
  plan.suspend(job, reason);
  jobs_[job.value].start_cost = options_.switch_cost;
}

/// Sharing is for servers with too many jobs: with GPUs to spare everybody gets his own.
void Gandiva::split_seats(Plan& plan, Home home) {
  Ring& ring = row(home).ring;
  std::vector<JobId> guests;
  for (const Ring::Seat& seat : ring.seats()) {
    if (seat.guest) guests.push_back(*seat.guest);
  }
  for (const JobId guest : guests) {
    suspend(plan, guest, Reason::Packing);
    ring.unpack(guest);
  }
}

void Gandiva::stop_seat(Plan& plan, Home home, const Ring::Seat& seat) {
  suspend(plan, seat.job, Reason::TimeSlice);
  std::erase(row(home).grown, seat.job);
  if (seat.guest) suspend(plan, *seat.guest, Reason::TimeSlice);
}

void Gandiva::stop_turns(const View& view, Plan& plan, Home home) {
  UnitRow& here = row(home);
  if (unit(home).height() <= 1) split_seats(plan, home);
  if (here.slice_over) here.ring.end_slice();
  here.ring.choose(unit(home).gpus);
  for (const Ring::Seat& seat : here.ring.suspended()) stop_seat(plan, home, seat);
  shrink_if_needed(view, plan, home);
}

/// Grown GPUs go back as soon as somebody else of the server needs them.
void Gandiva::shrink_if_needed(const View& view, Plan& plan, Home home) {
  UnitRow& here = row(home);
  if (here.grown.empty()) return;
  std::int32_t needed = 0;
  for (const Ring::Seat& seat : here.ring.running()) {
    if (!plan.holds(seat.job)) needed += seat.gpus;
  }
  const NodeId node = unit(home).nodes.front();
  if (needed <= view.cluster.free_on(node)) return;
  for (const JobId job : here.grown) {
    Slice kept = plan.slices(job).front();
    kept.gpus = view.gpus(job);
    kept.devices = choose_devices(kept.devices, kept.gpus);
    plan.suspend(job, Reason::Growth);
    const bool stays = plan.try_start_on(job, home.pool, std::span{&kept, 1}, Reason::Growth);
    BERTH_CHECK(stays, "a job keeps part of its own devices");
    plan.set_pause(job, options_.resize_cost);
  }
  here.grown.clear();
}

bool Gandiva::pick_devices(const View& view, Home home, JobId job) {
  picked_.clear();
  std::int32_t left = view.gpus(job);
  for (const NodeId node : unit(home).nodes) {
    const std::int32_t gpus = std::min(left, view.cluster.room_on(node, view.shape(job)));
    if (gpus <= 0) continue;
    picked_.push_back({node, gpus, choose_devices(view.cluster.free_mask(node), gpus)});
    left -= gpus;
  }
  return left == 0;
}

bool Gandiva::start_job(const View& view, Plan& plan, Home home, JobId job) {
  const bool is_kept = home_found(view, plan, job) == home && plan.try_keep(job, Reason::TimeSlice);
  if (!is_kept && (!pick_devices(view, home, job) ||
                   !plan.try_start_on(job, home.pool, picked_, Reason::TimeSlice)))
    return false;
  plan.set_pause(job, jobs_[job.value].start_cost);
  return true;
}

bool Gandiva::share_with(Plan& plan, Home home, JobId host, JobId guest) {
  picked_.assign(plan.slices(host).begin(), plan.slices(host).end());
  if (!plan.try_share_on(guest, home.pool, picked_, 2)) return false;
  plan.set_pause(guest, jobs_[guest.value].start_cost);
  return true;
}

bool Gandiva::start_seat(const View& view, Plan& plan, Home home, const Ring::Seat& seat) {
  if (!plan.holds(seat.job) && !start_job(view, plan, home, seat.job)) return false;
  if (seat.guest && !plan.holds(*seat.guest) && !share_with(plan, home, seat.job, *seat.guest))
    row(home).ring.unpack(*seat.guest);
  return true;
}

/// GPUs were counted; cores and memory may still be missing. Then those behind make room, and if
/// that is not enough the turn ends there: nobody is overtaken.
void Gandiva::start_turns(const View& view, Plan& plan, Home home) {
  Ring& ring = row(home).ring;
  for (std::size_t i = 0; i < ring.running().size(); ++i) {
    const Ring::Seat seat = ring.running()[i];
    if (start_seat(view, plan, home, seat)) continue;
    for (const Ring::Seat& behind : ring.running().subspan(i + 1)) stop_seat(plan, home, behind);
    if (start_seat(view, plan, home, seat)) continue;
    ring.limit_running(i);
  }
  set_clock(home);
}

/// Since when there are idle GPUs beside a job that may take them.
void Gandiva::watch_idle(const View& view, const Plan& plan, Home home) {
  UnitRow& here = row(home);
  const Servers::Unit& mine = unit(home);
  const bool may_grow = options_.growing == Mechanism::On && mine.nodes.size() == 1 &&
                        view.cluster.free_on(mine.nodes.front()) > 0 &&
                        here.ring.suspended().empty();
  const auto wants_more = [&](const Ring::Seat& seat) {
    const ElasticRange range = elastic_range(view, seat.job);
    return !seat.guest && !range.is_fixed() && plan.gpus_of(seat.job) < range.most;
  };
  const bool is_idle = may_grow && std::ranges::any_of(here.ring.seats(), wants_more);
  if (is_idle == (here.idle_since != kNever)) return;
  if (!is_idle) idle_.erase({here.idle_since, home});
  here.idle_since = is_idle ? view.now : kNever;
  if (is_idle) idle_.insert({here.idle_since, home});
}

/// With all residents running there is no clock, and with none able to run there is nothing to wait
/// for here.
void Gandiva::set_clock(Home home) {
  UnitRow& here = row(home);
  const bool slicing = !here.ring.suspended().empty() && !here.ring.running().empty();
  if (slicing && here.slice_end != kNever && !here.slice_over) return;
  if (here.slice_end != kNever) slices_.erase({here.slice_end, home});
  here.slice_end = kNever;
  if (slicing) new_slices_.push_back(home);
}

/// A full slice counts from the end of the switch, which is known once it has begun.
void Gandiva::start_clocks(const View& view) {
  for (const Home home : new_slices_) {
    UnitRow& here = row(home);
    Time begin = view.now;
    for (const Ring::Seat& seat : here.ring.running()) {
      begin = std::max(begin, view.jobs.work_from[seat.job]);
      if (seat.guest) begin = std::max(begin, view.jobs.work_from[*seat.guest]);
    }
    here.slice_end = begin + options_.slice;
    slices_.insert({here.slice_end, home});
  }
  new_slices_.clear();
}

}  // namespace berth::gandiva
