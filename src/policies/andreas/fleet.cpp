#include "policies/andreas/fleet.h"

#include <algorithm>

#include "policies/kit/beliefs.h"

namespace berth::andreas {

namespace {

auto kind_of(const berth::Node& node) {
  return std::tuple(node.pool, -node.gpus, node.idle_watts, node.busy_watts, node.cpus_milli,
                    node.memory_mib);
}

/// The metrics count alike: idle devices draw their idle power, busy ones bring the node's up.
NodeType priced(const berth::Node& node, const DeviceType& device, double eur_per_watt_hour) {
  const double gpus = std::max(1, node.gpus);
  const double extra = std::max(0.0, node.busy_watts - node.idle_watts) / gpus;
  return {.pool = node.pool.value,
          .gpus = node.gpus,
          .idle_rate = eur_per_watt_hour * (node.idle_watts + node.gpus * device.idle_watts),
          .gpu_rate = eur_per_watt_hour * (device.busy_watts - device.idle_watts + extra)};
}

/// Hours for an hour of reference work.
double hours_per_work(const View& view, JobId job, PoolId pool, std::int32_t gpus) {
  return 1 / std::max(believed_rate(view, job, pool, gpus), 1e-6);
}

}  // namespace

void Fleet::begin(const Cluster& cluster) {
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (cluster.nodes[i].gpus > 0) nodes_.push_back(NodeId{i});
  }
  std::ranges::sort(nodes_, {}, [&](NodeId node) {
    return std::tuple(kind_of(cluster.nodes[node.value]), node);
  });
  type_of_ = Column<NodeId, std::uint32_t>(cluster.nodes.size(), kNone);
  for (const NodeId id : nodes_) {
    const berth::Node& node = cluster.nodes[id.value];
    if (models_.empty() || kind_of(models_.back()) != kind_of(node)) {
      models_.push_back(node);
      types_.push_back(
          priced(node, cluster.pools[node.pool.value], tariff_.price * tariff_.pue / 1000));
    }
    type_of_[id] = static_cast<std::uint32_t>(types_.size() - 1);
  }
}

const ChoiceList& Fleet::choices(const View& view, JobId job) {
  if (const auto own = found_.find(job); own != found_.end()) return own->second;
  return lists_.of(view.jobs.kind[job], [&] { return make_choices(view, job); });
}

/// GPUs of an empty node that a job of this shape can use: its cores and memory count, too.
std::int32_t Fleet::room(std::uint32_t type, const Shape& shape) const noexcept {
  const berth::Node& node = models_[type];
  std::int64_t room = node.gpus;
  if (shape.cpus_milli_per_gpu > 0 && node.cpus_milli > 0)
    room = std::min(room, node.cpus_milli / shape.cpus_milli_per_gpu);
  if (shape.memory_mib_per_gpu > 0 && node.memory_mib > 0)
    room = std::min(room, node.memory_mib / shape.memory_mib_per_gpu);
  return static_cast<std::int32_t>(room);
}

ChoiceList Fleet::make_choices(const View& view, JobId job) const {
  std::vector<Choice> choices;
  const Shape& shape = view.shape(job);
  if (shape.gpus == 0 || shape.gpu_milli == 0) return {{}, types_};
  std::int32_t largest = 0;
  for (std::uint32_t type = 0; type < types_.size(); ++type) {
    if (std::ranges::find(shape.pools, pool_of(type)) != shape.pools.end())
      largest = std::max(largest, room(type, shape));
  }
  // A gang that no node of any acceptable type can hold keeps the size it asked for.
  for (const PoolId pool : shape.pools) {
    if (shape.gpus > largest) add_gang(view, job, pool, choices);
    for (std::uint32_t type = 0; type < types_.size() && shape.gpus <= largest; ++type) {
      if (pool_of(type) == pool) add_sizes(view, job, type, choices);
    }
  }
  return {std::move(choices), types_};
}

void Fleet::add_sizes(const View& view, JobId job, std::uint32_t type,
                      std::vector<Choice>& choices) const {
  const ElasticRange range = elastic_range(view, job, elastic_);
  const std::int32_t most = std::min(range.most, room(type, view.shape(job)));
  for (std::int32_t gpus = range.least; gpus <= most; ++gpus) {
    choices.push_back(
        {.type = type, .gpus = gpus, .hours = hours_per_work(view, job, pool_of(type), gpus)});
  }
}

/// Priced by the pool's largest nodes.
void Fleet::add_gang(const View& view, JobId job, PoolId pool, std::vector<Choice>& choices) const {
  const std::int32_t gpus = view.gpus(job);
  if (view.cluster.cluster().total_gpus(pool) < gpus) return;
  std::uint32_t first = kNone;
  std::int32_t per_node = gpus;
  for (std::uint32_t type = 0; type < types_.size(); ++type) {
    if (pool_of(type) != pool) continue;
    if (first == kNone) first = type;
    if (const std::int32_t own = room(type, view.shape(job)); own < types_[type].gpus)
      per_node = std::min(per_node, std::max(1, own));  // cores or memory limit it here
  }
  if (first == kNone) return;
  choices.push_back({.type = first,
                     .gpus = gpus,
                     .hours = hours_per_work(view, job, pool, gpus),
                     .per_node = std::min(per_node, types_[first].gpus)});
}

std::uint32_t Fleet::choice_found(const View& view, JobId job, std::span<const Slice> slices) {
  const ChoiceList& known = choices(view, job);
  std::int32_t gpus = 0;
  std::int32_t per_node = 0;
  for (const Slice& slice : slices) {
    gpus += slice.gpus;
    per_node = std::max(per_node, slice.gpus);
  }
  const std::uint32_t type = type_of(slices.front().node);
  const std::uint32_t one = known.find(type, gpus);
  if (one != kNone && known[one].is_gang() == (slices.size() > 1)) return one;
  const auto first = std::ranges::find(types_, types_[type].pool, &NodeType::pool);
  Choice spread{.type = static_cast<std::uint32_t>(first - types_.begin()),
                .gpus = gpus,
                .hours = hours_per_work(view, job, pool_of(type), gpus),
                .per_node = per_node};
  found_.insert_or_assign(job, ChoiceList{{spread}, types_});
  return 0;
}

}  // namespace berth::andreas
