#include "why/why_json.h"

#include <nlohmann/json.hpp>

#include "wire/reader.h"
#include "wire/tree.h"

namespace berth {

std::string to_json(const Why& why) { return wire::to_sorted_json(why); }

Result<Why> why_from_json(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  Why why;
  if (!json.is_discarded()) wire::read(json, why);
  if (!json.is_object() || !json.contains("reasons"))
    return fail("no answer to why: not what a copy of the scheduler says");
  return why;
}

}  // namespace berth
