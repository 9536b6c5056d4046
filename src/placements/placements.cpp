#include "placements/placements.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include <fmt/format.h>

#include "base/suggest.h"
#include "perf/rate.h"
#include "placements/fraction_placements.h"
#include "placements/node_picker.h"
#include "placements/topology.h"

namespace berth {

namespace {

bool one_node(const ClusterState& state, const Shape& shape, std::optional<NodeId> node,
              std::vector<Slice>& slices) {
  if (!node) return false;
  slices.push_back(slice_of(state, *node, shape.gpus));
  return true;
}

/// One node with the smallest rest, else the fewest nodes, inside one rack where that needs no
/// more.
bool best_fit(const ClusterState& state, const Shape& shape, PoolId pool,
              std::vector<Slice>& slices) {
  if (one_node(state, shape, best_fit_node(state, shape, pool, shape.gpus), slices)) return true;
  if (state.racks() > 1) {
    if (const auto rack = best_fit_rack(state, shape, pool)) {
      if (fewest_nodes(state, shape, pool, rack, slices)) return true;
      slices.clear();
    }
  }
  return fewest_nodes(state, shape, pool, std::nullopt, slices);
}

bool consolidated(const ClusterState& state, const Shape& shape, PoolId pool,
                  std::vector<Slice>& slices) {
  const bool placed = best_fit(state, shape, pool, slices);
  if (placed && slices.size() == 1) return true;  // no need to ask how few could ever do
  const auto fewest = static_cast<std::size_t>(fewest_possible(state, shape, pool));
  if (placed && slices.size() <= fewest) return true;
  if (state.racks() <= 1) return false;
  slices.clear();  // the tightest rack was not enough: the cluster as a whole may be
  return fewest_nodes(state, shape, pool, std::nullopt, slices) && slices.size() <= fewest;
}

class Count final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "count"; }
  [[nodiscard]] ClusterState::Mode mode() const noexcept override {
    return ClusterState::Mode::Count;
  }
  [[nodiscard]] bool place(const ClusterState&, const Shape&, PoolId, Rng&,
                           std::vector<Slice>&) override {
    return true;
  }
};

class FirstFit final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "first-fit"; }
  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng&,
                           std::vector<Slice>& slices) override {
    if (one_node(state, shape, first_fit_node(state, shape, pool), slices)) return true;
    std::int32_t need = shape.gpus;
    for (std::uint32_t i = 0; i < state.cluster().nodes.size() && need > 0; ++i) {
      if (state.cluster().nodes[i].pool != pool || !state.is_up(NodeId{i})) continue;
      const std::int32_t room = std::min(need, state.room_on(NodeId{i}, shape));
      if (room > 0) slices.push_back(slice_of(state, NodeId{i}, room));
      need -= std::max(0, room);
    }
    return need == 0;
  }
};

class BestFit final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "best-fit"; }
  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng&,
                           std::vector<Slice>& slices) override {
    return best_fit(state, shape, pool, slices);
  }
};

class Consolidated final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "consolidated"; }
  [[nodiscard]] bool waits_for_fewest_nodes() const noexcept override { return true; }
  [[nodiscard]] Locality locality_of(const JobRequest&, std::string_view) const override {
    return Locality::Consolidated;
  }
  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng&,
                           std::vector<Slice>& slices) override {
    return consolidated(state, shape, pool, slices);
  }
};

/// One device at a time from the node with the most room left: the levels are worked out by number
/// first.
class Spread final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "spread"; }
  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng&,
                           std::vector<Slice>& slices) override {
    rooms_.clear();
    std::int64_t room_in_all = 0;
    // As many nodes as devices are asked: no device can be spread further.
    const auto has_enough = [&] {
      return !shape.needs_side_resources() && std::ssize(rooms_) >= shape.gpus;
    };
    for (std::int32_t free = state.largest_node(pool); free > 0; --free) {
      for (const NodeId node : state.nodes_with(pool, free)) {
        if (has_enough()) break;
        const std::int32_t room = state.room_on(node, shape);
        if (room <= 0) continue;
        rooms_.push_back({node, room, 0});
        room_in_all += room;
      }
    }
    if (room_in_all < shape.gpus) return false;
    for (std::int32_t need = shape.gpus; need > 0;) {
      for (Taken& taken : rooms_) {
        if (need > 0 && taken.gpus < taken.room) {
          ++taken.gpus;
          --need;
        }
      }
    }
    for (const Taken& taken : rooms_) {
      if (taken.gpus > 0) slices.push_back(slice_of(state, taken.node, taken.gpus));
    }
    return true;
  }

 private:
  struct Taken {
    NodeId node;
    std::int32_t room;
    std::int32_t gpus;
  };
  std::vector<Taken> rooms_;  // scratch
};

class Random final : public Placement {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "random"; }
  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng& rng,
                           std::vector<Slice>& slices) override {
    if (one_node(state, shape, random_fit_node(state, shape, pool, rng), slices)) return true;
    nodes_.clear();
    for (std::int32_t free = 1; free <= state.largest_node(pool); ++free) {
      for (const NodeId node : state.nodes_with(pool, free)) nodes_.push_back(node);
    }
    // A shuffle that stops as soon as the gang has what it needs.
    std::int32_t need = shape.gpus;
    for (std::size_t left = nodes_.size(); left > 0 && need > 0; --left) {
      std::swap(nodes_[rng.below(left)], nodes_[left - 1]);
      const NodeId node = nodes_[left - 1];
      const std::int32_t room = std::min(need, state.room_on(node, shape));
      if (room > 0) slices.push_back(slice_of(state, node, room));
      need -= std::max(0, room);
    }
    return need == 0;
  }

 private:
  std::vector<NodeId> nodes_;  // scratch
};

class Skew final : public Placement {
 public:
  explicit Skew(double pack_limit) : pack_limit_(pack_limit) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "skew"; }
  [[nodiscard]] bool waits_for_fewest_nodes() const noexcept override { return true; }
  [[nodiscard]] Locality locality_of(const JobRequest&, std::string_view model) const override {
    return model_skew(model) > pack_limit_ ? Locality::Consolidated : Locality::Relaxed;
  }
  [[nodiscard]] bool place(const ClusterState& state, const Shape& shape, PoolId pool, Rng&,
                           std::vector<Slice>& slices) override {
    if (shape.locality == Locality::Consolidated) return consolidated(state, shape, pool, slices);
    if (one_node(state, shape, best_fit_node(state, shape, pool, shape.gpus), slices)) return true;
    return fullest_nodes(state, shape, pool, slices);
  }

 private:
  double pack_limit_;
};

bool read_limit(std::string_view text, double& limit) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), limit);
  const bool is_number = code == std::errc{} && end == text.data() + text.size() && !text.empty();
  return is_number && limit >= 0 && limit <= 1;
}

}  // namespace

std::vector<PlacementInfo> placements() {
  return {{"count", "totals only: GPUs are counted, nodes ignored"},
          {"first-fit", "lowest-numbered node that holds the job, else lowest-numbered nodes"},
          {"best-fit", "one node with the smallest rest, else the fewest nodes (default)"},
          {"consolidated", "best-fit that waits for the fewest nodes that could ever hold the job"},
          {"spread", "over as many nodes as possible, emptiest first"},
          {"random", "a random node that holds the job, else random nodes"},
          {"skew", "Tiresias: models with a skewed tensor are consolidated, the others fill holes"},
          {"topology",
           "lowest level of the topology tree with room; models hurt by spreading wait; "
           "topology:interference also parts disturbing neighbours"},
          {"fgd", "fractions too: where what the usual jobs cannot use grows least"},
          {"fraction-best-fit", "fractions too: least weighted rest of cores and GPUs"},
          {"fraction-random", "fractions too: any node and GPU that hold the job"},
          {"dot-product", "fractions too: least alignment of what is free with what is asked"},
          {"gpu-packing", "fractions too: GPUs in use first, then nodes in use"},
          {"gpu-clustering", "fractions too: jobs of one size together"}};
}

Result<std::unique_ptr<Placement>> make_placement(std::string_view text, PlacementOptions options) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Interference interference = Interference::Ignored;
  if (colon != std::string_view::npos) {
    const std::string_view knob = text.substr(colon + 1);
    const bool is_interference = name == "topology" && knob == "interference";
    if (!is_interference && !(name == "skew" && read_limit(knob, options.pack_limit)))
      return fail(
          fmt::format("--placement {}: only skew takes a number, from 0 to 1 (as in "
                      "skew:0.5), and only topology the word interference",
                      text));
    if (is_interference) interference = Interference::Avoided;
  }
  if (name == "count") return std::make_unique<Count>();
  if (name == "first-fit") return std::make_unique<FirstFit>();
  if (name == "best-fit") return std::make_unique<BestFit>();
  if (name == "consolidated") return std::make_unique<Consolidated>();
  if (name == "spread") return std::make_unique<Spread>();
  if (name == "random") return std::make_unique<Random>();
  if (name == "skew") return std::make_unique<Skew>(options.pack_limit);
  if (name == "topology") {
    return make_topology_placement(
        options.profiles ? options.profiles : std::make_shared<const ProfileSet>(), interference);
  }
  if (auto fractions = make_fraction_placement(name)) return fractions;
  std::vector<std::string> known;
  for (const PlacementInfo& info : placements()) known.push_back(info.name);
  return fail(
      fmt::format("--placement: no placement is called '{}'{}", name, suggestion(name, known)));
}

}  // namespace berth
