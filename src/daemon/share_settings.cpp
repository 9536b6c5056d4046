#include "daemon/share_settings.h"

#include <nlohmann/json.hpp>

namespace berth {

std::string share_key(const ShareView& share) { return "share/" + share.kind + "/" + share.name; }

std::string to_setting(const ShareView& share) {
  return nlohmann::json{{"shares", share.shares},
                        {"gpu_limit", share.gpu_limit},
                        {"job_limit", share.job_limit},
                        {"gpu_seconds_limit", share.gpu_seconds_limit},
                        {"members", share.members}}
      .dump();
}

std::optional<ShareView> share_from_setting(const std::string& key, const std::string& value) {
  constexpr std::string_view kPrefix = "share/";
  if (!key.starts_with(kPrefix)) return std::nullopt;
  const std::size_t slash = key.find('/', kPrefix.size());
  if (slash == std::string::npos) return std::nullopt;
  const auto json = nlohmann::json::parse(value, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto number = [&](const char* name, double otherwise) {
    return json.contains(name) && json[name].is_number() ? json[name].get<double>() : otherwise;
  };
  ShareView share;
  share.kind = key.substr(kPrefix.size(), slash - kPrefix.size());
  share.name = key.substr(slash + 1);
  share.shares = number("shares", 1);
  share.gpu_limit = static_cast<std::int32_t>(number("gpu_limit", 0));
  share.job_limit = static_cast<std::int32_t>(number("job_limit", 0));
  share.gpu_seconds_limit = number("gpu_seconds_limit", 0);
  if (const auto members = json.find("members"); members != json.end() && members->is_array()) {
    for (const auto& member : *members) {
      if (member.is_string()) share.members.push_back(member.get<std::string>());
    }
  }
  return share;
}

}  // namespace berth
