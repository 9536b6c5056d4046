// Any bytes as a YAML job file: jobs or an Error that says where, never a crash, a hang or a throw.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "client/job_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto jobs = berth::client::parse_job_file(text, "fuzz.yaml");
  if (jobs) {
    BERTH_CHECK(!jobs->empty(), "a job file holds a job");
    return 0;
  }
  BERTH_CHECK(!jobs.error().messages.empty(), "an error says something");
  for (const std::string& message : jobs.error().messages)
    BERTH_CHECK(message.starts_with("fuzz.yaml:"), "an error says where");
  return 0;
}
