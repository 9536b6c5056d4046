#include "store/journal_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/job_spec_json.h"
#include "wire/reader.h"
#include "wire/step_fields.h"
#include "wire/tree.h"

namespace berth {

namespace {

using nlohmann::json;

/// A list of indices; null is an empty one.
Result<std::vector<std::int32_t>> indices_from(const json& source, const char* key) {
  std::vector<std::int32_t> indices;
  const auto found = source.find(key);
  if (found == source.end() || found->is_null()) return indices;
  const auto is_index = [](const json& item) {
    return item.is_number_unsigned() && item.get<std::uint64_t>() <= 0x7fff'ffffU;
  };
  if (!found->is_array() || !std::ranges::all_of(*found, is_index))
    return fail(fmt::format("where: {} is a list of indices", key));
  for (const json& item : *found) indices.push_back(item.get<std::int32_t>());
  return indices;
}

bool is_known(const std::string& key) {
  static const auto& fields = job_spec_fields();
  return std::ranges::any_of(fields, [&](const JobSpecField& field) { return field.key == key; });
}

}  // namespace

json to_json(const std::vector<HeldDevices>& where) {
  json all = json::array();
  for (const HeldDevices& part : where) {
    json one{{"node", part.node}, {"devices", part.devices}};
    if (!part.cores.empty()) one["cores"] = part.cores;
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<HeldDevices>> held_from_json(const json& source) {
  std::vector<HeldDevices> where;
  if (source.is_null()) return where;
  if (!source.is_array()) return fail("where: a list of nodes expected");
  for (const json& part : source) {
    if (!part.is_object() || !part.contains("node") || !part["node"].is_string())
      return fail("where: a node without a name");
    BERTH_TRY(auto devices, indices_from(part, "devices"));
    BERTH_TRY(auto cores, indices_from(part, "cores"));
    where.push_back({part["node"].get<std::string>(), std::move(devices), std::move(cores)});
  }
  return where;
}

json to_json(const std::vector<StepView>& steps) {
  json list = json::array();
  for (const StepView& step : steps) list.push_back(json::parse(wire::to_sorted_json(step)));
  return list;
}

std::vector<StepView> steps_from_json(const json& from) {
  std::vector<StepView> steps;
  if (!from.is_array()) return steps;
  for (const json& each : from) wire::read(each, steps.emplace_back());
  return steps;
}

std::string dump(const json& source) {
  // Broken UTF-8 is replaced rather than refused: a job with an odd name must still be recorded.
  return source.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string spec_text(const JobSpec& spec) { return dump(to_json(spec)); }

std::string submit_body(JobNumber first, std::string_view spec_text) {
  return fmt::format(R"({{"first":{},"spec":{}}})", first, spec_text);
}

Result<JobSpec> kept_spec(const json& source) {
  if (!source.is_object()) return fail("spec: an object expected");
  const auto is_all_known = [](const json& object) {
    for (auto item = object.begin(); item != object.end(); ++item)
      if (!is_known(item.key())) return false;
    return true;
  };
  if (is_all_known(source)) return job_spec_from_json(source);
  // Written by a newer version that knew more keys: what this one does not know cannot matter to
  // it.
  json known = json::object();
  for (auto item = source.begin(); item != source.end(); ++item)
    if (is_known(item.key())) known[item.key()] = item.value();
  return job_spec_from_json(known);
}

Result<JobSpec> kept_spec(std::string_view text) {
  const json source = json::parse(text, nullptr, false);
  if (source.is_discarded()) return fail("spec: not JSON");
  return kept_spec(source);
}

}  // namespace berth
