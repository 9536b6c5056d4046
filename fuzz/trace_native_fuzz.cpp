// Our own CSV, strict and with skip_invalid.
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  check_trace(as_text(data, size), {.format = "native", .skip_invalid = false, .max_errors = 3});
  check_trace(as_text(data, size), {.format = "native", .skip_invalid = true});
  return 0;
}
