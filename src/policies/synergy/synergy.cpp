#include "policies/synergy/synergy.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/device_mask.h"
#include "policies/kit/beliefs.h"
#include "policies/synergy/optimum.h"

namespace berth::synergy {
namespace {

constexpr std::int32_t kPlenty = 64;  // cores per GPU of a server that does not say

/// Less than a level of a few MiB is nothing to cache in.
bool says_memory(const Node& node) { return node.memory_mib / node.gpus >= 3; }

Server server_of(const Node& node, bool packs_memory) {
  const auto described = static_cast<std::int32_t>(node.cpus_milli / 1000);
  const std::int32_t cores =
      node.cpus_milli > 0 ? std::max(described, node.gpus) : node.gpus * kPlenty;
  return {.gpus = node.gpus, .cores = cores, .memory_mib = packs_memory ? node.memory_mib : 0};
}

/// The proportional share of a pool is that of its poorest server, so that it fits everywhere.
Axes axes_of(std::span<const Server> servers) {
  std::int32_t gpus = 1;
  std::int32_t cores = std::numeric_limits<std::int32_t>::max();
  std::int64_t memory = std::numeric_limits<std::int64_t>::max();
  for (const Server& server : servers) {
    gpus = std::max(gpus, server.gpus);
    cores = std::min(cores, server.cores / server.gpus);
    memory = std::min(memory, server.memory_mib / server.gpus);
  }
  return Axes::of_server(gpus, gpus * cores, gpus * memory);
}

/// No more than an empty server has for as many workers of the gang as can be there together.
Axes axes_for(Axes axes, std::span<const Server> servers, std::int32_t gpus) {
  axes.max_cores = axes.fair.cores;
  std::int64_t most_memory = 0;
  for (const Server& server : servers) {
    const std::int32_t together = std::min(server.gpus, gpus);
    axes.max_cores = std::max(axes.max_cores, server.cores / together);
    most_memory = std::max(most_memory, server.memory_mib / together);
  }
  while (axes.memory_mib.back() > most_memory) axes.memory_mib.pop_back();
  return axes;
}

}  // namespace

void Synergy::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  server_at_.resize(cluster.nodes.size());
  taken_.resize(view.jobs.size());
  pools_ = Column<PoolId, Pool>(cluster.pools.size());
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (cluster.nodes[i].gpus > 0) pools_[cluster.nodes[i].pool].nodes.push_back(NodeId{i});
  }
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    Pool& pool = pools_[PoolId{i}];
    const bool all_say_memory = std::ranges::all_of(
        pool.nodes, [&](NodeId node) { return says_memory(cluster.nodes[node.value]); });
    const bool packs_memory = view.believed().effects().memory && all_say_memory;
    for (const NodeId node : pool.nodes)
      pool.servers.push_back(server_of(cluster.nodes[node.value], packs_memory));
    if (!pool.nodes.empty()) pool.axes = axes_of(pool.servers);
  }
}

double Synergy::key_of(const View& view, JobId job) const {
  switch (options_.order) {
    case Order::Fifo: return 0;
    case Order::Srtf: return to_seconds(view.estimated_left(job));
    case Order::Las: return to_seconds(view.jobs.attained(job, view.now)) * view.gpus(job);
    case Order::Ftf: break;
  }
  // Believed time in the cluster over that alone; the most unfair first.
  const double left = std::max(0.0, to_seconds(view.estimated_left(job)));
  const double waited = to_seconds(view.now - view.jobs.submitted[job]);
  return -(waited + left) / std::max(to_seconds(view.estimate(job)), 1e-6);
}

void Synergy::sort_jobs(const View& view) {
  order_.assign(active_.begin(), active_.end());  // by JobId, which is the order of fifo
  if (options_.order == Order::Fifo) return;
  std::vector<std::pair<double, JobId>> keyed;
  keyed.reserve(order_.size());
  for (const JobId job : order_) keyed.emplace_back(key_of(view, job), job);
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, order_.begin(), [](const auto& entry) { return entry.second; });
}

void Synergy::decide(const View& view, Plan& plan, Rng& rng) {
  Pass pass{view, plan, rng};
  if (active_.empty()) rounds_.settle();
  if (!rounds_.is_due(view.now)) {
    if (options_.start == StartRule::AtOnce && has_room_for_any(pass)) {
      sort_jobs(view);
      // Those that run come first: the others start beside them until the next round.
      std::ranges::stable_partition(order_, [&](JobId job) { return plan.holds(job); });
      pack_pools(pass, Running::Stays);
    }
    return;
  }
  rounds_.hold(view.now);
  sort_jobs(view);
  pack_pools(pass, Running::MayMove);
  // Nobody fits: that will be so until somebody comes or a node does.
  if (std::ranges::none_of(order_, [&](JobId job) { return plan.holds(job); })) rounds_.settle();
}

bool Synergy::has_room_for_any(const Pass& pass) const {
  return std::ranges::any_of(active_, [&](JobId job) {
    return !pass.plan.holds(job) && pass.plan.cluster().free_gpus() >= pass.view.gpus(job);
  });
}

void Synergy::pack_pools(Pass& pass, Running running) {
  for (const JobId job : order_) taken_[job] = false;
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    if (!pools_[PoolId{i}].nodes.empty()) pack_pool(pass, PoolId{i}, running);
  }
}

void Synergy::pack_pool(Pass& pass, PoolId pool, Running running) {
  const Axes& axes = pools_[pool].axes;
  list_servers(pass.view, pools_[pool]);
  choose_jobs(pass, pool);
  describe_jobs(pass, pool);
  if (running == Running::MayMove && options_.demands == Demands::Optimum)
    use_optimal_demands(axes);
  const auto grants = packer_.pack(axes, servers_, jobs_);
  // If somebody would have to move, that is for the next round to decide.
  if (running == Running::MayMove || all_stay(pass.plan, pool, grants))
    carry_out(pass, pool, grants);
}

bool Synergy::all_stay(const Plan& plan, PoolId pool, std::span<const Grant> grants) const {
  std::int64_t running = std::ranges::count_if(
      order_, [&](JobId job) { return plan.holds(job) && plan.pool_of(job) == pool; });
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (plan.holds(chosen_[i]) && grants[i].runs && stays(i, grants[i])) --running;
  }
  return running == 0;
}

void Synergy::list_servers(const View& view, const Pool& pool) {
  nodes_.clear();
  servers_.clear();
  for (std::size_t i = 0; i < pool.nodes.size(); ++i) {
    if (!view.cluster.is_up(pool.nodes[i])) continue;
    server_at_[pool.nodes[i]] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(pool.nodes[i]);
    servers_.push_back(pool.servers[i]);
  }
}

/// Those that run here or may, in order, while GPUs suffice.
void Synergy::choose_jobs(const Pass& pass, PoolId pool) {
  const auto& [view, plan, rng] = pass;
  chosen_.clear();
  std::int64_t gpus = view.cluster.usable_gpus(pool);
  for (const JobId job : order_) {
    if (gpus == 0) return;
    const auto& pools = view.shape(job).pools;
    const bool may =
        plan.holds(job) ? plan.pool_of(job) == pool : std::ranges::find(pools, pool) != pools.end();
    if (taken_[job] || !may || view.gpus(job) > gpus) continue;
    chosen_.push_back(job);
    gpus -= view.gpus(job);
  }
}

void Synergy::describe_jobs(const Pass& pass, PoolId pool) {
  const Plan& plan = pass.plan;
  jobs_.clear();
  stays_.clear();
  for (const JobId job : chosen_) {
    for (const Slice& slice : plan.slices(job))
      stays_.push_back({server_at_[slice.node], slice.gpus});
  }
  std::size_t at = 0;  // only now: the parts must not move any more
  for (const JobId job : chosen_) {
    const Sensitivity& w = sensitivity(pass.view, pool, job);
    const std::size_t parts = plan.slices(job).size();
    jobs_.push_back({.gpus = pass.view.gpus(job),
                     .sensitivity = &w,
                     .demand = w.demand(),
                     .stay = std::span{stays_}.subspan(at, parts)});
    at += parts;
  }
}

const Sensitivity& Synergy::sensitivity(const View& view, PoolId pool, JobId job) {
  const KindId kind = view.jobs.kind[job];
  return pools_[pool].sensitivities.of(kind, [&] {
    const Axes axes = axes_for(pools_[pool].axes, pools_[pool].servers, view.gpus(job));
    Standing standing = standing_of(view, kind, pool, view.gpus(job));
    std::vector<double> throughput;
    for (std::int32_t cores = 1; cores <= axes.max_cores; ++cores) {
      for (const std::int64_t memory : axes.memory_mib) {
        standing.terms.cores_milli = cores * 1000;
        standing.terms.host_memory_mib = static_cast<std::int32_t>(memory);
        throughput.push_back(1 / view.believed().iteration(standing).total);
      }
    }
    auto made = Sensitivity::from_matrix(axes, throughput);
    BERTH_CHECK(made.has_value(), "believed rates are positive, rise with cores and memory");
    return *std::move(made);
  });
}

void Synergy::use_optimal_demands(const Axes& axes) {
  const auto optimum =
      optimum_of(axes, servers_, jobs_, {.seconds = 3600, .nodes = options_.solver_nodes});
  if (!optimum) return;  // no better demands than the usual ones
  for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].demand = optimum->shares[i];
}

bool Synergy::stays(std::size_t index, const Grant& grant) const {
  return !jobs_[index].stay.empty() && std::ranges::equal(grant.parts, jobs_[index].stay);
}

/// First everybody leaves who does not stay, then the others come.
void Synergy::carry_out(Pass& pass, PoolId pool, std::span<const Grant> grants) {
  Plan& plan = pass.plan;
  for (std::size_t i = 0; i < chosen_.size(); ++i) taken_[chosen_[i]] = grants[i].runs;
  for (const JobId job : order_) {
    if (plan.holds(job) && plan.pool_of(job) == pool && !taken_[job])
      plan.preempt(job, Reason::Lease);
  }
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (plan.holds(chosen_[i]) && !stays(i, grants[i])) plan.preempt(chosen_[i], Reason::Balance);
  }
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const JobId job = chosen_[i];
    if (!grants[i].runs) continue;
    set_share(pass, pool, job, grants[i]);
    if (plan.holds(job)) continue;
    const bool started = try_start_as_packed(plan, pool, job, grants[i]);
    BERTH_CHECK(started, "what was packed is free");
  }
}

void Synergy::set_share(Pass& pass, PoolId pool, JobId job, const Grant& grant) {
  const auto& levels = pools_[pool].axes.memory_mib;
  Terms terms = pass.plan.terms(job);
  terms.cores_milli = cores_milli(pass.view, grant);
  if (pass.view.can(Ability::HostMemory))
    terms.host_memory_mib =
        static_cast<std::int32_t>(levels[static_cast<std::size_t>(grant.share.level)]);
  static_cast<void>(pass.plan.set_terms(job, terms));  // takes no device memory: never declined
}

/// Servers with fewer cores than GPUs were thought of as having one each.
std::int32_t Synergy::cores_milli(const View& view, const Grant& grant) const {
  std::int64_t cores = std::int64_t{grant.share.cores} * 1000;
  for (const Part& part : grant.parts) {
    const Node& node = view.cluster.cluster().nodes[nodes_[part.server].value];
    if (node.cpus_milli > 0 && node.cpus_milli < std::int64_t{node.gpus} * 1000)
      cores = std::min(cores, std::max<std::int64_t>(node.cpus_milli / node.gpus, 1));
  }
  return static_cast<std::int32_t>(cores);
}

bool Synergy::try_start_as_packed(Plan& plan, PoolId pool, JobId job, const Grant& grant) {
  slices_.clear();
  for (const Part& part : grant.parts) {
    const NodeId node = nodes_[part.server];
    const std::uint64_t devices = DeviceMask{plan.cluster().free_mask(node)}.lowest(part.gpus);
    if (DeviceMask{devices}.size() != part.gpus) return false;
    slices_.push_back({.node = node, .gpus = part.gpus, .devices = devices});
  }
  std::ranges::sort(slices_, {}, &Slice::node);
  return plan.try_start_on(job, pool, slices_);
}

}  // namespace berth::synergy

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry&, const Params& params) {
  using synergy::Demands;
  using synergy::Mode;
  using synergy::Order;
  synergy::Options options;
  BERTH_TRY(options.order, params.choice<Order>("order", {{"fifo", Order::Fifo},
                                                          {"srtf", Order::Srtf},
                                                          {"las", Order::Las},
                                                          {"ftf", Order::Ftf}}));
  using How = std::pair<Mode, Demands>;
  BERTH_TRY(
      const How how,
      params.choice<How>("mode", {{"tune", {Mode::Tune, Demands::Sensitivity}},
                                  {"greedy", {Mode::Greedy, Demands::Sensitivity}},
                                  {"proportional", {Mode::Proportional, Demands::Sensitivity}},
                                  {"opt", {Mode::Tune, Demands::Optimum}}}));
  options.mode = how.first;
  options.demands = how.second;
  BERTH_TRY(options.solver_nodes, params.integer("solver_nodes", 1, 1'000'000'000));
  BERTH_TRY(options.round, params.positive_duration("round"));
  BERTH_TRY(options.start, params.choice<StartRule>("start", {{"round", StartRule::InRounds},
                                                              {"now", StartRule::AtOnce}}));
  return std::make_unique<synergy::Synergy>(options);
}

}  // namespace

PolicyEntry synergy_entry() {
  return {
      .name = "synergy",
      .summary = "rounds of any order; cores by how much each job gains, none below its GPU share",
      .params =
          {{"order", "fifo", "fifo, srtf, las or ftf (finish-time fairness)"},
           {"mode", "tune",
            "tune, greedy (demand or nothing), proportional, or opt (demands by integer program)"},
           {"round", "5m", "seconds between two decisions, aligned to time zero"},
           {"start", "round",
            "of a job that waits beside free devices: round: with the next round; now: at once",
            "now"},
           {"solver_nodes", "1000", "opt: size of the search tree at most"}},
      .make = make};
}

}  // namespace berth
