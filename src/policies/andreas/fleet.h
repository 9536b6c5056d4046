// The cluster and its jobs in the terms of ANDREAS: equal nodes form types with a price, and all
// jobs of a kind share one list of choices, made once from the believed rates.
//
// A job uses GPUs of one node. One that asks for more than any node can give it is a gang of fixed
// size over whole nodes of one pool.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/view.h"
#include "policies/andreas/instance.h"
#include "policies/common/elastic.h"
#include "policies/kit/memo.h"

namespace berth::andreas {

struct Tariff {
  double price = 0.172;  // EUR per kWh
  double pue = 1.2;      // what the building draws for every watt of a node
};

class Fleet {
 public:
  Fleet(const Tariff& tariff, const ElasticRule& elastic) : tariff_(tariff), elastic_(elastic) {}

  void begin(const Cluster& cluster);
  [[nodiscard]] const std::vector<NodeType>& types() const noexcept { return types_; }
  /// By type, then id.
  [[nodiscard]] const std::vector<NodeId>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] std::uint32_t type_of(NodeId node) const noexcept { return type_of_[node]; }
  [[nodiscard]] PoolId pool_of(std::uint32_t type) const noexcept {
    return PoolId{types_[type].pool};
  }
  /// Stays where it is for as long as the fleet; empty for a job without GPUs.
  [[nodiscard]] const ChoiceList& choices(const View& view, JobId job);
  /// Of a job that another policy has put on these: the choice that says so. If it has none, as it
  /// stands across servers where one would do, that is its only one from now on.
  [[nodiscard]] std::uint32_t choice_found(const View& view, JobId job,
                                           std::span<const Slice> slices);

 private:
  [[nodiscard]] ChoiceList make_choices(const View& view, JobId job) const;
  void add_sizes(const View& view, JobId job, std::uint32_t type,
                 std::vector<Choice>& choices) const;
  void add_gang(const View& view, JobId job, PoolId pool, std::vector<Choice>& choices) const;
  [[nodiscard]] std::int32_t room(std::uint32_t type, const Shape& shape) const noexcept;

  Tariff tariff_;
  ElasticRule elastic_;
  std::vector<NodeType> types_;
  std::vector<NodeId> nodes_;
  Column<NodeId, std::uint32_t> type_of_;
  std::vector<berth::Node> models_;  // by type: one of its nodes
  Memo<KindId, ChoiceList> lists_;
  std::unordered_map<JobId, ChoiceList> found_;  // of those found spread out; lookup only
};

}  // namespace berth::andreas
