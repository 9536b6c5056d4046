#include "slurm_host/claim.h"

#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/split.h"

namespace berth {

namespace {

template <class Number>
std::optional<Number> number_from(std::string_view text) {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<SlurmName> name_from(std::string_view text) {
  const std::size_t bar = text.find('_');
  const auto job = number_from<std::uint32_t>(text.substr(0, bar));
  if (!job) return std::nullopt;
  if (bar == std::string_view::npos) return SlurmName{.job = *job};
  const auto task = number_from<std::int32_t>(text.substr(bar + 1));
  if (!task || *task < 0) return std::nullopt;
  return SlurmName{.job = *job, .task = *task};
}

}  // namespace

std::string to_text(SlurmName name) {
  return name.task < 0 ? fmt::format("{}", name.job) : fmt::format("{}_{}", name.job, name.task);
}

std::string key_of(const FirstSight& seen) {
  return fmt::format("slurm/{}/{}/{}", to_text(seen.name), seen.restarts, seen.submitted);
}

std::optional<FirstSight> first_sight_from(std::string_view key) {
  const auto parts = split(key, '/');
  if (parts.size() != 4 || parts[0] != "slurm") return std::nullopt;
  const auto name = name_from(parts[1]);
  const auto restarts = number_from<std::uint32_t>(parts[2]);
  const auto submitted = number_from<std::int64_t>(parts[3]);
  if (!name || !restarts || !submitted) return std::nullopt;
  return FirstSight{.name = *name, .submitted = *submitted, .restarts = *restarts};
}

SettingRecord to_setting(JobNumber job, const Claim& claim) {
  const nlohmann::json json{
      {"attempt", to_text(claim.attempt)}, {"name", to_text(claim.name)},  {"user", claim.user},
      {"restarts", claim.restarts},        {"submitted", claim.submitted}, {"nodes", claim.nodes}};
  return {.key = fmt::format("{}{}", kClaimSettings, job),
          .value = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
          .by = kSchedulerName};
}

SettingRecord no_claim(JobNumber job) {
  return {.key = fmt::format("{}{}", kClaimSettings, job), .value = {}, .by = kSchedulerName};
}

std::optional<std::pair<JobNumber, Claim>> claim_from(std::string_view key,
                                                      std::string_view value) {
  if (!key.starts_with(kClaimSettings)) return std::nullopt;
  const auto job = number_from<JobNumber>(key.substr(kClaimSettings.size()));
  const auto json = nlohmann::json::parse(value, nullptr, false);
  if (!job || !json.is_object()) return std::nullopt;
  try {
    const auto attempt = attempt_from(json.at("attempt").get<std::string>());
    const auto name = name_from(json.at("name").get<std::string>());
    if (!attempt || !name) return std::nullopt;
    return std::pair{*job, Claim{.attempt = *attempt,
                                 .name = *name,
                                 .user = json.at("user").get<std::string>(),
                                 .restarts = json.at("restarts").get<std::uint32_t>(),
                                 .submitted = json.at("submitted").get<std::int64_t>(),
                                 .nodes = json.at("nodes").get<std::vector<std::string>>()}};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // by another version, or by hand
  }
}

}  // namespace berth
