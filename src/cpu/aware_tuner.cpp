#include "cpu/aware_tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rounds.h"

namespace berth {
namespace {

constexpr double kTolerance = 0.15;  // measured against believed speed
constexpr int kSamples = 3;

}  // namespace

void AwareTuner::begin(const View& view, const RateModel& believed) {
  beliefs_.begin(believed, options_.measured);
  knows_devices_ = view.cluster.tracks_devices();
  demand_ = Column<JobId, std::int32_t>(view.jobs.size(), 0);
  held_back_ = Column<JobId, Time>(view.jobs.size(), kNever);
}

void AwareTuner::tune(const View& view, std::span<const NodeId> changed, Plan& plan) {
  if (!knows_devices_) return;
  nodes_.assign(changed.begin(), changed.end());
  if (options_.measured != nullptr) {
    hear_measured(plan, view.now);
  } else if (view.now >= next_check_) {
    check_speeds(plan);
  }
  if (!nodes_.empty()) allocate_nodes(plan);
  if (view.now >= next_round_) reschedule(view, plan);
}

std::optional<Time> AwareTuner::next_wakeup(const View& view) {
  while (!watched_.empty() && !view.jobs.is_running(watched_.begin()->first))
    watched_.erase(watched_.begin());
  std::erase_if(probing_, [&](JobId job) { return !view.jobs.is_running(job); });
  const bool has_checks = !watched_.empty() || !probing_.empty();
  next_check_ = !has_checks ? kNever : Grid{options_.check_interval}.after(view.now);
  Time wake = next_check_;
  const bool moves = may_move_ && options_.reschedule_interval > Duration::zero();
  next_round_ = moves ? Grid{options_.reschedule_interval}.after(view.now) : kNever;
  wake = std::min(wake, next_round_);
  std::erase_if(waits_, [&](JobId job) { return !view.jobs.is_waiting(job); });
  if (patient_since_ && *patient_since_ + options_.wait > view.now)
    wake = std::min(wake, *patient_since_ + options_.wait);
  if (wake == kNever) return std::nullopt;
  return wake;
}

void AwareTuner::gather(const Plan& plan, NodeId node) {
  jobs_.clear();
  gangs_.clear();
  jobs_of_server(plan, node, on_node_, jobs_);
  for (const ServerJob& each : jobs_) {
    gangs_.push_back({.speeds = speeds_of(plan, each.job, node),
                      .workers = each.workers,
                      .most = most_of(plan, each.job)});
  }
  cores_.resize(jobs_.size());
}

/// A gang that reaches onto servers which are not looked at now keeps what it has at most.
std::int32_t AwareTuner::most_of(const Plan& plan, JobId job) const {
  constexpr auto kNoLimit = std::numeric_limits<std::int32_t>::max();
  const auto slices = plan.slices(job);
  if (slices.size() < 2) return kNoLimit;
  if (const auto cap = caps_.find(job); cap != caps_.end()) return cap->second;
  const auto looked_at = [&](const Slice& slice) {
    return std::ranges::binary_search(nodes_, slice.node);
  };
  const std::int32_t held = plan.terms(job).cores_milli / 1000;
  return held == 0 || std::ranges::all_of(slices, looked_at) ? kNoLimit : held;
}

/// Gangs over several servers have what the poorest worker has; others what this server gives. With
/// fewer cores than workers everybody has the same fraction of one.
void AwareTuner::allocate_gathered(const Plan& plan, NodeId node) {
  const bool enough = allocator_.allocate(server_of(plan, node), gangs_, cores_);
  std::int32_t workers = 0;
  for (const ServerJob& each : jobs_) workers += each.workers;
  const auto even = static_cast<std::int32_t>(cores_milli_of(plan, node) / std::max(workers, 1));
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    const std::int32_t cores = enough ? cores_[i] * 1000 : std::max(even, 1);
    const auto [entry, is_new] = grants_.try_emplace(jobs_[i].job, cores);
    const bool gang = plan.slices(jobs_[i].job).size() > 1;
    if (!is_new) entry->second = gang ? std::min(entry->second, cores) : cores;
  }
}

void AwareTuner::allocate_nodes(Plan& plan) {
  with_gang_mates(plan, nodes_, on_node_);
  const auto says_nothing = [&](NodeId node) { return cores_milli_of(plan, node) == 0; };
  std::erase_if(nodes_, says_nothing);
  grants_.clear();
  for (const NodeId node : nodes_) {
    gather(plan, node);
    allocate_gathered(plan, node);
  }
  for (const auto& [job, cores_milli] : grants_) {
    if (plan.slices(job).size() > 1) caps_[job] = std::max(cores_milli / 1000, 1);
  }
  // What a gang leaves on its richer servers goes to the others there.
  for (const NodeId node : nodes_) {
    if (caps_.empty()) break;
    gather(plan, node);
    const auto is_gang = [&](const ServerJob& each) { return caps_.contains(each.job); };
    if (std::ranges::any_of(jobs_, is_gang)) allocate_gathered(plan, node);
  }
  caps_.clear();
  apply_grants(plan);
  bind_to_probes(plan);
  lend_to_validating(plan);
}

void AwareTuner::apply_grants(Plan& plan) {
  for (const auto& [job, cores_milli] : grants_) {
    give_cores(plan, job, cores_milli);
    const auto speeds = speeds_of(plan, job, plan.slices(job).front().node);
    demand_[job] = fewest_for_full_speed(speeds) * 1000;
    if (options_.measured == nullptr) watched_[job] = 0;
    const bool starved = beliefs_.speed(plan, job, cores_milli) < kStarved;
    may_move_ = may_move_ || starved;
  }
}

/// Its curve is another one then, but others keep what they have: it gets no more than nobody
/// holds.
void AwareTuner::lend_to_validating(Plan& plan) {
  if (!options_.lend) return;
  for (const auto& [job, granted] : grants_) {
    if (plan.jobs().phase[job] != Phase::Validation || !plan.jobs().is_running(job)) continue;
    std::int64_t more =
        std::int64_t{beliefs_.demand(plan, job, Phase::Validation)} * 1000 - granted;
    for (const Slice& slice : plan.slices(job))
      more = std::min(more, free_milli(plan, slice.node) / slice.gpus / 1000 * 1000);
    if (more > 0) give_cores(plan, job, granted + static_cast<std::int32_t>(more));
  }
}

bool AwareTuner::has_device_company(const Plan& plan, JobId job) const {
  return std::ranges::any_of(plan.slices(job), [&](const Slice& slice) {
    bool company = false;
    for_each_device(slice.devices, [&](std::int32_t device) {
      company = company || plan.cluster().jobs_on(slice.node, device).size() > 1;
    });
    return company;
  });
}

/// One sample of a watched job. Whoever agrees with its belief is not looked at again until its
/// server changes; beside others on a GPU a speed says nothing about cores.
AwareTuner::Verdict AwareTuner::sample(const Plan& plan, JobId job) const {
  const JobTable& jobs = plan.jobs();
  if (!jobs.is_running(job) || !plan.holds(job) || has_device_company(plan, job))
    return Verdict::Settled;
  if (now_ <= jobs.work_from[job]) return Verdict::NotUnderWay;
  const double measured = measured_speed(plan, job);
  const double expected = beliefs_.speed(plan, job, plan.terms(job).cores_milli);
  const bool agrees = std::abs(measured / expected - 1) <= kTolerance;
  return measured <= 0 || agrees ? Verdict::Settled : Verdict::Contradicts;
}

double AwareTuner::measured_speed(const Plan& plan, JobId job) const {
  return plan.jobs().rate[job].value() / beliefs_.full_rate(plan, job);
}

void AwareTuner::check_speeds(const Plan& plan) {
  bool corrected = false;
  for (auto it = watched_.begin(); it != watched_.end();) {
    auto& [job, strikes] = *it;
    const Verdict verdict = sample(plan, job);
    const bool enough = verdict == Verdict::Contradicts && ++strikes == kSamples;
    if (enough && beliefs_.correct(plan, job, measured_speed(plan, job))) corrected = true;
    it = enough || verdict == Verdict::Settled ? watched_.erase(it) : std::next(it);
  }
  if (!corrected) return;
  nodes_.clear();
  for (std::uint32_t i = 0; i < plan.cluster().cluster().nodes.size(); ++i)
    nodes_.push_back(NodeId{i});
}

}  // namespace berth
