#include "policies/cpu/cpu_tuner.h"

#include <fmt/format.h>

#include "policies/cpu/aware_tuner.h"
#include "policies/cpu/quota_tuner.h"

namespace berth {

CpuTunerOptions cpu_options_for(const Policy& policy) {
  CpuTunerOptions options;
  if (!policy.shares_devices()) options.reschedule_interval = std::chrono::minutes{10};
  return options;
}

Result<std::unique_ptr<NodeTuner>> make_cpu_tuner(std::string_view mode,
                                                  const CpuTunerOptions& options) {
  if (mode == "shared") return std::make_unique<QuotaTuner>(CpuQuota::Shared);
  if (mode == "role") return std::make_unique<QuotaTuner>(CpuQuota::Role);
  if (mode == "bind") return std::make_unique<QuotaTuner>(CpuQuota::Bind);
  if (mode == "aware") return std::make_unique<AwareTuner>(options);
  return fail(fmt::format("--cpu: unknown mode '{}' (known: shared, role, bind, aware)", mode));
}

Result<CpuObjective> parse_cpu_objective(std::string_view text) {
  if (text == "sum") return CpuObjective::Sum;
  if (text == "maxmin") return CpuObjective::MaxMin;
  if (text == "fair-floor") return CpuObjective::FairFloor;
  return fail(
      fmt::format("unknown objective of cores '{}' (known: sum, maxmin, fair-floor)", text));
}

}  // namespace berth
