// Jobs to be asked about, and what was answered.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/live_world.h"

namespace berth::test {

inline std::vector<std::string> kinds_of(const Why& why) {
  std::vector<std::string> kinds;
  for (const WhyReason& reason : why.reasons) kinds.push_back(reason.kind);
  return kinds;
}

template <class T>
T number_in(const WhyReason& reason, std::string_view name, T missing) {
  for (const auto& [key, value] : reason.numbers) {
    if (key == name && std::holds_alternative<T>(value)) return std::get<T>(value);
  }
  return missing;
}
inline std::int64_t count_in(const WhyReason& reason, std::string_view name) {
  return number_in<std::int64_t>(reason, name, -1);
}
inline double measure_in(const WhyReason& reason, std::string_view name) {
  return number_in<double>(reason, name, static_cast<double>(count_in(reason, name)));
}

inline JobSpec typed(double seconds, std::int32_t gpus, const std::string& type, std::int32_t cpus,
                     std::int64_t limit) {
  JobSpec spec = spec_of({"run", fmt::format("{}", seconds)}, gpus);
  spec.gpu_type = type;
  spec.cpus = cpus;
  spec.time_limit = limit;
  return spec;
}

inline JobSpec limited(double seconds, std::int32_t gpus, std::int64_t limit) {
  return typed(seconds, gpus, "", 0, limit);
}

}  // namespace berth::test
