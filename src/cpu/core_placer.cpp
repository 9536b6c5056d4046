#include "cpu/core_placer.h"

#include <algorithm>
#include <tuple>

#include "placements/node_picker.h"

namespace berth {
namespace {

constexpr std::size_t kMostObjectives = 32;  // servers that are allocated on trial

}  // namespace

void CorePlacer::begin(std::size_t jobs) {
  demand_ = Column<JobId, std::int32_t>(jobs, 0);
  held_back_ = Column<JobId, Time>(jobs, kNever);
}

std::optional<Time> CorePlacer::wakeup(const View& view) {
  std::erase_if(waits_, [&](JobId job) { return !view.jobs.is_waiting(job); });
  if (!patient_since_ || *patient_since_ + wait_ <= view.now) return std::nullopt;
  return *patient_since_ + wait_;
}

bool CorePlacer::place(const Plan& plan, JobId job, PoolId pool, Slice& slice) {
  // No more than the largest server has for a gang as large, or it would wait for what is nowhere.
  const std::int32_t most = std::max(beliefs_.most_cores(pool) / plan.shape(job).gpus, 1);
  const std::int32_t wanted = fewest_for_full_speed(beliefs_.speeds_in(plan, job, pool));
  set_demand(job, std::min(wanted, most));
  list_sites(plan, job, pool, slice);
  const Site* site = tightest_fit();
  if (site != nullptr) {
    end_wait(job, Cores::Enough);
  } else if (is_patient(plan, job)) {
    return false;
  } else {
    site = best_objective(plan, job, pool);
    end_wait(job, Cores::TooFew);
  }
  slice = site->slice;
  return true;
}

/// Empty servers are alike unless they have more cores.
void CorePlacer::list_sites(const Plan& plan, JobId job, PoolId pool, const Slice& placed) {
  sites_.clear();
  const ClusterState& state = plan.cluster();
  const Shape& shape = plan.shape(job);
  const auto level_of = [&](const Slice& slice) {
    return beliefs_.rates().servers().inside(slice.node).level_of(slice.devices);
  };
  const Level farthest = level_of(placed);  // cores are no reason to tear the gang further apart
  std::int64_t cores_of_empty = 0;          // of the empty servers listed so far, the most
  add_site(plan, job, placed);
  for (std::int32_t free = shape.gpus; free <= state.largest_node(pool); ++free) {
    const NodeSet& nodes = state.nodes_with(pool, free);
    for (const NodeId node : nodes) {
      const Node& server = state.cluster().nodes[node.value];
      const bool is_empty = free == server.gpus;
      if (node == placed.node || server.cpus_milli == 0) continue;
      if (is_empty && server.cpus_milli <= cores_of_empty) continue;
      if (state.room_on(node, shape) < shape.gpus) continue;
      const Slice slice = slice_of(state, node, shape.gpus);
      if (level_of(slice) > farthest) continue;
      if (is_empty) cores_of_empty = server.cpus_milli;
      add_site(plan, job, slice);
    }
  }
}

void CorePlacer::add_site(const Plan& plan, JobId job, const Slice& slice) {
  const Node& server = plan.cluster().cluster().nodes[slice.node.value];
  const std::int64_t spare =
      server.cpus_milli - claimed_milli(plan, slice.node) - std::int64_t{demand_[job]} * slice.gpus;
  const double gpus = static_cast<double>(plan.cluster().free_on(slice.node) - slice.gpus) /
                      static_cast<double>(server.gpus);
  const double cores = static_cast<double>(spare) / static_cast<double>(server.cpus_milli);
  sites_.push_back({.rest = std::max(gpus, cores),
                    .other_rest = std::min(gpus, cores),
                    .spare = spare,
                    .slice = slice});
}

/// Cores the jobs of the server want, whether they have them or not.
std::int64_t CorePlacer::claimed_milli(const Plan& plan, NodeId node) const {
  std::int64_t claimed = 0;
  const ClusterState& state = plan.cluster();
  for (std::int32_t device = 0; device < state.cluster().nodes[node.value].gpus; ++device) {
    for (const JobId job : state.jobs_on(node, device)) claimed += demand_[job];
  }
  return claimed;
}

const CorePlacer::Site* CorePlacer::tightest_fit() const {
  const Site* best = nullptr;
  const auto key = [](const Site& site) {
    return std::tuple(site.rest, site.other_rest, site.slice.node);
  };
  for (const Site& site : sites_) {
    if (site.spare >= 0 && (best == nullptr || key(site) < key(*best))) best = &site;
  }
  return best;
}

/// Allocates the richest servers on trial, with the job and without.
const CorePlacer::Site* CorePlacer::best_objective(const Plan& plan, JobId job, PoolId pool) {
  const std::size_t tried = std::min(sites_.size(), kMostObjectives);
  std::ranges::partial_sort(sites_, sites_.begin() + static_cast<std::ptrdiff_t>(tried), {},
                            [](const Site& s) { return std::tuple(-s.spare, s.slice.node); });
  const CpuGang newcomer{.speeds = beliefs_.speeds_in(plan, job, pool),
                         .workers = plan.shape(job).gpus};
  const Site* best = nullptr;
  double best_gain = 0;
  cores_.forget_shared_out();
  for (std::size_t i = 0; i < tried; ++i) {
    const NodeId node = sites_[i].slice.node;
    cores_.gather(plan, node);
    const double before = cores_.objective(plan, node);
    cores_.add(newcomer);
    const double gain = cores_.objective(plan, node) - before;
    if (best != nullptr && gain <= best_gain) continue;
    best = &sites_[i];
    best_gain = gain;
  }
  return best;
}

/// All jobs share one patience, or a queue of them would wait 60 s one after the other. A running
/// job that moves is never held back, nor is one that is tried again at the same instant: the
/// policy would stop others for it.
bool CorePlacer::is_patient(const Plan& plan, JobId job) {
  if (wait_ == Duration::zero() || plan.jobs().is_running(job)) return false;
  if (held_back_[job] == now_) return false;
  if (!patient_since_) patient_since_ = now_;
  if (now_ >= *patient_since_ + wait_) return false;
  held_back_[job] = now_;
  waits_.insert(job);
  return true;
}

/// Patience that has run out comes back once a job found the cores it wants.
void CorePlacer::end_wait(JobId job, Cores cores) {
  waits_.erase(job);
  if (cores == Cores::TooFew || !patient_since_) return;
  const Time ends = *patient_since_ + wait_;
  if (now_ > ends || (now_ < ends && waits_.empty())) patient_since_.reset();
}

}  // namespace berth
