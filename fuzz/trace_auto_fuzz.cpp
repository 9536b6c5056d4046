// Recognition by content and all the table formats, SWF and sacct. The first byte may name a format
// instead, so that every reader also meets files that are not its own.
#include "trace_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  check_trace(as_text(data, size), {.format = "", .skip_invalid = true});
  if (size == 0) return 0;
  const auto formats = trace_formats();
  check_trace(as_text(data + 1, size - 1),
              {.format = formats[data[0] % formats.size()].name, .skip_invalid = true});
  return 0;
}
