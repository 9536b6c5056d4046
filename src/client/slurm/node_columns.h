// The columns of sinfo. Queues are its partitions; all have all nodes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "client/answers.h"
#include "client/slurm/format.h"

namespace berth::client::slurm {

struct Partition {
  QueueView queue;
  bool is_default = false;
};
/// Mebibytes by node.
using NodeMemory = std::map<std::string, std::int64_t>;
/// Nodes that share a line; borrowed.
using NodeGroup = std::vector<const NodeView*>;

struct NodeItem {
  const Partition& partition;
  const NodeGroup& group;  // empty: nothing of the partition was asked for
  const NodeMemory& memory;
  const std::string& cluster;
  const std::string& version;
  [[nodiscard]] std::int64_t memory_used(const NodeView& node) const;
};

[[nodiscard]] std::span<const ColumnName> node_columns();
[[nodiscard]] std::string node_value(const NodeItem& item, std::size_t column);

/// "mix" or "mixed", "drain" or "drained".
enum class StateWord : bool { Short, Long };
/// Idle, in part or fully used; with devices by devices, otherwise by cores.
[[nodiscard]] std::string node_state(const NodeView& node, StateWord word);
/// All its devices or all its cores are taken.
[[nodiscard]] bool is_full(const NodeView& node);
/// The state and what is laid over it: MIXED and DRAIN.
[[nodiscard]] std::vector<std::string> state_words(const NodeView& node);
/// "gpu:a100:4"; without GPUs "(null)".
[[nodiscard]] std::string gres_of(const NodeView& node);
/// "gpu:a100:2(IDX:0-1)"
[[nodiscard]] std::string gres_used(const NodeView& node);

}  // namespace berth::client::slurm
