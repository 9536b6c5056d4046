// Which server a Gandiva job lives on. Every server has an affinity: the class (GPUs rounded up to
// a power of two) of its first job, kept until it is empty. A unit is what jobs live on: one
// server, or, for a gang larger than any server, a set of whole servers that acts like one big
// server. `alloc` counts the requested GPUs of all residents, running or suspended; the height of a
// unit is alloc over its GPUs, rounded up, and above 1 its residents take turns.
//
// Placement of a job, ties to the lower unit id:
//   SameClass      same affinity, fits beside the residents, least alloc
//   Empty          an empty server (the smallest that is large enough), or a set of empty servers
//   Relaxed        a server of any affinity that has room, least alloc; never a set, which is whole
//   Oversubscribe  same affinity, height after adding at most max_height, least alloc
// Bookkeeping only: who runs is the ring's business. Every call is O(log n) in the servers of a
// pool for each distinct server size (few), plus the servers of a set.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

#include "base/id.h"

namespace berth::gandiva {

using UnitId = Id<struct GandivaUnitTag>;

/// GPUs rounded up to a power of two; 0 stands for "no affinity yet".
using AffinityClass = std::uint32_t;
[[nodiscard]] AffinityClass class_of(std::int32_t gpus) noexcept;

enum class Step : std::uint8_t { SameClass, Empty, Relaxed, Oversubscribe };
inline constexpr std::array<Step, 4> kSteps{Step::SameClass, Step::Empty, Step::Relaxed,
                                            Step::Oversubscribe};

struct Demand {
  std::int32_t gpus = 1;
  std::int64_t memory_mib = 0;  // of host memory while suspended
};

struct ServerLimits {
  std::int32_t max_height = 2;       // 0 = no limit
  std::int64_t host_memory_mib = 0;  // of a unit, for suspended jobs; 0 = no limit
};

class Servers {
 public:
  struct Unit {
    std::vector<NodeId> nodes;
    std::int32_t gpus = 0;
    std::int32_t alloc = 0;
    std::int64_t memory_mib = 0;
    AffinityClass affinity = 0;
    bool in_use = false;  // a server that is up and in no set, or a set
    [[nodiscard]] std::int32_t height() const noexcept {
      return gpus == 0 ? 0 : (alloc + gpus - 1) / gpus;
    }
    [[nodiscard]] std::int32_t free() const noexcept { return gpus > alloc ? gpus - alloc : 0; }
    [[nodiscard]] bool is_set() const noexcept { return nodes.size() > 1; }
  };
  struct ClassLoad {
    std::int64_t gpus = 0;   // of the units of this affinity
    std::int64_t alloc = 0;  // of their residents
    std::int32_t units = 0;
  };

  explicit Servers(const ServerLimits& limits) : limits_(limits) {}

  /// A server that is up and empty; its unit is the same each time it comes back.
  void add_server(NodeId node, std::int32_t gpus);
  /// The unit must be empty: its residents were removed before.
  void remove_server(UnitId server);

  /// Takes the job in by this step alone, or declines.
  [[nodiscard]] std::optional<UnitId> try_place(Step step, const Demand& demand);
  /// A resident of another unit comes here, whatever the limits.
  void add(UnitId unit, const Demand& demand);
  /// A resident leaves. An empty unit loses its affinity; an empty set becomes single servers.
  void remove(UnitId unit, const Demand& demand);

  [[nodiscard]] const Unit& operator[](UnitId unit) const noexcept { return units_[unit]; }
  [[nodiscard]] std::size_t size() const noexcept { return units_.size(); }
  [[nodiscard]] bool fits(UnitId unit, const Demand& demand) const noexcept;
  [[nodiscard]] std::optional<UnitId> unit_of(NodeId node) const;

  /// The unit of the class with the greatest height, then most alloc, then lowest id.
  [[nodiscard]] std::optional<UnitId> highest(AffinityClass affinity) const;
  /// The unit of the class with the least alloc.
  [[nodiscard]] std::optional<UnitId> least_loaded(AffinityClass affinity) const;
  [[nodiscard]] const std::map<AffinityClass, ClassLoad>& classes() const noexcept {
    return classes_;
  }
  [[nodiscard]] std::int64_t gpus() const noexcept { return gpus_; }
  /// Servers with residents and exactly this many free GPUs, lowest id first.
  [[nodiscard]] const std::set<UnitId>& with_free(std::int32_t free) const;
  [[nodiscard]] std::int32_t largest_server() const noexcept { return largest_; }
  /// Appends the servers with residents of whose GPUs at least this share is free.
  void append_loose(double share, std::vector<UnitId>& servers) const;

 private:
  using ByAlloc = std::set<std::pair<std::int32_t, UnitId>>;
  using ByClass = std::map<std::pair<AffinityClass, std::int32_t>, ByAlloc>;  // and unit size
  void index(UnitId unit);
  void unindex(UnitId unit);
  void change_alloc(UnitId unit, const Demand& demand, std::int32_t sign);
  [[nodiscard]] bool may_oversubscribe(const Unit& unit, const Demand& demand) const noexcept;
  [[nodiscard]] std::optional<UnitId> find(Step step, const Demand& demand);
  [[nodiscard]] std::ranges::subrange<ByClass::const_iterator> of_class(
      AffinityClass affinity) const;
  [[nodiscard]] std::optional<UnitId> find_same_class(const Demand& demand) const;
  [[nodiscard]] std::optional<UnitId> find_relaxed(const Demand& demand) const;
  [[nodiscard]] std::optional<UnitId> find_oversubscribed(const Demand& demand) const;
  [[nodiscard]] std::optional<UnitId> find_empty(std::int32_t gpus);
  [[nodiscard]] std::optional<UnitId> form_set(std::int32_t gpus);
  void dissolve(UnitId set);

  ServerLimits limits_;
  Column<UnitId, Unit> units_;
  std::map<NodeId, UnitId> server_of_;  // the single unit of a node
  std::map<NodeId, UnitId> set_of_;     // the set it is in, if any
  std::vector<UnitId> spare_sets_;      // ids of dissolved sets, reused lowest last
  ByClass by_class_;
  std::map<std::int32_t, ByAlloc> singles_;         // with residents, by size
  std::map<std::int32_t, std::set<UnitId>> empty_;  // by size
  std::vector<std::set<UnitId>> by_free_;           // singles with residents
  std::map<AffinityClass, ClassLoad> classes_;
  std::int64_t gpus_ = 0;
  std::int32_t largest_ = 0;
};

}  // namespace berth::gandiva
