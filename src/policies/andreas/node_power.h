// Which nodes are on: those with a seat; those without one go off when they have been idle for long
// enough. Remembers when a node it switched on will have booted.
#pragma once

#include <span>

#include "policies/andreas/seats.h"
#include "policies/kit/pass.h"

namespace berth::andreas {

class NodePower {
 public:
  NodePower(Duration boot, Duration idle_off) : boot_(boot), idle_off_(idle_off) {}
  void begin(std::size_t nodes) { booted_ = Column<NodeId, Time>(nodes, kTimeZero); }

  /// Time until the node takes jobs.
  [[nodiscard]] Duration until_ready(const View& view, NodeId node) const;
  /// Switches `nodes` on and off. `spare`: somebody waits for any node that is up, so none goes
  /// off.
  enum class Spare : std::uint8_t { SwitchOff, Keep };
  void switch_nodes(Pass& pass, std::span<const NodeId> nodes, Seats& seats, Spare spare);
  /// Switches one of them on, unless one boots already.
  static void boot_any(Plan& plan, std::span<const NodeId> nodes);
  /// When some idle node is to be switched off.
  [[nodiscard]] Time next_switch() const noexcept { return next_switch_; }

 private:
  Duration boot_;
  Duration idle_off_;
  Column<NodeId, Time> booted_;  // when its boot ends
  Time next_switch_ = kNever;
};

}  // namespace berth::andreas
