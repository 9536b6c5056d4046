// Why as programs read it (docs/formats/why.md), there and back: it is made in a copy of the
// scheduler.
#include <cmath>

#include <nlohmann/json.hpp>

#include "daemon/why.h"

namespace berth {

namespace {

/// To thousandths; whole ones without a point, as people write them.
nlohmann::json json_of(const WhyNumber& number) {
  const auto* measure = std::get_if<double>(&number);
  if (measure == nullptr)
    return std::visit([](const auto& value) { return nlohmann::json(value); }, number);
  const double milli = std::round(*measure * 1000);
  if (std::fmod(milli, 1000) == 0 && std::abs(milli) < 1e15)
    return static_cast<std::int64_t>(milli / 1000);
  return milli / 1000;
}

WhyNumber number_of(const nlohmann::json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  return json.get<double>();
}

WhyReason reason_of(const nlohmann::json& json) {
  WhyReason reason{.kind = json.at("kind"), .text = json.at("text")};
  for (const auto& [key, value] : json.at("numbers").items())
    reason.numbers.emplace_back(key, number_of(value));
  reason.entities = json.at("entities").get<std::vector<std::string>>();
  reason.fix = json.at("fix");
  reason.who = json.at("who");
  reason.when = json.at("when");
  if (!json.at("until").is_null()) reason.until = json.at("until").get<std::int64_t>();
  reason.sole = json.at("sole");
  return reason;
}

}  // namespace

std::string to_json(const Why& why) {
  nlohmann::json reasons = nlohmann::json::array();
  for (const WhyReason& reason : why.reasons) {
    nlohmann::json numbers = nlohmann::json::object();
    for (const auto& [key, value] : reason.numbers) numbers[key] = json_of(value);
    nlohmann::json row{{"kind", reason.kind},        {"text", reason.text}, {"numbers", numbers},
                       {"who", reason.who},          {"when", reason.when}, {"sole", reason.sole},
                       {"entities", reason.entities}};
    row["fix"] = reason.fix;
    row["until"] = reason.until ? nlohmann::json(*reason.until) : nlohmann::json();
    reasons.push_back(std::move(row));
  }
  return nlohmann::json{{"job", why.job},
                        {"state", to_string(why.state)},
                        {"summary", why.summary},
                        {"reasons", reasons},
                        {"would_start", why.would_start},
                        {"place", why.place},
                        {"of", why.of},
                        {"user", why.user},
                        {"yours", why.is_yours},
                        {"age_seconds", 0}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Why> why_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Why why{.job = json.at("job"),
            .state = live_state_from(json.at("state").get<std::string>()).value_or(LiveState{}),
            .summary = json.at("summary"),
            .reasons = {},
            .would_start = json.at("would_start"),
            .place = json.at("place"),
            .of = json.at("of"),
            .user = json.at("user"),
            .is_yours = json.at("yours")};
    for (const auto& reason : json.at("reasons")) why.reasons.push_back(reason_of(reason));
    return why;
  } catch (const nlohmann::json::exception& error) {
    return fail(std::string("no answer to why: ") + error.what());
  }
}

}  // namespace berth
