// Gates of the machine: nodes out of service, too few devices, not together, too little beside
// them.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "why/waiting_job.h"

namespace berth {

namespace {

std::string cores(std::int64_t milli) {
  return fmt::format("{:.4g}", static_cast<double>(milli) / 1000);
}

WhyReason side_reason(const WhyRoom& room, const Shape& shape, const std::string& type) {
  const std::int64_t workers = std::max(1, std::min(shape.gpus, room.side_gpus));
  const std::int64_t cores_needed = workers * shape.cpus_milli_per_gpu;
  const std::int64_t memory_needed = workers * shape.memory_mib_per_gpu;
  std::vector<std::string> missing;
  WhyReason reason{.kind = "side resource", .text = {}, .who = "user"};
  if (room.cores_milli < cores_needed) {
    reason.numbers.emplace_back("cores_free", static_cast<double>(room.cores_milli) / 1000);
    reason.numbers.emplace_back("cores_needed", static_cast<double>(cores_needed) / 1000);
    missing.push_back(fmt::format("{} of {} cores", cores(room.cores_milli), cores(cores_needed)));
  }
  if (room.memory_mib < memory_needed) {
    reason.numbers.emplace_back("memory_free_mib", room.memory_mib);
    reason.numbers.emplace_back("memory_needed_mib", memory_needed);
    missing.push_back(fmt::format("{} of {}", gib_text(room.memory_mib), gib_text(memory_needed)));
  }
  if (missing.empty()) missing.emplace_back("too little beside them");
  reason.numbers.emplace_back("node", room.side_node);
  reason.numbers.emplace_back("gpus_stranded", std::int64_t{room.side_gpus});
  reason.entities.push_back(room.side_node);
  reason.text = fmt::format("{} has {} free but {}", room.side_node,
                            devices_text(room.side_gpus, type), fmt::join(missing, " and "));
  return reason;
}

/// Who runs on devices that this shape could have.
std::vector<JobId> holders_of(const JobTable& jobs, const Shape& shape) {
  std::vector<JobId> holders;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    if (jobs.is_running(job) &&
        std::ranges::find(shape.pools, jobs.allocation[job].pool) != shape.pools.end())
      holders.push_back(job);
  }
  return holders;
}

/// How much of what is needed is there: 1 if all of it.
double share_of(std::int64_t free, std::int64_t needed) {
  if (needed <= free) return 1;
  return static_cast<double>(free) / static_cast<double>(needed);
}

void find_side(const ClusterState& state, const Shape& shape, const std::set<PoolId>& accepted,
               WhyRoom& room) {
  const std::int32_t enough = std::min(std::max(1, shape.gpus), room.best);
  double most = -1;
  for (std::uint32_t i = 0; i < state.cluster().nodes.size(); ++i) {
    const NodeId id{i};
    const Node& node = state.cluster().nodes[i];
    if (!accepted.contains(node.pool) || !state.is_up(id) || state.free_on(id) < enough) continue;
    const std::int64_t workers = std::max(1, enough);
    const double share =
        std::min(share_of(state.free_cpus_milli(id), workers * shape.cpus_milli_per_gpu),
                 share_of(state.free_memory_mib(id), workers * shape.memory_mib_per_gpu));
    if (share <= most) continue;
    most = share;
    room.side_node = node.name;
    room.side_gpus = state.free_on(id);
    room.cores_milli = state.free_cpus_milli(id);
    room.memory_mib = state.free_memory_mib(id);
  }
}

/// Nobody has to do anything: it starts when they are ready.
void add_sleeping(const WaitingJob& waiting, Why& why) {
  const WhyRoom& room = waiting.room;
  const Cluster& cluster = waiting.parts.engine.cluster().cluster();
  std::vector<std::string> names;
  std::optional<Time> ready;
  const auto& nodes = room.booting.empty() ? room.off : room.booting;
  for (const NodeId node : nodes) {
    names.push_back(cluster.nodes[node.value].name);
    if (const auto at = waiting.parts.scheduler.ready_about(node))
      ready = std::min(ready.value_or(kNever), *at);
  }
  const bool one = names.size() == 1;
  WhyReason reason{
      .kind = "node state",
      .text = room.booting.empty()
                  ? fmt::format("{} {} off until the policy wakes {}", fmt::join(names, ", "),
                                one ? "is" : "are", one ? "it" : "them")
                  : fmt::format("{} boot{}", fmt::join(names, ", "), one ? "s" : ""),
      .numbers = {{"nodes", static_cast<std::int64_t>(names.size())}, {"gpus", room.asleep}},
      .entities = names,
      .who = "nobody",
      .sole = waiting.findings.starts_if_nodes && !waiting.is_gated};
  const Time now = waiting.parts.scheduler.now();
  if (ready && *ready > now) {
    reason.text += fmt::format(", ready in about {}", human_duration(to_seconds(*ready - now)));
    reason.when = "until";
    reason.until = waiting.parts.scheduler.wall() + (*ready - now).count();
  }
  why.reasons.push_back(std::move(reason));
}

}  // namespace

WhyRoom room_for(const Engine& engine, const Shape& shape) {
  const ClusterState& state = engine.cluster();
  WhyRoom room;
  const std::set<PoolId> accepted{shape.pools.begin(), shape.pools.end()};
  for (const PoolId pool : accepted) room.free += state.free_gpus(pool);
  room.others = state.free_gpus() - room.free;
  for (std::uint32_t i = 0; i < state.cluster().nodes.size(); ++i) {
    const Node& node = state.cluster().nodes[i];
    if (!accepted.contains(node.pool)) continue;
    if (!state.is_up(NodeId{i}) && !state.has_failed(NodeId{i})) {
      room.asleep += node.gpus;
      const bool boots = state.power(NodeId{i}) == PowerState::Booting;
      (boots ? room.booting : room.off).push_back(NodeId{i});
    } else if (!state.is_up(NodeId{i})) {
      room.out += node.gpus;
      room.nodes_out.push_back(node.name);
    } else if (state.free_on(NodeId{i}) > room.best) {
      room.best = state.free_on(NodeId{i});
      room.best_node = node.name;
    }
  }
  find_side(state, shape, accepted, room);
  Shape bare = shape;
  bare.cpus_milli_per_gpu = 0;
  bare.memory_mib_per_gpu = 0;
  room.fits = engine.has_place(shape);
  room.fits_without_side = room.fits || engine.has_place(bare);
  return room;
}

void add_room(const WaitingJob& waiting, Why& why) {
  const WhyRoom& room = waiting.room;
  const Shape& shape = waiting.shape;
  if (room.fits) return;
  const std::string& type = waiting.asked.job.spec->gpu_type;
  const bool is_short = room.free < shape.gpus;
  const bool sole = waiting.findings.starts_if_room && !waiting.is_gated;
  if (room.asleep > 0 && room.free + room.asleep >= shape.gpus) add_sleeping(waiting, why);
  if (room.out > 0 && (waiting.findings.starts_if_nodes || room.free + room.out >= shape.gpus)) {
    const bool sole_nodes = waiting.findings.starts_if_nodes && !waiting.is_gated;
    const std::string fix =
        fmt::format("an operator: berth node resume {}", fmt::join(room.nodes_out, " "));
    why.reasons.push_back(
        {.kind = "node state",
         .text = fmt::format("{} on nodes that are down or drained ({}): with them there would be "
                             "enough",
                             room.out == 1 ? "1 GPU is" : fmt::format("{} GPUs are", room.out),
                             fmt::join(room.nodes_out, ", ")),
         .numbers = {{"nodes", static_cast<std::int64_t>(room.nodes_out.size())},
                     {"gpus", room.out}},
         .entities = room.nodes_out,
         .fix = fix,
         .who = "operator",
         .sole = sole_nodes});
    if (sole_nodes) why.would_start.push_back(fix);
  }
  if (is_short) {
    why.reasons.push_back(
        {.kind = "capacity",
         .text =
             fmt::format("{} of {} free{}", room.free,
                         devices_text(shape.gpus, type) + (shape.gpus == 1 ? " is" : " are"),
                         room.others > 0 ? fmt::format(", {} of other types", room.others) : ""),
         .numbers = {{"free", room.free},
                     {"need", std::int64_t{shape.gpus}},
                     {"free_of_other_types", room.others}},
         .entities = waiting.named(holders_of(waiting.parts.engine.jobs(), shape)),
         .who = "user",
         .sole = sole});
  }
  const bool together = shape.locality == Locality::Consolidated && room.best < shape.gpus;
  if (together || (!is_short && !room.fits_without_side)) {
    why.reasons.push_back(
        {.kind = "shape",
         .text = room.best_node.empty()
                     ? fmt::format("no node has any of {} free", devices_text(shape.gpus, type))
                     : fmt::format("not together as asked: at most {} of {} free on {}", room.best,
                                   devices_text(shape.gpus, type), room.best_node),
         .numbers = {{"best", std::int64_t{room.best}},
                     {"need", std::int64_t{shape.gpus}},
                     {"node", room.best_node}},
         .who = "user",
         .sole = sole});
  }
  if (is_short || !room.fits_without_side) return;
  WhyReason reason = side_reason(room, shape, type);
  reason.sole = sole;
  why.reasons.push_back(std::move(reason));
}

}  // namespace berth
