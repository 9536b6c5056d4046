// What a ClusterState keeps beside its counts only in a run where somebody asks for it: the
// topology index, the index of shareable slots, the bus table and the log of changes. Runs without
// them pay one test per change. ClusterState tells of every change of what is free; nobody else
// writes here.
#pragma once

#include <memory>
#include <optional>

#include "base/id.h"
#include "core/bus_table.h"
#include "core/change_log.h"
#include "core/slot_index.h"
#include "core/topology_index.h"

namespace berth {

class KeptIndices {
 public:
  void keep_topology(const std::shared_ptr<const Topology>& tree) { topology_.emplace(tree); }
  void keep_slots(const std::shared_ptr<const Topology>& tree) { slots_.emplace(tree); }
  void keep_buses(std::size_t nodes) { buses_.emplace(nodes); }
  void keep_changes() { changes_.log.emplace(); }

  /// Nothing unless it is kept.
  [[nodiscard]] const TopologyIndex* topology() const noexcept { return get(topology_); }
  [[nodiscard]] const SlotIndex* slots() const noexcept { return get(slots_); }
  [[nodiscard]] const BusTable* buses() const noexcept { return get(buses_); }
  [[nodiscard]] const ChangeLog* changes() const noexcept { return get(changes_.log); }

  void set_free(NodeId node, std::uint64_t devices) {
    if (topology_) topology_->set_free(node, devices);
    if (changes_.log) changes_.log->note(node);
  }
  /// Only if slots are kept.
  void set_free_slots(NodeId node, std::int32_t device, std::int32_t slots) {
    slots_->set_free(node, device, slots);
  }
  void enter(NodeId node, JobId job, std::int32_t bus_milli) {
    if (buses_) buses_->enter(node, {job, bus_milli});
  }
  void leave(NodeId node, JobId job) {
    if (buses_) buses_->leave(node, job);
  }

 private:
  /// A log that stays with its state: whoever follows it must not take a copy's changes for its
  /// own.
  struct OwnLog {
    OwnLog() = default;
    OwnLog(const OwnLog&) noexcept {}
    OwnLog& operator=(const OwnLog&) noexcept {
      log.reset();
      return *this;
    }
    std::optional<ChangeLog> log;
  };
  template <class T>
  [[nodiscard]] static const T* get(const std::optional<T>& kept) noexcept {
    return kept ? &*kept : nullptr;
  }

  std::optional<TopologyIndex> topology_;
  std::optional<SlotIndex> slots_;
  std::optional<BusTable> buses_;
  OwnLog changes_;
};

}  // namespace berth
