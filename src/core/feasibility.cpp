#include "core/feasibility.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>

#include "base/digest.h"

namespace berth {

namespace {

/// Of a shape that no pool takes.
constexpr std::string_view kUnknownType = "asks for a device type that this cluster does not have";

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

/// Rounded down: three GPUs with 16 cores fit a server of 16. What is rounded off of a whole
/// server is less than one core, so that whole cores are never given twice.
std::int32_t per_gpu(std::int32_t total, std::int32_t gpus) {
  return total == 0 ? 0 : std::max(1, total / gpus);
}

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

ShapeMaker::ShapeMaker(const Trace& trace, const ClusterState& empty, Placement& placement,
                       SideLimits limits, const ProfileSet* buses)
    : trace_(&trace),
      empty_(&empty),
      placement_(&placement),
      buses_(buses),
      cores_beside_(limits.cores_beside && empty.mode() == ClusterState::Mode::Devices) {
  // Only what some node limits is part of a shape: otherwise every odd core count would be a queue
  // of its own.
  for (const Node& node : empty.cluster().nodes) {
    limits_cpus_ = limits.cores && (limits_cpus_ || node.cpus_milli > 0);
    limits_memory_ = limits.memory && (limits_memory_ || node.memory_mib > 0);
  }
}

std::size_t ShapeMaker::KeyHash::operator()(const Key& key) const noexcept {
  Digest digest;
  digest.add((std::uint64_t{static_cast<std::uint32_t>(key.gpus)} << 32U) |
             static_cast<std::uint32_t>(key.cpus_milli));
  digest.add((std::uint64_t{static_cast<std::uint32_t>(key.memory_mib)} << 32U) | key.types.value);
  digest.add((static_cast<std::uint64_t>(key.locality) << 32U) |
             static_cast<std::uint32_t>(key.gpu_milli));
  digest.add(static_cast<std::uint64_t>(key.bus_milli));
  return digest.value();
}

ShapeMaker::OfModel ShapeMaker::traits_of(const JobRequest& request) const {
  const std::string_view model = trace_->text(request.model);
  OfModel traits{.locality = placement_->locality_of(request, model), .bus_milli = 0};
  if (buses_ == nullptr) return traits;
  const Profile& profile = (*buses_)[buses_->find(model).value_or(ProfileSet::fallback())];
  traits.bus_milli = static_cast<std::int32_t>(std::lround(profile.bus * 1000));
  return traits;
}

ShapeId ShapeMaker::shape_of(const JobRequest& request, ShapeTable& shapes) {
  const std::uint64_t model_and_gpus =
      (std::uint64_t{request.model.value} << 32U) | static_cast<std::uint32_t>(request.gpus);
  const auto [model, is_new] = of_model_.try_emplace(model_and_gpus);
  if (is_new) model->second = traits_of(request);
  const bool fraction = placement_->places_fractions() && request.gpus == 1;
  const bool is_beside = cores_beside_ && request.gpu_milli == 0;
  const Key key{.gpus = request.gpus,
                .gpu_milli = fraction || request.gpu_milli == 0 ? request.gpu_milli : 1000,
                .cpus_milli = limits_cpus_ || is_beside ? request.cpus_milli : 0,
                .memory_mib = limits_memory_ || is_beside ? request.memory_mib : 0,
                .types = request.gpu_type,
                .locality = model->second.locality,
                .bus_milli = model->second.bus_milli};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const std::string_view types = trace_->text(request.gpu_type);
  Shape shape;
  shape.gpus = key.gpus;
  shape.gpu_milli = key.gpu_milli;
  shape.cpus_milli_per_gpu = per_gpu(key.cpus_milli, key.gpus);
  shape.memory_mib_per_gpu = per_gpu(key.memory_mib, key.gpus);
  shape.locality = key.locality;
  shape.bus_milli = key.bus_milli;
  shape.pools = acceptable_pools(types);
  const std::size_t size = shapes.size();
  const ShapeId id = shapes.intern(shape);
  if (shapes.size() > size) shapes.set_never_reason(id, why_never(shape));
  known_.emplace(key, id);
  return id;
}

std::string ShapeMaker::why_never(const JobRequest& request, ShapeId shape,
                                  const ShapeTable& shapes) const {
  const std::string& reason = shapes.never_reason(shape);
  if (reason != kUnknownType) return reason;
  return fmt::format("asks for device type '{}', which this cluster does not have",
                     trace_->text(request.gpu_type));
}

bool ShapeMaker::has_room_without_device(const Shape& shape) const {
  const auto& nodes = empty_->cluster().nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    if (std::ranges::find(shape.pools, nodes[i].pool) != shape.pools.end() &&
        empty_->has_room_without_device(NodeId{i}, shape))
      return true;
  }
  return false;
}

std::string ShapeMaker::why_never(const Shape& shape) const {
  const bool is_beside = cores_beside_ && shape.gpu_milli == 0;
  if (is_beside && has_room_without_device(shape)) return {};
  if (shape.gpu_milli == 0 && !placement_->places_fractions() && !is_beside)
    return "asks for no GPU: only placements for fractions of one take such jobs";
  if (shape.pools.empty()) return std::string(kUnknownType);
  if (is_beside)
    return fmt::format("needs {:.1f} cores and {:.1f} GiB without a GPU: no node gives that",
                       shape.cpus_milli_per_gpu / 1000.0, shape.memory_mib_per_gpu / 1024.0);
  Rng rng{1};
  std::vector<Slice> slices;
  std::int64_t most = 0;
  for (const PoolId pool : shape.pools) {
    most = std::max(most, empty_->usable_gpus(pool));
    if (empty_->usable_gpus(pool) < shape.gpus) continue;
    slices.clear();
    const bool fits = empty_->mode() == ClusterState::Mode::Count
                          ? empty_->has_side_room(pool, shape)
                          : placement_->place(*empty_, shape, pool, rng, slices);
    if (fits) return {};
  }
  if (most < shape.gpus) {
    return fmt::format("needs {} GPUs of one type, the cluster has at most {}", shape.gpus, most);
  }
  if (shape.gpu_milli == 0) {
    return fmt::format("needs {:.1f} cores and {:.1f} GiB without a GPU: no node gives that",
                       shape.cpus_milli_per_gpu / 1000.0, shape.memory_mib_per_gpu / 1024.0);
  }
  return fmt::format(
      "needs {} GPUs with {:.1f} cores and {:.1f} GiB each: no set of nodes has that", shape.gpus,
      shape.cpus_milli_per_gpu / 1000.0, shape.memory_mib_per_gpu / 1024.0);
}

}  // namespace berth
