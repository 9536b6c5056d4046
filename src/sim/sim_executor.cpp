// A heap of planned ends drives time. A plan that no longer holds is not searched for: each job has
// an attempt number that grows with every change, and entries of an older number are dropped when
// they come up.

#include "sim/sim_executor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "base/check.h"
#include "base/device_mask.h"
#include "base/rng.h"

namespace berth {

struct SimExecutor::Later {
  bool operator()(const Finish& a, const Finish& b) const noexcept {
    return std::tuple(a.at, a.job, a.attempt) > std::tuple(b.at, b.job, b.attempt);
  }
};

namespace {
constexpr std::size_t kDevicesPerNode = kMaxGpusPerNode;
}

SimExecutor::SimExecutor(const Trace& trace, const Cluster& cluster, const SimOptions& options)
    : trace_(trace),
      cluster_(cluster),
      options_(options),
      boot_attempt_(cluster.nodes.size(), 0),
      attempt_(trace.jobs.size(), 0) {
  for (const NodeOutage& outage : options_.outages) {
    node_changes_.push_back({outage.down, outage.node, EventKind::NodeDown});
    if (outage.up != kNever) node_changes_.push_back({outage.up, outage.node, EventKind::NodeUp});
  }
  // Downs before ups of the same instant (by kind): a node that only restarts loses its jobs.
  std::ranges::sort(node_changes_, {},
                    [](const NodeChange& c) { return std::tuple(c.at, c.kind, c.node); });
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    if (trace.jobs[i].cancel_at) cancels_.push_back(JobId{i});
  }
  std::ranges::sort(cancels_, {},
                    [&](JobId job) { return std::tuple(*trace_.jobs[job.value].cancel_at, job); });
  if (saving_costs()) {
    device_busy_.resize(cluster.nodes.size() * kDevicesPerNode);
    pool_saves_.resize(cluster.pools.size());
    for (const Node& node : cluster.nodes) pool_saves_[node.pool.value].idle += node.gpus;
    pool_of_.resize(trace.jobs.size());
    saved_at_.resize(trace.jobs.size());
    gpus_of_.resize(trace.jobs.size());
  }
  if (options_.truth == nullptr) return;
  neighbours_.emplace(trace, *options_.truth);
  if (options_.truth->effects().cpu) phases_.emplace(trace.jobs.size(), options_.truth->profiles());
}

void SimExecutor::drop_stale() {
  // Preemptive policies leave many dead entries behind; sweeping when they are the majority keeps
  // the heap as small as the set of running jobs, at constant cost per start.
  if (finishes_.size() > swept_size_ * 4 + 4096) {
    std::erase_if(finishes_,
                  [&](const Finish& finish) { return attempt_[finish.job] != finish.attempt; });
    std::ranges::make_heap(finishes_, Later{});
    swept_size_ = finishes_.size();
  }
  while (!finishes_.empty() && attempt_[finishes_.front().job] != finishes_.front().attempt) {
    std::ranges::pop_heap(finishes_, Later{});
    finishes_.pop_back();
  }
}

std::optional<Time> SimExecutor::advance(Time wakeup) {
  drop_stale();
  Time next = wakeup;
  if (!finishes_.empty()) next = std::min(next, finishes_.front().at);
  if (next_arrival_ < trace_.jobs.size()) next = std::min(next, trace_.jobs[next_arrival_].submit);
  if (next_cancel_ < cancels_.size())
    next = std::min(next, *trace_.jobs[cancels_[next_cancel_].value].cancel_at);
  if (next_boot_ < boots_.size()) next = std::min(next, boots_[next_boot_].at);
  // Computed before outages are looked at: see below.
  const bool work_left = next != kNever;
  if (next_node_change_ < node_changes_.size()) {
    // Outages after the last job do not matter, unless waiting jobs need a node to come back.
    next = std::min(next, node_changes_[next_node_change_].at);
  }
  if (!work_left && next == kNever) return std::nullopt;
  return next;
}

bool SimExecutor::expects_events() const noexcept {
  return next_arrival_ < trace_.jobs.size() || next_cancel_ < cancels_.size() ||
         next_node_change_ < node_changes_.size() || next_boot_ < boots_.size() ||
         !finishes_.empty();
}

/// The event of an entry popped from the heap. A job that has ended leaves its devices here.
Event SimExecutor::event_of(const Finish& finish) {
  Event event{.kind = EventKind::Finished, .outcome = {}, .job = finish.job, .node = {}};
  if (finish.turn == Turn::Phase) {
    event.kind = EventKind::NextPhase;
    event.phase = phases_->next(finish.job);
    in_next_phase_.push_back(finish.job);
    neighbours_->touch(finish.job);
    return event;
  }
  if (saving_costs()) pool_saves_[pool_of_[finish.job].value].idle += gpus_of_[finish.job];
  if (neighbours_) neighbours_->leave(finish.job);
  const TraceJob& job = trace_.jobs[finish.job.value];
  TraceStatus status = job.status;
  // The trace gives a number of failures: after that many the next attempt completes.
  if (status == TraceStatus::Failed && job.failed_attempts > 0 &&
      failed_[finish.job]++ == job.failed_attempts)
    status = TraceStatus::Completed;
  event.failure = job.failure;
  event.outcome = status == TraceStatus::Completed ? JobState::Completed
                  : status == TraceStatus::Failed  ? JobState::Failed
                                                   : JobState::Cancelled;
  return event;
}

void SimExecutor::collect(Time now, std::vector<Event>& due) {
  phase_events_.clear();
  has_news_ = next_boot_ < boots_.size() && boots_[next_boot_].at <= now;  // it may have failed
  for (drop_stale(); !finishes_.empty() && finishes_.front().at <= now; drop_stale()) {
    const Finish finish = finishes_.front();
    std::ranges::pop_heap(finishes_, Later{});
    finishes_.pop_back();
    // Whatever comes next for this job, a planned end of the old attempt is void.
    ++attempt_[finish.job];
    if (finish.turn == Turn::Noise) {
      has_news_ = true;
      neighbours_->touch(finish.job);
      in_next_phase_.push_back(finish.job);
      continue;
    }
    const Event event = event_of(finish);
    (finish.turn == Turn::Phase ? phase_events_ : due).push_back(event);
  }
  for (; next_node_change_ < node_changes_.size() && node_changes_[next_node_change_].at <= now;
       ++next_node_change_) {
    const NodeChange& change = node_changes_[next_node_change_];
    due.push_back({.kind = change.kind, .outcome = {}, .job = {}, .node = change.node});
    if (saving_costs()) {
      const Node& node = cluster_.nodes[change.node.value];
      pool_saves_[node.pool.value].idle +=
          change.kind == EventKind::NodeUp ? node.gpus : -node.gpus;
    }
  }
  collect_boots(now, due);
  for (; next_arrival_ < trace_.jobs.size() && trace_.jobs[next_arrival_].submit <= now;
       ++next_arrival_) {
    due.push_back({.kind = EventKind::Arrival,
                   .outcome = {},
                   .job = JobId{static_cast<std::uint32_t>(next_arrival_)},
                   .node = {}});
  }
  for (; next_cancel_ < cancels_.size() &&
         *trace_.jobs[cancels_[next_cancel_].value].cancel_at <= now;
       ++next_cancel_) {
    due.push_back(
        {.kind = EventKind::Cancel, .outcome = {}, .job = cancels_[next_cancel_], .node = {}});
  }
  due.insert(due.end(), phase_events_.begin(), phase_events_.end());
}

Duration SimExecutor::overhead_of(const Action& action, const JobTable& jobs) const noexcept {
  const Duration own = action.pause;
  switch (action.kind) {
    case ActionKind::Start: return own + options_.costs.start;
    case ActionKind::Migrate:
    case ActionKind::Resize: return own + options_.costs.migrate;
    case ActionKind::Share:
      return own + (jobs.first_start[action.job] == kNever ? options_.costs.start
                                                           : options_.costs.resume);
    default: return own + options_.costs.resume;
  }
}

void SimExecutor::finish_at(Time at, JobId job) {
  finishes_.push_back({at, job, attempt_[job], Turn::End});
  std::ranges::push_heap(finishes_, Later{});
}

StartReceipt SimExecutor::start(Time now, const Action& action, const JobTable& jobs) {
  StartReceipt receipt;
  receipt.held_from = devices_free_at(now, action);
  receipt.work_from = receipt.held_from + overhead_of(action, jobs);
  if (neighbours_ && !action.slices.empty()) {
    neighbours_->enter(action.job, action.pool, action.slices);
    receipt.rate = Rate{};  // known when everybody of this instant has come and gone
    if (phases_)
      receipt.phase = phases_->begin(action.job, jobs.profile[action.job], jobs.work[action.job]);
    return receipt;
  }
  receipt.rate = spread_rate_of(action.job, action.slices, action.gpus);
  const Duration left = trace_.jobs[action.job.value].duration - jobs.work[action.job];
  finish_at(receipt.work_from + receipt.rate.time_for(std::max(Duration::zero(), left)),
            action.job);
  return receipt;
}

void SimExecutor::adjust(Time, const Action& action, const JobTable&) {
  if (neighbours_) neighbours_->touch(action.job);
}

void SimExecutor::rates(Time now, const JobTable& jobs, std::vector<RateChange>& changes) {
  if (!neighbours_) return;
  neighbours_->rates(now, jobs, changes);
  if (options_.spread != SpreadCost::Ignored) {
    for (auto& [job, rate, work, basis, begun] : changes) {
      const Rate spread = spread_rate_of(job, neighbours_->slices(job), jobs.granted[job]);
      rate = Rate::from(rate.value() * spread.value());
    }
  }
  std::ranges::sort(in_next_phase_);
  // An unchanged rate keeps its planned end; replanning it would only move rounding errors about.
  // After a phase the plan is gone, so these jobs are planned in any case.
  std::erase_if(changes, [&](const RateChange& change) {
    return change.rate == jobs.rate[change.job] &&
           !std::ranges::binary_search(in_next_phase_, change.job);
  });
  in_next_phase_.clear();
  for (const RateChange& change : changes) plan_end(now, change, jobs);
}

/// Plans the next event of a job at its new rate: its end, or the end of its phase or of this rate
/// if that comes first.
void SimExecutor::plan_end(Time now, const RateChange& change, const JobTable& jobs) {
  const JobId job = change.job;
  const Rate rate = change.rate;
  ++attempt_[job];
  // A job held back entirely has no end until its rate changes again.
  if (rate.is_zero()) return;
  const Duration work = jobs.work_done(job, now);
  Duration left = std::max(Duration::zero(), trace_.jobs[job.value].duration - work);
  Turn turn = Turn::End;
  if (const auto phase = phases_ ? phases_->left(job, work) : std::nullopt;
      phase && *phase < left) {
    left = *phase;
    turn = Turn::Phase;
  }
  if (const auto steady = steady_left(job, work, jobs); steady && *steady < left) {
    left = *steady;
    turn = Turn::Noise;
  }
  finishes_.push_back(
      {std::max(now, jobs.work_from[job]) + rate.time_for(left), job, attempt_[job], turn});
  std::ranges::push_heap(finishes_, Later{});
}

/// Work until the noise scale of the job's gradient changes; nothing: it never does, or that does
/// not matter.
std::optional<Duration> SimExecutor::steady_left(JobId job, Duration work,
                                                 const JobTable& jobs) const noexcept {
  const auto& noise = profile_of(job, jobs).noise;
  if (noise.empty() || !(options_.truth->effects().efficiency || jobs.terms[job].batch > 0))
    return std::nullopt;
  const auto whole = static_cast<double>(trace_.jobs[job.value].duration.count());
  for (const NoisePoint& point : noise) {
    const Duration until{static_cast<std::int64_t>(std::ceil(point.progress * whole))};
    if (until > work) return until - work;
  }
  return std::nullopt;
}

void SimExecutor::power(Time now, const Action& action) {
  const NodeId node = action.slices.front().node;
  ++boot_attempt_[node.value];
  if (action.kind != ActionKind::PowerOn) return;
  boots_.push_back(
      {now + options_.boot, node, boot_attempt_[node.value]});  // all last equally long
}

/// Depends on the node and its boot alone, not on the order in which boots are examined.
bool SimExecutor::fails(const Boot& boot) const {
  if (options_.boot_failures <= 0) return false;
  const std::uint64_t which = (std::uint64_t{boot.node.value} << 32U) | boot.attempt;
  Rng rng = Rng{options_.boot_seed ^ (0x9e3779b97f4a7c15ULL * (which + 1))}.fork("boot");
  for (int i = 0; i < boot.failed; ++i) static_cast<void>(rng.uniform());
  return rng.uniform() < options_.boot_failures;
}

void SimExecutor::collect_boots(Time now, std::vector<Event>& due) {
  constexpr int kRetries = 2;
  for (; next_boot_ < boots_.size() && boots_[next_boot_].at <= now; ++next_boot_) {
    const Boot boot = boots_[next_boot_];
    // The number grows with every order to this node, so an older boot is void.
    if (boot.attempt != boot_attempt_[boot.node.value]) continue;  // switched off again meanwhile
    const bool failed = fails(boot);
    if (failed && boot.failed < kRetries) {
      boots_.push_back({now + options_.boot, boot.node, boot.attempt, boot.failed + 1});
      continue;
    }
    due.push_back({.kind = failed ? EventKind::NodeDown : EventKind::Booted,
                   .outcome = {},
                   .job = {},
                   .node = boot.node});
  }
  if (next_boot_ == boots_.size()) {
    boots_.clear();
    next_boot_ = 0;
  }
}

const Profile& SimExecutor::profile_of(JobId job, const JobTable& jobs) const noexcept {
  static const Profile kUnknown{};
  return options_.truth != nullptr ? options_.truth->profile(jobs.profile[job]) : kUnknown;
}

double SimExecutor::progress_of(Time now, JobId job, const JobTable& jobs) const noexcept {
  return share_done(jobs.work_done(job, now), trace_.jobs[job.value].duration);
}

std::optional<TrainingReport> SimExecutor::report(Time now, JobId job, const JobTable& jobs) const {
  if (jobs.first_start[job] == kNever) return std::nullopt;
  const Profile& profile = profile_of(job, jobs);
  const double progress = progress_of(now, job, jobs);
  const double epochs = progress * profile.loss.epochs;
  const auto whole = static_cast<std::int64_t>(epochs);
  return TrainingReport{.epochs = epochs,
                        .loss = measured_loss(profile.loss, job.value, whole),
                        .noise_scale = noise_scale_at(profile.noise, progress)};
}

void SimExecutor::losses(Time now, JobId job, const JobTable& jobs, std::int64_t first,
                         std::vector<double>& losses) const {
  if (jobs.first_start[job] == kNever) return;
  const LossCurve& curve = profile_of(job, jobs).loss;
  const auto done = static_cast<std::int64_t>(progress_of(now, job, jobs) * curve.epochs);
  for (std::int64_t epoch = std::max<std::int64_t>(first, 0); epoch <= done; ++epoch)
    losses.push_back(measured_loss(curve, job.value, epoch));
}

Time SimExecutor::stop(Time now, const Action& action, const JobTable& jobs) {
  ++attempt_[action.job];
  if (neighbours_ && !neighbours_->slices(action.job).empty()) neighbours_->leave(action.job);
  if (!saving_costs()) return now;
  const bool saves =
      (ends_stretch(action.kind) || changes_devices(action.kind)) &&
      action.reason != Reason::NodeLost &&
      jobs.held_from[action.job] < now;  // one that never held its devices has nothing to save
  if (!saves) {
    pool_saves_[pool_of_[action.job].value].idle += gpus_of_[action.job];
    return now;
  }
  const Time until = now + options_.costs.preempt;
  saved_at_[action.job] = until;
  hold_for_save(action, until);
  return until;
}

void SimExecutor::hold_for_save(const Action& action, Time until) {
  pool_saves_[pool_of_[action.job].value].saving.emplace_back(until, gpus_of_[action.job]);
  for (const Slice& slice : changes_devices(action.kind) ? action.left : action.slices) {
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      device_busy_[slice.node.value * kDevicesPerNode + static_cast<std::size_t>(device)] = until;
    }
  }
}

Time SimExecutor::devices_free_at(Time now, const Action& action) {
  if (!saving_costs()) return now;
  pool_of_[action.job] = action.pool;
  gpus_of_[action.job] = action.gpus;
  Time at = std::max(now, saved_at_[action.job]);
  const Time counted = counted_free_at(now, action);
  if (action.slices.empty()) return std::max(at, counted);
  for (const Slice& slice : action.slices) {
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      at = std::max(
          at, device_busy_[slice.node.value * kDevicesPerNode + static_cast<std::size_t>(device)]);
    }
  }
  return at;
}

/// Idle devices of the pool first, then those whose save ends soonest.
Time SimExecutor::counted_free_at(Time now, const Action& action) {
  PoolSaves& pool = pool_saves_[action.pool.value];
  for (const auto& [until, gpus] : pool.saving) {
    if (until <= now) pool.idle += gpus;
  }
  std::erase_if(pool.saving, [&](const auto& entry) { return entry.first <= now; });
  std::int64_t need =
      action.gpus - std::min<std::int64_t>(action.gpus, std::max<std::int64_t>(pool.idle, 0));
  pool.idle -= action.gpus - need;
  Time at = now;
  for (auto& [until, gpus] : pool.saving) {  // all saves last equally long: in order of their end
    if (need == 0) break;
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(need, gpus));
    gpus -= taken;
    need -= taken;
    at = std::max(at, until);
  }
  std::erase_if(pool.saving, [](const auto& entry) { return entry.second == 0; });
  return at;
}

Rate SimExecutor::spread_rate_of(JobId job, std::span<const Slice> slices,
                                 std::int32_t gpus) const {
  if (options_.spread == SpreadCost::Ignored || slices.size() <= 1) return Rate::one();
  const std::int32_t node = cluster_.nodes[slices.front().node.value].gpus;
  const PlacementFacts facts{.nodes = static_cast<std::int32_t>(slices.size()),
                             .fewest_nodes = (gpus + node - 1) / node};
  return spread_rate(options_.spread, trace_.text(trace_.jobs[job.value].model), facts);
}

}  // namespace berth
