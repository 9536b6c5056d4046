#include "cpu/aware_tuner.h"

#include <algorithm>

#include "base/rounds.h"

namespace berth {

AwareTuner::AwareTuner(const CpuTunerOptions& options)
    : options_(options),
      cores_(options, beliefs_),
      placer_(options.wait, beliefs_, cores_),
      moves_(options, beliefs_, cores_) {
  if (options.measured != nullptr) probes_.emplace(*options.measured);
}

void AwareTuner::begin(const View& view, const RateModel& believed) {
  beliefs_.begin(believed, options_.measured);
  knows_devices_ = view.cluster.tracks_devices();
  placer_.begin(view.jobs.size());
}

bool AwareTuner::place(const Plan& plan, JobId job, PoolId pool, std::vector<Slice>& slices) {
  const bool has_a_say = options_.place && knows_devices_ && slices.size() == 1 &&
                         !plan.shape(job).is_fraction() &&
                         cores_milli_of(plan, slices.front().node) > 0;
  return !has_a_say || placer_.place(plan, job, pool, slices.front());
}

void AwareTuner::tune(const View& view, std::span<const NodeId> changed, Plan& plan) {
  if (!knows_devices_) return;
  nodes_.assign(changed.begin(), changed.end());
  const bool is_check_due = view.now >= next_check_;
  if (probes_) {
    const auto look = is_check_due ? SpeedProbes::Look::AtAll : SpeedProbes::Look::AtNews;
    probes_->collect(plan, look, beliefs_, nodes_);
  } else if (is_check_due && checks_.take_samples(plan, view.now, beliefs_)) {
    // Jobs of the class whose curve was corrected may be anywhere.
    nodes_.clear();
    for (std::uint32_t i = 0; i < plan.cluster().cluster().nodes.size(); ++i)
      nodes_.push_back(NodeId{i});
  }
  if (!nodes_.empty()) share_out(plan, nodes_);
  if (moves_.is_due(view.now))
    moves_.run(view, plan, [&](std::span<const NodeId> nodes) { share_out(plan, nodes); });
}

void AwareTuner::share_out(Plan& plan, std::span<const NodeId> nodes) {
  const CoreGrants& grants = cores_.share_out(plan, nodes);
  for (const auto& [job, cores_milli] : grants) {
    give_cores(plan, job, cores_milli);
    const NodeId node = plan.slices(job).front().node;
    placer_.set_demand(job, fewest_for_full_speed(cores_.speeds_of(plan, job, node)));
    if (!probes_) checks_.watch(job);
    if (beliefs_.speed(plan, job, cores_milli) < kStarved) moves_.note_starved();
  }
  if (probes_) probes_->bind(plan, grants, cores_);
  if (options_.lend) lend_to_validating(plan, grants);
}

/// Its curve is another one then, but others keep what they have: it gets no more than nobody
/// holds.
void AwareTuner::lend_to_validating(Plan& plan, const CoreGrants& grants) {
  for (const auto& [job, granted] : grants) {
    if (plan.jobs().phase[job] != Phase::Validation || !plan.jobs().is_running(job)) continue;
    std::int64_t more =
        std::int64_t{beliefs_.demand(plan, job, Phase::Validation)} * 1000 - granted;
    for (const Slice& slice : plan.slices(job))
      more = std::min(more, cores_.free_milli(plan, slice.node) / slice.gpus / 1000 * 1000);
    if (more > 0) give_cores(plan, job, granted + static_cast<std::int32_t>(more));
  }
}

std::optional<Time> AwareTuner::next_wakeup(const View& view) {
  checks_.forget_stopped(view);
  if (probes_) probes_->forget_stopped(view);
  const bool has_checks = !checks_.empty() || (probes_ && !probes_->empty());
  next_check_ = has_checks ? Grid{options_.check_interval}.after(view.now) : kNever;
  Time wake = std::min(next_check_, moves_.wakeup(view.now));
  if (const auto ends = placer_.wakeup(view)) wake = std::min(wake, *ends);
  if (wake == kNever) return std::nullopt;
  return wake;
}

}  // namespace berth
