#include "policies/synergy/packing.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace berth::synergy {

std::span<const Grant> Packer::pack(const Axes& axes, std::span<const Server> servers,
                                    std::span<const Job> jobs) {
  axes_ = &axes;
  jobs_ = jobs;
  begin(servers);
  choose_runnable(servers);
  sort_for_packing();
  for (const Index job : runnable_) place_job(job);
  if (mode_ == Mode::Tune) {
    for (Index server = 0; server < servers.size(); ++server) {
      hand_out_cores(server);
      hand_out_memory(server);
    }
  }
  return {grants_.data(), jobs.size()};
}

void Packer::begin(std::span<const Server> servers) {
  if (grants_.size() < jobs_.size()) grants_.resize(jobs_.size());
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    grants_[i].runs = false;
    grants_[i].parts.clear();
  }
  free_.clear();
  for (auto& servers_with : by_free_) servers_with.clear();
  if (tenants_.size() < servers.size()) tenants_.resize(servers.size());
  for (Index i = 0; i < servers.size(); ++i) {
    const Server& server = servers[i];
    free_.push_back({server.gpus, server.cores, server.memory_mib});
    const auto gpus = static_cast<std::size_t>(server.gpus);
    if (by_free_.size() <= gpus) by_free_.resize(gpus + 1);
    by_free_[gpus].insert({server.cores, server.memory_mib, i});
    tenants_[i].clear();
  }
}

/// In order of the policy while GPUs suffice; a job too large for what is left is passed over,
/// since the next round begins at the head again.
void Packer::choose_runnable(std::span<const Server> servers) {
  std::int64_t gpus = 0;
  for (const Server& server : servers) gpus += server.gpus;
  runnable_.clear();
  for (Index i = 0; i < jobs_.size() && gpus > 0; ++i) {
    if (jobs_[i].gpus > gpus) continue;
    runnable_.push_back(i);
    gpus -= jobs_[i].gpus;
  }
}

void Packer::sort_for_packing() {
  const auto key = [&](Index job) {
    const Job& j = jobs_[job];
    // Those that stay come first, or a newcomer would push them from their devices.
    return std::tuple(j.stay.empty(), -j.gpus, -j.demand.cores, -j.demand.level, job);
  };
  std::ranges::sort(runnable_, {}, key);
}

void Packer::place_job(Index job) {
  const Share& fair = axes_->fair;
  if (mode_ == Mode::Proportional) {
    if (!try_stay(job, fair) && !try_place(job, fair)) place_by_reverting(job);
    return;
  }
  const Share demand = jobs_[job].demand;
  if (try_stay(job, demand)) return;
  if (mode_ == Mode::Greedy) {
    static_cast<void>(try_place(job, demand));
    return;
  }
  const Share least = jobs_[job].sensitivity->least_of(demand);
  if (!jobs_[job].stay.empty()) {
    // To move would cost more than the cores: it stays with its proportional share.
    if (!try_stay(job, least)) place_by_reverting(job);
    return;
  }
  if (try_place(job, demand)) return;
  if (least != demand && try_place(job, least)) return;
  place_by_reverting(job);
}

bool Packer::fits(Index server, std::int32_t gpus, const Share& share) const noexcept {
  const Free& free = free_[server];
  return gpus <= free.gpus && std::int64_t{gpus} * share.cores <= free.cores &&
         gpus * memory_of(share) <= free.memory_mib;
}

bool Packer::try_stay(Index job, const Share& share) {
  const auto stay = jobs_[job].stay;
  if (stay.empty()) return false;
  for (const Part& part : stay) {
    if (!fits(part.server, part.gpus, share)) return false;
  }
  parts_.assign(stay.begin(), stay.end());
  commit(job, share);
  return true;
}

bool Packer::try_place(Index job, const Share& share) {
  if (!find_parts(jobs_[job].gpus, share)) return false;
  commit(job, share);
  return true;
}

/// The fullest server (in GPUs, then cores, then memory) that has room for all of it.
bool Packer::find_server(std::int32_t gpus, const Share& share, Index& server) const {
  const std::int64_t cores = std::int64_t{gpus} * share.cores;
  const std::int64_t memory = gpus * memory_of(share);
  for (auto free = static_cast<std::size_t>(gpus); free < by_free_.size(); ++free) {
    const auto& servers = by_free_[free];
    for (auto it = servers.lower_bound({cores, memory, 0}); it != servers.end(); ++it) {
      if (std::get<1>(*it) < memory) continue;
      server = std::get<2>(*it);
      return true;
    }
  }
  return false;
}

/// As many servers as GPUs alone require, no more: cores are no reason to tear a gang apart.
bool Packer::find_parts(std::int32_t gpus, const Share& share) {
  parts_.clear();
  Index server = 0;
  if (find_server(gpus, share, server)) {
    parts_.push_back({server, gpus});
    return true;
  }
  // A server has the GPUs but not the cores: the caller takes a smaller share there instead.
  for (auto free = static_cast<std::size_t>(gpus); free < by_free_.size(); ++free) {
    if (!by_free_[free].empty()) return false;
  }
  parts_by_gpus(gpus);
  return !parts_.empty() && std::ranges::all_of(parts_, [&](const Part& part) {
    return fits(part.server, part.gpus, share);
  });
}

/// The servers with most free GPUs until the rest fits into one, the fullest that holds it. Of
/// servers alike in GPUs the one with most cores.
void Packer::parts_by_gpus(std::int32_t gpus) {
  parts_.clear();
  std::size_t free = by_free_.size() - 1;
  auto next = by_free_[free].rbegin();
  while (gpus > 0) {
    for (auto exact = static_cast<std::size_t>(gpus); exact < free; ++exact) {
      if (by_free_[exact].empty()) continue;
      parts_.push_back({std::get<2>(*by_free_[exact].rbegin()), gpus});
      return;
    }
    while (free > 0 && next == by_free_[free].rend()) next = by_free_[--free].rbegin();
    if (free == 0) {
      parts_.clear();
      return;
    }
    const auto taken = std::min(gpus, static_cast<std::int32_t>(free));
    parts_.push_back({std::get<2>(*next), taken});
    gpus -= taken;
    ++next;
  }
}

/// The job goes where GPUs are, and the others there give back what they hold above their
/// proportional share until it fits. They all fit with their proportional shares.
void Packer::place_by_reverting(Index job) {
  const auto stay = jobs_[job].stay;
  const bool stays = !stay.empty() && std::ranges::all_of(stay, [&](const Part& part) {
    return part.gpus <= free_[part.server].gpus;
  });
  if (stays) {
    parts_.assign(stay.begin(), stay.end());
  } else {
    parts_by_gpus(jobs_[job].gpus);
  }
  if (parts_.empty()) return;
  const Share share = mode_ == Mode::Proportional
                          ? axes_->fair
                          : jobs_[job].sensitivity->least_of(jobs_[job].demand);
  // Servers are overcommitted for a moment, which revert_on() mends.
  commit(job, share);
  for (const Part& part : grants_[job].parts) revert_on(part.server, job);
}

bool Packer::comes_first(Index victim, Index other) const noexcept {
  const auto key = [&](Index job) {
    const Grant& grant = grants_[job];
    return std::tuple(grant.parts.size() > 1, -grant.share.cores, -grant.share.level, job);
  };
  return key(victim) < key(other);
}

void Packer::revert_on(Index server, Index for_job) {
  while (free_[server].cores < 0 || free_[server].memory_mib < 0) {
    const Index* victim = nullptr;
    for (const Index& tenant : tenants_[server]) {
      const Share& held = grants_[tenant].share;
      if (tenant == for_job || cut_to_fair(held, axes_->fair) == held) continue;
      if (victim == nullptr || comes_first(tenant, *victim)) victim = &tenant;
    }
    BERTH_CHECK(victim != nullptr, "proportional shares of a server's GPUs fit into it");
    change_share(*victim, jobs_[*victim].sensitivity->least_of(grants_[*victim].share));
  }
}

void Packer::commit(Index job, const Share& share) {
  Grant& grant = grants_[job];
  grant.runs = true;
  grant.share = share;
  grant.parts.assign(parts_.begin(), parts_.end());
  for (const Part& part : grant.parts) {
    take(part.server, part.gpus, std::int64_t{part.gpus} * share.cores,
         part.gpus * memory_of(share));
    tenants_[part.server].push_back(job);
  }
}

void Packer::take(Index server, std::int32_t gpus, std::int64_t cores, std::int64_t memory) {
  Free& free = free_[server];
  by_free_[static_cast<std::size_t>(free.gpus)].erase({free.cores, free.memory_mib, server});
  free.gpus -= gpus;
  free.cores -= cores;
  free.memory_mib -= memory;
  by_free_[static_cast<std::size_t>(free.gpus)].insert({free.cores, free.memory_mib, server});
}

void Packer::change_share(Index job, const Share& next) {
  Grant& grant = grants_[job];
  const std::int64_t cores = next.cores - grant.share.cores;
  const std::int64_t memory = memory_of(next) - memory_of(grant.share);
  for (const Part& part : grant.parts) take(part.server, 0, cores * part.gpus, memory * part.gpus);
  grant.share = next;
}

bool Packer::can_grow(Index job, const Share& next) const noexcept {
  const Grant& grant = grants_[job];
  const std::int64_t cores = next.cores - grant.share.cores;
  const std::int64_t memory = memory_of(next) - memory_of(grant.share);
  return std::ranges::all_of(grant.parts, [&](const Part& part) {
    const Free& free = free_[part.server];
    return cores * part.gpus <= free.cores && memory * part.gpus <= free.memory_mib;
  });
}

/// One core for each GPU of the job that gains most by it per core; of equals the one with fewer
/// cores, then the first of the policy.
void Packer::hand_out_cores(Index server) {
  // A gang over several servers grows only if each has the core: can_grow() looks at all of them.
  while (free_[server].cores > 0) {
    double best_gain = 0;
    std::tuple<std::int32_t, Index> best{};
    for (const Index job : tenants_[server]) {
      const Share& held = grants_[job].share;
      const Share next{held.cores + 1, held.level};
      const Sensitivity& w = *jobs_[job].sensitivity;
      if (next.cores > w.max_cores() || !can_grow(job, next)) continue;
      const double gain = w.at(next) - w.at(held);  // of each GPU, for a core each
      const auto rank = std::tuple(held.cores, job);
      // Gains that differ by rounding alone are equal.
      const bool is_equal = std::abs(gain - best_gain) <= 1e-12;
      if (gain <= 1e-12 || (is_equal ? rank > best : gain < best_gain)) continue;
      best_gain = gain;
      best = rank;
    }
    if (best_gain <= 0) return;
    const Index job = std::get<1>(best);
    const Share& held = grants_[job].share;
    change_share(job, {held.cores + 1, held.level});
  }
}

/// The level that is the greatest gain per byte, be it the next or a higher one: a cache that holds
/// less than all of the data may be no use at all.
void Packer::hand_out_memory(Index server) {
  while (free_[server].memory_mib > 0) {
    double best_gain = 0;
    Index best = 0;
    Share best_share;
    for (const Index job : tenants_[server]) {
      const Share& held = grants_[job].share;
      const Sensitivity& w = *jobs_[job].sensitivity;
      Share next = held;
      for (++next.level; next.level < w.levels() && can_grow(job, next); ++next.level) {
        const auto more = static_cast<double>(memory_of(next) - memory_of(held));
        const double gain = (w.at(next) - w.at(held)) / more;
        if (gain <= 0 || gain < best_gain || (gain == best_gain && job >= best)) continue;
        best_gain = gain;
        best = job;
        best_share = next;
      }
    }
    if (best_gain <= 0) return;
    change_share(best, best_share);
  }
}

}  // namespace berth::synergy
