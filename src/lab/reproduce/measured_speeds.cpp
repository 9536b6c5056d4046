#include "lab/reproduce/measured_speeds.h"

#include <array>
#include <map>

#include <fmt/format.h>

#include "lab/fit/published.h"

namespace berth {

namespace {

constexpr std::array<std::string_view, 7> kModels{
    "ResNet-18", "ResNet-50", "Transformer", "LM", "Recommendation", "A3C", "CycleGAN"};

}  // namespace

Result<MeasuredSpeeds> measured_speeds(const std::string& data) {
  BERTH_TRY(const GavelThroughputs throughputs, GavelThroughputs::load(data));
  MeasuredSpeeds speeds;
  for (const std::string_view model : kModels) {
    std::map<double, std::map<std::string, double>> seconds;  // by batch, device
    for (const StepPoint& point : throughputs.steps(model)) {
      if (point.gpus == 1) seconds[point.batch][point.device] = point.seconds;
    }
    for (const auto& [batch, by_device] : seconds) {
      // Only types measured on all three devices: a missing one would count as slow or fast by
      // default.
      if (by_device.size() < 3 || !by_device.contains("v100")) continue;
      Profile profile;
      profile.name = fmt::format("{} at {}", model, batch);
      for (const auto& [device, time] : by_device)
        profile.speeds.emplace_back(device, by_device.at("v100") / time);
      speeds.types.push_back(profile.name);
      speeds.profiles->add(std::move(profile));
    }
  }
  if (speeds.types.empty()) return fail(fmt::format("{}: no job type was measured", data));
  return speeds;
}

}  // namespace berth
