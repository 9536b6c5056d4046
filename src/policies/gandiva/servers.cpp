#include "policies/gandiva/servers.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/check.h"

namespace berth::gandiva {

AffinityClass class_of(std::int32_t gpus) noexcept {
  return std::bit_ceil(static_cast<AffinityClass>(std::max(gpus, 1)));
}

void Servers::add_server(NodeId node, std::int32_t gpus) {
  const auto [entry, is_new] =
      server_of_.try_emplace(node, UnitId{static_cast<std::uint32_t>(units_.size())});
  const UnitId id = entry->second;
  if (is_new) units_.push_back({.nodes = {node}, .gpus = gpus});
  BERTH_CHECK(!units_[id].in_use, "a server comes up once");
  units_[id].in_use = true;
  largest_ = std::max(largest_, gpus);
  if (by_free_.size() <= static_cast<std::size_t>(gpus))
    by_free_.resize(static_cast<std::size_t>(gpus) + 1);
  gpus_ += gpus;
  index(id);
}

void Servers::remove_server(UnitId server) {
  Unit& unit = units_[server];
  BERTH_CHECK(unit.in_use && unit.alloc == 0 && !unit.is_set(), "only an empty server goes away");
  unindex(server);
  unit.in_use = false;
  unit.affinity = 0;
  gpus_ -= unit.gpus;
}

/// Enters the unit in every index that its state asks for; unindex() is its mirror.
void Servers::index(UnitId id) {
  const Unit& unit = units_[id];
  if (unit.affinity == 0) {
    empty_[unit.gpus].insert(id);
    return;
  }
  by_class_[{unit.affinity, unit.gpus}].insert({unit.alloc, id});
  ClassLoad& load = classes_[unit.affinity];
  load.gpus += unit.gpus;
  load.alloc += unit.alloc;
  ++load.units;
  if (unit.is_set()) return;
  singles_[unit.gpus].insert({unit.alloc, id});
  by_free_[static_cast<std::size_t>(unit.free())].insert(id);
}

void Servers::unindex(UnitId id) {
  const Unit& unit = units_[id];
  if (unit.affinity == 0) {
    empty_[unit.gpus].erase(id);
    return;
  }
  by_class_[{unit.affinity, unit.gpus}].erase({unit.alloc, id});
  const auto load = classes_.find(unit.affinity);
  load->second.gpus -= unit.gpus;
  load->second.alloc -= unit.alloc;
  if (--load->second.units == 0) classes_.erase(load);
  if (unit.is_set()) return;
  singles_[unit.gpus].erase({unit.alloc, id});
  by_free_[static_cast<std::size_t>(unit.free())].erase(id);
}

void Servers::change_alloc(UnitId id, const Demand& demand, std::int32_t sign) {
  unindex(id);
  Unit& unit = units_[id];
  unit.alloc += sign * demand.gpus;
  unit.memory_mib += sign * demand.memory_mib;
  BERTH_CHECK(unit.alloc >= 0, "nobody leaves a unit he is not in");
  if (unit.alloc == 0) unit.affinity = 0;
  if (unit.alloc > 0 && unit.affinity == 0) unit.affinity = class_of(demand.gpus);
  index(id);
}

void Servers::add(UnitId unit, const Demand& demand) { change_alloc(unit, demand, 1); }

void Servers::remove(UnitId unit, const Demand& demand) {
  change_alloc(unit, demand, -1);
  if (units_[unit].alloc == 0 && units_[unit].is_set()) dissolve(unit);
}

std::optional<UnitId> Servers::try_place(Step step, const Demand& demand) {
  const auto unit = find(step, demand);
  if (unit) add(*unit, demand);
  return unit;
}

std::optional<UnitId> Servers::find(Step step, const Demand& demand) {
  switch (step) {
    case Step::SameClass: return find_same_class(demand);
    case Step::Empty: return find_empty(demand.gpus);
    case Step::Relaxed: return find_relaxed(demand);
    case Step::Oversubscribe: break;
  }
  return find_oversubscribed(demand);
}

bool Servers::fits(UnitId id, const Demand& demand) const noexcept {
  const Unit& unit = units_[id];
  return unit.in_use && unit.alloc + demand.gpus <= unit.gpus;
}

bool Servers::may_oversubscribe(const Unit& unit, const Demand& demand) const noexcept {
  if (demand.gpus > unit.gpus) return false;
  if (limits_.max_height > 0 && unit.alloc + demand.gpus > limits_.max_height * unit.gpus)
    return false;
  return limits_.host_memory_mib == 0 ||
         unit.memory_mib + demand.memory_mib <= limits_.host_memory_mib;
}

namespace {

using Candidate = std::optional<std::pair<std::int32_t, UnitId>>;

void keep_less(Candidate& best, const std::pair<std::int32_t, UnitId>& other) {
  if (!best || other < *best) best = other;
}

std::optional<UnitId> unit_in(const Candidate& best) {
  return best ? std::optional{best->second} : std::nullopt;
}

}  // namespace

/// Its units by their size: few sizes.
std::ranges::subrange<Servers::ByClass::const_iterator> Servers::of_class(
    AffinityClass affinity) const {
  return {by_class_.lower_bound({affinity, 0}), by_class_.lower_bound({affinity + 1, 0})};
}

std::optional<UnitId> Servers::find_same_class(const Demand& demand) const {
  Candidate best;
  for (const auto& [key, units] : of_class(class_of(demand.gpus))) {
    if (units.empty() || units.begin()->first + demand.gpus > key.second) continue;
    keep_less(best, *units.begin());
  }
  return unit_in(best);
}

std::optional<UnitId> Servers::find_relaxed(const Demand& demand) const {
  Candidate best;
  for (const auto& [gpus, units] : singles_) {
    if (units.empty() || units.begin()->first + demand.gpus > gpus) continue;
    keep_less(best, *units.begin());
  }
  return unit_in(best);
}

std::optional<UnitId> Servers::find_oversubscribed(const Demand& demand) const {
  Candidate best;
  for (const auto& [key, units] : of_class(class_of(demand.gpus))) {
    for (const auto& entry : units) {  // only host memory makes it look past the first
      if (may_oversubscribe(units_[entry.second], demand)) {
        keep_less(best, entry);
        break;
      }
      if (limits_.host_memory_mib == 0) break;
    }
  }
  return unit_in(best);
}

std::optional<UnitId> Servers::find_empty(std::int32_t gpus) {
  if (gpus > largest_) return form_set(gpus);
  for (auto it = empty_.lower_bound(gpus); it != empty_.end(); ++it) {
    if (!it->second.empty()) return *it->second.begin();
  }
  return std::nullopt;
}

/// The largest empty servers first, so that the set is as small as possible.
std::optional<UnitId> Servers::form_set(std::int32_t gpus) {
  std::vector<UnitId> members;
  std::int32_t total = 0;
  for (auto sizes = empty_.rbegin(); sizes != empty_.rend() && total < gpus; ++sizes) {
    for (const UnitId server : sizes->second) {
      if (total >= gpus) break;
      members.push_back(server);
      total += sizes->first;
    }
  }
  if (total < gpus) return std::nullopt;
  if (spare_sets_.empty()) {
    spare_sets_.push_back(UnitId{static_cast<std::uint32_t>(units_.size())});
    units_.push_back({});
  }
  const UnitId id = spare_sets_.back();
  spare_sets_.pop_back();
  Unit set{.nodes = {}, .gpus = total, .in_use = true};
  for (const UnitId server : members) {
    unindex(server);
    units_[server].in_use = false;
    set.nodes.push_back(units_[server].nodes.front());
    set_of_[set.nodes.back()] = id;
  }
  units_[id] = std::move(set);
  index(id);
  return id;
}

void Servers::dissolve(UnitId id) {
  unindex(id);
  Unit& set = units_[id];
  for (const NodeId node : set.nodes) {
    set_of_.erase(node);
    const UnitId server = server_of_.at(node);
    units_[server].in_use = true;
    index(server);
  }
  set = Unit{};
  spare_sets_.push_back(id);
}

std::optional<UnitId> Servers::unit_of(NodeId node) const {
  if (const auto set = set_of_.find(node); set != set_of_.end()) return set->second;
  const auto server = server_of_.find(node);
  if (server == server_of_.end() || !units_[server->second].in_use) return std::nullopt;
  return server->second;
}

std::optional<UnitId> Servers::highest(AffinityClass affinity) const {
  std::optional<UnitId> best;
  const auto load = [&](UnitId id) {
    const Unit& unit = units_[id];
    return std::tuple(-unit.height(), -unit.alloc, id);
  };
  for (const auto& [key, units] : of_class(affinity)) {
    if (units.empty()) continue;
    const std::int32_t most = units.rbegin()->first;
    const UnitId id = units.lower_bound({most, UnitId{0}})->second;
    if (!best || load(id) < load(*best)) best = id;
  }
  return best;
}

std::optional<UnitId> Servers::least_loaded(AffinityClass affinity) const {
  Candidate best;
  for (const auto& [key, units] : of_class(affinity))
    if (!units.empty()) keep_less(best, *units.begin());
  return unit_in(best);
}

void Servers::append_loose(double share, std::vector<UnitId>& servers) const {
  for (const auto& [gpus, units] : singles_) {
    for (const auto& [alloc, id] : units) {
      if (units_[id].free() < share * gpus) break;  // the rest of this size is fuller
      servers.push_back(id);
    }
  }
}

const std::set<UnitId>& Servers::with_free(std::int32_t free) const {
  static const std::set<UnitId> kNone;
  const auto at = static_cast<std::size_t>(free);
  return at < by_free_.size() ? by_free_[at] : kNone;
}

}  // namespace berth::gandiva
