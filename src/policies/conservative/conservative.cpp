#include "policies/conservative/conservative.h"

#include <algorithm>

namespace berth::conservative {

namespace {
/// What a job past its estimate is given at least.
constexpr Duration kOverrun = std::chrono::seconds{1};
/// A hundred years: a thousand estimates in a row are still a valid time.
constexpr Duration kLongest = std::chrono::hours{24 * 36525};
}  // namespace

void Conservative::begin(const View& view) {
  for (std::uint32_t i = 0; i < view.cluster.pools(); ++i) {
    usable_.push_back(view.cluster.usable_gpus(PoolId{i}));
    profiles_.push_back(CapacityProfile{usable_[PoolId{i}]});
  }
  bookings_.resize(view.jobs.size());
  first_promise_.resize(view.jobs.size(), kNever);
  blocked_.begin(view.cluster.pools());
}

Duration Conservative::length_of(const View& view, JobId job) noexcept {
  const Duration left = view.estimated_left(job);
  return left > Duration::zero() ? std::min(left, kLongest) : kOverrun;
}

Time Conservative::believed_end(const View& view, JobId job) noexcept {
  const Duration left = std::max(Duration::zero(), view.estimate(job) - view.jobs.work[job]);
  return view.jobs.work_from[job] + view.jobs.rate[job].time_for(left);
}

// --- reservations

/// Counting GPUs is not enough to know where a job can ever go: a pool whose nodes lack the cores
/// or the size would be reserved for ever. Asked once per shape, of the empty cluster.
void Conservative::learn_pools(const View& view, const Plan& plan, ShapeId shape) {
  if (pools_.size() < view.shapes.size()) pools_.resize(view.shapes.size());
  if (!pools_[shape].empty()) return;
  const Shape& wanted = view.shapes[shape];
  if (wanted.locality == Locality::Relaxed && !wanted.needs_side_resources()) {
    pools_[shape] = wanted.pools;
    return;
  }
  const ClusterState empty{view.cluster.cluster(), view.cluster.mode()};
  std::vector<Slice> slices;
  for (const PoolId pool : wanted.pools) {
    if (empty.usable_gpus(pool) < wanted.gpus) continue;
    slices.clear();
    const bool fits = empty.mode() == ClusterState::Mode::Count
                          ? empty.has_side_room(pool, wanted)
                          : plan.place_on(empty, wanted, pool, slices);
    if (fits) pools_[shape].push_back(pool);
  }
}

/// Over the job's pools, the preferred one in a tie; earlier than its reservation if it holds one.
Conservative::Slot Conservative::earliest_slot(const View& view, JobId job) const {
  const Booking& held = bookings_[job];
  const bool reserved = held.held == Held::Reservation;
  const Duration length = length_of(view, job);
  Slot best{.pool = {}, .start = reserved ? held.start : kNever};
  bool found = false;
  for (const PoolId pool : pools_[view.jobs.shape[job]]) {
    const CapacityProfile& there = profiles_[pool];
    Time start = kNever;
    if (reserved && pool == held.pool) {
      start = there.earlier_fit(view.now, held.start, length, view.gpus(job));
    } else {
      start = there.earliest_fit(view.now, best.start, length, view.gpus(job));
    }
    if (start >= best.start) continue;
    best = {pool, start};
    found = true;
  }
  return found ? best : Slot{};
}

void Conservative::reserve(const View& view, JobId job, const Slot& slot) {
  bookings_[job] = {.start = slot.start,
                    .end = slot.start + length_of(view, job),
                    .made = view.now,
                    .pool = slot.pool,
                    .held = Held::Reservation};
  profiles_[slot.pool].add(slot.start, bookings_[job].end, -view.gpus(job));
  starts_.insert({slot.start, job}, 0);
  first_promise_[job] = first_promise_[job] == kNever ? slot.start : first_promise_[job];
}

void Conservative::unreserve(const View& view, JobId job) {
  const Booking& old = bookings_[job];
  profiles_[old.pool].add(std::max(old.start, view.now), old.end, view.gpus(job));
  starts_.erase({old.start, job});
  bookings_[job].held = Held::Nothing;
}

void Conservative::reserve_or_strand(const View& view, JobId job) {
  const Slot slot = earliest_slot(view, job);
  if (slot.start != kNever) {
    reserve(view, job, slot);
    return;
  }
  leave_order(job);
  stranded_.push_back(job);
}

void Conservative::leave_order(JobId job) { order_.erase(std::ranges::lower_bound(order_, job)); }

void Conservative::admit_waiting(const View& view, const Plan& plan) {
  while (!waiting_.empty() && order_.size() < max_reservations_) {
    const JobId job = waiting_.pop(kQueue).job;
    learn_pools(view, plan, view.jobs.shape[job]);
    order_.insert(std::ranges::lower_bound(order_, job), job);
    reserve_or_strand(view, job);
  }
}

// --- what really happens

void Conservative::hold(const View& view, JobId job, PoolId pool) {
  const Time end = view.now + length_of(view, job);
  bookings_[job] = {
      .start = view.now, .end = end, .made = view.now, .pool = pool, .held = Held::Devices};
  profiles_[pool].add(view.now, end, -view.gpus(job));
  ends_.push_back({end, job});
  std::ranges::push_heap(ends_, std::ranges::greater{});
  fresh_.push_back(job);
}

/// Whatever the job was believed to hold from now on comes back.
void Conservative::release(const View& view, JobId job) {
  Booking& old = bookings_[job];
  if (old.held == Held::Nothing) return;
  freed_ = freed_ || old.end > view.now;
  if (old.held == Held::Reservation) {
    unreserve(view, job);
    leave_order(job);
  } else {
    profiles_[old.pool].add(view.now, old.end, view.gpus(job));
  }
  old.held = Held::Nothing;
}

void Conservative::on_departure(const View& view, JobId job) {
  release(view, job);
  waiting_.forget(kQueue, job);
  if (!stranded_.empty()) std::erase(stranded_, job);
}

void Conservative::on_requeue(const View& view, JobId job) {
  release(view, job);
  waiting_.push(kQueue, job);
}

void Conservative::on_capacity_change(const View& view, NodeId node) {
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  const std::int64_t change = view.cluster.usable_gpus(pool) - usable_[pool];
  usable_[pool] += change;
  profiles_[pool].add(view.now, kNever, change);
  if (change <= 0) return;
  freed_ = true;
  for (const JobId job : stranded_) waiting_.push(kQueue, job);
  stranded_.clear();
}

void Conservative::move_end(const View& view, JobId job, Time end) {
  Booking& old = bookings_[job];
  if (end == old.end) return;
  const bool longer = end > old.end;
  profiles_[old.pool].add(std::max(view.now, std::min(end, old.end)), std::max(end, old.end),
                          longer ? -view.gpus(job) : view.gpus(job));
  freed_ = freed_ || !longer;
  old.end = end;
  ends_.push_back({end, job});
  std::ranges::push_heap(ends_, std::ranges::greater{});
}

/// What the executor said about the last starts (overhead, slower placement), and jobs past their
/// time.
void Conservative::correct_ends(const View& view) {
  for (const JobId job : fresh_) {
    if (bookings_[job].held == Held::Devices && view.jobs.is_running(job))
      move_end(view, job, believed_end(view, job));
  }
  fresh_.clear();
  while (!ends_.empty() && ends_.front().at <= view.now) {
    const Due due = ends_.front();
    std::ranges::pop_heap(ends_, std::ranges::greater{});
    ends_.pop_back();
    if (bookings_[due.job].held != Held::Devices || bookings_[due.job].end != due.at) continue;
    move_end(view, due.job, next_believed_end(view, due.job, due.at));
  }
}

/// Step by step from the end that was believed last, whenever that is noticed: what is believed
/// does not depend on who asked when.
Time Conservative::next_believed_end(const View& view, JobId job, Time end) noexcept {
  const Time first = believed_end(view, job);
  const Duration least = std::max(kOverrun, view.estimate(job) / 4);
  while (end <= view.now) end += std::max(least, end - first);
  return end;
}

/// Takes reservations back from the end of the queue until what is left fits, then plans those
/// again in order. Re-inserting only the one in conflict would send it behind everybody who came
/// later.
void Conservative::plan_again_what_conflicts(const View& view) {
  for (std::uint32_t i = 0; i < profiles_.size(); ++i) {
    const PoolId pool{i};
    if (profiles_[pool].least() >= 0) continue;
    scratch_.clear();
    for (std::size_t at = order_.size(); at-- > 0 && profiles_[pool].least() < 0;) {
      if (bookings_[order_[at]].pool != pool) continue;
      unreserve(view, order_[at]);
      scratch_.push_back(order_[at]);
    }
    while (!scratch_.empty()) {
      reserve_or_strand(view, scratch_.back());
      scratch_.pop_back();
    }
  }
}

/// Looking does not move the reservation: in a full cluster most jobs stay where they are.
void Conservative::compress_one(const View& view, JobId job) {
  if (bookings_[job].start <= view.now) return;
  const Slot slot = earliest_slot(view, job);
  if (slot.start == kNever) return;
  unreserve(view, job);
  reserve(view, job, slot);
}

void Conservative::compress(const View& view) {
  if (!order_.empty()) ++compressions_;
  for (const JobId job : order_) compress_one(view, job);
}

// --- starting

bool Conservative::try_pool(const View& view, Plan& plan, JobId job, PoolId pool) {
  const ShapeId shape = view.jobs.shape[job];
  if (blocked_.has(shape, pool)) return false;
  const bool is_new = bookings_[job].made >= view.now;
  const Reason reason = !is_new                 ? Reason::Reservation
                        : job == order_.front() ? Reason::Order
                                                : Reason::Backfill;
  if (plan.try_start_in(pool, job, reason)) {
    unreserve(view, job);
    leave_order(job);
    hold(view, job, pool);
    return true;
  }
  blocked_.add(shape, pool);  // all jobs of a shape are alike to the placement
  return false;
}

bool Conservative::start_one(const View& view, Plan& plan, JobId job) {
  const Booking mine = bookings_[job];
  if (try_pool(view, plan, job, mine.pool)) return true;
  for (const PoolId pool : pools_[view.jobs.shape[job]]) {
    if (pool == mine.pool) continue;
    const Time start = profiles_[pool].earliest_fit(view.now, view.now + Duration{1},
                                                    length_of(view, job), view.gpus(job));
    if (start <= view.now && try_pool(view, plan, job, pool)) return true;
  }
  if (mine.end <= view.now) {
    // It waited for a place as long as it would have run: its time is over.
    unreserve(view, job);
    reserve_or_strand(view, job);
  }
  return false;
}

bool Conservative::start_due(const View& view, Plan& plan) {
  scratch_.clear();
  starts_.for_each([&](const RankedSet<Due>::Entry& entry) {
    if (entry.key.at > view.now) return false;
    scratch_.push_back(entry.key.job);
    return true;
  });
  bool any = false;
  for (const JobId job : scratch_) any = start_one(view, plan, job) || any;
  return any;
}

void Conservative::decide(const View& view, Plan& plan, Rng&) {
  for (std::uint32_t i = 0; i < profiles_.size(); ++i) profiles_[PoolId{i}].forget_before(view.now);
  blocked_.clear();
  correct_ends(view);
  plan_again_what_conflicts(view);
  if (freed_) compress(view);
  freed_ = false;
  do {
    admit_waiting(view, plan);
  } while (start_due(view, plan));
  plan_again_what_conflicts(view);  // who started late ends later than reserved
}

/// While jobs hold reservations the plan changes by itself when a job outlives the end it was
/// believed to have, when a reserved start comes, and when the time of one is over that found no
/// place. Ends that happen as believed are events of the same instant.
std::optional<Time> Conservative::next_wakeup(const View& view) {
  if (order_.empty() || view.cluster.free_gpus() == 0) return std::nullopt;
  // What the starts of this pass really cost may have made room, or taken it.
  const auto differs = [&](JobId job) {
    return bookings_[job].held == Held::Devices && view.jobs.is_running(job) &&
           bookings_[job].end != believed_end(view, job);
  };
  if (std::ranges::any_of(fresh_, differs)) return view.now + Duration{1};
  Time next = kNever;
  const auto consider = [&](Time at) {
    if (at > view.now) next = std::min(next, at);
  };
  drop_stale_ends();
  if (!ends_.empty()) consider(ends_.front().at);
  starts_.for_each([&](const RankedSet<Due>::Entry& entry) {
    consider(entry.key.at > view.now ? entry.key.at : bookings_[entry.key.job].end);
    return entry.key.at <= view.now;
  });
  if (next == kNever) return std::nullopt;
  return next;
}

/// What was believed once; the end that counts is in the booking.
void Conservative::drop_stale_ends() {
  const auto is_stale = [&](const Due& end) {
    return bookings_[end.job].held != Held::Devices || bookings_[end.job].end != end.at;
  };
  while (!ends_.empty() && is_stale(ends_.front())) {
    std::ranges::pop_heap(ends_, std::ranges::greater{});
    ends_.pop_back();
  }
}

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(const auto reservations, params.whole<std::size_t>("max_reservations", 1, 1'000'000));
  return std::make_unique<Conservative>(reservations);
}

}  // namespace
}  // namespace berth::conservative

namespace berth {

PolicyEntry conservative_entry() {
  return {.name = "conservative",
          .summary = "backfill that delays no waiting job: every one holds a reservation",
          .params = {{"max_reservations", "1000",
                      "jobs that hold a reservation at most; the others wait behind them"}},
          .make = conservative::make};
}

}  // namespace berth
