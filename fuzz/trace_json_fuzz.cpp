// The JSON formats: the Philly log and sacct --json.
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  check_trace(as_text(data, size), {.format = "philly", .skip_invalid = true});
  check_trace(as_text(data, size), {.format = "sacct", .skip_invalid = true});
  return 0;
}
