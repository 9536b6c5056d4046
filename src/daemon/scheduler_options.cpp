#include "daemon/scheduler_options.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace berth {

bool is_same(PolicyChoice a, PolicyChoice b) {
  std::ranges::sort(a.settings);
  std::ranges::sort(b.settings);
  return a == b;
}

std::string to_text(const PolicyChoice& choice) {
  nlohmann::json settings = nlohmann::json::object();
  for (const auto& [key, value] : choice.settings) settings[key] = value;
  return nlohmann::json{{"policy", choice.policy}, {"settings", std::move(settings)}}.dump();
}

Result<PolicyChoice> policy_choice_from(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("policy") || !json["policy"].is_string())
    return fail(fmt::format("'{}' does not name a policy", text));
  PolicyChoice choice{.policy = json["policy"].get<std::string>()};
  if (json.contains("settings") && json["settings"].is_object()) {
    for (const auto& [key, value] : json["settings"].items())
      choice.settings.emplace_back(key,
                                   value.is_string() ? value.get<std::string>() : value.dump());
  }
  return choice;
}

std::string live_estimator(const std::string& said, const PolicyChoice& choice) {
  if (!said.empty()) return said;
  const auto entry = find_policy(choice.policy);
  return entry && (*entry)->estimator != "oracle" ? (*entry)->estimator : "history";
}

bool make_the_same_engine(SchedulerOptions a, SchedulerOptions b) {
  for (SchedulerOptions* options : {&a, &b}) {
    options->policy = {};
    options->min_run = 0;
    options->training_answer = 0;
  }
  return a == b;
}

}  // namespace berth
