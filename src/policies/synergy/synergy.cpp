#include "policies/synergy/synergy.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "policies/synergy/optimum.h"

namespace berth {
namespace {

constexpr std::int32_t kPlenty = 64;  // cores per GPU of a server that does not say

/// Less than a level of a few MiB is nothing to cache in.
bool says_memory(const Node& node) { return node.memory_mib / node.gpus >= 3; }

SynergyServer server_of(const Node& node, bool packs_memory) {
  const auto described = static_cast<std::int32_t>(node.cpus_milli / 1000);
  const std::int32_t cores =
      node.cpus_milli > 0 ? std::max(described, node.gpus) : node.gpus * kPlenty;
  return {.gpus = node.gpus, .cores = cores, .memory_mib = packs_memory ? node.memory_mib : 0};
}

}  // namespace

void Synergy::begin(const View& view) {
  const Cluster& cluster = view.cluster.cluster();
  server_of_node_.assign(cluster.nodes.size(), 0);
  taken_.assign(view.jobs.size(), false);
  pools_.assign(cluster.pools.size(), {});
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& node = cluster.nodes[i];
    if (node.gpus > 0) pools_[node.pool.value].nodes.push_back(NodeId{i});
  }
  for (Pool& pool : pools_) {
    pool.packs_memory =
        view.believed().effects().memory && std::ranges::all_of(pool.nodes, [&](NodeId node) {
          return says_memory(cluster.nodes[node.value]);
        });
    if (!pool.nodes.empty()) pool.axes = axes_of(cluster, pool);
  }
}

/// The proportional share of a pool is that of its poorest server, so that it fits everywhere.
SynergyAxes Synergy::axes_of(const Cluster& cluster, const Pool& pool) const {
  std::int32_t gpus = 1;
  std::int32_t cores = std::numeric_limits<std::int32_t>::max();
  std::int64_t memory = std::numeric_limits<std::int64_t>::max();
  for (const NodeId node : pool.nodes) {
    const SynergyServer server = server_of(cluster.nodes[node.value], pool.packs_memory);
    gpus = std::max(gpus, server.gpus);
    cores = std::min(cores, server.cores / server.gpus);
    memory = std::min(memory, server.memory_mib / server.gpus);
  }
  return SynergyAxes::of_server(gpus, gpus * cores, gpus * memory);
}

/// No more than an empty server has for as many workers of the gang as can be there together.
SynergyAxes Synergy::axes_for(const Cluster& cluster, const Pool& pool, std::int32_t gpus) const {
  SynergyAxes axes = pool.axes;
  axes.max_cores = axes.fair.cores;
  std::int64_t most_memory = 0;
  for (const NodeId node : pool.nodes) {
    const SynergyServer server = server_of(cluster.nodes[node.value], pool.packs_memory);
    const std::int32_t together = std::min(server.gpus, gpus);
    axes.max_cores = std::max(axes.max_cores, server.cores / together);
    most_memory = std::max(most_memory, server.memory_mib / together);
  }
  while (axes.memory_mib.back() > most_memory) axes.memory_mib.pop_back();
  return axes;
}

std::optional<Time> Synergy::next_wakeup(const View& view) { return rounds_.wakeup(view.now); }

double Synergy::key_of(const View& view, JobId job) const {
  switch (options_.order) {
    case SynergyOrder::Fifo: return 0;
    case SynergyOrder::Srtf: return to_seconds(view.estimated_left(job));
    case SynergyOrder::Las: return to_seconds(view.jobs.attained(job, view.now)) * view.gpus(job);
    case SynergyOrder::Ftf: break;
  }
  // Believed time in the cluster over that alone; the most unfair first.
  const double left = std::max(0.0, to_seconds(view.estimated_left(job)));
  const double waited = to_seconds(view.now - view.jobs.submitted[job]);
  return -(waited + left) / std::max(to_seconds(view.estimate(job)), 1e-6);
}

void Synergy::sort_jobs(const View& view) {
  order_.assign(active_.begin(), active_.end());
  if (options_.order == SynergyOrder::Fifo) return;
  std::vector<std::pair<double, JobId>> keyed;
  keyed.reserve(order_.size());
  for (const JobId job : order_) keyed.emplace_back(key_of(view, job), job);
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, order_.begin(), [](const auto& entry) { return entry.second; });
}

void Synergy::decide(const View& view, Plan& plan, Rng&) {
  if (active_.empty()) rounds_.settle();
  if (!rounds_.is_due(view.now)) {
    if (options_.start == StartRule::AtOnce && has_room_for_any(view, plan))
      start_waiting(view, plan);
    return;
  }
  rounds_.hold(view.now);
  sort_jobs(view);
  for (const JobId job : order_) taken_[job.value] = false;
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    if (!pools_[i].nodes.empty()) pack_pool(view, plan, PoolId{i});
  }
  if (std::ranges::none_of(order_, [&](JobId job) { return plan.holds(job); })) rounds_.settle();
}

void Synergy::pack_pool(const View& view, Plan& plan, PoolId pool) {
  list_servers(view, pools_[pool.value]);
  choose_jobs(view, plan, pool);
  describe_jobs(view, plan, pool);
  const SynergyAxes& axes = pools_[pool.value].axes;
  if (options_.optimal_demands) use_optimal_demands(axes);
  carry_out(view, plan, pool, packer_.pack(axes, servers_, jobs_));
}

bool Synergy::has_room_for_any(const View& view, const Plan& plan) const {
  return std::ranges::any_of(active_, [&](JobId job) {
    return !plan.holds(job) && plan.cluster().free_gpus() >= view.gpus(job);
  });
}

/// Until the next round, beside those that run.
void Synergy::start_waiting(const View& view, Plan& plan) {
  sort_jobs(view);
  std::ranges::stable_partition(order_, [&](JobId job) { return plan.holds(job); });
  for (const JobId job : order_) taken_[job.value] = false;
  for (std::uint32_t i = 0; i < pools_.size(); ++i) {
    if (!pools_[i].nodes.empty()) add_to_pool(view, plan, PoolId{i});
  }
}

/// Nothing, if somebody would have to move for it: that is for the next round to decide.
void Synergy::add_to_pool(const View& view, Plan& plan, PoolId pool) {
  list_servers(view, pools_[pool.value]);
  choose_jobs(view, plan, pool);
  describe_jobs(view, plan, pool);
  const auto grants = packer_.pack(pools_[pool.value].axes, servers_, jobs_);
  std::int64_t running = std::ranges::count_if(
      order_, [&](JobId job) { return plan.holds(job) && plan.pool_of(job) == pool; });
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (plan.holds(chosen_[i]) && grants[i].runs && stays(i, grants[i])) --running;
  }
  if (running == 0) carry_out(view, plan, pool, grants);
}

void Synergy::list_servers(const View& view, const Pool& pool) {
  nodes_.clear();
  servers_.clear();
  for (const NodeId node : pool.nodes) {
    if (!view.cluster.is_up(node)) continue;
    server_of_node_[node.value] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(node);
    servers_.push_back(server_of(view.cluster.cluster().nodes[node.value], pool.packs_memory));
  }
}

/// Those that run here or may, in order, while GPUs suffice.
void Synergy::choose_jobs(const View& view, const Plan& plan, PoolId pool) {
  chosen_.clear();
  std::int64_t gpus = view.cluster.usable_gpus(pool);
  for (const JobId job : order_) {
    if (gpus == 0) return;
    const auto& pools = view.shape(job).pools;
    const bool may =
        plan.holds(job) ? plan.pool_of(job) == pool : std::ranges::find(pools, pool) != pools.end();
    if (taken_[job.value] || !may || view.gpus(job) > gpus) continue;
    chosen_.push_back(job);
    gpus -= view.gpus(job);
  }
}

void Synergy::describe_jobs(const View& view, const Plan& plan, PoolId pool) {
  jobs_.clear();
  stays_.clear();
  for (const JobId job : chosen_) {
    for (const Slice& slice : plan.slices(job))
      stays_.push_back({server_of_node_[slice.node.value], slice.gpus});
  }
  std::size_t at = 0;
  for (const JobId job : chosen_) {
    const Sensitivity& w = sensitivity(view, pool, job);
    const std::size_t parts = plan.slices(job).size();
    jobs_.push_back({.gpus = view.gpus(job),
                     .sensitivity = &w,
                     .demand = w.demand(),
                     .stay = std::span{stays_}.subspan(at, parts)});
    at += parts;
  }
}

const Sensitivity& Synergy::sensitivity(const View& view, PoolId pool, JobId job) {
  Pool& mine = pools_[pool.value];
  const Kind kind{view.jobs.profile[job], view.gpus(job), view.jobs.batch[job]};
  const auto known = mine.sensitivities.find(kind);
  if (known != mine.sensitivities.end()) return known->second;
  Standing standing;
  standing.profile = kind.profile;
  standing.pool = pool;
  standing.gpus = kind.gpus;
  standing.wanted = kind.gpus;
  standing.batch = kind.batch;
  standing.level = view.believed().best_level(pool, kind.gpus);
  const SynergyAxes axes = axes_for(view.cluster.cluster(), mine, kind.gpus);
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
  return mine.sensitivities.emplace(kind, *std::move(made)).first->second;
}

void Synergy::use_optimal_demands(const SynergyAxes& axes) {
  const auto optimum =
      synergy_optimum(axes, servers_, jobs_, {.seconds = 3600, .nodes = options_.solver_nodes});
  if (!optimum) return;  // no better demands than the usual ones
  for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].demand = optimum->shares[i];
}

bool Synergy::stays(std::size_t index, const SynergyGrant& grant) const {
  return !jobs_[index].stay.empty() && std::ranges::equal(grant.parts, jobs_[index].stay);
}

/// First everybody leaves who does not stay, then the others come.
void Synergy::carry_out(const View& view, Plan& plan, PoolId pool,
                        std::span<const SynergyGrant> grants) {
  for (std::size_t i = 0; i < chosen_.size(); ++i) taken_[chosen_[i].value] = grants[i].runs;
  for (const JobId job : order_) {
    if (plan.holds(job) && plan.pool_of(job) == pool && !taken_[job.value])
      plan.preempt(job, Reason::Lease);
  }
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (plan.holds(chosen_[i]) && !stays(i, grants[i])) plan.preempt(chosen_[i], Reason::Balance);
  }
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const JobId job = chosen_[i];
    if (!grants[i].runs) continue;
    set_share(view, plan, pool, job, grants[i]);
    if (plan.holds(job)) continue;
    const bool started = try_start_as_packed(plan, pool, job, grants[i]);
    BERTH_CHECK(started, "what was packed is free");
  }
}

void Synergy::set_share(const View& view, Plan& plan, PoolId pool, JobId job,
                        const SynergyGrant& grant) {
  const auto& levels = pools_[pool.value].axes.memory_mib;
  Terms terms = plan.terms(job);
  terms.cores_milli = cores_milli(view, grant);
  if (view.can(Ability::HostMemory))
    terms.host_memory_mib =
        static_cast<std::int32_t>(levels[static_cast<std::size_t>(grant.share.level)]);
  static_cast<void>(plan.set_terms(job, terms));  // takes no device memory: never declined
}

/// Servers with fewer cores than GPUs were thought of as having one each.
std::int32_t Synergy::cores_milli(const View& view, const SynergyGrant& grant) const {
  std::int64_t cores = std::int64_t{grant.share.cores} * 1000;
  for (const SynergyPart& part : grant.parts) {
    const Node& node = view.cluster.cluster().nodes[nodes_[part.server].value];
    if (node.cpus_milli > 0 && node.cpus_milli < std::int64_t{node.gpus} * 1000)
      cores = std::min(cores, std::max<std::int64_t>(node.cpus_milli / node.gpus, 1));
  }
  return static_cast<std::int32_t>(cores);
}

bool Synergy::try_start_as_packed(Plan& plan, PoolId pool, JobId job, const SynergyGrant& grant) {
  slices_.clear();
  for (const SynergyPart& part : grant.parts) {
    const NodeId node = nodes_[part.server];
    std::uint64_t free = plan.cluster().free_mask(node);
    Slice slice{.node = node, .gpus = part.gpus, .devices = 0};
    for (std::int32_t i = 0; i < part.gpus; ++i, free &= free - 1)
      slice.devices |= free & (~free + 1);
    if (std::popcount(slice.devices) != part.gpus) return false;
    slices_.push_back(slice);
  }
  std::ranges::sort(slices_, {}, &Slice::node);
  return plan.try_start_on(job, pool, slices_);
}

}  // namespace berth

namespace berth {

namespace {

Result<std::unique_ptr<Policy>> make(const PolicyEntry& entry, const Params& params) {
  SynergyOptions options;
  BERTH_TRY(const auto order, params.choice("order", {"fifo", "srtf", "las", "ftf"}));
  options.order = static_cast<SynergyOrder>(order);
  BERTH_TRY(const auto mode, params.choice("mode", {"tune", "greedy", "proportional", "opt"}));
  options.optimal_demands = mode == 3;
  options.mode = options.optimal_demands ? SynergyMode::Tune : static_cast<SynergyMode>(mode);
  BERTH_TRY(options.solver_nodes, params.integer("solver_nodes", 1, 1'000'000'000));
  BERTH_TRY(options.round, params.duration("round"));
  if (options.round <= Duration::zero()) return params.wrong("round", "must be more than zero");
  BERTH_TRY(const auto start, params.choice("start", {"round", "now"}));
  options.start = static_cast<StartRule>(start);
  return std::make_unique<Synergy>(entry.name, options);
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
