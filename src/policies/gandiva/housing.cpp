#include "policies/gandiva/housing.h"

#include <algorithm>

#include "policies/kit/beliefs.h"

namespace berth::gandiva {

void Housing::begin(const View& view) {
  jobs_.resize(view.jobs.size());
  pools_.resize(view.cluster.pools(), {.servers = Servers{options_.limits}});
  for (std::uint32_t i = 0; i < view.cluster.cluster().nodes.size(); ++i)
    on_server_up(view, NodeId{i});
}

void Housing::on_server_up(const View& view, NodeId node) {
  const Node& server = view.cluster.cluster().nodes[node.value];
  PoolRow& pool = pools_[server.pool];
  pool.servers.add_server(node, server.gpus);
  pool.units.resize(pool.servers.size());
  queue_.unblock();
}

std::vector<JobId> Housing::on_server_down(const View& view, NodeId node) {
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  const Home home{pool, *pools_[pool].servers.unit_of(node)};
  std::vector<JobId> residents;
  for (const Ring::Seat& seat : ring(home).seats()) {
    residents.push_back(seat.job);
    if (seat.guest) residents.push_back(*seat.guest);
  }
  std::ranges::sort(residents);
  for (const JobId job : residents) send_back(view, job);
  row(home).left_by = 0;  // its GPUs are gone: nobody is pulled there
  // Without residents a set is dissolved: what goes away is the server alone.
  pools_[pool].servers.remove_server(*pools_[pool].servers.unit_of(node));
  queue_.unblock();
  std::erase_if(residents, [&](JobId job) { return !view.jobs.is_running(job); });
  return residents;
}

const Demand& Housing::demand_of(const View& view, JobId job) {
  return demands_.of(view.jobs.kind[job], [&] { return compute_demand(view, job); });
}

/// A gang whose cores or memory do not fit into one server counts as the whole servers it needs.
Demand Housing::compute_demand(const View& view, JobId job) const {
  const Shape& shape = view.shape(job);
  Demand demand{.gpus = shape.gpus};
  if (options_.limits.host_memory_mib > 0)
    demand.memory_mib = std::int64_t{shape.gpus} * believed_memory_mib(view, job);
  if (!shape.needs_side_resources()) return demand;
  std::int32_t servers_needed = 0;
  for (const Node& node : view.cluster.cluster().nodes) {
    if (node.pool != shape.pools.front()) continue;
    std::int64_t room = node.gpus;
    if (node.cpus_milli > 0 && shape.cpus_milli_per_gpu > 0)
      room = std::min(room, node.cpus_milli / shape.cpus_milli_per_gpu);
    if (node.memory_mib > 0 && shape.memory_mib_per_gpu > 0)
      room = std::min(room, node.memory_mib / shape.memory_mib_per_gpu);
    if (room >= std::min(shape.gpus, node.gpus)) return demand;
    if (room > 0)
      servers_needed =
          (shape.gpus + static_cast<std::int32_t>(room) - 1) / static_cast<std::int32_t>(room);
  }
  const Servers& servers = pools_[shape.pools.front()].servers;
  demand.gpus = std::max(shape.gpus, servers_needed * servers.largest_server());
  return demand;
}

void Housing::enqueue(const View& view, JobId job, Line line) {
  queue_.push(view.jobs.shape[job], {line == Line::Head ? 0 : 1, job});
  const Shape& shape = view.shape(job);
  pools_[shape.pools.front()].queued[class_of(shape.gpus)] += shape.gpus;
  jobs_[job].is_queued = true;
}

/// The caller takes it off the heap.
void Housing::dequeue(const View& view, JobId job) {
  const Shape& shape = view.shape(job);
  pools_[shape.pools.front()].queued[class_of(shape.gpus)] -= shape.gpus;
  jobs_[job].is_queued = false;
}

/// It is a resident from now on; room is taken already.
void Housing::settle_in(JobId job, std::int32_t gpus, Home home) {
  jobs_[job].home = home;
  ring(home).add(job, gpus);
  touch(home);
}

void Housing::move_out(const View& view, JobId job) {
  const Home home = *jobs_[job].home;
  UnitRow& here = row(home);
  here.is_slice_over = here.is_slice_over || here.ring.is_running(job);
  here.left_by = unit(home).is_set() ? 0 : unit(home).affinity;
  here.ring.remove(job);
  give_room(home, demand_of(view, job));
  jobs_[job].home.reset();
  queue_.unblock();
  touch(home);
}

/// Its state on the server is lost, so its next start costs no switch.
void Housing::send_back(const View& view, JobId job) {
  move_out(view, job);
  jobs_[job].start_cost = Duration::zero();
  enqueue(view, job, Line::Head);
}

void Housing::on_departure(const View& view, JobId job) {
  if (jobs_[job].home) return move_out(view, job);
  if (!jobs_[job].is_queued) return;
  queue_.forget(view.jobs.shape[job], job);
  dequeue(view, job);
}

void Housing::on_requeue(const View& view, JobId job) {
  if (jobs_[job].home) send_back(view, job);  // otherwise it went with its server
}

std::optional<Home> Housing::home_found(const View& view, const Plan& plan, JobId job) const {
  const auto found = plan.found_on(job);
  if (found.size() != 1 || found.front().gpus != view.gpus(job)) return std::nullopt;
  const PoolId pool = view.cluster.cluster().nodes[found.front().node.value].pool;
  const auto unit = pools_[pool].servers.unit_of(found.front().node);
  if (!unit) return std::nullopt;
  return Home{pool, *unit};
}

void Housing::settle_found(const View& view, const Plan& plan, JobId job) {
  const auto home = home_found(view, plan, job);
  if (!home || !jobs_[job].is_queued) return;
  const Demand& demand = demand_of(view, job);
  if (!servers(home->pool).fits(home->unit, demand)) return;
  queue_.forget(view.jobs.shape[job], job);
  dequeue(view, job);
  take_room(*home, demand);
  settle_in(job, view.gpus(job), *home);
}

std::optional<UnitId> Housing::take_room(PoolId pool, Step step, const Demand& demand) {
  PoolRow& here = pools_[pool];
  const auto found = here.servers.try_place(step, demand);
  if (here.units.size() < here.servers.size()) here.units.resize(here.servers.size());  // a set
  return found;
}

bool Housing::try_place(const View& view, JobId job) {
  const Demand& demand = demand_of(view, job);
  for (const Step step : kSteps) {
    for (const PoolId pool : view.shape(job).pools) {
      const auto found = take_room(pool, step, demand);
      if (!found) continue;
      const Home home{pool, *found};
      // Starting on free GPUs costs nothing; a job that takes turns pays at each of them.
      const bool is_free = unit(home).height() <= 1;
      set_start_cost(job, is_free ? Duration::zero() : options_.switch_cost);
      settle_in(job, view.gpus(job), home);
      return true;
    }
  }
  return false;
}

void Housing::place_queue(const View& view, std::optional<AffinityClass> only) {
  const auto may_try = [&](ShapeId shape) {
    return !only || class_of(view.shapes[shape].gpus) == *only;
  };
  // An arrival only takes room: a shape that found no place stays blocked until a job leaves.
  queue_.resume(may_try, [&](JobId job) {
    if (!try_place(view, job)) return Tried::NoPlace;
    dequeue(view, job);
    return Tried::Started;
  });
}

void Housing::rehouse(JobId job, std::int32_t gpus, Home to) {
  const Home from = *jobs_[job].home;
  ring(from).remove(job);
  touch(from);
  settle_in(job, gpus, to);
  queue_.unblock();
}

void Housing::note_changed(Home home) {
  UnitRow& here = row(home);
  if (!here.is_changed) changed_.push_back(home);
  here.is_changed = true;
}

void Housing::touch(Home home) {
  note_changed(home);
  UnitRow& here = row(home);
  if (!here.is_touched) touched_.push_back(home);
  here.is_touched = true;
}

void Housing::end_slice(Home home) {
  row(home).is_slice_over = true;
  note_changed(home);
}

std::vector<std::pair<Home, AffinityClass>> Housing::left() const {
  std::vector<std::pair<Home, AffinityClass>> left;
  for (const Home home : changed_)
    if (row(home).left_by != 0) left.emplace_back(home, row(home).left_by);
  std::ranges::sort(left);
  return left;
}

const std::vector<Home>& Housing::sort_changed() {
  std::ranges::sort(changed_);
  return changed_;
}

void Housing::settle_changed() {
  for (const Home home : changed_) {
    UnitRow& here = row(home);
    here.is_changed = here.is_slice_over = false;
    here.left_by = 0;
  }
  changed_.clear();
}

std::vector<Home> Housing::take_touched() {
  for (const Home home : touched_) row(home).is_touched = false;
  return std::exchange(touched_, {});
}

}  // namespace berth::gandiva
