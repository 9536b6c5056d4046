// Watches an engine and integrates over time: levels (queue, busy, stranded …) are constant between
// two instants, so an integral is level times span. Integers of 128 bits keep the sums exact over
// years and a million devices.

#include "metrics/recorder.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "metrics/outcomes.h"

namespace berth {

Recorder::Recorder(const Trace& trace, const Cluster& cluster, const RecordOptions& options)
    : trace_(&trace),
      options_(options),
      stretches_(trace.jobs.size()),
      booted_(cluster.nodes.size(), kTimeZero),
      jobs_of_node_(cluster.nodes.size()) {
  integrals_.held.resize(cluster.pools.size());
  for (const TraceJob& job : trace.jobs) {
    if (const std::int32_t gpus = devices_of(job); gpus > 0) sizes_.push_back(gpus);
  }
  std::ranges::sort(sizes_);
  sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
  waiting_of_size_.resize(sizes_.size());
}

void Recorder::watch(const Engine& engine) {
  engine_ = &engine;
  integrals_.shares_devices = engine.cluster().tracks_devices();
  if (integrals_.shares_devices) busy_of_pool_.assign(engine.cluster().pools(), 0);
}

void Recorder::append(Time now, const Action& action) {
  BERTH_CHECK(engine_ != nullptr, "a recorder watches its engine before the engine runs");
  settle();
  if (options_.actions) {
    if (actions_.rows.size() < options_.max_actions) {
      actions_.rows.push_back(
          {now, action.job, action.gpus, static_cast<std::uint32_t>(actions_.slices.size()),
           static_cast<std::uint32_t>(action.slices.size()), action.kind, action.reason});
      actions_.slices.insert(actions_.slices.end(), action.slices.begin(), action.slices.end());
    }
    ++actions_.total;
  }
  // The intention comes before the act: when devices are really held the executor says only then,
  // so the effect is read from the job table at the next call.
  pending_ = Pending{now, action.kind, action.job, action.pool, action.gpus};
  pending_slices_.assign(action.slices.begin(), action.slices.end());
}

void Recorder::settle() {
  if (!pending_) return;
  const Pending action = *pending_;
  pending_.reset();
  switch (action.kind) {
    case ActionKind::Start:
    case ActionKind::Resume:
    case ActionKind::Share:
      wait(action.job, -1);
      open(action);
      break;
    case ActionKind::Preempt:
    case ActionKind::Suspend:
      close(action.job, action.at);
      wait(action.job, +1);
      break;
    case ActionKind::Migrate:
    case ActionKind::Resize:
      close(action.job, action.at);
      open(action);
      break;
    case ActionKind::SetSubBatch:
    case ActionKind::SetCores:
    case ActionKind::SetShare:
    case ActionKind::SetMemory:
    case ActionKind::SetBatch: break;  // its devices stay
    case ActionKind::PowerOn:
    case ActionKind::PowerOff: note_power(action.kind, pending_slices_.front(), action.at); break;
    case ActionKind::Kill:
      if (stretches_[action.job].place.holds())
        close(action.job, action.at);
      else
        wait(action.job, -1);
      break;
    case ActionKind::Reject: wait(action.job, -1); break;
  }
}

void Recorder::finished(Time now, JobId job, JobState) {
  settle();
  if (stretches_[job].place.holds())
    close(job, now);
  else
    wait(job, -1);
}

// By size too, so that the smallest waiting gang is found without a walk over the queue.
void Recorder::wait(JobId job, std::int32_t change) {
  const std::int32_t gpus = devices_of(trace_->jobs[job.value]);
  queue_ += change;
  if (gpus == 0) return;
  queued_gpus_ += std::int64_t{gpus} * change;
  const auto size = std::ranges::lower_bound(sizes_, gpus) - sizes_.begin();
  waiting_of_size_[static_cast<std::size_t>(size)] += change;
}

void Recorder::open(const Pending& action) {
  const JobTable& jobs = engine_->jobs();
  Stretch& stretch = stretches_[action.job];
  stretch.held_from = jobs.held_from[action.job];
  stretch.work_from = jobs.work_from[action.job];
  stretch.held_before = jobs.held[action.job];
  stretch.gpus = action.gpus;
  stretch.place = places_.store(action.pool, pending_slices_);
  note_nodes(stretch, +1);
  if (action.kind == ActionKind::Start && waited_for_boot(action, stretch))
    ++integrals_.boot_delayed;
  ++running_;
  busy_ += action.gpus;
}

void Recorder::close(JobId job, Time stopped) {
  Stretch& stretch = stretches_[job];
  const Time from = stretch.held_from;
  const Duration held = engine_->jobs().held[job] - stretch.held_before;
  const Time until = from + held;  // saving may hold the devices a little longer than `stopped`
  if (held > Duration::zero()) {
    if (!integrals_.shares_devices)
      integrals_.held[stretch.place.pool.value] += Int128{held.count()} * stretch.gpus;
    if (options_.intervals) {
      const Time work_until = std::min(stopped, until);
      const Time work_from = std::clamp(stretch.work_from, from, std::max(from, work_until));
      keep(job, stretch, from, work_from, IntervalKind::Overhead);
      keep(job, stretch, work_from, work_until, IntervalKind::Run);
      keep(job, stretch, std::max(work_until, from), until, IntervalKind::Overhead);
    }
  }
  note_nodes(stretch, -1);
  places_.release(stretch.place);
  stretch.place = Allocation{};
  --running_;
  busy_ -= stretch.gpus;
}

void Recorder::keep(JobId job, const Stretch& stretch, Time start, Time end, IntervalKind kind) {
  if (end <= start) return;
  const auto add = [&](const Slice& slice) {
    intervals_.rows.push_back(
        {job, stretch.place.pool, slice.node, slice.gpus, slice.devices, start, end, kind});
    ++intervals_.total;
  };
  const auto slices = places_.slices(stretch.place);
  for (const Slice& slice : slices) add(slice);
  if (slices.empty()) add({.node = {}, .gpus = stretch.gpus, .devices = 0});
  // Twice the limit before cutting: the selection costs linear time, so it is paid for by as many
  // new rows.
  if (intervals_.rows.size() >= 2 * options_.max_intervals) forget_short_intervals();
}

// The longest are what a chart can show; ties end at the job, so the choice is the same everywhere.
void Recorder::forget_short_intervals() {
  auto& rows = intervals_.rows;
  if (rows.size() <= options_.max_intervals) return;
  const auto longest_first = [](const Interval& a, const Interval& b) {
    return std::tuple(b.end - b.start, a.start, a.job, a.node, a.kind) <
           std::tuple(a.end - a.start, b.start, b.job, b.node, b.kind);
  };
  const auto cut = rows.begin() + static_cast<std::ptrdiff_t>(options_.max_intervals);
  std::ranges::nth_element(rows, cut, longest_first);
  rows.erase(cut, rows.end());
}

std::int32_t Recorder::smallest_waiting() const noexcept {
  const auto found =
      std::ranges::find_if(waiting_of_size_, [](std::int32_t count) { return count > 0; });
  return found == waiting_of_size_.end()
             ? 0
             : sizes_[static_cast<std::size_t>(found - waiting_of_size_.begin())];
}

// Nodes with fewer free devices than the smallest waiting gang needs there.
std::int64_t Recorder::stranded_gpus() const {
  const std::int32_t gang = smallest_waiting();
  if (gang == 0) return 0;
  const ClusterState& state = engine_->cluster();
  if (state.mode() == ClusterState::Mode::Count)
    return state.free_gpus() < gang ? state.free_gpus() : 0;
  std::int64_t stranded = 0;
  for (std::uint32_t i = 0; i < state.pools(); ++i) {
    const PoolId pool{i};
    const std::int32_t enough =
        std::min(gang, state.largest_node(pool));  // a larger gang wants whole nodes
    for (std::int32_t free = 1; free < enough; ++free) {
      stranded += static_cast<std::int64_t>(state.nodes_with(pool, free).size()) * free;
    }
  }
  return stranded;
}

namespace {
std::int64_t idle_milliwatts(const Cluster& cluster, NodeId id) {
  const Node& node = cluster.nodes[id.value];
  const double watts = node.idle_watts + node.gpus * cluster.pools[node.pool.value].idle_watts;
  return static_cast<std::int64_t>(watts * 1000);
}
}  // namespace

void Recorder::note_nodes(const Stretch& stretch, std::int32_t change) {
  for (const Slice& slice : places_.slices(stretch.place)) {
    std::int32_t& jobs = jobs_of_node_[slice.node.value];
    const bool was_occupied = jobs > 0;
    jobs += change;
    occupied_nodes_ += (jobs > 0 ? 1 : 0) - (was_occupied ? 1 : 0);
  }
}

/// Its first start, and a node of it was not ready when the job came.
bool Recorder::waited_for_boot(const Pending& action, const Stretch& stretch) const {
  const JobTable& jobs = engine_->jobs();
  if (integrals_.wake_ups == 0 || jobs.last_start[action.job] != jobs.first_start[action.job])
    return false;
  return std::ranges::any_of(places_.slices(stretch.place), [&](const Slice& slice) {
    const bool ready_now = std::ranges::find(booting_, slice.node) != booting_.end();
    const Time ready = ready_now ? action.at : booted_[slice.node.value];
    return ready > trace_->jobs[action.job.value].submit;
  });
}

// A node that is switched off while it boots leaves the level of boot power; what it drew until
// then stays in the integral.
void Recorder::note_power(ActionKind kind, const Slice& slice, Time at) {
  const std::int64_t idle = idle_milliwatts(engine_->cluster().cluster(), slice.node);
  const bool off = kind == ActionKind::PowerOff;
  const auto booting = std::ranges::find(booting_, slice.node);
  if (off && booting != booting_.end()) {
    booting_.erase(booting);
    boot_milliwatts_ -= idle;
  } else if (!off) {
    booting_.push_back(slice.node);
    boot_milliwatts_ += idle;
    ++integrals_.power_ons;
    integrals_.wake_ups += last_wake_up_ == at ? 0 : 1;
    last_wake_up_ = at;
  }
  integrals_.power_offs += off ? 1 : 0;
  off_nodes_ += off ? 1 : -1;
  off_milliwatts_ += off ? idle : -idle;
}

/// Nodes that have booted since the last instant idle from now on.
void Recorder::note_booted(Time now) {
  const ClusterState& state = engine_->cluster();
  std::erase_if(booting_, [&](NodeId node) {
    if (state.power(node) != PowerState::On && !state.has_failed(node)) return false;
    boot_milliwatts_ -= idle_milliwatts(state.cluster(), node);
    booted_[node.value] = now;
    return true;
  });
}

void Recorder::integrate(Time now) {
  const Int128 span = (now - levels_.since).count();
  integrals_.queue += span * levels_.queue;
  integrals_.running += span * levels_.running;
  integrals_.busy += span * levels_.busy;
  for (std::size_t i = 0; i < busy_of_pool_.size(); ++i)
    integrals_.held[i] += span * busy_of_pool_[i];
  integrals_.free += span * levels_.free;
  integrals_.stranded += span * levels_.stranded;
  integrals_.off_nodes += span * levels_.off_nodes;
  integrals_.occupied_nodes += span * levels_.occupied_nodes;
  integrals_.off_milliwatts += span * levels_.off_milliwatts;
  integrals_.boot_milliwatts += span * levels_.boot_milliwatts;
  if (levels_.queue > 0) integrals_.idle_while_queued += span * levels_.free;
}

void Recorder::instant_done(Time now) {
  BERTH_CHECK(engine_ != nullptr, "a recorder watches its engine before the engine runs");
  settle();
  for (; next_arrival_ < trace_->jobs.size() && trace_->jobs[next_arrival_].submit <= now;
       ++next_arrival_) {
    wait(JobId{static_cast<std::uint32_t>(next_arrival_)}, +1);
  }
  // Before the levels change: the span that ends now had the old ones.
  integrate(now);
  const ClusterState& state = engine_->cluster();
  const std::int64_t busy =
      integrals_.shares_devices ? state.usable_gpus() - state.free_gpus() : busy_;
  for (std::uint32_t i = 0; i < busy_of_pool_.size(); ++i)
    busy_of_pool_[i] = state.usable_gpus(PoolId{i}) - state.free_gpus(PoolId{i});
  note_booted(now);
  levels_ = {now,
             queue_,
             running_,
             busy,
             state.free_gpus(),
             stranded_gpus(),
             off_nodes_,
             off_milliwatts_,
             boot_milliwatts_,
             occupied_nodes_};
  integrals_.max_queue = std::max(integrals_.max_queue, queue_);
  // After all changes of the instant: a point of the timeline is what holds from now on.
  if (options_.timeline) {
    timeline_.add(now, {static_cast<double>(queue_), static_cast<double>(queued_gpus_),
                        static_cast<double>(running_), static_cast<double>(busy),
                        static_cast<double>(state.usable_gpus())});
  }
}

ActionLog Recorder::take_actions() { return std::exchange(actions_, {}); }

IntervalLog Recorder::take_intervals() {
  forget_short_intervals();
  std::ranges::sort(intervals_.rows, {},
                    [](const Interval& i) { return std::tuple(i.start, i.job, i.node, i.kind); });
  return std::exchange(intervals_, {});
}

}  // namespace berth
