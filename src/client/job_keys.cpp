// KEY=VALUE of `--set`, `change` and job files as JSON. The kind of each key comes from the list of
// fields; spans, memory, signals and moments have their own notation.

#include "client/job_keys.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/split.h"
#include "base/suggest.h"
#include "client/moment.h"
#include "model/job_spec.h"
#include "model/job_spec_json.h"

namespace berth::client {

using nlohmann::json;

namespace {

template <class Number>
Result<json> number(std::string_view text, std::string_view wanted) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size())
    return fail(fmt::format("'{}' is no {}", text, wanted));
  return json(value);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Keys with a notation of their own come first; everything else is a plain number.
Result<json> whole(std::string_view key, std::string_view text) {
  const bool is_span =
      key == "time_limit" || key == "estimate" || key == "warn_seconds" || key == "grace_seconds";
  // Zero in any notation, and "unlimited", ask for as long as the queue gives.
  if (key == "time_limit" && (!is_number(text) || text.find_first_not_of('0') == text.npos)) {
    BERTH_TRY(const auto seconds, parse_job_limit(text));
    return json(seconds);
  }
  if (is_span && !is_number(text)) {  // a bare number is seconds, as the key says
    BERTH_TRY(const auto seconds, parse_time_limit(text));
    return json(seconds);
  }
  if (key == "memory_mib" || key == "gpu_memory_mib") {
    BERTH_TRY(const auto mib, parse_memory_mib(text));
    return json(mib);
  }
  if (key == "warn_signal") {
    BERTH_TRY(const auto signal, parse_signal(text));
    return json(signal);
  }
  if ((key == "begin" || key == "deadline") && !is_number(text)) {
    BERTH_TRY(const auto time, parse_moment(text, std::time(nullptr)));
    return json(time);
  }
  return number<std::int64_t>(text, "whole number");
}

Result<json> variables(std::string_view text) {
  json map = json::object();
  for (const std::string_view part : split(text, ',')) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(fmt::format("'{}' is not NAME=VALUE", part));
    map[std::string(part.substr(0, equals))] = std::string(part.substr(equals + 1));
  }
  return map;
}

const JobSpecField* field_of(std::string_view key) {
  const auto& fields = job_spec_fields();
  const auto found = std::ranges::find(fields, key, &JobSpecField::key);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

// Empty if the key is known: then the value is what is wrong.
std::string complaint_about_key(std::string_view key) {
  if (field_of(key) != nullptr) return {};
  std::vector<std::string> names;
  for (const JobSpecField& field : job_spec_fields()) names.emplace_back(field.key);
  const auto near = nearest_names(key, names);
  return fmt::format("no key is called '{}'{}", key,
                     near.empty() ? std::string(" (see docs/formats/job.md)")
                                  : fmt::format(" (did you mean {}?)", fmt::join(near, ", ")));
}

Result<json> value_of_key(std::string_view key, std::string_view text) {
  const JobSpecField* field = field_of(key);
  if (field == nullptr) return fail(complaint_about_key(key));
  if (field->kind == "integer") return whole(key, text);
  if (field->kind == "number") return number<double>(text, "number");
  if (field->kind == "map") return variables(text);
  if (field->kind == "boolean") {
    if (text == "true" || text == "yes" || text == "on" || text == "1") return json(true);
    if (text == "false" || text == "no" || text == "off" || text == "0") return json(false);
    return fail(fmt::format("'{}' is neither true nor false", text));
  }
  if (field->kind == "list") {
    json list = json::array();
    if (!text.empty())
      for (const std::string_view part : split(text, ',')) list.push_back(std::string(part));
    return list;
  }
  return json(std::string(text));
}

// Every fault is collected, so that one run shows all of them.
Result<json> json_of_settings(std::span<const std::string> settings) {
  json object = json::object();
  Error error;
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos) {
      error.messages.push_back(fmt::format("'{}' is not KEY=VALUE", setting));
      continue;
    }
    const std::string key = setting.substr(0, equals);
    auto value = value_of_key(key, std::string_view(setting).substr(equals + 1));
    if (value)
      object[key] = *std::move(value);
    else if (const auto complaint = complaint_about_key(key); !complaint.empty())
      error.messages.push_back(complaint);
    else
      error.messages.push_back(fmt::format("{}: {}", key, value.error().text()));
  }
  if (!error.messages.empty()) return tl::unexpected<Error>(std::move(error));
  return object;
}

}  // namespace berth::client
