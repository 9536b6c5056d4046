// The job types of Gavel's published throughputs as profiles: how fast each runs on one V100, P100
// and K80. For the reproductions of schedulers that live on these differences.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "perf/profile.h"

namespace berth {

struct MeasuredSpeeds {
  std::shared_ptr<ProfileSet> profiles = std::make_shared<ProfileSet>();
  std::vector<std::string> types;  // names of the profiles: "ResNet-18 at 16"
};

/// From `data`/gavel/simulation_throughputs.json; types not measured on all three are left out.
[[nodiscard]] Result<MeasuredSpeeds> measured_speeds(const std::string& data);

}  // namespace berth
