#include "policies/gandiva/turns.h"

#include <algorithm>

namespace berth::gandiva {

/// Their timers stay until carry_out() sets new ones, so that who takes turns is known all along.
void Turns::end_due_slices(const View& view, Observations& observations) {
  for (const auto& [end, home] : slices_) {
    if (end > view.now) break;
    // After an arrival or a departure the rates are no longer those of this slice.
    if (!housing_.is_changed(home)) observations.watch(view, housing_.ring(home));
    housing_.end_slice(home);
  }
}

/// All stops of the instant come before all starts, so that a job that changes server finds room.
void Turns::carry_out(Pass& pass) {
  const std::vector<Home>& changed = housing_.sort_changed();
  for (const Home home : changed) stop(pass, home);
  for (const Home home : changed) start(pass, home);
  for (const Home home : changed) growth_.watch(pass, home);
  housing_.settle_changed();
}

void Turns::suspend(Plan& plan, JobId job, Reason reason) {
  if (!plan.holds(job)) return;
  plan.suspend(job, reason);
  housing_.set_start_cost(job, options_.switch_cost);
}

/// Packing is for over-subscribed servers: with GPUs to spare every job gets its own.
void Turns::split_seats(Plan& plan, Home home) {
  Ring& ring = housing_.ring(home);
  std::vector<JobId> guests;
  for (const Ring::Seat& seat : ring.seats())
    if (seat.guest) guests.push_back(*seat.guest);
  for (const JobId guest : guests) {
    suspend(plan, guest, Reason::Packing);
    ring.unpack(guest);
  }
}

void Turns::stop_seat(Plan& plan, const Ring::Seat& seat) {
  suspend(plan, seat.job, Reason::TimeSlice);
  if (seat.guest) suspend(plan, *seat.guest, Reason::TimeSlice);
}

void Turns::stop(Pass& pass, Home home) {
  const Servers::Unit& unit = housing_.unit(home);
  Ring& ring = housing_.ring(home);
  if (unit.height() <= 1) split_seats(pass.plan, home);
  if (housing_.is_slice_over(home)) ring.end_slice();
  ring.choose(unit.gpus);
  for (const Ring::Seat& seat : ring.suspended()) stop_seat(pass.plan, seat);
  growth_.shrink_if_needed(pass, home);
}

/// The ring counts GPUs only; cores or memory may still be missing. Then the seats behind make
/// room, and if that is not enough the turn ends there: no seat is overtaken.
void Turns::start(Pass& pass, Home home) {
  Ring& ring = housing_.ring(home);
  for (std::size_t i = 0; i < ring.running().size(); ++i) {
    const Ring::Seat seat = ring.running()[i];
    if (start_seat(pass, home, seat)) continue;
    for (const Ring::Seat& behind : ring.running().subspan(i + 1)) stop_seat(pass.plan, behind);
    if (start_seat(pass, home, seat)) continue;
    ring.limit_running(i);
  }
  set_clock(home);
}

bool Turns::start_seat(Pass& pass, Home home, const Ring::Seat& seat) {
  if (!pass.plan.holds(seat.job) && !start_job(pass, home, seat.job)) return false;
  if (seat.guest && !pass.plan.holds(*seat.guest) &&
      !share_with(pass.plan, home, seat.job, *seat.guest))
    housing_.ring(home).unpack(*seat.guest);
  return true;
}

bool Turns::start_job(Pass& pass, Home home, JobId job) {
  const bool is_kept = housing_.home_found(pass.view, pass.plan, job) == home &&
                       pass.plan.try_keep(job, Reason::TimeSlice);
  if (!is_kept && (!pick_devices(pass.view, home, job) ||
                   !pass.plan.try_start_on(job, home.pool, picked_, Reason::TimeSlice)))
    return false;
  pass.plan.set_pause(job, housing_.start_cost(job));
  return true;
}

bool Turns::pick_devices(const View& view, Home home, JobId job) {
  picked_.clear();
  std::int32_t left = view.gpus(job);
  for (const NodeId node : housing_.unit(home).nodes) {
    const std::int32_t gpus = std::min(left, view.cluster.room_on(node, view.shape(job)));
    if (gpus <= 0) continue;
    picked_.push_back({node, gpus, choose_devices(view.cluster.free_mask(node), gpus)});
    left -= gpus;
  }
  return left == 0;
}

bool Turns::share_with(Plan& plan, Home home, JobId host, JobId guest) {
  picked_.assign(plan.slices(host).begin(), plan.slices(host).end());
  if (!plan.try_share_on(guest, home.pool, picked_, 2)) return false;
  plan.set_pause(guest, housing_.start_cost(guest));
  return true;
}

/// No clock if all residents run, nor if none can: the end of a slice would change nothing.
void Turns::set_clock(Home home) {
  const Ring& ring = housing_.ring(home);
  const bool slicing = !ring.suspended().empty() && !ring.running().empty();
  if (slicing && slices_.has(home) && !housing_.is_slice_over(home)) return;
  slices_.clear(home);
  if (slicing) new_slices_.push_back(home);
}

void Turns::start_clocks(const View& view) {
  for (const Home home : new_slices_) {
    Time begin = view.now;
    for (const Ring::Seat& seat : housing_.ring(home).running()) {
      begin = std::max(begin, view.jobs.work_from[seat.job]);
      if (seat.guest) begin = std::max(begin, view.jobs.work_from[*seat.guest]);
    }
    slices_.set(home, begin + options_.slice);
  }
  new_slices_.clear();
}

}  // namespace berth::gandiva
