#include "policies/hived/hived.h"

#include <algorithm>
#include <utility>

#include <charconv>
#include "base/check.h"

namespace berth::hived {

void Hived::begin(const View& view) {
  map_.emplace(view.cluster.cluster());
  for (const auto& [name, cells] : ownership_) tenants_.push_back(name);
  waiting_.resize(tenants_.size());
  assign_cells();
}

/// Each kind of cell goes to the first chain that has its size and can still give everybody all
/// they own at once. What fits nowhere is not guaranteed: its jobs are guests.
void Hived::assign_cells() {
  const auto& chains = map_->chains();
  for (const Chain& chain : chains) {
    owned_.emplace_back(tenants_.size(), std::vector<std::int64_t>(chain.levels.count()));
    parts_.emplace_back(tenants_.size(), std::vector<std::set<std::size_t>>(chain.levels.count()));
  }
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

std::optional<std::uint32_t> Hived::guarantor_of(const View& view, JobId job) const {
  const auto tenant = tenant_of(view, job);
  return tenant && owns_enough(*tenant, view.shape(job)) ? tenant : std::nullopt;
}

void Hived::on_arrival(const View& view, JobId job) {
  if (const auto tenant = guarantor_of(view, job)) waiting_[*tenant].insert(job);
  may_be_guests_.push(view.jobs.shape[job], {0, job});
  newcomers_.push_back(job);
}

void Hived::stop_waiting(const View& view, JobId job) {
  if (const auto tenant = guarantor_of(view, job)) waiting_[*tenant].erase(job);
  may_be_guests_.forget(view.jobs.shape[job], job);
}

void Hived::on_departure(const View& view, JobId job) {
  stop_waiting(view, job);
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
    unlist_parts(*place.bound);
    bound->inside.give(place.cell);
    if (--bound->jobs > 0) {
      list_parts(*place.bound);
      continue;
    }
    shares_[bound->chain].unbind(bound->tenant, bound->cell);
    bound.reset();
    spare_rows_.insert(*place.bound);
  }
  places_.erase(found);
}

void Hived::decide(const View& view, Plan& plan, Rng&) {
  follow_nodes(view);
  for (const JobId job : std::exchange(newcomers_, {})) {
    if (view.jobs.is_waiting(job) && keep_found(view, plan, job)) stop_waiting(view, job);
  }
  for (std::uint32_t tenant = 0; tenant < tenants_.size(); ++tenant) {
    auto& queue = waiting_[tenant];
    while (!queue.empty()) {
      const JobId job = *queue.begin();
      if (!start_guaranteed(view, plan, job, tenant)) break;
      stop_waiting(view, job);
    }
  }
  start_guests(view, plan);
}

/// In order of arrival: who waits for its own cells may be a guest meanwhile. One that finds no
/// place speaks for its likes, as guests alone start from here on and room only shrinks.
void Hived::start_guests(const View& view, Plan& plan) {
  heads_.clear();
  for (const ShapeId shape : may_be_guests_.active())
    heads_.emplace_back(may_be_guests_.top(shape).job, shape);
  std::ranges::make_heap(heads_, std::ranges::greater{});
  while (plan.cluster().free_gpus() > 0 && !heads_.empty()) {
    std::ranges::pop_heap(heads_, std::ranges::greater{});
    const auto [job, shape] = heads_.back();
    heads_.pop_back();
    const bool starts = plan.has_room(view.shapes[shape]) &&
                        (start_guest(view, plan, job) || start_loose(plan, job));
    if (!starts) continue;
    stop_waiting(view, job);
    const auto& active = may_be_guests_.active();
    if (std::ranges::find(active, shape) == active.end()) continue;
    heads_.emplace_back(may_be_guests_.top(shape).job, shape);
    std::ranges::push_heap(heads_, std::ranges::greater{});
  }
}

}  // namespace berth::hived

namespace berth {

namespace {

template <class T>
bool read(std::string_view text, T& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc{} && end == text.data() + text.size() && number > 0;
}

/// "8x2+4x1": two cells of eight devices and one of four.
bool read_cells(std::string_view text, hived::OwnedCells& cells) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t cross = part.find('x');
    if (cross == std::string_view::npos) return false;
    std::int32_t size = 0;
    std::int32_t count = 0;
    if (!read(part.substr(0, cross), size) || !read(part.substr(cross + 1), count)) return false;
    cells.emplace_back(size, count);
  }
  return true;
}

Result<hived::Ownership> ownership_of(const Params& params) {
  hived::Ownership ownership;
  const std::string& text = params.text("cells");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = part.find(':');
    const std::string tenant(part.substr(0, colon));
    const bool good = colon != std::string_view::npos && !tenant.empty() &&
                      read_cells(part.substr(colon + 1), ownership[tenant]);
    if (!good)
      return params.wrong("cells", "must be TENANT:SIZExCOUNT[+SIZExCOUNT…], as in lab:8x2+4x1");
  }
  return ownership;
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  BERTH_TRY(auto ownership, ownership_of(params));
  return std::make_unique<hived::Hived>(std::move(ownership));
}

}  // namespace

PolicyEntry hived_entry() {
  return {.name = "hived",
          .summary =
              "tenants own cells with their topology; others are preemptible guests on free ones",
          .params =
              {{"cells", "",
                "TENANT:SIZExCOUNT[+SIZExCOUNT…], comma separated: cells of SIZE devices a tenant "
                "owns; tenant is a job's group, else its user"}},
          .make = make};
}

}  // namespace berth
