// What of Gandiva can be set from outside.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "policies/gandiva/servers.h"

namespace berth::gandiva {

enum class Mechanism : std::uint8_t { Off, On };
enum class GrowStep : std::uint8_t { Double, All };

struct Options {
  Duration slice = std::chrono::seconds{60};
  Duration switch_cost = std::chrono::seconds{1};
  Duration migration_cost = std::chrono::seconds{2};
  Duration resize_cost = std::chrono::seconds{5};
  Duration tick = std::chrono::seconds{60};
  Duration pack_probe = std::chrono::seconds{120};
  Duration rebalance = std::chrono::minutes{10};
  Duration idle_period = std::chrono::minutes{5};
  Duration migrate_cooldown = std::chrono::minutes{10};
  Duration horizon = std::chrono::minutes{10};
  ServerLimits limits;
  double defrag_threshold = 0.75;  // share of a server's GPUs that is free
  std::size_t max_probe = 64;
  GrowStep grow_step = GrowStep::Double;
  Mechanism packing = Mechanism::On;
  Mechanism migration = Mechanism::On;
  Mechanism growing = Mechanism::On;
};

}  // namespace berth::gandiva
