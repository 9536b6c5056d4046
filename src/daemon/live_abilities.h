// What the live scheduler can do to jobs on this machine, and whom that reaches: for the engine,
// which plans nothing else, and for people, who are told what a policy loses.
#pragma once

#include <string>
#include <vector>

#include "core/capabilities.h"

namespace berth {

/// Where attempts run, and what cannot be done there whatever else is there.
struct HostTraits {
  Capabilities lacks{};
  /// Jobs wait somewhere else: they come from there, and a job that has failed is over there.
  bool keeps_queue = false;
};
/// Slurm's: a suspended job keeps its GPUs, devices are not shared, cores are given at the start.
[[nodiscard]] HostTraits slurm_traits() noexcept;

/// `speaks`: training code can reach the scheduler.
/// `switches`: programs are configured that switch nodes off and on.
[[nodiscard]] Capabilities live_abilities(bool speaks, bool switches,
                                          const HostTraits& host = {}) noexcept;

/// Of something that a policy uses and that is not simply so here.
struct AbilityNote {
  Ability ability{};
  bool is_lost = false;  // it cannot be done, and the policy does without
  std::string text;
};
[[nodiscard]] std::vector<AbilityNote> live_notes(Capabilities uses, bool speaks, bool switches,
                                                  const HostTraits& host = {});

}  // namespace berth
