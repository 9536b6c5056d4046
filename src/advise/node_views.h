// Slurm's nodes in Berth's words, with who is on which GPU where Slurm tells it.
#pragma once

#include <string>
#include <vector>

#include "advise/sight.h"
#include "wire/views.h"

namespace berth::advise {

/// "up", "down", "drained", "draining", "off", "booting", "reserved".
[[nodiscard]] std::string state_of(const slurm::Node& node);
[[nodiscard]] std::vector<NodeView> node_views(const Sight& sight);

/// GPUs of one type, over all nodes.
struct TypeUse {
  std::string type;
  std::int64_t used = 0, free = 0, out = 0;  // out: on nodes that take no jobs, and not used
};
[[nodiscard]] std::vector<TypeUse> uses_of_types(const Sight& sight);

}  // namespace berth::advise
