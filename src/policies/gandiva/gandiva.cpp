#include "policies/gandiva/gandiva.h"

#include <algorithm>

namespace berth::gandiva {

Gandiva::Gandiva(std::string name, const Options& options)
    : name_(std::move(name)),
      options_(options),
      ticks_(options.tick),
      rebalances_(options.rebalance) {}

void Gandiva::begin(const View& view) {
  jobs_.resize(view.jobs.size());
  for (std::size_t i = 0; i < view.cluster.pools(); ++i)
    pools_.push_back({.servers = Servers{options_.limits}, .units = {}, .queued = {}});
  const auto& nodes = view.cluster.cluster().nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    static_cast<void>(pools_[nodes[i].pool.value].servers.add_server(NodeId{i}, nodes[i].gpus));
  for (PoolRow& pool : pools_) pool.units.resize(pool.servers.size());
}

/// A gang whose cores or memory do not fit into one server counts as the whole servers it needs.
Demand Gandiva::demand_of(const View& view, JobId job) const {
  const Shape& shape = view.shape(job);
  Demand demand{.gpus = shape.gpus};
  if (options_.limits.host_memory_mib > 0) {
    demand.memory_mib =
        std::int64_t{shape.gpus} *
        view.believed().memory_mib(view.jobs.profile[job], view.jobs.batch[job], {});
  }
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
  demand.gpus = std::max(
      shape.gpus, servers_needed * pools_[shape.pools.front().value].servers.largest_server());
  return demand;
}

void Gandiva::touch(const View& view, Home home) {
  UnitRow& here = row(home);
  if (!here.is_dirty) dirty_.push_back(home);
  here.is_dirty = true;
  if (!here.is_touched) touched_.push_back(home);
  here.is_touched = true;
  ticks_.go_on(view.now);
}

void Gandiva::enqueue(const View& view, JobId job, Line line) {
  blocked_.resize(view.shapes.size(), false);
  queue_.push(view.jobs.shape[job], {line == Line::Head ? 0 : 1, job});
  const Shape& shape = view.shape(job);
  pools_[shape.pools.front().value].queued[class_of(shape.gpus)] += shape.gpus;
  jobs_[job.value].where = Where::Queue;
}

/// It is a resident from now on; `servers` counts it already.
void Gandiva::settle_in(const View& view, JobId job, Home home) {
  JobRow& mine = jobs_[job.value];
  mine.where = Where::Unit;
  mine.home = home;
  row(home).ring.add(job, view.gpus(job));
  touch(view, home);
}

void Gandiva::move_out(const View& view, JobId job) {
  JobRow& mine = jobs_[job.value];
  const Home home = mine.home;
  UnitRow& here = row(home);
  here.slice_over = here.slice_over || here.ring.is_running(job);
  here.left_by = unit(home).is_set() ? 0 : unit(home).affinity;
  here.ring.remove(job);
  std::erase(here.grown, job);
  servers(home).remove(home.unit, demand_of(view, job));
  mine.where = Where::Nowhere;
  blocked_.assign(blocked_.size(), false);
  touch(view, home);
}

void Gandiva::on_arrival(const View& view, JobId job) {
  enqueue(view, job, Line::Tail);
  newcomers_.push_back(job);
}

/// The server it still runs on, from before this engine, as large as it asked to be.
std::optional<Gandiva::Home> Gandiva::home_found(const View& view, const Plan& plan,
                                                 JobId job) const {
  const auto found = plan.found_on(job);
  if (found.size() != 1 || found.front().gpus != view.gpus(job)) return std::nullopt;
  const PoolId pool = view.cluster.cluster().nodes[found.front().node.value].pool;
  const auto unit = pools_[pool.value].servers.unit_of(found.front().node);
  if (!unit) return std::nullopt;
  return Home{pool, *unit};
}

/// Whoever runs already lives there: a better server would cost it what it has done.
void Gandiva::settle_found(const View& view, const Plan& plan) {
  for (const JobId job : newcomers_) {
    const auto home = home_found(view, plan, job);
    if (!home || jobs_[job.value].where != Where::Queue) continue;
    const Demand demand = demand_of(view, job);
    if (!servers(*home).fits(home->unit, demand)) continue;
    const Shape& shape = view.shape(job);
    queue_.forget(view.jobs.shape[job], job);
    pools_[shape.pools.front().value].queued[class_of(shape.gpus)] -= shape.gpus;
    servers(*home).add(home->unit, demand);
    settle_in(view, job, *home);
  }
  newcomers_.clear();
}

void Gandiva::on_departure(const View& view, JobId job) {
  JobRow& mine = jobs_[job.value];
  if (mine.where == Where::Unit) move_out(view, job);
  if (mine.where == Where::Queue) {
    const Shape& shape = view.shape(job);
    queue_.forget(view.jobs.shape[job], job);
    pools_[shape.pools.front().value].queued[class_of(shape.gpus)] -= shape.gpus;
  }
  mine.where = Where::Nowhere;
}

void Gandiva::on_requeue(const View& view, JobId job) {
  if (jobs_[job.value].where != Where::Unit) return;  // went with its server
  move_out(view, job);
  jobs_[job.value].start_cost = Duration::zero();
  enqueue(view, job, Line::Head);
}

void Gandiva::on_capacity_change(const View& view, NodeId node) {
  const Node& changed = view.cluster.cluster().nodes[node.value];
  blocked_.assign(blocked_.size(), false);
  if (view.cluster.is_up(node)) {
    static_cast<void>(pools_[changed.pool.value].servers.add_server(node, changed.gpus));
  } else {
    lose_server(view, node);
  }
}

/// All residents go back to the head of the queue, the suspended ones too: their state was there.
void Gandiva::lose_server(const View& view, NodeId node) {
  const PoolId pool = view.cluster.cluster().nodes[node.value].pool;
  Servers& servers = pools_[pool.value].servers;
  const Home home{pool, *servers.unit_of(node)};
  std::vector<JobId> residents;
  for (const Ring::Seat& seat : row(home).ring.seats()) {
    residents.push_back(seat.job);
    if (seat.guest) residents.push_back(*seat.guest);
  }
  std::ranges::sort(residents);
  for (const JobId job : residents) {
    if (view.jobs.is_running(job)) orphans_.push_back(job);  // on other servers of the set
    move_out(view, job);
    jobs_[job.value].start_cost = Duration::zero();
    enqueue(view, job, Line::Head);
  }
  row(home).left_by = 0;
  servers.remove_server(*servers.unit_of(node));
}

std::optional<UnitId> Gandiva::try_step(PoolId pool, Step step, const Demand& demand) {
  PoolRow& here = pools_[pool.value];
  const auto found = here.servers.try_place(step, demand);
  if (here.units.size() < here.servers.size()) here.units.resize(here.servers.size());
  return found;
}

bool Gandiva::try_place(const View& view, JobId job) {
  const Demand demand = demand_of(view, job);
  for (const Step step : kSteps) {
    for (const PoolId pool : view.shape(job).pools) {
      const auto found = try_step(pool, step, demand);
      if (!found) continue;
      const Home home{pool, *found};
      // Free GPUs cost nothing to start on; who has to take turns pays for each of them.
      jobs_[job.value].start_cost =
          unit(home).height() <= 1 ? Duration::zero() : options_.switch_cost;
      settle_in(view, job, home);
      return true;
    }
  }
  return false;
}

/// First come, first served, but whoever finds a place may pass; if the first of a shape finds
/// none, none of that shape does until somebody leaves.
void Gandiva::place_queue(const View& view, std::optional<AffinityClass> only) {
  while (true) {
    std::optional<ShapeId> first;
    for (const ShapeId shape : queue_.active()) {
      if (blocked_[shape.value] || (only && class_of(view.shapes[shape].gpus) != *only)) continue;
      if (!first || queue_.top(shape) < queue_.top(*first)) first = shape;
    }
    if (!first) return;
    const JobId job = queue_.top(*first).job;
    if (!try_place(view, job)) {
      blocked_[first->value] = true;
      continue;
    }
    static_cast<void>(queue_.pop(*first));
    const Shape& shape = view.shapes[*first];
    pools_[shape.pools.front().value].queued[class_of(shape.gpus)] -= shape.gpus;
  }
}

/// Their timers stay until take_turns() sets new ones, so that who takes turns is known all along.
void Gandiva::end_due_slices(const View& view) {
  for (const Timer& timer : slices_) {
    if (timer.at > view.now) break;
    UnitRow& here = row(timer.home);
    here.slice_over = true;
    if (here.is_dirty) continue;  // somebody came or left: what was measured is out of date
    watch_rates(view, here);
    dirty_.push_back(timer.home);
    here.is_dirty = true;
  }
}

void Gandiva::decide(const View& view, Plan& plan, Rng&) {
  for (const JobId job : orphans_) {
    if (plan.holds(job)) plan.preempt(job, Reason::NodeLost);
  }
  orphans_.clear();
  end_due_slices(view);
  settle_found(view, plan);
  place_queue(view, std::nullopt);
  pull_after_departures(view, plan);
  if (ticks_.is_due(view.now)) on_tick(view, plan);
  if (rebalances_.is_due(view.now)) rebalance(view, plan);
  take_turns(view, plan);
}

std::optional<Time> Gandiva::next_wakeup(const View& view) {
  start_clocks(view);
  const bool nothing_runs = view.cluster.free_gpus() == view.cluster.usable_gpus();
  if (nothing_runs) return std::nullopt;  // only an event can change that
  const bool contended = !queue_.empty() || !slices_.empty();
  if (contended && rebalances_.grid().has_period()) rebalances_.go_on(view.now);
  Time next = std::min(ticks_.next(), rebalances_.next());
  if (!slices_.empty()) next = std::min(next, slices_.begin()->at);
  if (next == kNever) return std::nullopt;
  return std::max(next, view.now + Duration{1});
}

}  // namespace berth::gandiva

namespace berth {

namespace {

using gandiva::Mechanism;

Result<Duration> above_zero(const Params& params, std::string_view key) {
  BERTH_TRY(const Duration duration, params.duration(key));
  if (duration <= Duration::zero()) return params.wrong(key, "must be more than zero");
  return duration;
}

Result<Mechanism> mechanism(const Params& params, std::string_view key) {
  BERTH_TRY(const bool on, params.flag(key));
  return on ? Mechanism::On : Mechanism::Off;
}

Result<void> read_times(const Params& params, gandiva::Options& options) {
  BERTH_TRY(options.slice, above_zero(params, "slice"));
  BERTH_TRY(options.tick, above_zero(params, "tick"));
  BERTH_TRY(options.switch_cost, params.duration("switch_cost"));
  BERTH_TRY(options.migration_cost, params.duration("migration_cost"));
  BERTH_TRY(options.resize_cost, params.duration("resize_cost"));
  BERTH_TRY(const std::int64_t probe_slices, params.integer("pack_probe", 1, 1'000'000));
  options.pack_probe = options.slice * probe_slices;
  BERTH_TRY(options.rebalance, params.duration("rebalance"));
  BERTH_TRY(options.idle_period, params.duration("idle_period"));
  BERTH_TRY(options.migrate_cooldown, params.duration("migrate_cooldown"));
  BERTH_TRY(options.horizon, params.duration("horizon"));
  return {};
}

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  gandiva::Options options;
  BERTH_TRY_VOID(read_times(params, options));
  BERTH_TRY(const std::int64_t height, params.integer("max_height", 0, 1000));
  options.limits.max_height = static_cast<std::int32_t>(height);
  BERTH_TRY(options.limits.host_memory_mib, params.integer("host_mem", 0, 1'000'000'000));
  BERTH_TRY(options.defrag_threshold, params.number("defrag_threshold", 0, 1));
  BERTH_TRY(const std::int64_t probes, params.integer("max_probe", 0, 1'000'000));
  options.max_probe = static_cast<std::size_t>(probes);
  BERTH_TRY(const std::size_t step, params.choice("grow_step", {"double", "all"}));
  options.grow_step = step == 0 ? gandiva::GrowStep::Double : gandiva::GrowStep::All;
  BERTH_TRY(options.packing, mechanism(params, "packing"));
  BERTH_TRY(options.migration, mechanism(params, "migration"));
  BERTH_TRY(options.growing, mechanism(params, "growing"));
  return std::make_unique<gandiva::Gandiva>(entry.name, options);
}

}  // namespace

PolicyEntry gandiva_entry() {
  return {
      .name = "gandiva",
      .summary = "time slices on servers by affinity; packing, migration and growth as measured",
      .params =
          {{"slice", "60", "seconds of a turn on a server with more jobs than GPUs"},
           {"switch_cost", "1", "seconds a job pays when its turn begins"},
           {"migration_cost", "2", "seconds a job pays when it changes server"},
           {"resize_cost", "5", "seconds a job pays when it grows or shrinks"},
           {"max_height", "2",
            "GPUs asked for on a server per GPU it has, rounded up; 0 = no limit"},
           {"host_mem", "0",
            "MiB of host memory a server has for jobs that take turns there; 0 = no limit"},
           {"tick", "60", "seconds between two looks at packing, migration and growth"},
           {"packing", "on", "put jobs that take turns on the same GPUs if that is faster"},
           {"pack_probe", "2", "slices after which a packing is judged"},
           {"max_probe", "64", "packings under trial at once"},
           {"migration", "on", "move jobs between servers"},
           {"migrate_cooldown", "10m", "seconds a job stays where it is after a migration"},
           {"horizon", "10m", "seconds in which a migration must win back what it costs"},
           {"defrag_threshold", "0.75",
            "share of a server's GPUs that must be free for its jobs to be moved elsewhere"},
           {"rebalance", "10m", "seconds between two looks at what classes deserve; 0 = never"},
           {"growing", "on", "let jobs with a largest size above their own take idle GPUs"},
           {"idle_period", "5m", "seconds GPUs are idle before a job of their server takes them"},
           {"grow_step", "double", "double: twice the GPUs each time; all: all idle ones at once"}},
      .make = make};
}

}  // namespace berth
