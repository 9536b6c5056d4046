// Any bytes as a profile file: a ProfileSet or an Error, never a crash, a hang or a throw. What is
// accepted keeps the promises the rates build on, and reads back as it was written.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "perf/profile_file.h"

namespace {

using berth::Profile;
using berth::ProfileId;
using berth::ProfileSet;

void check_profile(const Profile& profile) {
  BERTH_CHECK(!profile.name.empty() && profile.batch >= 1, "a profile has a name and a batch");
  BERTH_CHECK(profile.iteration.alpha + profile.iteration.beta > 0, "an iteration takes time");
  for (const berth::Phase phase : {berth::Phase::Training, berth::Phase::Validation}) {
    const berth::CpuCurve& cpu = profile.cpu_in(phase);
    for (std::int32_t cores = 1; cpu.is_known() && cores <= cpu.theta; ++cores)
      BERTH_CHECK(cpu.feed(cores) > 0, "every core count feeds something");
  }
  BERTH_CHECK(profile.data.samples_per_second(1) > 0, "a data set can be read");
  for (const auto& [device, speed] : profile.speeds)
    BERTH_CHECK(speed > 0 && std::isfinite(speed), "a speed is positive");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto set = berth::parse_profiles(text, "fuzz.yaml", ProfileSet{});
  if (!set) {
    BERTH_CHECK(!set.error().messages.empty(), "an error says something");
    for (const std::string& message : set.error().messages)
      BERTH_CHECK(message.starts_with("fuzz.yaml:"), "an error says where");
    return 0;
  }
  for (std::uint32_t i = 0; i < set->size(); ++i) check_profile((*set)[ProfileId{i}]);
  for (std::uint32_t i = 0; i < set->size(); ++i) {
    const Profile& profile = (*set)[ProfileId{i}];
    // Device types of its own are not part of a set, so that they would be unknown.
    if (!profile.speeds.empty() || !profile.measured.empty()) return 0;
  }
  const std::string written = berth::profiles_to_yaml(*set, "");
  const auto again = berth::parse_profiles(written, "again.yaml", ProfileSet{});
  const bool has_any = set->size() > 1;
  BERTH_CHECK(!has_any || again.has_value(), "what was written reads back");
  BERTH_CHECK(!has_any || berth::profiles_to_yaml(*again, "") == written, "as it was");
  return 0;
}
