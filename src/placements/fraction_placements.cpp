#include "placements/fraction_placements.h"

#include <algorithm>
#include <array>
#include <limits>

#include "placements/fgd.h"
#include "placements/fraction_rules.h"
#include "placements/node_picker.h"

namespace berth {

namespace {

struct RuleName {
  std::string_view name;
  std::optional<FractionRule> rule;  // none: fgd
};
constexpr std::array<RuleName, 6> kRules{{{"fgd", std::nullopt},
                                          {"fraction-best-fit", FractionRule::BestFit},
                                          {"fraction-random", FractionRule::RandomFit},
                                          {"dot-product", FractionRule::DotProduct},
                                          {"gpu-packing", FractionRule::GpuPacking},
                                          {"gpu-clustering", FractionRule::GpuClustering}}};

NodeDemand demand_of(const Shape& shape) {
  return {.cpus_milli = std::int64_t{shape.gpus} * shape.cpus_milli_per_gpu,
          .memory_mib = std::int64_t{shape.gpus} * shape.memory_mib_per_gpu,
          .gpus = shape.gpu_milli == 0 ? 0 : shape.gpus,
          .gpu_milli = shape.gpu_milli,
          .pools = shape.pools};
}

/// The nodes of a run as the rules know them.
class Mirror {
 public:
  explicit Mirror(const Cluster& cluster)
      : rooms_(std::max(1, cluster.largest_node())), sizes_(cluster.nodes.size()) {
    constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
    for (const Node& node : cluster.nodes) {
      rooms_.add(node.pool, node.gpus, node.cpus_milli > 0 ? node.cpus_milli : kUnlimited,
                 node.memory_mib > 0 ? node.memory_mib : kUnlimited);
    }
  }
  [[nodiscard]] const NodeRooms& rooms() const noexcept { return rooms_; }
  [[nodiscard]] const TaskSizes& sizes() const noexcept { return sizes_; }

  enum class Sizes : std::uint8_t { Ignored, Wanted };
  /// Looks at what changed since the last call with this state, at everything if that is not known.
  void update(const ClusterState& state, Sizes sizes) {
    const ChangeLog* log = state.changes();
    const auto changed = log != nullptr && followed_ == log ? log->since(seen_) : std::nullopt;
    if (changed) {
      for (const NodeId node : *changed) look_at(state, node, sizes);
    } else {
      for (std::uint32_t i = 0; i < rooms_.size(); ++i) look_at(state, NodeId{i}, sizes);
    }
    followed_ = log;
    seen_ = log != nullptr ? log->position() : 0;
  }

 private:
  void look_at(const ClusterState& state, NodeId node, Sizes sizes) {
    const std::uint32_t version = rooms_[node].version;
    read(state, node);
    if (sizes == Sizes::Wanted && rooms_[node].version != version) count_sizes(state, node);
  }

  void read(const ClusterState& state, NodeId node) {
    std::array<std::uint16_t, kMaxGpusPerNode> free;
    const auto gpus = static_cast<std::size_t>(rooms_[node].gpus);
    const bool up = state.is_up(node);
    const std::uint64_t mask = state.free_mask(node);
    for (std::size_t device = 0; device < gpus; ++device) {
      std::int32_t milli = ((mask >> device) & 1U) != 0 ? kWholeDevice : 0;
      if (up && milli == 0 && state.tracks_devices())
        milli = state.free_milli(node, static_cast<std::int32_t>(device));
      free[device] = static_cast<std::uint16_t>(milli);
    }
    rooms_.set(node, up ? state.free_cpus_milli(node) : 0, up ? state.free_memory_mib(node) : 0,
               {free.data(), gpus});
  }

  /// From who is on which device: a whole job's size is the number of devices it is on. Of
  /// fractions on one device only the sum is known: they count as equal.
  void count_sizes(const ClusterState& state, NodeId node) {
    sizes_.clear(node);
    if (!state.tracks_devices()) return;
    here_.clear();
    for (std::int32_t device = 0; device < rooms_[node].gpus; ++device) {
      const auto jobs = state.jobs_on(node, device);
      const std::int32_t taken = kWholeDevice - rooms_.free(node)[static_cast<std::size_t>(device)];
      if (jobs.empty()) continue;
      if (taken < kWholeDevice || jobs.size() > 1) {
        const auto each = taken / static_cast<std::int32_t>(jobs.size());
        sizes_.add(node, {.gpus = 1, .gpu_milli = each});
      } else {
        here_.push_back(jobs.front());
      }
    }
    std::ranges::sort(here_);
    for (std::size_t begin = 0; begin < here_.size();) {
      std::size_t end = begin;
      while (end < here_.size() && here_[end] == here_[begin]) ++end;
      sizes_.add(node, {.gpus = static_cast<std::int32_t>(end - begin)});
      begin = end;
    }
  }

  NodeRooms rooms_;
  TaskSizes sizes_;
  const ChangeLog* followed_ = nullptr;  // of the last call; compared, never read
  std::uint64_t seen_ = 0;
  std::vector<JobId> here_;  // scratch
};

/// The shapes placed so far, and when to look at them again.
class PlacedHistory {
 public:
  void add(const NodeDemand& demand) {
    history_.add(demand);
    ++placed_;
  }
  [[nodiscard]] bool has_grown() const noexcept { return placed_ >= next_; }
  [[nodiscard]] TargetWorkload target(std::size_t pools) {
    next_ = placed_ + std::max<std::int64_t>(32, placed_ / 10);
    return TargetWorkload{history_.typical(), pools};
  }

 private:
  WorkloadHistory history_;
  std::int64_t placed_ = 0;
  std::int64_t next_ = 1;
};

class FractionPlacement final : public Placement {
 public:
  explicit FractionPlacement(const RuleName& rule) : rule_(rule) {}
  [[nodiscard]] std::string_view name() const noexcept override { return rule_.name; }
  [[nodiscard]] bool places_fractions() const noexcept override { return true; }
  [[nodiscard]] bool wants_changes() const noexcept override { return true; }
  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng& rng,
                           std::vector<Slice>& slices) override {
    return place_among(state, shape, {pool}, rng, slices).has_value();
  }
  [[nodiscard]] std::optional<PoolId> place_in_any(const ClusterState& state, const Shape& shape,
                                                   Rng& rng, std::vector<Slice>& slices) override {
    return place_among(state, shape, shape.pools, rng, slices);
  }

 private:
  std::optional<PoolId> place_among(const ClusterState& state, const Shape& shape,
                                    const std::vector<PoolId>& pools, Rng& rng,
                                    std::vector<Slice>& slices) {
    meet(state.cluster());
    const bool clusters = rule_.rule == FractionRule::GpuClustering;
    mirror_->update(state, clusters ? Mirror::Sizes::Wanted : Mirror::Sizes::Ignored);
    NodeDemand demand = demand_of(shape);
    demand.pools = pools;
    if (const auto choice = choose(demand, state.pools(), rng)) {
      // A look ahead, on a state that nobody follows, is not what usually runs here.
      if (state.changes() != nullptr) remember(shape, state.pools());
      slices.push_back({.node = choice->node, .gpus = demand.gpus, .devices = choice->devices});
      return state.cluster().nodes[choice->node.value].pool;
    }
    if (shape.is_fraction()) return std::nullopt;
    for (const PoolId pool : pools) {
      slices.clear();
      if (fewest_nodes(state, shape, pool, std::nullopt, slices)) return pool;
    }
    return std::nullopt;
  }
  /// A placement serves one cluster at a time.
  void meet(const Cluster& cluster) {
    if (cluster_ == &cluster) return;
    cluster_ = &cluster;
    index_.reset();
    placer_.reset();
    mirror_ = std::make_unique<Mirror>(cluster);
    if (rule_.rule) placer_.emplace(*rule_.rule, mirror_->rooms(), mirror_->sizes());
  }
  std::optional<NodeChoice> choose(const NodeDemand& demand, std::size_t pools, Rng& rng) {
    if (rule_.rule) return placer_->choose(demand, rng);
    if (!index_) index_.emplace(mirror_->rooms(), TargetWorkload{{{demand, 1}}, pools});
    return index_->choose(demand);
  }
  void remember(const Shape& shape, std::size_t pools) {
    if (!index_) return;
    history_.add(demand_of(shape));
    if (history_.has_grown()) index_->set_target(history_.target(pools));
  }

  RuleName rule_;
  const Cluster* cluster_ = nullptr;
  std::unique_ptr<Mirror> mirror_;
  std::optional<FragmentationIndex> index_;
  std::optional<FractionPlacer> placer_;
  PlacedHistory history_;
};

}  // namespace

std::unique_ptr<Placement> make_fraction_placement(std::string_view name) {
  const auto rule = std::ranges::find(kRules, name, &RuleName::name);
  if (rule == kRules.end()) return nullptr;
  return std::make_unique<FractionPlacement>(*rule);
}

}  // namespace berth
