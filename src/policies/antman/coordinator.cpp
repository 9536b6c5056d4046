#include "policies/antman/coordinator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/device_mask.h"
#include "policies/kit/beliefs.h"

namespace berth::antman {

namespace {

constexpr double kStarving = 0.1;          // of its working set
constexpr std::int32_t kCrawlMilli = 200;  // of its kernels
constexpr std::int64_t kPlenty = std::numeric_limits<std::int32_t>::max();

/// Of the device's memory what the guest gets; zero: as much as it wants.
std::int32_t memory_share(const View& view, JobId guest, const DeviceLoad& device) {
  const auto left = static_cast<double>(std::max<std::int64_t>(device.left_mib, 0));
  if (device.working_mib <= left) return 0;
  const double share = left * believed_memory_mib(view, guest) / device.working_mib;
  return std::max(1, static_cast<std::int32_t>(std::floor(share)));
}

/// Zero stands for no limit at all.
std::int32_t tighter(std::int32_t a, std::int32_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

}  // namespace

Coordinator::Coordinator(const View& view, const Rules& rules)
    : rules_(rules), spare_(view.cluster), residents_(view.jobs.size()) {
  // A guest that nobody can hold back would hurt the job it lives beside.
  if (!view.can(Ability::Throttle)) rules_.guests_beside = 0;
  for (std::uint32_t node = 0; node < view.cluster.cluster().nodes.size(); ++node)
    offer_devices(view, NodeId{node});
}

void Coordinator::add(JobId job, Role role, std::span<const Slice> devices) {
  residents_[job] = {role, {devices.begin(), devices.end()}};
  mark(devices);
}

bool Coordinator::remove(JobId job) {
  const std::vector<Slice> left = std::exchange(residents_[job].devices, {});
  mark(left);
  starving_.drop(job);
  crawling_.drop(job);
  return !left.empty();
}

void Coordinator::mark(std::span<const Slice> slices) {
  for (const Slice& slice : slices) marked_.push_back(slice.node);
}

DeviceLoad Coordinator::load(const View& view, NodeId node, std::int32_t device) const {
  DeviceLoad load;
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  const std::int64_t memory = view.believed().device_memory_mib(pool);
  load.left_mib = memory > 0 ? memory - rules_.reserve_mib : kPlenty;
  for (const JobId job : view.cluster.jobs_on(node, device)) {
    const double busy = view.believed().profile(view.jobs.profile[job]).gpu_utilisation;
    if (is_guest(job)) {
      load.wanted += busy;
      load.working_mib += believed_memory_mib(view, job);
      ++load.guests;
    } else {
      load.guaranteed += busy;
      load.is_held = true;
      if (memory > 0) load.left_mib -= believed_memory_mib(view, job);
    }
  }
  return load;
}

std::vector<JobId> Coordinator::guests_on(const View& view, std::span<const Slice> slices) const {
  std::vector<JobId> guests;
  std::vector<JobId> on_node;
  for (const Slice& slice : slices) {
    view.cluster.jobs_on(slice.node, on_node);
    for (const JobId job : on_node) {
      if (is_guest(job)) guests.push_back(job);
    }
  }
  std::ranges::sort(guests);
  guests.erase(std::unique(guests.begin(), guests.end()), guests.end());
  return guests;
}

Terms Coordinator::settled_terms(const View& view, JobId job) const {
  double rate = 1;
  Terms terms;
  terms.mode = ShareMode::Opportunistic;
  for (const Slice& slice : residents_[job].devices) {
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      const DeviceLoad here = load(view, slice.node, device);
      if (here.is_held)
        rate = std::min(rate, settled_rate(here.guaranteed, here.wanted, rules_.interference));
      terms.memory_limit_mib = tighter(terms.memory_limit_mib, memory_share(view, job, here));
    }
  }
  terms.throttle_milli = static_cast<std::int32_t>(std::lround(rate * 1000));
  return terms;
}

void Coordinator::settle(Pass& pass) {
  if (marked_.empty()) return;
  std::ranges::sort(marked_);
  marked_.erase(std::unique(marked_.begin(), marked_.end()), marked_.end());
  std::vector<Slice> nodes;
  for (const NodeId node : marked_) nodes.push_back({node, 0, 0});
  const std::vector<JobId> guests = guests_on(pass.view, nodes);
  // Memory is taken before it is given: a limit is raised only into what others have left.
  for (const bool taking : {true, false}) {
    for (const JobId job : guests) {
      Terms terms = settled_terms(pass.view, job);
      const std::int32_t now = pass.plan.terms(job).memory_limit_mib;
      const std::int32_t then = terms.memory_limit_mib;
      const bool takes = then != 0 && (now == 0 || then <= now);
      if (takes != taking) continue;
      if (!pass.plan.set_terms(job, terms)) {  // others have not given it back yet
        terms.memory_limit_mib = now;
        static_cast<void>(pass.plan.set_terms(job, terms));
      }
      note_state(pass.view, job, pass.plan.terms(job));
    }
  }
  for (const NodeId node : marked_) offer_devices(pass.view, node);
  marked_.clear();
}

/// Starts and ends the clocks of a guest that is short of memory, or held back.
void Coordinator::note_state(const View& view, JobId job, const Terms& terms) {
  const auto follow = [&](JobTimers& clocks, Duration patience, bool suffers) {
    if (!suffers) return clocks.drop(job);
    if (patience > Duration::zero() && !clocks.is_set(job)) clocks.set(job, view.now + patience);
  };
  const bool starves = terms.memory_limit_mib > 0 &&
                       terms.memory_limit_mib < kStarving * believed_memory_mib(view, job);
  follow(starving_, rules_.starving, starves);
  follow(crawling_, rules_.crawling, terms.throttle_milli < kCrawlMilli);
}

void Coordinator::offer_devices(const View& view, NodeId node) {
  spare_.refresh(view.cluster, node, [&](std::int32_t device) -> std::optional<double> {
    const DeviceLoad here = load(view, node, device);
    const std::int32_t most = here.is_held ? rules_.guests_beside : rules_.guests_alone;
    const double busy = std::min(1.0, here.guaranteed + here.wanted);
    if (here.guests >= most || here.left_mib < rules_.least_mib || busy >= rules_.busiest)
      return std::nullopt;
    return busy;
  });
}

void Coordinator::make_room(Pass& pass, std::span<const Slice> slices, JobId comer,
                            Role role) const {
  const View& view = pass.view;
  const std::int32_t comes_with = believed_memory_mib(view, comer);
  Terms own;
  own.mode = ShareMode::Opportunistic;
  for (const Slice& slice : slices) {
    for (const std::int32_t device : DeviceMask{slice.devices}) {
      DeviceLoad here = load(view, slice.node, device);
      if (role == Role::Opportunistic) {
        here.working_mib += comes_with;
        own.memory_limit_mib = tighter(own.memory_limit_mib, memory_share(view, comer, here));
      } else if (here.left_mib < kPlenty) {
        here.left_mib -= comes_with;
      }
      for (const JobId job : view.cluster.jobs_on(slice.node, device)) {
        if (!is_guest(job)) continue;
        Terms terms = pass.plan.terms(job);
        terms.memory_limit_mib = tighter(terms.memory_limit_mib, memory_share(view, job, here));
        static_cast<void>(pass.plan.set_terms(job, terms));
      }
    }
  }
  if (role == Role::Opportunistic) static_cast<void>(pass.plan.set_terms(comer, own));
}

}  // namespace berth::antman
