#include "core/feasibility.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace berth {

namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

std::int32_t per_gpu(std::int32_t total, std::int32_t gpus) { return (total + gpus - 1) / gpus; }

}  // namespace

std::vector<PoolId> ShapeMaker::acceptable_pools(std::string_view types) const {
  const auto& pools = empty_->cluster().pools;
  std::vector<PoolId> accepted;
  if (types.empty()) {
    for (std::uint32_t i = 0; i < pools.size(); ++i) accepted.push_back(PoolId{i});
    return accepted;
  }
  for (std::size_t begin = 0; begin <= types.size();) {
    const std::size_t end = std::min(types.find('|', begin), types.size());
    for (std::uint32_t i = 0; i < pools.size(); ++i) {
      if (same_name(pools[i].name, types.substr(begin, end - begin))) accepted.push_back(PoolId{i});
    }
    begin = end + 1;
  }
  return accepted;
}

ShapeId ShapeMaker::shape_of(const JobRequest& request, ShapeTable& shapes) const {
  const std::string_view types = trace_->text(request.gpu_type);
  Shape shape;
  shape.gpus = request.gpus;
  shape.locality = placement_->locality_of(request, trace_->text(request.model));
  shape.pools = acceptable_pools(types);
  // Only what some node limits is part of the shape: otherwise every odd core count is a queue of its own.
  const auto& nodes = empty_->cluster().nodes;
  if (std::ranges::any_of(nodes, [](const Node& node) { return node.cpus_milli > 0; })) {
    shape.cpus_milli_per_gpu = per_gpu(request.cpus_milli, request.gpus);
  }
  if (std::ranges::any_of(nodes, [](const Node& node) { return node.memory_mib > 0; })) {
    shape.memory_mib_per_gpu = per_gpu(request.memory_mib, request.gpus);
  }
  const std::size_t known = shapes.size();
  const ShapeId id = shapes.intern(shape);
  if (shapes.size() > known) shapes.set_never_reason(id, why_never(shape, types));
  return id;
}

std::string ShapeMaker::why_never(const Shape& shape, std::string_view types) const {
  if (shape.pools.empty()) return fmt::format("asks for device type '{}', which this cluster does not have", types);
  Rng rng{1};
  std::vector<Slice> slices;
  std::int64_t most = 0;
  for (const PoolId pool : shape.pools) {
    most = std::max(most, empty_->usable_gpus(pool));
    if (empty_->usable_gpus(pool) < shape.gpus) continue;
    slices.clear();
    const bool fits = empty_->mode() == ClusterState::Mode::Count ? empty_->has_side_room(pool, shape)
                                                                 : placement_->place(*empty_, shape, pool, rng, slices);
    if (fits) return {};
  }
  if (most < shape.gpus) {
    return fmt::format("needs {} GPUs of one type, the cluster has at most {}", shape.gpus, most);
  }
  return fmt::format("needs {} GPUs with {:.1f} cores and {:.1f} GiB each: no set of nodes has that", shape.gpus,
                     shape.cpus_milli_per_gpu / 1000.0, shape.memory_mib_per_gpu / 1024.0);
}

}  // namespace berth
