// How the jobs of a device get on: what the coordinators of the paper arrive at second by second is
// computed at once when somebody comes or leaves.
#include <algorithm>
#include <cmath>
#include <limits>

#include "policies/antman/antman.h"

namespace berth::antman {

namespace {

constexpr double kStarving = 0.1;          // of its working set
constexpr std::int32_t kCrawlMilli = 200;  // of its kernels
constexpr std::int64_t kPlenty = std::numeric_limits<std::int32_t>::max();

}  // namespace

double Antman::utilisation(const View& view, JobId job) const {
  return view.believed().profile(view.jobs.profile[job]).gpu_utilisation;
}

std::int32_t Antman::working_set_mib(const View& view, JobId job) const {
  return view.believed().memory_mib(view.jobs.profile[job], view.jobs.batch[job], {});
}

Antman::Device Antman::look_at(const View& view, NodeId node, std::int32_t device) const {
  Device here;
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  const std::int64_t memory = view.believed().device_memory_mib(pool);
  here.left_mib = memory > 0 ? memory - options_.reserve_mib : kPlenty;
  for (const JobId job : view.cluster.jobs_on(node, device)) {
    if (jobs_[job.value].guaranteed) {
      here.guaranteed += utilisation(view, job);
      here.is_held = true;
      if (memory > 0) here.left_mib -= working_set_mib(view, job);
    } else {
      here.wanted += utilisation(view, job);
      here.working_mib += working_set_mib(view, job);
      ++here.guests;
    }
  }
  return here;
}

/// Zero: as much as it wants.
std::int32_t Antman::memory_share(const View& view, JobId job, const Device& device) const {
  const auto left = static_cast<double>(std::max<std::int64_t>(device.left_mib, 0));
  if (device.working_mib <= left) return 0;
  const double share = left * working_set_mib(view, job) / device.working_mib;
  return std::max(1, static_cast<std::int32_t>(std::floor(share)));
}

void Antman::mark(std::span<const Slice> slices) {
  for (const Slice& slice : slices) marked_.push_back(slice.node);
}

/// Opportunistic jobs on the nodes of the slices, ascending.
void Antman::collect_guests(const View& view, std::span<const Slice> slices,
                            std::vector<JobId>& jobs) {
  std::vector<JobId> on_node;
  jobs.clear();
  for (const Slice& slice : slices) {
    view.cluster.jobs_on(slice.node, on_node);
    for (const JobId job : on_node) {
      if (!jobs_[job.value].guaranteed) jobs.push_back(job);
    }
  }
  std::ranges::sort(jobs);
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
}

namespace {

/// Zero stands for no limit at all.
std::int32_t tighter(std::int32_t a, std::int32_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

Terms Antman::settled_terms(const View& view, JobId job) const {
  double rate = 1;
  Terms terms;
  terms.mode = ShareMode::Opportunistic;
  for (const Slice& slice : jobs_[job.value].devices) {
    for_each_device(slice.devices, [&](std::int32_t device) {
      const Device here = look_at(view, slice.node, device);
      if (here.is_held)
        rate = std::min(rate, settled_rate(here.guaranteed, here.wanted, options_.interference));
      terms.memory_limit_mib = tighter(terms.memory_limit_mib, memory_share(view, job, here));
    });
  }
  terms.throttle_milli = static_cast<std::int32_t>(std::lround(rate * 1000));
  return terms;
}

/// Sets every guest around a change to where it settles. Memory is taken before it is given.
void Antman::settle(const View& view, Plan& plan) {
  if (marked_.empty()) return;
  std::ranges::sort(marked_);
  marked_.erase(std::unique(marked_.begin(), marked_.end()), marked_.end());
  std::vector<Slice> nodes;
  for (const NodeId node : marked_) nodes.push_back({node, 0, 0});
  collect_guests(view, nodes, here_);
  for (const bool taking : {true, false}) {
    for (const JobId job : here_) {
      Terms terms = settled_terms(view, job);
      const std::int32_t now = plan.terms(job).memory_limit_mib;
      const std::int32_t then = terms.memory_limit_mib;
      const bool takes = then != 0 && (now == 0 || then <= now);
      if (takes != taking) continue;
      if (!plan.set_terms(job, terms)) {  // others have not given it back yet
        terms.memory_limit_mib = now;
        static_cast<void>(plan.set_terms(job, terms));
      }
      note_state(view, job, plan.terms(job));
    }
  }
  for (const NodeId node : marked_) offer_devices(view, node);
  marked_.clear();
}

/// Starts and ends the clocks of a guest that is short of memory, or held back.
void Antman::note_state(const View& view, JobId job, const Terms& terms) {
  JobRow& mine = jobs_[job.value];
  const auto follow = [&](std::set<Due>& clocks, Time& since, Duration patience, bool suffers) {
    if (patience <= Duration::zero() || suffers == (since != kNever)) return;
    if (!suffers) clocks.erase({since + patience, job});
    since = suffers ? view.now : kNever;
    if (suffers) clocks.insert({since + patience, job});
  };
  const bool starves =
      terms.memory_limit_mib > 0 && terms.memory_limit_mib < kStarving * working_set_mib(view, job);
  follow(starving_, mine.starves_since, options_.starving, starves);
  follow(crawling_, mine.crawls_since, options_.crawling, terms.throttle_milli < kCrawlMilli);
}

void Antman::offer_devices(const View& view, NodeId node) {
  const Node& described = view.cluster.cluster().nodes[node.value];
  SpareDevices& spare = spare_[described.pool.value];
  for (std::int32_t device = 0; device < described.gpus; ++device) {
    if (!view.cluster.is_up(node)) {
      spare.withdraw(node, device);
      continue;
    }
    const Device here = look_at(view, node, device);
    const std::int32_t most = here.is_held ? options_.guests_beside : options_.guests_alone;
    const double busy = std::min(1.0, here.guaranteed + here.wanted);
    if (here.guests < most && here.left_mib >= options_.least_mib && busy < options_.busiest) {
      spare.offer(node, device, busy);
    } else {
      spare.withdraw(node, device);
    }
  }
}

/// Memory limits that leave room for somebody who comes; his own terms too if he is a guest.
void Antman::make_room(const View& view, Plan& plan, std::span<const Slice> slices, JobId comer) {
  const bool guest_comes = !jobs_[comer.value].guaranteed;
  const std::int32_t comes_with = working_set_mib(view, comer);
  Terms own;
  own.mode = ShareMode::Opportunistic;
  for (const Slice& slice : slices) {
    for_each_device(slice.devices, [&](std::int32_t device) {
      Device here = look_at(view, slice.node, device);
      if (guest_comes) {
        here.working_mib += comes_with;
        own.memory_limit_mib = tighter(own.memory_limit_mib, memory_share(view, comer, here));
      } else if (here.left_mib < kPlenty) {
        here.left_mib -= comes_with;
      }
      for (const JobId job : view.cluster.jobs_on(slice.node, device)) {
        if (jobs_[job.value].guaranteed) continue;
        Terms terms = plan.terms(job);
        terms.memory_limit_mib = tighter(terms.memory_limit_mib, memory_share(view, job, here));
        static_cast<void>(plan.set_terms(job, terms));
      }
    });
  }
  if (guest_comes) static_cast<void>(plan.set_terms(comer, own));
}

}  // namespace berth::antman
