#include "daemon/live_abilities.h"

namespace berth {

namespace {

/// Only the code itself can do these, when it is told.
constexpr Capabilities kByCode = Ability::SubBatch | Ability::Batch | Ability::DeviceMemory;

const char* why_lost(Ability ability) {
  switch (ability) {
    case Ability::Suspend:
      return "Slurm lets a suspended job keep its GPUs: it is requeued instead";
    case Ability::Share: return "Slurm gives each GPU to one job";
    case Ability::Cores: return "Slurm binds a job to its cores when it starts";
    case Ability::Throttle: return "Slurm has no way to hold a running job back";
    case Ability::HostMemory: return "a running job keeps the memory that it asked for";
    case Ability::Power:
      return "no program that switches nodes is configured (power:): all stay on";
    default: return "training code cannot reach this scheduler";
  }
}

}  // namespace

HostTraits slurm_traits() noexcept {
  return {.lacks = Ability::Suspend | Ability::Share | Ability::Cores | Ability::Throttle |
                   Ability::Power,
          .keeps_queue = true};
}

Capabilities live_abilities(bool speaks, bool switches, const HostTraits& host) noexcept {
  Capabilities always = Capabilities::all().without(host.lacks | Ability::HostMemory);
  if (!switches) always = always.without(Ability::Power);
  return speaks ? always : always.without(kByCode);
}

std::vector<AbilityNote> live_notes(Capabilities uses, bool speaks, bool switches,
                                    const HostTraits& host) {
  const Capabilities can = live_abilities(speaks, switches, host);
  std::vector<AbilityNote> notes;
  for (const Ability ability : kAbilities) {
    if (!uses.has(ability)) continue;
    if (!can.has(ability)) {
      notes.push_back({ability, true, why_lost(ability)});
    } else if (kByCode.has(ability)) {
      notes.push_back({ability, false, "only code that speaks the training protocol follows"});
    } else if (ability == Ability::Power) {
      notes.push_back(
          {ability, false,
           "by the programs under 'power:' in the configuration; without them all nodes stay on"});
    } else if (ability == Ability::Throttle) {
      notes.push_back({ability, false, "a job is frozen for part of each fifth of a second"});
    }
  }
  return notes;
}

}  // namespace berth
