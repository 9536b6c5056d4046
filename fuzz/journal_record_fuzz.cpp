// Any bytes as the body of a record: a record or an Error, never a crash or a throw. What is
// accepted reads back as it is written. The first line names the kind.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "store/record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = text.find('\n');
  if (line == std::string_view::npos) return 0;
  const auto body = berth::decode(text.substr(0, line), text.substr(line + 1));
  if (!body) {
    BERTH_CHECK(!body.error().messages.empty(), "an error says something");
    return 0;
  }
  BERTH_CHECK(berth::kind_of(*body) == text.substr(0, line), "a record is of its kind");
  const std::string written = berth::encode(*body);
  const auto again = berth::decode(berth::kind_of(*body), written);
  BERTH_CHECK(again.has_value(), "what was written can be read");
  BERTH_CHECK(berth::encode(*again) == written, "what was read is what was written");
  return 0;
}
