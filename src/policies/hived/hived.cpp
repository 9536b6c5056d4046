#include "policies/hived/hived.h"

#include <algorithm>

#include "base/check.h"

namespace berth::hived {

void Hived::begin(const View& view) {
  map_.emplace(view.cluster.cluster());
  for (const auto& [name, cells] : ownership_) tenants_.push_back(name);
  waiting_.resize(tenants_.size() + 1);
  assign_cells();
}

/// Each kind of cell goes to the first chain that has its size and can still give everybody all
/// they own at once. What fits nowhere is not guaranteed: its jobs are guests.
void Hived::assign_cells() {
  const auto& chains = map_->chains();
  for (const Chain& chain : chains)
    owned_.emplace_back(tenants_.size(), std::vector<std::int64_t>(chain.levels.count()));
  for (std::size_t tenant = 0; tenant < tenants_.size(); ++tenant) {
    for (const auto& [size, count] : ownership_.at(tenants_[tenant])) {
      for (std::size_t i = 0; i < chains.size(); ++i) {
        const auto& sizes = chains[i].levels.sizes;
        const auto level = std::ranges::find(sizes, size);
        if (level == sizes.end()) continue;
        std::int64_t& mine = owned_[i][tenant][static_cast<std::size_t>(level - sizes.begin())];
        mine += count;
        if (CellShares(chains[i].levels, owned_[i]).is_satisfiable()) break;
        mine -= count;
      }
    }
  }
  for (std::size_t i = 0; i < chains.size(); ++i) shares_.emplace_back(chains[i].levels, owned_[i]);
}

bool Hived::owns_enough(std::uint32_t tenant, const Shape& shape) const {
  for (std::size_t i = 0; i < owned_.size(); ++i) {
    const Chain& chain = map_->chains()[i];
    if (std::ranges::find(shape.pools, chain.pool) == shape.pools.end()) continue;
    const auto& mine = owned_[i][tenant];
    const std::int32_t node_size = chain.levels.sizes.back();
    if (shape.gpus > node_size && mine.back() * node_size >= shape.gpus) return true;
    const auto level = chain.levels.level_for(shape.gpus);
    if (level && std::any_of(mine.begin() + *level, mine.end(), [](auto n) { return n > 0; }))
      return true;
  }
  return false;
}

std::optional<std::uint32_t> Hived::tenant_of(const View& view, JobId job) const {
  const JobRequest& request = view.request(job);
  const std::string_view group = view.text(request.group);
  const std::string_view name = group.empty() ? view.text(request.user) : group;
  const auto found = std::ranges::lower_bound(tenants_, name);
  if (found == tenants_.end() || *found != name) return std::nullopt;
  return static_cast<std::uint32_t>(found - tenants_.begin());
}

void Hived::on_arrival(const View& view, JobId job) {
  const auto tenant = tenant_of(view, job);
  const bool is_guaranteed = tenant && owns_enough(*tenant, view.shape(job));
  waiting_[is_guaranteed ? *tenant : tenants_.size()].insert(job);
}

void Hived::on_departure(const View&, JobId job) {
  for (auto& queue : waiting_) queue.erase(job);
  leave(job);
}

void Hived::on_requeue(const View& view, JobId job) {
  leave(job);
  on_arrival(view, job);
}

/// A node's cells are out of service as long as it is down. Those who were on it have not left yet
/// when this is told, so it is acted on with the next decision.
void Hived::on_capacity_change(const View&, NodeId node) { changed_.push_back(node); }

void Hived::follow_nodes(const View& view) {
  out_of_service_.resize(view.cluster.cluster().nodes.size());
  for (const NodeId node : changed_) {
    const bool is_up = view.cluster.is_up(node);
    if (out_of_service_[node.value] != is_up) continue;
    out_of_service_[node.value] = !is_up;
    const ChainNode at = map_->at(node);
    const Cell whole{map_->chains()[at.chain].levels.top(), at.index};
    if (is_up)
      shares_[at.chain].unblock(whole);
    else
      shares_[at.chain].block(whole);
  }
  changed_.clear();
}

void Hived::leave(JobId job) {
  const auto found = places_.find(job);
  if (found == places_.end()) return;
  for (const Place& place : found->second) {
    if (!place.bound) {
      shares_[place.chain].release_guest(place.cell);
      guest_on_.erase({place.chain, place.cell});
      continue;
    }
    std::optional<BoundCell>& bound = bound_[*place.bound];
    bound->inside.give(place.cell);
    if (--bound->jobs > 0) continue;
    shares_[bound->chain].unbind(bound->tenant, bound->cell);
    bound.reset();
  }
  places_.erase(found);
}

void Hived::decide(const View& view, Plan& plan, Rng&) {
  follow_nodes(view);
  for (std::uint32_t tenant = 0; tenant < tenants_.size(); ++tenant) {
    auto& queue = waiting_[tenant];
    while (!queue.empty()) {
      const JobId job = *queue.begin();
      if (!start_guaranteed(view, plan, job, tenant)) break;
      queue.erase(job);
    }
  }
  start_guests(view, plan);
}

/// In order of arrival over all queues: who waits for its own cells may be a guest meanwhile.
void Hived::start_guests(const View& view, Plan& plan) {
  std::set<ShapeId> blocked;  // one that found no place speaks for its likes
  std::vector<std::set<JobId>::iterator> next;
  for (auto& queue : waiting_) next.push_back(queue.begin());
  while (plan.cluster().free_gpus() > 0) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (next[i] != waiting_[i].end() && (!first || *next[i] < *next[*first])) first = i;
    }
    if (!first) return;
    const JobId job = *next[*first]++;
    const ShapeId shape = view.jobs.shape[job];
    if (blocked.contains(shape) || !plan.has_room(view.shapes[shape])) continue;
    if (start_guest(view, plan, job) || start_loose(plan, job))
      waiting_[*first].erase(job);
    else
      blocked.insert(shape);
  }
}

}  // namespace berth::hived
